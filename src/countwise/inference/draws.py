"""Joint draws of all true counts: from the root down, each parent split among its children."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from countwise.arrays import IntArray
from countwise.errors import InputError
from countwise.inference.node_names import find, level_names
from countwise.pages.notebook import ROWS, Framed, Picture, frame_html
from countwise.sumproduct.summaries import Law
from countwise.sumproduct.tree import Solved
from countwise.tables.hierarchy import ROOT, Hierarchy

COLUMNS = 8  # that a notebook shows


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Draws(Framed):
    """``levels[d]`` has one row a draw and one column a node; children add up to parents."""

    hierarchy: Hierarchy
    levels: tuple[IntArray, ...]

    def __repr__(self) -> str:
        nodes = self.hierarchy.nodes
        return f"Draws({len(self):,} of {nodes:,} counts; draws[name], .to_polars, .plot(name))"

    def to_polars(self) -> pl.DataFrame:
        """One row a draw, one column a node by its path, the total first."""
        return pl.DataFrame(
            {
                name: values[:, i]
                for level, values in enumerate(self.levels)
                for i, name in enumerate(level_names(self.hierarchy, level))
            }
        )

    def _repr_html_(self) -> str:
        """The first draws of the first nodes."""
        first = {
            name: values[:ROWS, i]
            for level, values in enumerate(self.levels)
            for i, name in zip(range(COLUMNS), level_names(self.hierarchy, level), strict=False)
        }
        return frame_html(pl.DataFrame(dict(list(first.items())[:COLUMNS])), about=repr(self))

    def plot(self, name: str = ROOT) -> Picture:
        """How often each true count of a node was drawn, as bars."""
        drawn = self[name]
        chances = np.bincount(drawn - drawn.min()) / len(drawn)
        law = Law(low=int(drawn.min()), chances=chances)
        return law.plot(f"Draws of the true count of {name}")

    def __len__(self) -> int:
        return len(self.levels[0])

    def __getitem__(self, name: str) -> IntArray:
        level, node = find(self.hierarchy, name)
        return self.levels[level][:, node]

    @property
    def cells(self) -> IntArray:
        """The draws of the last level."""
        return self.levels[-1]

    def frame(self) -> pl.DataFrame:
        """One row a cell: its labels, then the columns draw_1, draw_2, … with its counts."""
        labels = self.hierarchy.frame(len(self.hierarchy.by)).drop("level")
        return draws_beside(labels, self.cells)

    def to_arviz(self) -> dict[str, Any]:
        """The arguments of ``arviz.from_dict``: a variable a level, by chain, draw and node."""
        names = self.hierarchy.levels
        return {
            "posterior": {name: each[None] for name, each in zip(names, self.levels, strict=True)},
            "dims": {name: [f"{name}_node"] for name in names},
            "coords": {
                f"{name}_node": level_names(self.hierarchy, level)
                for level, name in enumerate(names)
            },
        }


def draws_beside(labels: pl.DataFrame, rows: npt.NDArray[np.int32 | np.int64]) -> pl.DataFrame:
    """Labels of cells with a column for each draw, of which `rows` has one a row."""
    names = [f"draw_{i + 1}" for i in range(len(rows))]
    return labels.hstack(pl.DataFrame(np.ascontiguousarray(rows.T), schema=names))


def draw(
    solved: Solved, count: int, *, deepest: int | None = None, rng: np.random.Generator
) -> Draws:
    """Independent draws of the counts of all nodes, or of those down to a level."""
    if count < 1:
        raise InputError(f"the number of draws must be 1 or more, got {count}.")
    hierarchy, levels = solved.hierarchy, _top(solved, count, rng)
    last = len(hierarchy.offsets) if deepest is None else max(deepest, len(levels) - 1)
    for level in range(len(levels) - 1, last):
        below = np.empty((count, hierarchy.sizes[level + 1]), np.int64)
        for parent in range(hierarchy.sizes[level]):
            children = solved.children(level, parent, parent + 1)
            steps = solved.ties.steps(level, parent, children)
            here = hierarchy.children(level, parent)
            below[:, here] = steps.split(children, levels[-1][:, parent], rng)
        levels.append(below)
    return Draws(hierarchy=hierarchy, levels=tuple(levels))


def _top(solved: Solved, count: int, rng: np.random.Generator) -> list[IntArray]:
    """Draws of the root, with those of its children where they are drawn together."""
    known, children = solved.couplings[0].one(0), solved.children(0, 0, 1)
    rows = solved.ties.top_draws(children, *known, count, rng)
    if rows is not None:
        return [rows.sum(axis=1, keepdims=True), rows]
    low, law = solved.root.one(0)
    root = low + rng.choice(len(law), count, p=law / law.sum())
    return [np.asarray(root[:, None], np.int64)]
