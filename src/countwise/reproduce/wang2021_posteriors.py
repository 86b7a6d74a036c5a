"""Wang & Reiter (2021): the posterior of section 4, and the numbers of the text."""

from functools import cache
from itertools import product
from math import exp
from time import perf_counter

import numpy as np
import polars as pl

from countwise.inference.paper_tables import infer_counts
from countwise.inference.posterior import Posterior
from countwise.kernels.apportion import apportion, last_ranks
from countwise.release.plan import Plan
from countwise.reproduce.exhibits import Bars, Effort, Exhibit, Findings
from countwise.reproduce.releases import geometric, printed_modes
from countwise.reproduce.verdicts import PrintedNumber, around, between, corrected, near
from countwise.tables.hierarchy import build

RELEASED, TOTAL = (250, 357), 607
TABLE_3 = {
    (250, 357): "0.21", (251, 356): "0.13", (251, 357): "0.08", (250, 356): "0.08",
    (249, 358): "0.07", (250, 358): "0.05", (249, 357): "0.05", (251, 358): "0.03",
    (249, 356): "0.03", (252, 355): "0.03",
}  # fmt: skip
"""Wang & Reiter 2021, Table 3 and Wang 2020, Table 5: the ten most probable true counts."""

LAST = (
    "ties go to the last component, which is what the printed loop does to two components: it "
    "docks the first smallest quotient"
)
SUMS = {1: "92.1", 2: "0.7", 3: "9991.7", 4: "92.1"}
COMPONENT_EPSILON = {1: "1", 2: "5", 3: "0.1", 4: "1"}


@cache
def posterior(ties: str = "last") -> Posterior:
    """The posterior of the two true counts behind 250, 357 and 607 at ε = 1."""
    order = "last" if ties == "last" else (0, 1)
    return infer_counts(RELEASED, total=TOTAL, epsilon=1, total_epsilon=1, ties=order)


def top_ten(column: str) -> list[PrintedNumber]:
    """The ten rows in their order: each row's place, and its probability."""
    found = posterior().top(10)
    numbers = []
    for place, (counts, text) in enumerate(TABLE_3.items(), start=1):
        row = f"{counts[0]}, {counts[1]}"
        ours = next(each.probability for each in found if each.counts == counts)
        numbers.append(near(row, column, text, ours, reading=LAST))
        least = sum(each.probability > ours + 1e-9 for each in found) + 1
        most = sum(each.probability > ours - 1e-9 for each in found)
        numbers.append(between(row, "place", str(place), place, least, most, reading=LAST))
    return numbers


def table_3(effort: Effort, rng: np.random.Generator) -> Findings:
    """The ten highest posterior probabilities, and what the other order of ties gives."""
    del effort, rng
    other = posterior("first").top(10)
    chances = {each.counts: each.probability for each in other}
    other_way = (
        "the table depends on whom a tie favours, which the paper leaves open (“finding any mode "
        "is sufficient”): with ties to the first component these two rows would be equal"
    )
    numbers = top_ten("probability")
    numbers += [
        between(row, "ties to the first", "not printed", chances[counts], *around(0.097, 0.0005),
                reading=other_way)
        for row, counts in (("251, 356", (251, 356)), ("249, 358", (249, 358)))
    ]  # fmt: skip
    numbers.append(
        near("Same mode as the printed loop", "share of noisy pairs", "1.00", _agreement(),
             within=1e-12, reading="checked on all noisy pairs within 60 of the released ones")
    )  # fmt: skip
    return Findings(numbers=numbers)


def _agreement() -> float:
    """How often the printed loop and ties to the last agree on whether 250, 357 is released."""
    grid = np.arange(-60, 61)
    pairs = np.stack(np.meshgrid(RELEASED[0] + grid, RELEASED[1] + grid), axis=-1).reshape(-1, 2)
    loop = printed_modes(pairs, np.full(len(pairs), TOTAL))
    exact = np.empty_like(pairs)
    for i in range(len(pairs)):
        apportion(pairs[i], TOTAL, last_ranks(2), exact[i])
    return float(((loop == RELEASED).all(axis=1) == (exact == RELEASED).all(axis=1)).mean())


def figure_2(effort: Effort, rng: np.random.Generator) -> Findings:
    """The three marginal posteriors."""
    del effort, rng
    numbers, pictures = [], []
    for name, centre in (("N1", RELEASED[0]), ("N2", RELEASED[1]), ("total", TOTAL)):
        node = posterior().node(name)
        low = centre - 10
        heights = tuple(node.pmf(x) for x in range(low, centre + 11))
        title = f"Posterior of {'N' if name == 'total' else name}"
        pictures.append(
            Bars(title=title, axis="true count", low=low, heights=heights, marked=centre)
        )
        inside = sum(node.pmf(x) for x in range(centre - 4, centre + 5))
        numbers += [
            between(title, "mass within ±4", "most", inside, 0.9, 1.0,
                    reading="“most posterior mass” taken as more than 90%"),
            near(title, "mode", str(centre), node.mode),
        ]  # fmt: skip
    return Findings(numbers=numbers, pictures=pictures)


