"""A page that shows a release: every count of the upper levels with the range of the true one."""

from itertools import islice

from markupsafe import Markup

from countwise.pages.charts import Interval, intervals
from countwise.pages.page import render
from countwise.release.count_ranges import Ranges, ranges_of
from countwise.release.document import Release

LARGEST_CHART = 40


def release_page(release: Release) -> str:
    """The released counts, level by level, each with its range of 95% without a prior."""
    ranges = release.ranges or ranges_of(release.measurements)
    sections = []
    for level, name in enumerate(release.hierarchy.levels):
        shown = min(release.hierarchy.sizes[level], LARGEST_CHART)
        sections.append(
            {
                "level": name,
                "nodes": release.hierarchy.sizes[level],
                "shown": shown,
                "noise": release.noise_within[level],
                "chart": level_chart(release, ranges, level, shown),
            }
        )
    return render(
        "release.html",
        title="Released counts",
        loss=release.budget.in_words(),
        nodes=release.hierarchy.nodes,
        sections=sections,
    )


def level_chart(release: Release, ranges: Ranges, level: int, shown: int) -> Markup:
    """Released counts as dots on their 95% ranges, noisy counts as circles."""
    hierarchy, noisy = release.hierarchy, release.measurements.noisy[level]
    rows = [
        Interval(
            label=" / ".join(hierarchy.path(level, node)[-2:]) or "total",
            value=float(count),
            lower=float(ranges.low[level][node]),
            upper=float(ranges.high[level][node]),
            hollow=float(noisy[node]),
        )
        for node, count in islice(enumerate(release.counts[level]), shown)
    ]
    title = f"Released counts of level {hierarchy.levels[level]}"
    return intervals(rows, title=title, axis=f"{hierarchy.levels[level]} count")
