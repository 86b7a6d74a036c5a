"""Joint draws of tables that cross: whole cells, none negative, of which every table is a sum."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.errors import InputError
from countwise.inference.box_names import find_box
from countwise.inference.box_statements import BoxSum
from countwise.inference.chain_draws import chain_draws
from countwise.inference.diagnostics import effective_size, split_rhat
from countwise.inference.draws import draws_beside
from countwise.inference.lattice_chains import DrawnCells, lattice_draws
from countwise.margins.boxes import Box
from countwise.margins.measurement import Measurement
from countwise.progress import Tell, silent
from countwise.tables.workload import Margin, Workload

AT_A_TIME = 4_000  # counts whose draws are looked at together


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossedDraws:
    """``cells`` has an axis a chain, one a draw, and one a variable; all tables are sums of it.

    `count` of them were asked for, and are handed out evenly from all chains.
    """

    workload: Workload
    cells: DrawnCells
    route: str
    prior: str
    count: int
    independent: bool

    def __len__(self) -> int:
        return self.count

    @cached_property
    def chosen(self) -> DrawnCells:
        """The draws that were asked for, chains in turn: a row a draw and a column a cell."""
        chains, each = self.cells.shape[:2]
        flat = np.swapaxes(self.cells.reshape(chains, each, -1), 0, 1).reshape(chains * each, -1)
        return flat[np.arange(self.count) * len(flat) // self.count]

    def first(self, count: int) -> "CrossedDraws":
        """So many of them."""
        return replace(self, count=count)

    def margin(self, margin: Margin) -> IntArray:
        """The counts of a table in every draw, which are the first axis."""
        shape = self.workload.shape
        return np.stack(
            [self.workload.sums(row.reshape(shape).astype(np.int64), margin) for row in self.chosen]
        )

    def __getitem__(self, name: str) -> IntArray:
        """A sum by its name, "county=Wake|Durham, age=65+", in every draw."""
        return self._of(self.chosen, find_box(self.workload, name).box)

    def values(self, asked: BoxSum) -> IntArray:
        """A signed sum by chain and draw, of all draws there are."""
        flat = self.cells.reshape(*self.cells.shape[:2], -1)
        terms = (each.multiple * self._of(flat, each.named.box) for each in asked.terms)
        return np.asarray(sum(terms, np.full(flat.shape[:2], asked.constant)), dtype=np.int64)

    def sums(self, box: Box) -> IntArray:
        """A sum by chain and draw, of all draws there are."""
        return self._of(self.cells.reshape(*self.cells.shape[:2], -1), box)

    def _of(self, rows: DrawnCells, box: Box) -> IntArray:
        inside = np.flatnonzero(box.inside(self.workload, self.workload.finest).reshape(-1))
        return np.asarray(rows[..., inside].sum(axis=-1, dtype=np.int64))

    def effective(self, values: FloatArray | IntArray | BoolArray) -> float:
        """To how many independent draws something that was seen by chain and draw amounts."""
        if self.independent:
            return float(values.size)
        return float(effective_size(values.astype(np.float64)))

    @cached_property
    def diagnostics(self) -> str:
        """What the sampler says about itself, over all counts of all published tables."""
        if self.independent:
            return f"{self.count:,} independent draws."
        sizes, rhats = zip(*(self._mixing(each) for each in self._columns()), strict=True)
        size, rhat = np.concatenate(sizes), np.concatenate(rhats)
        chains, each = self.cells.shape[:2]
        return (
            f"{chains} chains of {each:,} draws; effective draws of a published count at least "
            f"{size.min():,.0f} (of nineteen in twenty {np.quantile(size, 0.05):,.0f}); split "
            f"R-hat at most {rhat.max():.3f} (of nineteen in twenty {np.quantile(rhat, 0.95):.3f})."
        )

    def _mixing(self, values: IntArray) -> tuple[FloatArray, FloatArray]:
        drawn = values.astype(np.float64)
        return effective_size(drawn), split_rhat(drawn)

    def _columns(self) -> Iterator[IntArray]:
        """All published counts by chain and draw, so many at a time."""
        chains, each = self.cells.shape[:2]
        for margin in self.workload.margins:
            counts = self._every(margin).reshape(chains, each, -1)
            for first in range(0, counts.shape[2], AT_A_TIME):
                yield counts[:, :, first : first + AT_A_TIME]

    def _every(self, margin: Margin) -> IntArray:
        flat = self.cells.reshape(-1, *self.workload.shape)
        return np.stack([self.workload.sums(row.astype(np.int64), margin) for row in flat])

    def frame(self) -> pl.DataFrame:
        """One row a cell: its labels, then the columns draw_1, draw_2, … with its counts."""
        labels = pl.DataFrame([column for _, column in self.workload.labels(self.workload.finest)])
        return draws_beside(labels, self.chosen)

    def to_arviz(self) -> dict[str, Any]:
        """The arguments of ``arviz.from_dict``: a variable a table, by chain, draw and node."""
        chains, each = self.cells.shape[:2]
        names = {margin: self.workload.name(margin) for margin in self.workload.margins}
        return {
            "posterior": {
                name: self._every(margin).reshape(chains, each, -1)
                for margin, name in names.items()
            },
            "dims": {name: [f"{name}_node"] for name in names.values()},
            "coords": {f"{name}_node": self._names(margin) for margin, name in names.items()},
        }

    def _names(self, margin: Margin) -> list[str]:
        frame = self.workload.frame(margin).drop("level")
        levels = frame.columns
        rows = frame.cast(pl.String).rows()
        named = (
            [f"{level}={label}" for level, label in zip(levels, row, strict=True) if label]
            for row in rows
        )
        return [", ".join(each) or self.workload.name(margin) for each in named]


def draw_crossed(
    workload: Workload,
    measurements: Sequence[Measurement],
    count: int,
    *,
    exactly: bool,
    rng: np.random.Generator,
    folder: Path | None = None,
    report: Tell = silent,
) -> CrossedDraws:
    """Joint draws of the cells; `exactly` from messages, which only a chain of tables has."""
    if count < 1:
        raise InputError(f"the number of draws must be 1 or more, got {count}.")
    if exactly:
        cells, prior = chain_draws(workload, measurements, count, rng=rng)
        drawn: DrawnCells = cells[None]
        route = "published noisy counts of a chain of tables, exact messages"
    else:
        found = lattice_draws(workload, measurements, count, rng=rng, folder=folder, report=report)
        drawn, prior = found.cells, found.prior
        route = "published noisy counts, sampler on the lattice of cells"
    return CrossedDraws(
        workload=workload,
        cells=drawn.reshape(*drawn.shape[:2], *workload.shape),
        route=route,
        prior=prior,
        count=count,
        independent=exactly,
    )
