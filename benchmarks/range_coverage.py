"""How often 95% ranges hold the true count: by level, by true size, and for unusual cells."""

from collections.abc import Callable
from time import monotonic
from typing import Any

import numpy as np

import countwise as cw
from accuracy_tables import Table
from countwise.errors import InputError
from countwise.inference.posterior import Posterior
from countwise.tables.confidential import Confidential
from countwise.tables.hierarchy import Hierarchy

SIZES = {"0": (0, 1), "1–9": (1, 10), "10–99": (10, 100), "100+": (100, np.inf)}
PRIORS: dict[str, dict[str, str]] = {"default": {}, "published": {"prior": "published"}}
ADJUSTED = {"default": "least-squares", "published": "bayes"}
"""Ranges start from the noisy counts, whatever was made of them; a prior is learned by `bayes`."""


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


def judged(
    table: Table, plan: Callable[[str], cw.Plan], *, releases: int, minutes: float
) -> dict[str, Any]:
    """Of each group and prior: nodes judged, ranges that held, and their widths added up.

    Each prior has releases of its own, and half of the time.
    """
    wanted = groups(table.hierarchy, table.cells)
    found: dict[str, Any] = {
        "releases": {}, "seconds": {}, "refused": {}, "why": {}, "tally": {}
    }  # fmt: skip
    for prior, options in PRIORS.items():
        tally, refused, done = {name: np.zeros(3) for name in wanted}, 0, 0
        started = monotonic()
        while done < releases and monotonic() - started < 30 * minutes:
            made = cw.release(Confidential(table.hierarchy, table.cells), plan(ADJUSTED[prior]))
            try:
                add(tally, cw.infer(made, **options), wanted, table)
            except InputError as problem:
                refused += 1
                found["why"][prior] = str(problem)
            done += 1
        found["releases"][prior] = done
        found["seconds"][prior] = monotonic() - started
        found["refused"][prior] = refused
        found["tally"][prior] = {name: each.tolist() for name, each in tally.items()}
    return found


def add(
    tally: dict[str, np.ndarray], posterior: Posterior, wanted: dict[str, Group], table: Table
) -> None:
    """One release more."""
    true = table.hierarchy.sums(table.cells)
    ranges = [posterior.summaries(level) for level in range(len(true))]
    for name, group in wanted.items():
        for level, these in group:
            low, high = ranges[level].lower[these], ranges[level].upper[these]
            held = (low <= true[level][these]) & (true[level][these] <= high)
            tally[name] += these.sum(), held.sum(), (high - low).sum()
