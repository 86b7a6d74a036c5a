"""How often 95% ranges hold the true count: by level, by true size, and for unusual cells."""

from time import monotonic
from typing import Any

import numpy as np

import countwise as cw
from accuracy_tables import Table
from countwise.errors import InputError
from countwise.tables.confidential import Confidential
from countwise.tables.hierarchy import Hierarchy

SIZES = {"0": (0, 1), "1–9": (1, 10), "10–99": (10, 100), "100+": (100, np.inf)}
PRIORS: dict[str, dict[str, str]] = {"default": {}, "published": {"prior": "published"}}


def unusual(hierarchy: Hierarchy, cells: np.ndarray) -> np.ndarray:
    """The 1% of the cells with the largest ratio to what parent and label let expect.

    The expectation is the parent's count times the label's share of all; where labels do not come
    again, each child has the same share of its parent.
    """
    counts, label = hierarchy.sums(cells), hierarchy.codes[-1]
    parents = hierarchy.parents(len(hierarchy.by))
    if len(np.unique(label)) == len(cells):
        shares = 1 / np.diff(hierarchy.offsets[-1])[parents]
    else:
        shares = (np.bincount(label, weights=cells) / max(cells.sum(), 1))[label]
    expected = counts[-2][parents] * shares
    ratio = np.where(cells > 0, cells / np.maximum(expected, 1e-300), -1.0)
    chosen = np.zeros(len(cells), dtype=np.bool_)
    chosen[np.argsort(-ratio, kind="stable")[: max(len(cells) // 100, 1)]] = True
    return chosen & (cells > 0)


Group = list[tuple[int, np.ndarray]]


def groups(hierarchy: Hierarchy, cells: np.ndarray) -> dict[str, Group]:
    """Which nodes of which levels each figure is about."""
    true, last = hierarchy.sums(cells), len(hierarchy.by)
    found: dict[str, Group] = {}
    for level, name in enumerate(hierarchy.levels):
        found[f"level {name}"] = [(level, np.ones(len(true[level]), dtype=np.bool_))]
    for name, (low, high) in SIZES.items():
        within = [(level, (low <= each) & (each < high)) for level, each in enumerate(true)]
        found[f"cells of {name}"] = within[last:]
        found[f"sums of {name}"] = within[:last]
    found["unusual cells"] = [(last, unusual(hierarchy, cells))]
    return found


def judged(table: Table, plan: cw.Plan, *, releases: int, minutes: float) -> dict[str, Any]:
    """Of each group: how many nodes were judged, how many ranges held, and their mean width."""
    true = table.hierarchy.sums(table.cells)
    wanted = groups(table.hierarchy, table.cells)
    tally = {prior: {name: np.zeros(3) for name in wanted} for prior in PRIORS}
    refused: dict[str, int] = dict.fromkeys(PRIORS, 0)
    why: dict[str, str] = {}
    started, done = monotonic(), 0
    while done < releases and monotonic() - started < 60 * minutes:
        made = cw.release(Confidential(table.hierarchy, table.cells), plan)
        for prior, options in PRIORS.items():
            try:
                posterior = cw.infer(made, **options)
                ranges = [posterior.summaries(level) for level in range(len(true))]
            except InputError as problem:
                refused[prior] += 1
                why[prior] = str(problem)
                continue
            for name, level, these in (
                (name, *part) for name, group in wanted.items() for part in group
            ):
                low, high = ranges[level].lower[these], ranges[level].upper[these]
                held = (low <= true[level][these]) & (true[level][these] <= high)
                tally[prior][name] += these.sum(), held.sum(), (high - low).sum()
        done += 1
    return {
        "releases": done,
        "seconds": monotonic() - started,
        "refused": refused,
        "why": why,
        "tally": {
            prior: {name: each.tolist() for name, each in found.items()}
            for prior, found in tally.items()
        },
    }
