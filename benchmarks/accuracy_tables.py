"""The tables that `accuracy.py` releases, with the loss of each level."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from countwise.tables.hierarchy import Hierarchy, build
from countwise.tables.reading import read_public_counts


@dataclass(frozen=True, kw_only=True)
class Table:
    """Counts to release, at a loss."""

    name: str
    hierarchy: Hierarchy
    cells: np.ndarray
    epsilon: dict[str, str]
    repetitions: int
    covered: int
    minutes: float = float("inf")
    categories: bool = False
    fresh: bool = False  # not looked at while anything was tuned


def flat(
    name: str, cells: Any, total: str, parts: str, repetitions: int, *, fresh: bool = False
) -> Table:
    labels = pl.DataFrame({"part": [f"{i:06}" for i in range(len(cells))]})
    return Table(
        name=name,
        hierarchy=build(labels)[0],
        cells=np.array(cells, dtype=np.int64),
        epsilon={"total": total, "part": parts},
        repetitions=repetitions,
        covered=repetitions,
        fresh=fresh,
    )


def tables(repetitions: int) -> list[Table]:
    rng = np.random.default_rng(7)
    spread = np.concatenate([[0, 0, 0, 1, 2, 3, 15, 22, 31, 44, 60], rng.integers(60, 978, 39)])
    seats = np.repeat(
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 27, 36, 53, 435],
        [7, 5, 3, 6, 3, 2, 2, 4, 4, 1, 1, 1, 1, 2, 1, 2, 2, 1, 1, 1],
    )
    empty = [0] * 200 + [500, 2000, 9000]
    return [
        flat("scenario 1", spread, "1", "1", repetitions),
        flat("scenario 2", spread, "0.1", "5", repetitions),
        flat("scenario 3", spread, "5", "0.1", repetitions),
        flat("scenario 4", rng.permutation(seats), "1", "1", repetitions),
        flat("200 empty cells and three large", empty, "1", "1", repetitions),
        flat("500 Poisson(3) cells", rng.poisson(3, 500), "0.5", "0.5", repetitions),
        flat("300 Zipf cells", np.minimum(rng.zipf(1.6, 300), 10**5), "1", "1", repetitions),
    ]


def fresh_tables(repetitions: int) -> list[Table]:
    """Tables of the same kinds in other sizes and at other losses."""
    rng = np.random.default_rng(2024)
    large = rng.integers(50, 3000, 12)
    empty = {
        "60 empty cells and two large": ([0] * 60 + [300, 4000], "0.5"),
        "600 empty cells and twelve large": ([0] * 600 + large.tolist(), "0.7"),
        "200 empty cells and three large": ([0] * 200 + [500, 2000, 9000], "0.25"),
        "200 empty cells and twenty of 5 to 40": ([0] * 200 + list(range(5, 41, 2)) + [9, 20], "1"),
    }
    other = {
        "300 Poisson(5) cells": (rng.poisson(5, 300), "0.4"),
        "800 Poisson(1) cells": (rng.poisson(1, 800), "0.7"),
        "150 Zipf cells": (np.minimum(rng.zipf(1.4, 150), 10**5), "0.5"),
        "250 cells of 0 to 50": (rng.integers(0, 51, 250), "0.6"),
    }
    return [
        flat(f"{name}, ε = {epsilon}", cells, epsilon, epsilon, repetitions, fresh=True)
        for name, (cells, epsilon) in (empty | other).items()
    ]


def trees(path: Path, epsilons: str, repetitions: int, minutes: float) -> list[Table]:
    by = ("county", "tract", "race")
    hierarchy, cells = read_public_counts(path, by=by, count="count")
    return [
        Table(
            name=f"North Carolina, ε = {epsilon} in all",
            hierarchy=hierarchy,
            cells=cells,
            epsilon=dict.fromkeys(("total", *by), str(Fraction(epsilon) / 4)),
            repetitions=repetitions,
            covered=min(repetitions, 10),
            minutes=minutes,
            categories=True,
        )
        for epsilon in epsilons.split(",")
    ]
