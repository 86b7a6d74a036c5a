"""How fast posteriors are, against the ways they were computed before, in one run.

    python benchmarks/inference.py [--quick]

Prints a table and, last, the same as one line of JSON. Compiled code is warmed up first.
"""

import json
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import countwise as cw
from countwise.arrays import FloatArray
from countwise.inference.diagnostics import effective_size
from countwise.noise.laws import Geometric
from countwise.sumproduct.node_noise import same_noise
from countwise.sumproduct.priors import Uniform
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.measurements import Measurements
from countwise.tables.reading import read_public_counts
from countwise.withheld.counts_only import CountsOnly, making
from countwise.withheld.gibbs import run

NORTH_CAROLINA = Path(__file__).parents[2] / "shared/data/nc_tracts_2020.csv"
ONE = Geometric(scale=Fraction(1))


def best(work: Callable[[], Any], *, times: int) -> float:
    """Seconds of the fastest of several runs."""
    seconds = []
    for _ in range(times):
        start = perf_counter()
        work()
        seconds.append(perf_counter() - start)
    return min(seconds)


def brute_force(first: int, second: int, *, sparse: bool) -> FloatArray:
    """Wang & Reiter 2021, section 4, as it stands, over the 4-dimensional grid of 61^4 points.

    Every N within 30 of the counts, every n within 30 of N; posterior modes, shares, Finucan's
    algorithm (for two components it starts at the answer or one above it), then the sum over n.
    A sparse grid lets NumPy spread the axes as late as it can.
    """
    reach, total, alpha = np.arange(-30, 31), first + second, ONE.alpha
    axes = (first + reach, second + reach, reach, reach)
    true1, true2, noise1, noise2 = np.meshgrid(*axes, indexing="ij", sparse=sparse)
    n1, n2 = np.maximum(true1 + noise1, 0), np.maximum(true2 + noise2, 0)
    chance = alpha ** (np.abs(noise1) + np.abs(noise2) + np.abs(total - true1 - true2))
    scaled1, scaled2 = (total + 1) * (n1 / (n1 + n2)), (total + 1) * (n2 / (n1 + n2))
    k1, k2 = np.floor(scaled1), np.floor(scaled2)
    above = k1 + k2 > total
    dock_first = above & ((scaled1 - k1) / k1 <= (scaled2 - k2) / k2)
    k1, k2 = k1 - dock_first, k2 - (above & ~dock_first)
    joint = np.where((k1 == first) & (k2 == second), chance, 0.0).sum(axis=(2, 3))
    return np.asarray(joint / joint.sum())


def counts(size: int) -> list[int]:
    return [int(k) for k in np.random.default_rng(50).integers(0, 1000, size)]


def exact(released: list[int]) -> Any:
    return cw.infer_counts(released, epsilon=1, total_epsilon=1, method="exact")


def two_components() -> dict[str, Any]:
    expected = brute_force(250, 357, sparse=True)
    found = exact([250, 357]).node("N1")
    marginal = np.array([found.pmf(x) for x in range(220, 281)])
    reference = best(lambda: brute_force(250, 357, sparse=False), times=2)
    sparse = best(lambda: brute_force(250, 357, sparse=True), times=2)
    ours = best(lambda: exact([250, 357]), times=100)
    return {
        "seconds": ours,
        "reference": reference,
        "ratio": reference / ours,
        "reference on a sparse grid": sparse,
        "ratio to that": sparse / ours,
        "largest difference": float(np.abs(marginal - expected.sum(axis=1)).max()),
    }


