"""A page that shows a release: its tables as people draw them, and every count to be searched."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl
from markupsafe import Markup

from countwise.choices import one_of
from countwise.errors import InputError
from countwise.pages.charts import Interval, chart_height, intervals
from countwise.pages.drawn import DrawnTable, range_in_words
from countwise.pages.listing import PLAIN_ROWS, Listing, NumberColumn
from countwise.pages.notebook import Picture
from countwise.pages.page import render
from countwise.release.count_ranges import crossed_ranges, ranges_of
from countwise.release.crossed_release import CrossedRelease
from countwise.release.document import Release
from countwise.release.drawn_tables import drawn_tables
from countwise.release.publication import Publication

LARGEST_CHART = 80
MOST_LISTED = 400_000
"""Counts that a page can have at all."""
MOST_BYTES = 1_500_000
"""Of all counts as they stand in the page, beside at most PLAIN_ROWS of them as a table."""
MOST_DRAWN = 200_000
"""Counts up to which tables are drawn from a release."""
NUMBERS = (NumberColumn(name="count", heading="count"),)
RANGE = NumberColumn(name="low", heading="range, 95%", upper="high")


def release_page(published: Publication, *, exploring: bool = False) -> str:
    """The page, complete in itself; or, while it is explored, with sums that are asked for."""
    assert isinstance(published, Release | CrossedRelease)
    release = with_ranges(published)
    table = release.table()
    listing, left_out = page_listing(release)
    everyone = table.filter(pl.all_horizontal(pl.col(_levels(release)).is_null()))
    return render(
        "release.html",
        title=release.imprint.title or "Released counts",
        imprint=release.imprint,
        loss=release.budget.in_words(),
        size=release.size,
        everyone=_in_words(everyone),
        charts=[] if isinstance(release, CrossedRelease) else list(_charts(release)),
        tables=_drawn(release),
        listing=listing.html(),
        left_out=left_out,
        exploring=exploring,
    )


def page_listing(
    release: Release | CrossedRelease,
) -> tuple[Listing, list[tuple[str, str]]]:
    """The counts that the page of a release has, and the tables that it leaves out."""
    return listed(release.table(), _levels(release))


def with_ranges(release: Release | CrossedRelease) -> Release | CrossedRelease:
    """The release, of an earlier version with the ranges it has not in its folder."""
    if release.ranges is not None:
        return release
    if isinstance(release, CrossedRelease):
        ranges = crossed_ranges(release.workload, release.measurements)
    else:
        ranges = ranges_of(release.measurements)
    return replace(release, ranges=ranges)


def _levels(release: Release | CrossedRelease) -> list[str]:
    space = release.workload if isinstance(release, CrossedRelease) else release.hierarchy
    return list(space.by)


def _in_words(everyone: pl.DataFrame) -> tuple[str, str]:
    """The grand total with its range, if it is published."""
    if everyone.is_empty():
        return "", ""
    row = everyone.row(0, named=True)
    return f"{row['count']:,}", range_in_words(row["low"], row["high"])


def listed(table: pl.DataFrame, levels: Sequence[str]) -> tuple[Listing, list[tuple[str, str]]]:
    """What fits the page, and the tables that do not with their sizes, largest first left out."""
    sizes = table.group_by("level", maintain_order=True).len().sort("len", maintain_order=True)
    names = sizes["level"].cast(pl.String).to_list()
    counts = dict(zip(names, sizes["len"].to_list(), strict=True))
    kept = names
    left_out: list[tuple[str, str]] = []
    while True:
        frame = table
        if left_out:
            frame = table.filter(pl.col("level").cast(pl.String).is_in(kept))
        listing = Listing(
            frame=frame,
            labels=[*levels, "level"] if len(kept) > len(levels) + 1 else levels,
            numbers=(*NUMBERS, RANGE),
            name="Every count",
        )
        fits = len(frame) <= MOST_LISTED and len(listing.packed()) <= MOST_BYTES
        if fits or len(kept) == 1:
            return listing, left_out
        *kept, dropped = kept
        left_out.append((dropped, f"{counts[dropped]:,}"))


def _drawn(release: Release | CrossedRelease) -> list[tuple[str, int, Markup]]:
    """The tables that are no longer than may be read without scripts, or their beginnings."""
    if release.size > MOST_DRAWN:
        return []
    found, room = [], PLAIN_ROWS
    for table in drawn_tables(release):
        if table.size <= room and len(table.columns) > 1:
            room -= table.size
            found.append((_name(table), table.size, table.html()))
    return found


def _name(table: DrawnTable) -> str:
    return table.name.replace("*", " by ")


def _charts(release: Release) -> Sequence[tuple[str, str, Markup]]:
    """Of each level below the total that a chart can show, its noise and the chart."""
    return [
        (name, release.noise_within[level], level_chart(release, level))
        for level, name in enumerate(release.hierarchy.levels)
        if 1 < release.hierarchy.sizes[level] <= LARGEST_CHART
    ]


def level_chart(release: Release, level: int) -> Markup:
    """Released counts as dots on their 95% ranges, noisy counts as circles."""
    hierarchy, noisy, ranges = release.hierarchy, release.measurements.noisy[level], release.ranges
    assert ranges is not None
    rows = [
        Interval(
            label=" / ".join(hierarchy.path(level, node)[-2:]),
            value=float(count),
            lower=float(ranges.low[level][node]),
            upper=float(ranges.high[level][node]),
            hollow=float(noisy[node]),
        )
        for node, count in enumerate(release.counts[level])
    ]
    title = f"Released counts of level {hierarchy.levels[level]}"
    return intervals(rows, title=title, axis=f"{hierarchy.levels[level]} count")


def counts_picture(published: Publication, name: str) -> Picture:
    """One level or table as a chart."""
    assert isinstance(published, Release | CrossedRelease)
    release = with_ranges(published)
    sizes = _sizes(release)
    if not name:
        name = next(
            (each for each, n in sizes.items() if 1 < n <= LARGEST_CHART), next(iter(sizes))
        )
    one_of(name, sizes, what="a level" if isinstance(release, Release) else "a table")
    if sizes[name] > LARGEST_CHART:
        raise InputError(
            f"{name} has {sizes[name]:,} counts, and a picture holds {LARGEST_CHART}. To fix, look "
            "at release.html, or choose a coarser one."
        )
    title = f"Released counts of {name.replace('*', ' by ')}"
    if isinstance(release, Release):
        chart = level_chart(release, list(sizes).index(name))
    else:
        chart = table_chart(release, name, title)
    return Picture(chart, title=title, height=chart_height(sizes[name]))


def _sizes(release: Release | CrossedRelease) -> dict[str, int]:
    if isinstance(release, Release):
        return dict(release.hierarchy.describe())
    workload = release.workload
    return {workload.name(each): workload.size(each) for each in workload.margins}


def table_chart(release: CrossedRelease, name: str, title: str) -> Markup:
    """The counts of one table of several variables as dots on their ranges."""
    rows = release.table().filter(pl.col("level").cast(pl.String) == name)
    levels = _levels(release)
    return intervals(
        [
            Interval(
                label=" / ".join(str(row[level]) for level in levels if row[level]) or "total",
                value=float(row["count"]),
                lower=float(row["low"]),
                upper=float(row["high"]),
            )
            for row in rows.iter_rows(named=True)
        ],
        title=title,
        axis="count",
    )
