"""The tables of a release as people draw them, with the range of every count that has one."""

from collections.abc import Iterator, Mapping

import polars as pl

from countwise.pages.drawn import DrawnTable
from countwise.release.crossed_release import CrossedRelease
from countwise.release.document import Release
from countwise.tables.crosstab import TOTAL
from countwise.tables.drawing import NOTHING, Drawing, draw_margin, draw_tree
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.workload import Workload

Known = Mapping[tuple[str | None, ...], tuple[int, int]]


def drawn_tables(release: Release | CrossedRelease) -> Iterator[DrawnTable]:
    """Those that are not totals of another, in the order of the plan."""
    known = known_ranges(release)
    if isinstance(release, CrossedRelease):
        counts = dict(zip(release.workload.margins, release.counts, strict=True))
        for margin in release.finest:
            if any(margin.levels):
                drawing = draw_margin(release.workload, margin, counts[margin])
                yield drawn(release.workload.name(margin), drawing, release.workload, known)
        return
    drawing = draw_tree(release.hierarchy, release.counts[-1])
    yield drawn(" by ".join(release.hierarchy.by), drawing, release.hierarchy, known)


def known_ranges(release: Release | CrossedRelease) -> Known:
    """The range of every published count, by its label at every level, None where summed over."""
    table = release.table()
    if "low" not in table.columns:
        return {}
    labels = table.select(pl.col(_space(release).by).cast(pl.String)).rows()
    ranges = zip(table["low"].to_list(), table["high"].to_list(), strict=True)
    return dict(zip(labels, ranges, strict=True))


def drawn(name: str, drawing: Drawing, space: Hierarchy | Workload, known: Known) -> DrawnTable:
    """A drawing with what is known of its counts."""
    levels = (*drawing.heads, *drawing.across)
    places = [levels.index(level) if level in levels else None for level in space.by]
    low: list[list[int | None]] = []
    high: list[list[int | None]] = []
    for row in drawing.rows:
        found = []
        for column in drawing.columns:
            labels = (*row, *column)
            key = tuple(None if place is None else labels[place] for place in places)
            found.append(known.get(key, (None, None)))
        low.append([each for each, _ in found])
        high.append([each for _, each in found])
    total = free_total(space)
    return DrawnTable(
        name=name,
        heads=drawing.heads,
        labels=drawing.labelled(total),
        columns=drawing.headings(total),
        counts=[[None if n == NOTHING else n for n in row] for row in drawing.counts.tolist()],
        low=low,
        high=high,
        total=total,
    )


def free_total(space: Hierarchy | Workload) -> str:
    """What totals are called: the usual word, unless that is a label or a level."""
    labels = space.labels if isinstance(space, Hierarchy) else space.level_labels
    taken, total = {*space.by, *(label for each in labels for label in each)}, TOTAL
    while total in taken:
        total += "*"
    return total


def _space(release: Release | CrossedRelease) -> Hierarchy | Workload:
    return release.workload if isinstance(release, CrossedRelease) else release.hierarchy
