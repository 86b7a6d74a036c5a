"""A page of a posterior: marginals as bars, ranges around released counts, level by level."""

from importlib.metadata import version
from typing import Any

import numpy as np
from markupsafe import Markup

from countwise.errors import InputError
from countwise.inference.node_names import path_name
from countwise.inference.posterior import Node, Posterior
from countwise.pages.bars import bars
from countwise.pages.charts import Interval, chance, intervals
from countwise.pages.page import render
from countwise.sumproduct.summaries import Summaries
from countwise.tables.hierarchy import Hierarchy

SHOWN = 40  # children in one chart
PARTS = 60  # charts on a page
PICTURES = 6


def posterior_page(
    posterior: Posterior,
    *,
    probability: float = 0.95,
    interval: str = "highest",
    top: int = 10,
) -> str:
    """The posterior for a person to read, complete in itself."""
    hierarchy = posterior.hierarchy
    levels = [
        posterior.summaries(level, probability=probability, interval=interval)
        for level in range(len(hierarchy.sizes))
    ]
    opened = parts_to_open(hierarchy)
    return render(
        "posterior.html",
        title="What the true counts can be",
        percent=f"{100 * probability:g}",
        interval="highest posterior" if interval == "highest" else "central",
        nodes=hierarchy.nodes,
        levels=hierarchy.levels,
        route=posterior.route,
        prior=posterior.prior,
        joint_prior=posterior.joint_prior,
        diagnostics=posterior.diagnostics,
        pictures=pictures(posterior),
        combinations=combinations(posterior, top),
        combination_names=[path_name(hierarchy, 1, i) for i in range(min(hierarchy.sizes[1], 12))],
        root=branch(posterior, levels, 0, 0, opened),
        cut=len(opened) == PARTS,
        version=version("countwise"),
    )


def combinations(posterior: Posterior, top: int) -> list[tuple[str, ...]]:
    """The most probable combinations at the first level, when there are few components."""
    if top == 0 or not 1 < posterior.hierarchy.sizes[1] <= 12:
        return []
    try:
        found = posterior.top(top)
    except InputError:
        return []
    return [
        (str(rank), *(f"{n:,}" for n in (*each.counts, each.total)), chance(each.probability))
        for rank, each in enumerate(found, start=1)
    ]


def pictures(posterior: Posterior) -> list[dict[str, Any]]:
    """Bars of the total and the first components. Wang & Reiter 2021, Figure 2."""
    sizes = posterior.hierarchy.sizes
    level = next((d for d, size in enumerate(sizes) if size > 1), 1)
    first = [(level, i) for i in range(min(sizes[level], PICTURES - 1))]
    found = []
    for level, place in [(0, 0), *first]:
        node = posterior.node_at(level, place)
        found.append({"name": node.path, "chart": picture(node)})
    return found


def picture(node: Node) -> Markup:
    """Bars of the part of a node's law that can be seen: of every so many numbers, at most 120."""
    low, high = node.interval(0.999, kind="central")
    seen = range(low, high + 1, -(-(high - low + 1) // 120))
    return bars(
        low,
        [node.pmf(x) for x in seen],
        step=seen.step,
        title=f"Probabilities of the true count of {node.path}",
        axis="true count",
        marked=node.released,
    )


def parts_to_open(hierarchy: Hierarchy) -> set[tuple[int, int]]:
    """The parents whose children are shown: the upper levels first."""
    opened = [(0, 0)]
    for level, parent in opened:
        below = _shown(hierarchy, level, parent)
        if level + 1 < len(hierarchy.offsets):
            opened += [(level + 1, child) for child in below]
        if len(opened) >= PARTS:
            break
    return set(opened[:PARTS])


def _shown(hierarchy: Hierarchy, level: int, parent: int) -> range:
    below = hierarchy.children(level, parent)
    return range(below.start, min(below.stop, below.start + SHOWN))


def branch(
    posterior: Posterior,
    levels: list[Summaries],
    level: int,
    parent: int,
    opened: set[tuple[int, int]],
) -> dict[str, Any]:
    """The children of a node: chart, table, and the children of those that are to be opened."""
    hierarchy = posterior.hierarchy
    shown = _shown(hierarchy, level, parent)
    parts = [
        branch(posterior, levels, level + 1, child, opened)
        for child in shown
        if (level + 1, child) in opened
    ]
    name = path_name(hierarchy, level, parent)
    return {
        "name": name,
        "level": hierarchy.by[level],
        "chart": chart(posterior, levels[level + 1], level + 1, shown, name),
        "rows": [row(posterior, levels[level + 1], level + 1, i) for i in shown],
        "left_out": int(np.diff(hierarchy.offsets[level])[parent]) - len(shown),
        "parts": parts,
    }


def chart(posterior: Posterior, found: Summaries, level: int, shown: range, name: str) -> Any:
    """Ranges of children as differences from their released counts."""
    released = (found.mode if posterior.released is None else posterior.released[level])[
        shown.start : shown.stop
    ]
    rows = [
        Interval(
            label=f"{posterior.hierarchy.path(level, i)[-1]}: {count:,}",
            value=round(float(found.mean[i]) - int(count), 2),
            lower=float(found.lower[i] - count),
            upper=float(found.upper[i] - count),
            hollow=0.0,
        )
        for i, count in zip(shown, np.asarray(released), strict=True)
    ]
    title = f"True counts below {name}, as differences from the released ones"
    return intervals(rows, title=title, axis="difference from the released count")


def row(posterior: Posterior, found: Summaries, level: int, i: int) -> tuple[str, ...]:
    """One line of the table."""
    released = "" if posterior.released is None else f"{posterior.released[level][i]:,}"
    return (
        posterior.hierarchy.path(level, i)[-1],
        released,
        f"{found.mean[i]:,.2f}",
        f"{found.mode[i]:,}",
        f"{found.sd[i]:,.2f}",
        f"{found.lower[i]:,} to {found.upper[i]:,}",
        f"{100 * found.chance[i]:.1f}%",
    )
