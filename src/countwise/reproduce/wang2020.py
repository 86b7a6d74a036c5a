"""Wang (2020), the draft: three algorithms on two examples, and two posteriors."""

from collections.abc import Callable
from functools import partial

import numpy as np

from countwise.arrays import IntArray
from countwise.inference.paper_tables import infer_counts
from countwise.reproduce.exhibits import Effort, Exhibit, Findings
from countwise.reproduce.releases import Noisy, algorithm_1, algorithm_2, printed_modes
from countwise.reproduce.scenarios import BUILT, NAMES, followed
from countwise.reproduce.verdicts import PrintedNumber, around, corrected, listed_apart, near
from countwise.reproduce.wang2021_counts import figure_1, table_1
from countwise.reproduce.wang2021_posteriors import LAST, RELEASED, TOTAL, top_ten
from countwise.reproduce.wang2021_releases import (
    FLOATING,
    SCENARIOS,
    compared,
    simulated,
    true_counts,
)

TABLE_1 = """
Algorithm 1 (ind)    | 0.9 (2.4) 60 (63) 382 (375) 736 (695) 977 (940)
Algorithm 1 (summed) | 0.9 (2.5) 60 (63) 382 (380) 736 (714) 977 (936)
Algorithm 2          | 0.4 (1.2) 60 (62) 382 (380) 736 (708) 977 (932)
Algorithm 3          | 0.4 (0.7) 60 (2)  382 (2)   736 (2)   977 (2)
"""
TABLE_3 = """
Algorithm 1 (ind)    | 1.5 (3.5) 2.2 (4.7) 6.0 (9.3) 11.0 (14.0) 432.5 (256.8)
Algorithm 1 (summed) | 1.5 (3.5) 2.2 (4.9) 6.0 (9.2) 11.0 (14.5) 432.5 (259)
Algorithm 2          | 1.1 (2.2) 2.1 (3.6) 6.0 (7.9) 11.0 (12.6) 434.2 (235.1)
Algorithm 3          | 1.0 (1.1) 2.0 (1.5) 5.9 (1.8) 11.0 (1.8)  437.6 (19.2)
"""
TABLE_4 = {
    250: "0.03", 251: "0.03", 249: "0.03", 252: "0.03", 248: "0.03",
    253: "0.02", 247: "0.02", 254: "0.02", 246: "0.02", 255: "0.02",
}  # fmt: skip
"""N1 of the ten most probable true counts under Algorithm 2; N2 = 607 - N1 in all of them."""


def released(name: str, noisy: Noisy, *, rng: np.random.Generator) -> IntArray:
    """The components that an algorithm of the draft releases."""
    ways: dict[str, Callable[[], IntArray]] = {
        "Algorithm 1 (ind)": partial(algorithm_1, noisy, summed=False, rng=rng),
        "Algorithm 1 (summed)": partial(algorithm_1, noisy, summed=True, rng=rng),
        "Algorithm 2": partial(algorithm_2, noisy, rng=rng),
        "Algorithm 3": partial(printed_modes, noisy.parts, noisy.alone),
    }
    return ways[name]()


def algorithms(
    table: str, scenario: int, reading: str, effort: Effort, rng: np.random.Generator
) -> list[PrintedNumber]:
    """Means and variances of five counts under each algorithm; only Algorithm 3 has ties."""
    noisy = simulated(scenario, effort, rng)
    places = followed(true_counts(scenario))
    numbers = []
    for line in table.strip().splitlines():
        name, _, printed = line.partition("|")
        values = released(name.strip(), noisy, rng=rng)
        taken = reading if scenario == 1 or name.startswith("Algorithm 3") else ""
        columns = [values[:, i] for i in places]
        numbers += compared(name.strip(), printed.split(), NAMES, columns, [taken] * 5)
    return numbers


def table_1_(effort: Effort, rng: np.random.Generator) -> Findings:
    """Example 1: the simulated counts."""
    return Findings(numbers=algorithms(TABLE_1, 1, BUILT, effort, rng))


def table_3(effort: Effort, rng: np.random.Generator) -> Findings:
    """Example 2: seats of states."""
    return Findings(numbers=algorithms(TABLE_3, 4, FLOATING, effort, rng))


ORDER = "the order of the rows is no number, and their probabilities are corrected"
AGAIN = "the same printed number is corrected beside it"
NARROW = (
    "true counts within 10 of the released ones, not within 30 as stated: a grid that prints all "
    "ten numbers, found by trying grids"
)


