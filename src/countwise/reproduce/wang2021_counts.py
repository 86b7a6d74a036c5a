"""Wang & Reiter (2021), section 3.3: the true counts of the four scenarios."""

import numpy as np

from countwise.reproduce.exhibits import Bars, Effort, Exhibit, Findings
from countwise.reproduce.scenarios import (
    BUILT,
    FOLLOWED_4,
    INSTANCES,
    NAMES,
    QUARTILES,
    TOTAL_1,
    TOTAL_4,
    scenario_1,
    scenario_4_counts,
    seats,
)
from countwise.reproduce.verdicts import around, corrected, listed_apart, near

MADE = "the counts were made to fit this description, so they could hardly miss it"
PLACES = (
    "quartiles are the 12th, 25th and 38th of the fifty sorted counts; interpolated ones would be "
    "3, 6 and 10.75"
)


def figure_1(effort: Effort, rng: np.random.Generator) -> Findings:
    """The fifty true counts of scenarios 1 to 3."""
    del effort, rng
    counts = np.sort(scenario_1())
    quartiles = [int(counts[place - 1]) for place in QUARTILES]
    words = ("0", "60", "382", "736", "977")
    numbers = [
        near("Value", name, text, ours, reading=BUILT)
        for name, text, ours in zip(NAMES, words, quartiles, strict=True)
    ]
    numbers.append(near("Value", "N", str(TOTAL_1), int(counts.sum()), reading=BUILT))
    described = {
        "zeros": ("3", (counts == 0).sum()),
        "1, 2 and 3": ("3", np.isin(counts, (1, 2, 3)).sum()),
        "15 to 60, below the 12th": ("5", ((counts >= 15) & (counts <= 60))[:11].sum()),
        "60 to 1000, the rest": ("39", ((counts >= 60) & (counts <= 1000))[11:].sum()),
    }
    numbers += [
        near("Components", name, text, int(ours), reading=BUILT)
        for name, (text, ours) in described.items()
    ]
    bins = np.histogram(counts, bins=20, range=(0, 1000))[0]
    picture = Bars(
        title="True counts of scenarios 1 to 3: components in each range of fifty",
        axis="range of fifty, from 0 to 1000",
        low=1,
        heights=tuple(float(edge) for edge in bins),
    )
    return Findings(numbers=listed_apart(numbers, MADE), pictures=[picture])


def table_1(effort: Effort, rng: np.random.Generator) -> Findings:
    """The fifty counts of scenario 4, and what they are."""
    del effort, rng
    counts = np.sort(scenario_4_counts())
    numbers = [
        near(f"Count {value}", "instances", str(times), int((counts == value).sum()))
        for value, times in INSTANCES.items()
    ]
    quartiles = [int(counts[place - 1]) for place in QUARTILES]
    numbers += [
        near(name, "value", str(text), ours, reading=PLACES if 0 < i < 4 else "")
        for i, (name, text, ours) in enumerate(zip(NAMES, FOLLOWED_4, quartiles, strict=True))
    ]
    numbers.append(near("N", "value", str(TOTAL_4), int(counts.sum())))
    states = seats()
    why = (
        "the fifty counts are the census list from its second state on with the national total as "
        "last row: Alabama is missing and the sum of the states is a component"
    )
    numbers += [
        corrected("Largest count of a state", "value", "435", max(states.values()),
                  *around(53, 0), why=why, value=435),
        corrected("Total of the fifty states", "value", "863", sum(states.values()),
                  *around(435, 0), why=why, value=863),
        corrected("States with 7 seats", "instances", "2", list(states.values()).count(7),
                  *around(3, 0), why=why, value=2),
    ]  # fmt: skip
    return Findings(numbers=numbers)


EXHIBITS = (
    Exhibit(key="figure-1", title="Figure 1: true counts of scenarios 1 to 3", source="section 3.3",
            how=f"No simulation. Reading: {BUILT}.", compute=figure_1),
    Exhibit(key="table-1", title="Table 1: true counts of scenario 4", source="section 3.3",
            how="Counted in the list of seats after the census of 2010.", compute=table_1),
)  # fmt: skip
