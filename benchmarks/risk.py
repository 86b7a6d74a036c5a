"""What the risk room costs and what it finds: a table, then the same as JSON.

    python benchmarks/risk.py            everything, about a minute
    python benchmarks/risk.py --json     JSON alone

Ratios are of times in this one run. `table` is the O(n²k) programme of the tests with its
loops ordered for the machine; `published` is the same programme in the order it is published
(k, then end, then start) with prefix sums.
"""

import json
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from countwise.adjust.histogram import ESTIMATORS
from countwise.arrays import FloatArray
from countwise.kernels.segmentation import segment
from countwise.noise.laws import Geometric, Laplace
from countwise.risk.claim_proof import certify
from countwise.risk.closed import laplace_risk, risk
from countwise.risk.estimator_claims import EstimatorClaim
from countwise.risk.integration import integrate
from countwise.risk.monte_carlo import simulate_estimators
from countwise.risk.search import search_grid

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from segmentation_table import segment_by_table

ONE = Laplace(scale=Fraction(1))
FOUR = ("identity", "clipped", "resized", "noisefirst")


def seconds(work: Callable[[], object], *, repeat: int = 5) -> float:
    """The shortest of several runs after a first one that compiles."""
    work()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


@njit(cache=False)
def published_table(values: FloatArray, penalty: float) -> int:
    """The number of runs by the published order of loops. Jagadish et al. 1998, Xu et al. 2012."""
    n = len(values)
    sums, squares = np.zeros(n + 1), np.zeros(n + 1)
    for i in range(n):
        sums[i + 1], squares[i + 1] = sums[i] + values[i], squares[i] + values[i] ** 2
    costs = np.full((n + 1, n + 1), np.inf)
    costs[0, 0] = 0.0
    best, runs = np.inf, 0
    for k in range(1, n + 1):
        for t in range(k, n + 1):
            for s in range(k - 1, t):
                gap = sums[t] - sums[s]
                cost = costs[s, k - 1] + squares[t] - squares[s] - gap * gap / (t - s)
                costs[t, k] = min(costs[t, k], cost)
        if costs[n, k] + k * penalty < best:
            best, runs = costs[n, k] + k * penalty, k
    return runs


def segmentation() -> dict[str, Any]:
    """NoiseFirst against both tables, and at a million bins."""
    rng = np.random.default_rng(0)
    short, long = rng.laplace(size=1024), rng.laplace(size=1_000_000)
    steps = long + np.repeat(rng.integers(0, 1000, 10_000), 100)
    pruned = seconds(lambda: segment(short, 4.0), repeat=50)
    table = seconds(lambda: segment_by_table(short, 4.0))
    published = seconds(lambda: published_table(short, 4.0), repeat=5)
    same = published_table(short, 4.0) == len(segment(short, 4.0)) - 1
    price = 4 * np.log(len(long))
    return {
        "n=1024 pruned, s": pruned,
        "n=1024 table, s": table,
        "n=1024 published order, s": published,
        "table / pruned": table / pruned,
        "published order / pruned": published / pruned,
        "same k": bool(same),
        "n=1e6 flat, noisefirst, s": seconds(lambda: segment(long, 4.0), repeat=3),
        "n=1e6 steps, noisefirst, s": seconds(lambda: segment(steps, 4.0), repeat=3),
        "n=1e6 flat, segmented, s": seconds(lambda: segment(long, price), repeat=3),
        "n=1e6 noiseless ramp, noisefirst, s": seconds(
            lambda: segment(np.arange(1e6) * 0.01, 4.0), repeat=3
        ),
        "n=1e6 noiseless ramp ten times flatter, s": seconds(
            lambda: segment(np.arange(1e6) * 0.001, 4.0), repeat=1
        ),
    }


def flat_histogram() -> dict[str, Any]:
    """Mean runs and squared error on 1,024 empty bins at ε = 1."""
    noise = np.random.default_rng(1).laplace(size=(200, 1024))
    found: dict[str, Any] = {}
    for name in ("identity", "noisefirst", "segmented"):
        made = ESTIMATORS[name](noise, law=ONE)
        runs = (np.diff(made, axis=1) != 0).sum(axis=1) + 1
        found[f"{name}, runs"] = float(runs.mean())
        found[f"{name}, squared error"] = float((made**2).sum(axis=1).mean())
    return found


