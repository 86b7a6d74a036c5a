"""Balmat, Barrientos & Reiter (2018), figure 1, and what their printed scripts compute.

Noise enters their figure by one random draw that they do not give, so the noisy counts here are
the observed ones.
"""

from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from countwise.arrays import FloatArray
from countwise.pages.densities import Density
from countwise.reproduce.exhibits import Effort, Exhibit, Findings, Share
from countwise.reproduce.verdicts import (
    ERRORS,
    PICTURED,
    PrintedNumber,
    around,
    between,
    corrected,
    listed_apart,
)
from countwise.verification.proportion_posterior import BetaMixture, ProportionPosterior
from countwise.verification.reference_samplers import (
    BURN_IN,
    coefficient_table,
    standard_draws,
    table_draws,
)

PARTITIONS = 50
GIVEN: dict[str, Any] = {"partitions": PARTITIONS, "epsilon": Fraction(1), "alpha": np.ones(3)}
OBSERVED = {"a": (5, 40, 5), "b": (15, 30, 5), "c": (30, 15, 5), "d": (40, 5, 5)}
GRID = np.linspace(0.005, 0.995, 199)
QUANTILES = {"2.5%": 0.025, "median": 0.5, "97.5%": 0.975}
DEPENDENCE = 10  # draws of a chain that are worth one independent draw

UNDRAWN = (
    "the one draw of noise behind each picture is not given, nor its numbers: the noisy counts are "
    "the observed ones, and the exact quantiles must be those of both corrected samplers"
)
TRUE, NOISY = (5, 40, 5), (38.0, 9.0, 3.0)
STARTS = 20


def share_of(draws: FloatArray) -> FloatArray:
    """p1/(p1 + p0) of each draw."""
    return np.asarray(draws[:, 0] / (draws[:, 0] + draws[:, 1]))


def quantile_error(law: BetaMixture, q: float, draws: int) -> float:
    """The standard error of a sampled quantile."""
    density = float(law.density(np.array([law.quantile(q)]))[0])
    return sqrt(q * (1 - q) / (draws / DEPENDENCE)) / density


def figure_1(effort: Effort, rng: np.random.Generator) -> Findings:
    """The four posteriors of r, exact, and by both samplers as the text means them."""
    numbers: list[PrintedNumber] = []
    pictures = []
    kept = effort.sweeps - BURN_IN
    for panel, counts in OBSERVED.items():
        noisy = np.array(counts, dtype=np.float64)
        law = ProportionPosterior(noisy=noisy, **GIVEN).share([0], [0, 1])
        found = law.summary()
        row = f"({panel}) {counts[0]}, {counts[1]}, {counts[2]}"
        observed = counts[0] / (counts[0] + counts[1])
        peak = between(row, "mode", f"peak near {observed:.2f}", found.mode,
                       *around(observed, 0.03), reading=UNDRAWN)  # fmt: skip
        numbers += listed_apart([peak], PICTURED)
        drawn = [
            share_of(sampler(noisy, rng=rng, sweeps=effort.sweeps, **GIVEN))
            for sampler in (standard_draws, table_draws)
        ]
        for word, q in QUANTILES.items():
            reach = ERRORS * quantile_error(law, q, kept)
            sampled = [float(np.quantile(r, q)) for r in drawn]
            numbers.append(
                between(row, word, "picture", law.quantile(q), max(sampled) - reach,
                        min(sampled) + reach, reading=UNDRAWN)
            )  # fmt: skip
        pictures.append(
            Share(
                title=f"{row}: share of partitions where the claim holds",
                axis="r",
                curve=Density(
                    x=GRID.tolist(), y=law.density(GRID).tolist(), lower=found.lower,
                    upper=found.upper, mode=found.mode, median=found.median,
                ),
            )
        )  # fmt: skip
    return Findings(numbers=numbers, pictures=pictures)


def frozen_first(true: tuple[int, ...], *, draws: int, rng: np.random.Generator) -> FloatArray:
    """What the script of section 5.2 returns as it is printed.

    p is drawn from the true counts and never moves, and `+ dslap`, on a line of its own, is
    a statement without effect: the noisy counts are not used at all.
    """
    p = rng.dirichlet(true)
    return np.array([rng.dirichlet(1 + s) for s in rng.multinomial(sum(true), p, size=draws)])


def frozen_second(noisy: FloatArray, *, draws: int, rng: np.random.Generator) -> FloatArray:
    """What the script of section 6.4 returns as it is printed: p from the prior, never moved."""
    rows, coefficients = coefficient_table(PARTITIONS, len(noisy))
    p = rng.dirichlet(np.ones(len(noisy)))
    logs = np.log(coefficients) + rows @ np.log(p) - np.abs(rows - noisy).sum(axis=1) / 2
    weights = np.exp(logs - logs.max())
    chosen = rows[rng.choice(len(rows), draws, p=weights / weights.sum())]
    return np.array([rng.dirichlet(1 + s) for s in chosen])


def scripts(effort: Effort, rng: np.random.Generator) -> Findings:
    """The two scripts as printed, on noisy counts far from the true ones, beside the posterior."""
    noisy = np.array(NOISY)
    law = ProportionPosterior(noisy=noisy, **GIVEN).share([0], [0, 1])
    kept = effort.sweeps - BURN_IN
    error = quantile_error(law, 0.5, kept)
    sampled = float(np.median(share_of(table_draws(noisy, rng=rng, sweeps=effort.sweeps, **GIVEN))))
    first = float(np.median(share_of(frozen_first(TRUE, draws=2000, rng=rng))))
    starts = [
        float(np.median(share_of(frozen_second(noisy, draws=500, rng=rng)))) for _ in range(STARTS)
    ]
    again = [
        float(np.median(share_of(table_draws(noisy, rng=rng, sweeps=BURN_IN + 2000, **GIVEN))))
        for _ in range(STARTS)
    ]
    spread = float(np.ptp(again))
    leak = (
        "p is assigned inside the iterated function and never moves from its start, which is drawn "
        "from the true counts; and “+ dslap” stands on a line of its own, where R drops it. So the "
        "result follows the true counts, ignores the noisy ones and is not differentially private"
    )
    stuck = (
        "p is assigned inside the iterated function and never moves from its start, so every run "
        "has another answer; with p updated all runs agree up to chance"
    )
    return Findings(
        numbers=[
            corrected("Median of r, script of section 5.2", "value",
                      f"{first:.2f} (script as printed)", law.median,
                      *around(sampled, ERRORS * error), why=leak, value=first),
            corrected(f"Range of medians of {STARTS} runs, script of section 6.4", "value",
                      f"{np.ptp(starts):.2f} (script as printed)", spread,
                      0.0, 2 * ERRORS * quantile_error(law, 0.5, 2000), why=stuck,
                      value=float(np.ptp(starts))),
        ],
        remark=f"True counts {TRUE}, noisy counts (38, 9, 3), M = 50, ε = 1. The exact median "
        f"given the noisy counts is {law.median:.3f}. Corrected as section 5.1 means it, with p "
        "updated and started from the prior, both samplers agree with the closed form.",
    )  # fmt: skip


EXHIBITS = (
    Exhibit(key="figure-1", title="Figure 1: four posteriors of r", source="section 5.3",
            how="Exact mixtures of Beta laws. Samplers are allowed five standard errors, ten of "
            f"their dependent draws counted as one. Reading: {UNDRAWN}.",
            compute=figure_1),
    Exhibit(key="scripts", title="The printed R scripts", source="sections 5.2 and 6.4",
            how="Both scripts simulated as they are printed, beside the posterior they are for.",
            compute=scripts),
)  # fmt: skip
