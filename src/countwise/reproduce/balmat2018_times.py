"""Balmat, Barrientos & Reiter (2018), table 2 and figure 3: times, in proportion to each other."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import comb, exp, lgamma, log
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from countwise.arrays import FloatArray
from countwise.kernels import gibbs_sweeps
from countwise.pages.lines import Line
from countwise.reproduce.exhibits import Curves, Effort, Exhibit, Findings
from countwise.reproduce.verdicts import around, between, corrected
from countwise.verification.proportion_posterior import ProportionPosterior
from countwise.verification.reference_samplers import (
    SWEEPS,
    coefficient_table,
    standard_draws,
    table_draws,
)

SIZES = (10, 20, 30, 40, 50)
EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(3, 2))
TABLE_2 = {1: "1.00", 2: "0.47", 3: "0.29"}
WAYS = ("closed form", "table", "standard")
MACHINE = "a time on this machine, in Python's arrays and compiled code in place of R and C"


def fastest(
    work: Callable[[], object], *, repetitions: int, clock: Callable[[], float] = perf_counter
) -> float:
    """The shortest time of a piece of work, after one run that does not count."""
    work()
    times = []
    for _ in range(repetitions):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)


own_time = partial(fastest, clock=thread_time)
"""The same in time of this thread's own: what else the machine does has no part in a verdict."""


def table_2(effort: Effort, rng: np.random.Generator) -> Findings:
    """p1^S1·p0^S0·pe^Se by powers, by logarithms, and by a compiled function."""
    del effort
    rows, _ = coefficient_table(50, 3)
    s = [rows[:, j].astype(np.float64) for j in range(3)]
    p = rng.dirichlet(np.ones(3))
    out = np.empty(len(rows))
    ways: dict[int, Callable[[], object]] = {
        1: lambda: p[0] ** s[0] * p[1] ** s[1] * p[2] ** s[2],
        2: lambda: np.exp(s[0] * log(p[0]) + s[1] * log(p[1]) + s[2] * log(p[2])),
        3: lambda: gibbs_sweeps.products(rows, p, out),
    }
    times = {method: own_time(work, repetitions=300) for method, work in ways.items()}
    shares = {method: time / times[1] for method, time in times.items()}
    return Findings(
        numbers=[
            between("Method 1: powers", "time", TABLE_2[1], shares[1], 1.0, 1.0),
            between("Method 2: logarithms", "time", TABLE_2[2], shares[2], 0.0, 1.0,
                    reading=f"{MACHINE}; the claim is that it takes less than method 1"),
            between("Method 3: compiled", "time", TABLE_2[3], shares[3], 0.0, 1.0,
                    reading=f"{MACHINE}; the claim is that it takes less than method 1. Method 2 "
                    "is machine code here, too, and can be the faster one"),
        ]
    )  # fmt: skip


def timed(counts: FloatArray, size: int, epsilon: Fraction, effort: Effort) -> list[float]:
    """Seconds of one posterior: in closed form, and by 5,000 sweeps of each sampler.

    The time of the sweeps is measured on as many as the effort allows.
    """
    given: dict[str, Any] = {"partitions": size, "epsilon": epsilon, "alpha": np.ones(3)}
    sweeps = min(effort.timed_sweeps, SWEEPS)
    given_sweeps = given | {"sweeps": sweeps, "burn_in": 0, "rng": np.random.default_rng(size)}

    def closed() -> None:
        ProportionPosterior(noisy=counts, **given).share([0], [0, 1]).summary()

    return [
        own_time(closed, repetitions=20),
        own_time(partial(table_draws, counts, **given_sweeps), repetitions=3) * SWEEPS / sweeps,
        own_time(partial(standard_draws, counts, **given_sweeps), repetitions=2) * SWEEPS / sweeps,
    ]


def one_by_one(size: int, *, sweeps: int) -> float:
    """Seconds of 5,000 sweeps that call a multinomial probability row by row, as R's apply."""
    rows = coefficient_table(size, 3)[0].tolist()
    p = [0.6, 0.3, 0.1]

    def sweep() -> None:
        for row in rows:
            terms = (x * log(q) - lgamma(x + 1) for x, q in zip(row, p, strict=True))
            exp(lgamma(size + 1) + sum(terms))

    return own_time(sweep, repetitions=sweeps) * SWEEPS


def figure_3(effort: Effort, rng: np.random.Generator) -> Findings:
    """Times over M and ε: how they grow, what ε does, and how they compare."""
    times = np.empty((len(SIZES), len(EPSILONS), effort.vectors, len(WAYS)))
    for i, size in enumerate(SIZES):
        for j, epsilon in enumerate(EPSILONS):
            for v in range(effort.vectors):
                counts = rng.multinomial(size, rng.dirichlet(np.ones(3))).astype(np.float64)
                times[i, j, v] = timed(counts, size, epsilon, effort)
    typical = np.median(times, axis=2)
    interpreted = [one_by_one(size, sweeps=5) for size in SIZES]
    tables = [comb(size + 2, 2) for size in SIZES]
    growth = log(tables[4] / tables[1]) / log(SIZES[4] / SIZES[1])
    slope = log(typical[4, 1, 2] / typical[1, 1, 2]) / log(SIZES[4] / SIZES[1])
    over_sizes = typical[:, :, 1:].sum(axis=0)
    by_epsilon = float((over_sizes.max(axis=0) / over_sizes.min(axis=0)).max())
    ratio = interpreted[4] / typical[4, 1, 1]
    why = (
        "both algorithms visit (M+1)(M+2)/2 rows a sweep: the time grows with the square of M, not "
        "exponentially, and that of the table not linearly either"
    )
    curves = [Line(label="row by row", x=SIZES, y=interpreted)]
    curves += [
        Line(label=WAYS[w], x=SIZES, y=typical[:, 1, w].tolist())
        for w in reversed(range(len(WAYS)))
    ]
    return Findings(
        numbers=[
            corrected("Power of M that rows grow with, 20 to 50", "value", "exponential", growth,
                      *around(1.907, 0.001), why=why),
            corrected("Power of M that the standard sampler's time grows with", "value",
                      "exponential", slope, 0.5, 3.5, why=why),
            between("Row by row over table, M = 50", "times as long", "50", ratio, 25.0, 100.0,
                    elsewhere=f"{MACHINE}; half to twice as many times would be about 50. Here the "
                    "loop is Python's in place of R's apply, and the table is compiled"),
            between("Largest over smallest time over ε", "value", "no effect",
                    by_epsilon, 1.0, 3.0, reading=MACHINE),
        ],
        pictures=[
            Curves(title="Seconds for one posterior at ε = 1", x_axis="M", y_axis="seconds",
                   lines=tuple(curves), log_y=True)
        ],
        remark=f"At M = 50 the closed form takes {typical[4, 1, 0] * 1e3:.2f} ms, the table "
        f"{typical[4, 1, 1] * 1e3:.0f} ms, the standard sampler {typical[4, 1, 2] * 1e3:.0f} ms, "
        f"row by row {interpreted[4]:.1f} s (measured on a few sweeps).",
    )  # fmt: skip


EXHIBITS = (
    Exhibit(key="table-2", title="Table 2: three ways to compute a product", source="section 6.3",
            how="All 1,326 rows at M = 50 in one call; the shortest of 300 calls.",
            compute=table_2),
    Exhibit(key="figure-3", title="Figure 3: execution times", source="section 7",
            how="Random counts at each M and ε; 5,000 sweeps of the samplers as section 5.1 means "
            "them, both compiled here, and the closed form beside them.", compute=figure_3),
)  # fmt: skip
