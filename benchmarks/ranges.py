"""How often 95% ranges without a prior hold the true count: by level, and by its size.

    python benchmarks/ranges.py [--releases N]

Tables nobody tuned on: many variables, 80 to 97% empty, heavy tails, a few large cells among empty
ones. Every line has coverage and promise in percent, the width, and how many counts were judged;
beside it the range from a node's own noise with all else as a normal.
"""

from argparse import ArgumentParser
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import polars as pl

from countwise.arrays import FloatArray, IntArray
from countwise.noise.laws import Geometric
from countwise.sumproduct.prior_free_laws import ByNormal, free_laws
from countwise.sumproduct.summaries import summarise
from countwise.tables.hierarchy import Hierarchy, build
from countwise.tables.measurements import Measurements

SIZES = ((0, 0), (1, 9), (10, 99), (100, 10**18))


def tree(*fan_out: int) -> Hierarchy:
    """A full tree."""
    grids = np.meshgrid(*map(np.arange, fan_out), indexing="ij")
    columns = {f"level {d + 1}": [f"{v:06}" for v in each.ravel()] for d, each in enumerate(grids)}
    return build(pl.DataFrame(columns))[0]


def few_large(size: int, rng: np.random.Generator) -> IntArray:
    cells = np.zeros(size, np.int64)
    cells[rng.choice(size, max(size // 60, 4), replace=False)] = 200
    return cells


def scattered(mean: float, shape: float) -> Callable[[int, np.random.Generator], IntArray]:
    return lambda size, rng: rng.negative_binomial(shape, shape / (shape + mean), size)


def heavy(size: int, rng: np.random.Generator) -> IntArray:
    return np.minimum(rng.pareto(0.8, size), 1e5).astype(np.int64) * (rng.random(size) < 0.2)


TABLES = (
    ("five variables, 85% empty", tree(15, 16, 2, 5, 7), scattered(2.0, 0.05), 6),
    ("1,000 cells, 97% empty", tree(1000), scattered(0.5, 0.008), 4),
    ("200 cells, few large", tree(200), few_large, 4),
    ("100 x 50 cells, 95% empty", tree(100, 50), scattered(1.0, 0.02), 6),
    ("heavy tails, 80% empty", tree(40, 30), heavy, 3),
    ("ones and twos", tree(50, 20), scattered(1.0, 2.0), 3),
)


def coverage(
    hierarchy: Hierarchy, cells: IntArray, scale: int, releases: int, rng: np.random.Generator
) -> list[tuple[str, str, FloatArray]]:
    """For every level and size: holds, promise, width, these by the normal; and judged."""
    law, true = Geometric(scale=Fraction(scale)), hierarchy.sums(cells)
    found = {(d, s): np.zeros(6) for d in range(len(true)) for s in range(len(SIZES))}
    for _ in range(releases):
        noisy = tuple(t + law.isf(1 - rng.random(len(t))) for t in true)
        seen = Measurements(hierarchy=hierarchy, laws=(law,) * len(true), noisy=noisy)
        exact, near = free_laws([seen]), ByNormal(measurements=(seen,))
        for level, t in enumerate(true):
            parts = [summarise(laws) for laws in exact.laws(level)]
            low, high, chance = (
                np.concatenate([getattr(part, name) for part in parts])
                for name in ("lower", "upper", "chance")
            )
            ends = near.ranges(level, 0.95)
            rows = np.stack(
                [
                    (low <= t) & (t <= high), chance, high - low + 1,
                    (ends[0] <= t) & (t <= ends[1]), ends[1] - ends[0] + 1, np.ones(len(t)),
                ],
                axis=1,
            )  # fmt: skip
            for s, (least, most) in enumerate(SIZES):
                found[level, s] += rows[(least <= t) & (t <= most)].sum(axis=0)
    names = ["0", "1-9", "10-99", "100+"]
    return [
        (hierarchy.levels[level], names[s], sums)
        for (level, s), sums in found.items()
        if sums[-1] > 0
    ]


def main() -> None:
    asked = ArgumentParser(description=__doc__)
    asked.add_argument("--releases", type=int, default=20)
    chosen = asked.parse_args()
    print(
        "| table | level | true count | holds | promises | width | normal: holds | width | judged |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, hierarchy, make, scale in TABLES:
        rng = np.random.default_rng(len(name))
        cells = np.asarray(make(hierarchy.cells, rng), np.int64)
        for level, size, sums in coverage(hierarchy, cells, scale, chosen.releases, rng):
            holds, promise, width, near, near_width, judged = sums
            print(
                f"| {name} | {level} | {size} | {100 * holds / judged:.1f} | "
                f"{100 * promise / judged:.1f} | {width / judged:.1f} | "
                f"{100 * near / judged:.1f} | {near_width / judged:.1f} | {judged:,.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
