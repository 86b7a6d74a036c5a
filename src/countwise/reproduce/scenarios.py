"""The true counts of the simulations of Wang (2020) and of Wang & Reiter (2021)."""

import numpy as np

from countwise.arrays import IntArray

BUILT = (
    "the fifty counts are shown as a picture only; these were built to their description, with the "
    "printed quartiles, maximum and total"
)
TOTAL_1 = 21249
TOTAL_4, FOLLOWED_4 = 863, (1, 2, 6, 11, 435)
NAMES = ("N_min", "N_q1", "N_med", "N_q3", "N_max")
QUARTILES = (1, 12, 25, 38, 50)
"""Places of the counts followed among the fifty sorted ones: the whole numbers nearest to
12.5, 25 and 37.5, halves to even, as R rounds. Interpolated quartiles of the seats would be
3, 6 and 10.75."""

INSTANCES = {
    1: 7, 2: 5, 3: 3, 4: 6, 5: 3, 6: 2, 7: 2, 8: 4, 9: 4, 10: 1,
    11: 1, 12: 1, 13: 1, 14: 2, 16: 1, 18: 2, 27: 2, 36: 1, 53: 1, 435: 1,
}  # fmt: skip
"""Wang & Reiter 2021, Table 1; Wang 2020, Table 2: how often each count occurs."""

SEATS = (
    "AL7 AK1 AZ9 AR4 CA53 CO7 CT5 DE1 FL27 GA14 HI2 ID2 IL18 IN9 IA4 KS4 KY6 LA6 ME2 MD8 MA9 MI14 "
    "MN8 MS4 MO8 MT1 NE3 NV4 NH2 NJ12 NM3 NY27 NC13 ND1 OH16 OK5 OR5 PA18 RI2 SC7 SD1 TN9 TX36 "
    "UT4 VT1 VA11 WA10 WV3 WI8 WY1"
)
"""Seats of the House of Representatives after the census of 2010, states in order."""


def scenario_1() -> IntArray:
    """Fifty counts built to the description of Wang & Reiter 2021, section 3.3.

    Three zeros; 1, 2, 3; five from 15 to 60; the rest from 60 to 977. Quartiles 60, 382 and
    736, maximum 977, total 21249.
    """
    small = [0, 0, 0, 1, 2, 3, 15, 22, 31, 44, 60]
    first = [60, 60, 60, *range(90, 381, 32)]
    second = [382, 382, *range(420, 700, 30)]
    third = [736, 736, *range(760, 961, 20), 977]
    counts = np.array([*small, *first, *second, *third], dtype=np.int64)
    counts[28:36] += (TOTAL_1 - counts.sum()) // 8
    counts[35] += TOTAL_1 - counts.sum()
    return counts


def seats() -> dict[str, int]:
    """Seats by state."""
    return {entry[:2]: int(entry[2:]) for entry in SEATS.split()}


def scenario_4() -> dict[str, int]:
    """The fifty counts of Table 1: the list from its second state on, its total as last row."""
    states = seats()
    return dict(list(states.items())[1:]) | {"US": sum(states.values())}


def scenario_4_counts() -> IntArray:
    """The same as an array."""
    return np.array(list(scenario_4().values()), dtype=np.int64)


def followed(counts: IntArray) -> list[int]:
    """Where the counts followed stand: those places of the sorted order, as `order` of R has it."""
    places = np.argsort(counts, kind="stable")
    return [int(places[place - 1]) for place in QUARTILES]
