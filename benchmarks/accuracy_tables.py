"""The tables that the accuracy of releases is shown on, with the loss of each level."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from countwise.tables.hierarchy import ROOT, Hierarchy, build

DATA = Path(__file__).parents[2] / "shared" / "data"

Losses = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Counts to release, at a loss for each level; in ρ where the noise is Gaussian."""

    hierarchy: Hierarchy
    cells: np.ndarray
    loss: Losses
    unit: str = "epsilon"
    repetitions: int = 1000
    judged: int = 100
    """Releases whose ranges are judged."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A named table, made when it is wanted."""

    name: str
    make: Callable[[], Table]
    needs: Path | None = None
    known: bool = False
    """Looked at while an adjustment was tuned."""
    lone: bool = False
    """One small cell among empty ones."""


def even(by: Sequence[str], whole: str) -> Losses:
    """The whole loss in equal parts for the total and every level."""
    return dict.fromkeys((ROOT, *by), str(Fraction(whole) / (len(by) + 1)))


def flat(cells: Any, *, total: str, parts: str, **more: Any) -> Table:
    """One level below the total."""
    return tree([(f"{i:06}",) for i in range(len(cells))], cells, {ROOT: total, "part": parts},
                by=("part",), **more)  # fmt: skip


def tree(
    paths: Sequence[tuple[str, ...]], cells: Any, loss: Losses, *, by: Sequence[str], **more: Any
) -> Table:
    """A table from the paths of its cells, in any order."""
    frame = pl.DataFrame(paths, schema=dict.fromkeys(by, pl.String), orient="row")
    hierarchy, order = build(frame)
    return Table(
        hierarchy=hierarchy, cells=np.asarray(cells, dtype=np.int64)[order], loss=loss, **more
    )


def crossed(counts: np.ndarray, *, by: Sequence[str], loss: Losses, **more: Any) -> Table:
    """Every combination of labels, one axis a level."""
    paths = [tuple(f"{at:05}" for at in each) for each in np.ndindex(*counts.shape)]
    return tree(paths, counts.ravel(), loss, by=by, **more)


def known_rows() -> Iterator[Row]:
    """Tables that adjustments were tuned on or compared with before."""
    rng = np.random.default_rng(7)
    spread = np.concatenate([[0, 0, 0, 1, 2, 3, 15, 22, 31, 44, 60], rng.integers(60, 978, 39)])
    seats = np.repeat(
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 27, 36, 53, 435],
        [7, 5, 3, 6, 3, 2, 2, 4, 4, 1, 1, 1, 1, 2, 1, 2, 2, 1, 1, 1],
    )
    seats = rng.permutation(seats)
    empty = [0] * 200 + [500, 2000, 9000]
    poisson, zipf = rng.poisson(3, 500), np.minimum(rng.zipf(1.6, 300), 10**5)
    other = np.random.default_rng(2024)
    large, five, one = other.integers(50, 3000, 12), other.poisson(5, 300), other.poisson(1, 800)
    mixed = [0] * 200 + [*range(5, 41, 2), 9, 20]
    for name, cells, total, parts in (
        ("scenario 1", spread, "1", "1"),
        ("scenario 2", spread, "0.1", "5"),
        ("scenario 3", spread, "5", "0.1"),
        ("scenario 4", seats, "1", "1"),
        ("200 empty cells and three large, ε = 1", empty, "1", "1"),
        ("200 empty cells and three large, ε = ¼", empty, "0.25", "0.25"),
        ("600 empty cells and twelve large, ε = 0.7", [0] * 600 + [*large], "0.7", "0.7"),
        ("200 empty cells and twenty of 5 to 40, ε = 1", mixed, "1", "1"),
        ("500 Poisson(3) cells, ε = ½", poisson, "0.5", "0.5"),
        ("300 Poisson(5) cells, ε = 0.4", five, "0.4", "0.4"),
        ("800 Poisson(1) cells, ε = 0.7", one, "0.7", "0.7"),
        ("300 Zipf cells, ε = 1", zipf, "1", "1"),
    ):
        yield Row(
            name=name,
            make=lambda c=cells, t=total, p=parts: flat(c, total=t, parts=p),  # type: ignore[misc]
            known=True,
        )
    by, path = ("county", "tract", "race"), DATA / "nc_tracts_2020.csv"
    for whole in ("1", "4"):
        yield Row(
            name=f"North Carolina by race, ε = {whole} in all",
            make=lambda w=whole: counted(path, by, even(by, w), repetitions=100, judged=3),  # type: ignore[misc]
            needs=path,
            known=True,
        )


def counted(path: Path, by: Sequence[str], loss: Losses, **more: Any) -> Table:
    """A table of a file with one row a cell and its count."""
    rows = pl.read_csv(path, schema_overrides=dict.fromkeys(by, pl.String))
    return tree(rows.select(by).rows(), rows["count"].to_numpy(), loss, by=by, **more)