def closed_form() -> dict[str, Any]:
    """The closed form against simulation to 1e-3, and the grid of the thesis."""
    found: dict[str, Any] = {}
    bins = [Fraction(0), Fraction(3)]
    counts = np.array([0.0, 3.0])
    line = np.arange(101.0)
    a, b = np.meshgrid(line, line)
    grid = seconds(lambda: laplace_risk("noisefirst", a, b)) / a.size
    for name in ("clipped", "resized", "noisefirst"):
        estimator = ESTIMATORS[name]
        draws = 20_000
        rng = np.random.default_rng(2)
        [(mean, error)] = simulate_estimators([estimator], counts, ONE, draws=draws, rng=rng)
        needed = int(draws * (error / (1e-3 * mean)) ** 2)
        noise = np.random.default_rng(3)

        def plain(estimator: Any = estimator, noise: Any = noise) -> float:
            """Plain simulation, as the thesis does it."""
            drawn = noise.laplace(size=(100_000, 2))
            return float(((estimator(counts + drawn, law=ONE) - counts) ** 2).sum(axis=1).var())

        reduced = seconds(
            lambda needed=needed, estimator=estimator: simulate_estimators(
                [estimator], counts, ONE, draws=needed, rng=np.random.default_rng(4)
            ),
            repeat=3,
        )
        crude = seconds(plain, repeat=3) * (plain() / (1e-3 * mean) ** 2) / 100_000
        closed = seconds(lambda name=name: risk(name, bins, ONE), repeat=200)
        found[f"{name}: one closed form, s"] = closed
        found[f"{name}: variance-reduced simulation / closed"] = reduced / closed
        found[f"{name}: plain simulation / closed"] = crude / closed
        found[f"{name}: variance-reduced simulation / closed on a grid"] = reduced / grid
    tenths = [Fraction(i, 10) for i in range(1, 31)]
    found["grid 101×101×10, s"] = seconds(
        lambda: search_grid("noisefirst", "identity", counts=range(101), epsilons=tenths[:10])
    )
    start = time.perf_counter()
    wide = search_grid("noisefirst", "identity", counts=range(1001), epsilons=tenths)
    found["grid 1001×1001×30, s"] = time.perf_counter() - start
    found["grid 1001×1001×30, counterexamples"] = wide.counterexamples
    found["grid 1001×1001×30, points"] = wide.points
    return found


def integration() -> dict[str, Any]:
    """Proven bounds on three bins, all estimators together."""
    bins = [Fraction(h) for h in (0, 2, 3)]
    found: dict[str, Any] = {}
    laws = {"laplace": ONE, "geometric, ε = 1/2": Geometric(scale=Fraction(2))}
    for what, law in laws.items():
        start = time.perf_counter()
        results = [integrate(name, bins, law) for name in ESTIMATORS]
        found[f"{what}, s"] = time.perf_counter() - start
        found[f"{what}, widest relative bound"] = max(error / value for value, error in results)
    return found


def certificates() -> dict[str, Any]:
    """Verdicts on all ordered pairs."""
    start = time.perf_counter()
    found: dict[str, Any] = {
        f"{a} <= {b}": certify(EstimatorClaim(left=a, right=b)).answer
        for a, b in permutations(FOUR, 2)
    }
    return found | {"all pairs, s": time.perf_counter() - start}


def main() -> None:
    """Run, print a table unless --json is given, and the JSON."""
    sections = {
        "segmentation": segmentation,
        "flat histogram": flat_histogram,
        "closed form": closed_form,
        "integration of three bins": integration,
        "certificates": certificates,
    }
    results = {name: work() for name, work in sections.items()}
    if "--json" not in sys.argv:
        for name, found in results.items():
            print(f"\n{name}")
            for what, value in found.items():
                print(
                    f"  {what:<58}{value:>14.6g}"
                    if isinstance(value, float)
                    else f"  {what:<58}{value!s:>14}"
                )
        print()
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