def gibbs_seconds(released: list[int], sweeps: int) -> float:
    """Seconds until every standard deviation is known to 1%, extrapolated from a short run.

    The relative error of a standard deviation is √(var(x²)/n)/(2·var(x)), n the effective number
    of draws of (x - mean)².
    """
    size = len(released)
    hierarchy = Hierarchy(
        by=("component",),
        labels=(tuple(f"{i:04}" for i in range(size)),),
        codes=(np.arange(size, dtype=np.uint32),),
        offsets=(np.array([0, size]),),
    )
    published = CountsOnly(
        hierarchy=hierarchy,
        counts=(np.array([sum(released)]), np.array(released)),
        order=(np.zeros(1, np.int64), np.arange(size)[::-1].copy()),
        noise=(same_noise(ONE, 1), same_noise(ONE, size)),
        adjust="mode",
    )
    start = perf_counter()
    chains = run(
        hierarchy,
        published.noise,
        making(published),
        Uniform(),
        chains=32,
        sweeps=sweeps,
        warmup=sweeps // 4,
        rng=np.random.default_rng(1),
    )
    seconds = perf_counter() - start
    x = chains.cells.astype(np.float64)
    squares = (x - x.mean(axis=(0, 1))) ** 2
    relative = np.sqrt(squares.var(axis=(0, 1)) / effective_size(squares)) / (
        2 * squares.mean(axis=(0, 1))
    )
    return float(seconds * (np.median(relative) / 0.01) ** 2)


def fifty_components(sweeps: int) -> dict[str, Any]:
    ours = best(lambda: exact(counts(50)), times=5)
    reference = gibbs_seconds(counts(50), sweeps)
    return {"seconds": ours, "reference": reference, "ratio": reference / ours}


def summed(size: int, largest: int, total_epsilon: str) -> dict[str, Any]:
    """A release whose total was also made from the sum of its noisy parts; the plain one beside it.

    The first run also works out which noisy totals lead to the released one.
    """
    released = [int(k) for k in np.random.default_rng(50).integers(0, largest, size)]
    arguments = {"epsilon": 1, "total_epsilon": total_epsilon, "method": "exact"}

    def solve(from_total: str) -> Any:
        return cw.infer_counts(released, **arguments, from_total=from_total)

    first = best(lambda: solve("summed"), times=1)
    seconds = best(lambda: solve("summed"), times=3)
    posterior, rng = solve("summed"), np.random.default_rng(1)
    return {
        "seconds": seconds,
        "first": first,
        "independent total": best(lambda: solve("independent"), times=3),
        "2,000 draws": best(lambda: posterior.draws(2_000, rng=rng), times=1),
    }


def north_carolina() -> dict[str, Any] | None:
    if not NORTH_CAROLINA.exists():
        return None
    by = ["state", "county", "tract", "race"]
    hierarchy, cells = read_public_counts(NORTH_CAROLINA, by=by, count="count")
    rng = np.random.default_rng(1)
    noisy = tuple(each + ONE.isf(1 - rng.random(len(each))) for each in hierarchy.sums(cells))
    measured = Measurements(hierarchy=hierarchy, laws=(ONE,) * 5, noisy=noisy)
    seconds = best(lambda: cw.infer_measurements([measured]).table(), times=2)
    return {"seconds": seconds, "nodes": hierarchy.nodes}


def growth(sizes: list[int]) -> dict[str, Any]:
    seconds = [best(lambda n=n: exact(counts(n)), times=2) for n in sizes]
    large = [i for i, n in enumerate(sizes) if n >= 50]
    slope = np.polyfit(np.log([sizes[i] for i in large]), np.log([seconds[i] for i in large]), 1)[0]
    return {"sizes": sizes, "seconds": seconds, "exponent": float(slope)}


def main() -> None:
    quick = "--quick" in sys.argv
    exact([250, 357])
    summed(4, 30, "0.3")
    found = {
        "S = 2 against brute force on the grid": two_components(),
        "S = 50 against Gibbs to 1% of the deviations": fifty_components(60 if quick else 250),
        "S = 1,000 mode release": {"seconds": best(lambda: exact(counts(1000)), times=2)},
        "S = 10 summed total, counts below 1,000": summed(10, 1000, "0.5"),
        "S = 10 summed total, counts below 6": summed(10, 6, "0.5"),
        "S = 50 summed total, counts below 1,000": summed(50, 1000, "0.5"),
        "S = 50 summed total, counts below 6": summed(50, 6, "0.5"),
        "North Carolina from measurements": north_carolina(),
        "cost against S": growth([2, 10, 50, 200, 1000] + ([] if quick else [5000])),
    }
    for name, row in found.items():
        words = ", ".join(f"{k} {_short(v)}" for k, v in (row or {"not here": ""}).items())
        print(f"{name:46} {words}")
    print(json.dumps(found))


def _short(value: Any) -> str:
    if isinstance(value, list):
        return "[" + " ".join(_short(each) for each in value) + "]"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
