"""Tables as people draw them: every count of them beside sums made by filtering the cells."""

import numpy as np
import polars as pl
import pytest

import countwise as cw
from countwise.release.drawn_tables import drawn_tables
from countwise.tables.confidential import Confidential
from countwise.tables.drawing import NOTHING, draw_margin, draw_tree
from countwise.tables.hierarchy import build
from countwise.tables.variable import make_variable
from countwise.tables.workload import Margin, Workload

PLACES = [("N", "a"), ("N", "b"), ("S", "a"), ("S", "c")]
AGES = [("young", "0-9"), ("young", "10-19"), ("old", "20-64"), ("old", "65+")]
LEVELS = ("state", "county", "band", "year", "sex")


def crossing(*margins: Margin) -> tuple[Workload, np.ndarray, pl.DataFrame]:
    variables = (
        make_variable("place", pl.DataFrame(PLACES, schema=["state", "county"], orient="row"))[0],
        make_variable("age", pl.DataFrame(AGES, schema=["band", "year"], orient="row"))[0],
        make_variable("sex", pl.DataFrame({"sex": ["f", "m"]}))[0],
    )
    workload = Workload(variables=variables, margins=margins)
    counts = np.random.default_rng(1).integers(0, 50, workload.shape)
    cells = workload.frame(workload.finest, n=counts).with_columns(pl.col(LEVELS).cast(pl.String))
    return workload, counts, cells


@pytest.mark.parametrize("levels", [(2, 2, 1), (2, 1, 0), (0, 2, 1), (1, 0, 0), (0, 0, 1)])
def test_every_count_is_the_sum_of_its_cells(levels: tuple[int, ...]) -> None:
    margin = Margin(levels)
    workload, counts, cells = crossing(margin)
    drawing = draw_margin(workload, margin, workload.sums(counts, margin))
    names = (*drawing.heads, *drawing.across)
    seen = set()
    for row, values in zip(drawing.rows, drawing.counts.tolist(), strict=True):
        for column, value in zip(drawing.columns, values, strict=True):
            labels = dict(zip(names, (*row, *column), strict=True))
            chosen = {name: label for name, label in labels.items() if label is not None}
            assert value == cells.filter(**chosen)["n"].sum()
            seen.add(tuple(chosen.items()))
    nodes = [sum(v.sizes[: d + 1]) for v, d in zip(workload.variables, levels, strict=True)]
    assert len(seen) == np.prod(nodes)


def test_totals_stand_after_their_parts() -> None:
    margin = Margin((2, 0, 1))
    workload, counts, _ = crossing(margin)
    drawing = draw_margin(workload, margin, workload.sums(counts, margin))
    assert drawing.labelled("All") == [
        ("N", "a"), ("N", "b"), ("N", "All"), ("S", "a"), ("S", "c"), ("S", "All"), ("All", "All"),
    ]  # fmt: skip
    assert drawing.headings("All") == ["f", "m", "All"]
    ages = draw_margin(workload, Margin((1, 2, 0)), workload.sums(counts, Margin((1, 2, 0))))
    assert ages.headings("All") == ["20-64", "65+", "old", "0-9", "10-19", "young", "All"]


def test_a_label_that_occurs_twice_is_told_by_its_path() -> None:
    margin = Margin((2, 0, 0))
    workload, counts, _ = crossing(margin)
    turned = Workload(variables=workload.variables[::-1], margins=(Margin((1, 0, 2)),))
    drawing = draw_margin(turned, Margin((1, 0, 2)), counts.sum(axis=1).T)
    assert drawing.headings("All") == ["N / a", "b", "N", "S / a", "c", "S", "All"]


def test_a_tree_has_its_last_level_as_columns_where_it_is_shared() -> None:
    rows = [("N", "x", "f"), ("N", "x", "m"), ("N", "y", "f"), ("S", "z", "m"), ("S", "z", "f")]
    hierarchy, order = build(pl.DataFrame(rows, schema=["region", "town", "sex"], orient="row"))
    cells = np.array([3, 4, 5, 6, 7])[order]
    drawing = draw_tree(hierarchy, cells)
    drawn = dict(zip(drawing.labelled("All"), drawing.counts.tolist(), strict=True))
    assert drawn == {
        ("N", "x"): [3, 4, 7], ("N", "y"): [5, NOTHING, 5], ("N", "All"): [8, 4, 12],
        ("S", "z"): [7, 6, 13], ("S", "All"): [7, 6, 13], ("All", "All"): [15, 10, 25],
    }  # fmt: skip
    towns = draw_tree(hierarchy.above(2), np.array([7, 5, 13]))
    assert towns.frame(total="All").rows() == [
        ("N", "x", 7), ("N", "y", 5), ("N", "All", 12), ("S", "z", 13), ("S", "All", 13),
        ("All", "All", 25),
    ]  # fmt: skip


def test_ranges_stand_where_counts_were_published() -> None:
    rows = [(a, b) for a in ("N", "S") for b in ("f", "m")]
    hierarchy, _ = build(pl.DataFrame(rows, schema=["region", "sex"], orient="row"))
    made = cw.release(Confidential(hierarchy, np.array([5, 60, 7, 80])), cw.Plan(epsilon=1))
    (table,) = drawn_tables(made)
    assert table.labels == [("N",), ("S",), ("Total",)]
    assert table.columns == ["f", "m", "Total"]
    known = {row[:2]: row[3:] for row in made.table().cast({"region": str, "sex": str}).rows()}
    for i, label in enumerate(("N", "S", None)):
        for j, sex in enumerate(("f", "m", None)):
            found = (table.counts[i][j], table.low[i][j], table.high[i][j])
            if (label, sex) in known:
                assert found == known[label, sex]
            else:
                assert found[1:] == (None, None), "no sum by sex was published"