def text(effort: Effort, rng: np.random.Generator) -> Findings:
    """Numbers of the running text."""
    del effort, rng
    numbers = [
        near(f"Variance of the sum of noisy counts, scenario {scenario}", "value", printed,
             50 * geometric(COMPONENT_EPSILON[scenario]).variance)
        for scenario, printed in SUMS.items()
    ]  # fmt: skip
    law = geometric("1")
    why = (
        "2.8e-22 is the chance of |δ| ≥ 50; 1.0e-22 is that of |δ| > 50, which is what a support "
        "of [-50, 50] leaves out"
    )
    reach = 2 * float(law.sf(49))
    numbers += [
        corrected("Chance of |δ| ≥ 50 at ε = 1", "value", "1e-22", reach,
                  *around(2 * exp(-50) / (1 + exp(-1)), 1e-25), why=why, value=1e-22),
        near("Chance of |δ| > 50 at ε = 1", "value", "1.0e-22", 2 * float(law.sf(50))),
        near("Work for one more component, times", "value", "3,721", 61 * 61),
    ]  # fmt: skip
    start = perf_counter()
    infer_counts(RELEASED, total=TOTAL, epsilon=1, total_epsilon=1).top(10)
    numbers.append(
        between("Seconds for the posterior of two counts", "value", "210", perf_counter() - start,
                0.0, 210.0, reading="a time on another machine; here exact and not by brute force")
    )  # fmt: skip
    budget = Plan(epsilon={"total": 1, "part": 1}).budget(
        build(pl.DataFrame({"part": ["1", "2", "3"]}))[0]
    )
    numbers.append(
        near("Privacy loss of ε = 1 on a total and three parts", "value", "2", float(budget.loss))
    )
    return Findings(numbers=numbers)


def example(effort: Effort, rng: np.random.Generator) -> Findings:
    """Section 5: the noisy counts 1, 9 with the noisy total 11."""
    del effort, rng
    released = np.empty(2, dtype=np.int64)
    apportion(np.array([1, 9]), 11, last_ranks(2), released)
    nearest = closest((1, 9, 11))
    why = (
        "over whole numbers the three stated solutions are equally near, whatever the start; over "
        "real numbers the minimum is one point, (4/3, 28/3, 32/3)"
    )
    numbers = [
        near("Mode of 11 trials", "N1", "1", int(released[0])),
        near("Mode of 11 trials", "N2", "10", int(released[1])),
        near("Whole solutions nearest in squared distance", "number", "3", len(nearest),
             reading=why),
        near("Their squared distance", "number", "1",
             sum((a - b) ** 2 for a, b in zip(nearest[0], (1, 9, 11), strict=True)), reading=why),
    ]  # fmt: skip
    for stated in ((1, 10, 11), (2, 9, 11), (1, 9, 10)):
        row = f"{stated} is one of them"
        numbers.append(near(row, "number", "1", int(stated in nearest), reading=why))
    return Findings(numbers=numbers)


def closest(noisy: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """All non-negative whole a, b, a + b nearest to the noisy counts, by trying them."""
    reach = range(sum(noisy))
    distances = {
        (a, b, a + b): (a - noisy[0]) ** 2 + (b - noisy[1]) ** 2 + (a + b - noisy[2]) ** 2
        for a, b in product(reach, repeat=2)
    }
    least = min(distances.values())
    return [solution for solution, distance in distances.items() if distance == least]


EXACT = "Exact: the sum over all noisy counts that lead to the released ones."
EXHIBITS = (
    Exhibit(key="table-3", title="Table 3: ten highest posterior probabilities",
            source="section 4", how=f"{EXACT} Reading: {LAST}.", compute=table_3),
    Exhibit(key="figure-2", title="Figure 2: marginal posteriors", source="section 4",
            how=EXACT, compute=figure_2),
    Exhibit(key="example", title="The example of two counts: (1, 9, 11)", source="section 5",
            how="The mode in whole numbers, and all nearest solutions by trying them.",
            compute=example),
    Exhibit(key="text", title="Numbers of the text", source="sections 3.3, 4 and 5",
            how="Closed forms of the noise law and exact accounting.", compute=text),
)  # fmt: skip