def table_4(effort: Effort, rng: np.random.Generator) -> Findings:
    """The posterior under Algorithm 2: the order of its rows, and its probabilities."""
    del effort, rng
    post = infer_counts(RELEASED, total=TOTAL, epsilon=1, total_epsilon=1, adjust="draw-2")
    chances = {each.counts[0]: each.probability for each in post.top(10)}
    of_total = post.node("total").pmf(TOTAL)
    by_hand, narrow = by_grid(reach=100), by_grid(reach=10)
    why = (
        "the whole posterior gives half of what is printed; a grid too narrow for a standard "
        "deviation of 12, or p(n|N) counted twice, would print the ten rows, and which of them it "
        "was is not known"
    )
    numbers = []
    for place, (first, text) in enumerate(TABLE_4.items(), start=1):
        row = f"{first}, {TOTAL - first}"
        ours = chances[first]
        rank = sum(chance > ours for chance in chances.values()) + 1
        numbers += [
            *listed_apart([near(row, "place", str(place), rank)], ORDER),
            *listed_apart([near(row, "grid of ±10", text, narrow[first], reading=NARROW)], AGAIN),
            corrected(row, "probability", text, ours, *around(by_hand[first], 1e-7), why=why,
                      value=float(text)),
        ]  # fmt: skip
    least, most = chances[255] / of_total, chances[250] / of_total
    twice = by_grid(reach=29, times=2)
    printed = sum(f"{twice[first]:.2f}" == text for first, text in TABLE_4.items())
    return Findings(
        numbers=numbers,
        remark=f"Conditional on N = 607, which has a probability of {of_total:.3f}, the ten "
        f"numbers would run from {most:.4f} to {least:.4f} and all print as 0.03. Counting the "
        f"chance of the noisy total twice, on a grid of ±29, prints {printed} of the ten, too.",
    )


def by_grid(*, reach: int, times: int = 1) -> dict[int, float]:
    """P(N1, 607 - N1 | released) of Algorithm 2, by summing over all noisy counts near.

    True counts within `reach` of the released ones, noisy counts within `reach` of the true;
    `times` is how often the chance of the noisy total is multiplied in.
    """
    true, grid = np.arange(-reach, reach + 1), np.arange(-2 * reach, 2 * reach + 1)
    a, b = RELEASED[0] + grid[:, None], RELEASED[1] + grid[None, :]
    logs = RELEASED[0] * np.log(a) + RELEASED[1] * np.log(b) - TOTAL * np.log(a + b)
    distance = np.abs(grid[None, :] - true[:, None])
    noise = np.where(distance <= reach, np.exp(-1.0 * distance), 0.0)
    off = np.abs(true[:, None] + true[None, :])
    joint = noise @ np.exp(logs - logs.max()) @ noise.T * np.exp(-1.0 * times * off)
    joint /= joint.sum()
    return {RELEASED[0] + d: float(joint[reach + d, reach - d]) for d in range(-5, 6)}


def table_5(effort: Effort, rng: np.random.Generator) -> Findings:
    """The posterior under Algorithm 3."""
    del effort, rng
    return Findings(numbers=top_ten("probability"))


EXHIBITS = (
    Exhibit(key="figure-1", title="Figure 1: true counts of example 1", source="section 4.1.1",
            how=f"No simulation. Reading: {BUILT}.", compute=figure_1),
    Exhibit(key="table-1", title="Table 1: three algorithms on example 1",
            source="section 4.1.1", how=f"{SCENARIOS} Reading: {BUILT}.", compute=table_1_),
    Exhibit(key="table-2", title="Table 2: true counts of example 2", source="section 4.1.2",
            how="Counted in the list of seats after the census of 2010.", compute=table_1),
    Exhibit(key="table-3", title="Table 3: three algorithms on example 2",
            source="section 4.1.2", how=f"{SCENARIOS} Reading of Algorithm 3: {FLOATING}.",
            compute=table_3),
    Exhibit(key="table-4", title="Table 4: posterior under Algorithm 2", source="section 4.2",
            how="Exact, by the kernel of coupled sums; checked by summing over a grid.",
            compute=table_4),
    Exhibit(key="table-5", title="Table 5: posterior under Algorithm 3", source="section 4.2",
            how=f"Exact. Reading: {LAST}.", compute=table_5),
)  # fmt: skip
