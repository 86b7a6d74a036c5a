"""A page of a posterior: answers first, then pictures, then every count to be searched."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import polars as pl
from markupsafe import Markup

from countwise.errors import InputError
from countwise.inference.node_names import path_name
from countwise.inference.posterior import Posterior, differences
from countwise.inference.statement_probabilities import Probability
from countwise.pages.charts import chance
from countwise.pages.imprint import Imprint
from countwise.pages.listing import Listing, NumberColumn
from countwise.pages.page import render
from countwise.tables.hierarchy import Hierarchy

PICTURES = 6
LARGEST_CHART = 40
MOST_BYTES = 1_500_000
"""Of all counts as they stand in the page."""
NUMBERS = (
    NumberColumn(name="released", heading="released"),
    NumberColumn(name="mode", heading="most probable"),
    NumberColumn(name="mean", heading="mean", places=2),
    NumberColumn(name="sd", heading="sd", places=2),
)
KINDS = {"highest": "the most probable counts", "central": "as much left out below as above"}


def posterior_page(
    posterior: Posterior,
    *,
    probability: float = 0.95,
    interval: str = "highest",
    top: int = 10,
    answers: Mapping[str, Probability] | None = None,
    imprint: Imprint = Imprint(),  # noqa: B008
) -> str:
    """The posterior for a person to read, complete in itself; `answers` are to statements."""
    hierarchy = posterior.hierarchy
    table = posterior.table(probability=probability, interval=interval)
    listing, left_out = listed(table, hierarchy, f"range, {100 * probability:g}%")
    return render(
        "posterior.html",
        title="What the true counts can be",
        imprint=imprint,
        percent=f"{100 * probability:g}",
        interval=KINDS[interval],
        nodes=hierarchy.nodes,
        answers=[answer_row(said, p, posterior.prior) for said, p in (answers or {}).items()],
        route=posterior.route,
        prior=posterior.prior,
        joint_prior=posterior.joint_prior,
        diagnostics=posterior.diagnostics,
        pictures=pictures(posterior),
        charts=[chart(hierarchy, level, table) for level in charted(hierarchy)],
        listing=listing.html(),
        left_out=left_out,
        combinations=combinations(posterior, top),
        combination_names=[path_name(hierarchy, 1, i) for i in range(min(hierarchy.sizes[1], 12))],
        version=version("countwise"),
    )


def answer_row(said: str, probability: Probability, prior: str) -> tuple[str, ...]:
    """A statement, its probability, how exactly that is known, and a prior of its own."""
    error = "" if probability.exact else f"± {probability.error:.2g}, from draws"
    own = "" if probability.prior == prior else f"prior: {probability.prior}"
    return said, chance(float(probability)), "; ".join(filter(None, (error, own)))


def listed(
    table: pl.DataFrame, hierarchy: Hierarchy, heading: str
) -> tuple[Listing, list[tuple[str, str]]]:
    """Every count of the levels that fit the page, from the root down; and the other levels."""
    known = set(table.columns)
    numbers = tuple(each for each in NUMBERS if each.name in known)
    ends = NumberColumn(name="lower", heading=heading, upper="upper")
    for depth in range(len(hierarchy.by), 0, -1):
        sizes = list(zip(hierarchy.levels, hierarchy.sizes, strict=True))
        listing = Listing(
            frame=table.head(sum(hierarchy.sizes[: depth + 1])),
            labels=hierarchy.by[:depth],
            numbers=(*numbers, ends),
            name="Every count",
        )
        if len(listing.packed()) <= MOST_BYTES:
            break
    return listing, [(name, f"{size:,}") for name, size in sizes[depth + 1 :]]


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
        title = f"Probabilities of the true count of {node.path}"
        found.append({"name": node.path, "chart": node.chart(title, marked=node.released)})
    return found


def charted(hierarchy: Hierarchy) -> list[int]:
    """The levels below the root that a chart can show."""
    return [level for level, n in enumerate(hierarchy.sizes) if level and n <= LARGEST_CHART]


def chart(hierarchy: Hierarchy, level: int, table: pl.DataFrame) -> tuple[str, Markup]:
    """The name of a level, and its ranges."""
    name = hierarchy.levels[level]
    title = f"True counts of level {name}, as differences from the released ones"
    return name, differences(hierarchy, level, table, title)
