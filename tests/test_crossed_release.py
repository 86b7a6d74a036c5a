"""Tables that cross, from the boundary to the folder and back."""

import json
import re
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import countwise as cw
from countwise.errors import CountwiseError, InputError, ReleaseError, TableError
from countwise.noise.laws import IntegerLaw
from countwise.noise.zcdp import epsilon_of_levels
from countwise.release import measure as boundary
from countwise.release.crossed_release import CrossedRelease, check_margins
from countwise.tables.confidential import Confidential
from countwise.tables.workload import Margin, Workload
from crossings import all_margins, flat, random_tree, variable
from test_release_boundary import LAWS, RELATIONS, check, stated_scale

PAGES = {"certificate.html", "release.html"}
FILES = {"counts.csv", "counts.parquet", "measurements.parquet", "release.json"} | PAGES
ACROSS = {"age": ("age1", "age2"), "sex1": ("sex1",)}


def space() -> Workload:
    """Two places, one divided in two and one in three, by ages in bands, by sex."""
    place, age = variable("place", [2], [2, 3]), variable("age", [2], [3, 2])
    sex = flat("sex", 2)
    return Workload(variables=(place, age, sex))


def plan_for(cells: Workload, **given: object) -> cw.Plan:
    first, *others = cells.variables
    names = {each.name: each.levels for each in others}
    return cw.Plan(by=first.levels, across=names, **given)  # type: ignore[arg-type]


def table_for(cells: Workload, counts: np.ndarray | None = None) -> Confidential[Workload]:
    if counts is None:
        counts = np.random.default_rng(4).poisson(9.0, cells.cells)
    return Confidential(cells, counts)


def released(**given: object) -> CrossedRelease:
    cells = space()
    return cw.release(table_for(cells), plan_for(cells, **({"rho": "1/2"} | given)))


def random_case(rng: np.random.Generator) -> tuple[Workload, dict[str, Fraction]]:
    """Variables at random, and losses of some of their margins."""
    variables = [random_tree(rng, name, int(rng.integers(1, 3))) for name in "abc"]
    cells = Workload(variables=tuple(variables[: int(rng.integers(2, 4))]))
    margins = all_margins(cells.variables)
    chosen = rng.choice(len(margins), size=int(rng.integers(1, len(margins))), replace=False)
    names = {cells.name(margins[i]) for i in chosen} | {cells.name(cells.finest)}
    return cells, {name: Fraction(int(rng.integers(1, 9)), 4) for name in sorted(names)}


def neighbour(
    rng: np.random.Generator, size: int, relation: str, rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Two tables that differ by one person, whose rows are all in one cell half of the time."""

    def person(most: int) -> np.ndarray:
        many = int(rng.integers(1, most + 1))
        where = rng.integers(0, size, 1 if rng.random() < 0.5 else many)
        return np.bincount(np.resize(where, many), minlength=size)

    others = rng.integers(0, 3, size)
    if relation == "add-remove":
        return others, others + person(rows)
    return others + person(rows), others + person(rows)


@pytest.mark.parametrize(("relation", "rows"), RELATIONS)
@pytest.mark.parametrize("unit", ["epsilon", "rho"])
def test_neighbours_never_cost_more_than_the_loss(
    unit: str, relation: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With frozen noise: distances over scales, summed over tables, within what is stated.

    The bounds are reached up to the rows that two people differ by, so they are not loose.
    """
    calls: list[tuple[IntegerLaw, int]] = []

    def no_noise(law: IntegerLaw, size: int) -> np.ndarray:
        calls.append((law, size))
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setitem(boundary.SAMPLERS, "exact", no_noise)
    rng = np.random.default_rng(8)
    for _ in range(12):
        cells, losses = random_case(rng)
        free = relation == "replace-one" and rows == 1
        if free:
            losses = {
                name: loss for name, loss in losses.items() if cells.size(margin(cells, name)) > 1
            }
        if not losses:
            continue
        plan = plan_for(cells, **{unit: losses}, neighbours=relation, rows=rows)
        budget, worst = plan.budget(cells), 0.0
        assert budget.loss == sum(losses.values())
        for _ in range(40):
            pair, steps = [], []
            for counts in neighbour(rng, cells.cells, relation, rows):
                calls.clear()
                pair.append(boundary.measure(Confidential(cells, counts), budget))
                steps.append(list(calls))
            assert steps[0] == steps[1]
            spent = 0.0
            for one, other in zip(*pair, strict=True):
                apart = np.abs(one.noisy - other.noisy).astype(float)
                scale = float(one.law.scale)
                if not scale:
                    assert not apart.any()
                elif unit == "epsilon":
                    spent += apart.sum() / scale
                else:
                    spent += (apart**2).sum() / (2 * scale**2)
            worst = max(worst, spent)
        stated = float(budget.loss)
        assert worst <= stated * (1 + 1e-9)
        if rows == 1:
            assert worst > 0.49 * stated


def margin(cells: Workload, name: str) -> Margin:
    return next(each for each in all_margins(cells.variables) if cells.name(each) == name)


@pytest.mark.parametrize(("relation", "rows"), RELATIONS)
@pytest.mark.parametrize("mechanism", sorted(LAWS))
def test_every_measured_table_has_the_noise_of_its_loss(
    mechanism: str, relation: str, rows: int
) -> None:
    """Accepted at the stated scale, refused at nine and eleven tenths of it."""
    cells = Workload(variables=(flat("a", 2), flat("b", 2)))
    losses = {"total": Fraction(1), "a1": Fraction(1, 2), "a1*b1": Fraction(1, 4)}
    free = relation == "replace-one" and rows == 1
    given = {name: loss for name, loss in losses.items() if not (free and name == "total")}
    unit = "rho" if mechanism == "gaussian" else "epsilon"
    plan = plan_for(cells, **{unit: given}, mechanism=mechanism, neighbours=relation, rows=rows)
    counts, budget = 1000 + 7 * np.arange(4), plan.budget(cells)
    table = Confidential(cells, counts)
    drawn = [boundary.measure(table, budget) for _ in range(15_000)]
    grid = counts.reshape(2, 2)
    true = {"total": grid.sum(keepdims=True), "a1": grid.sum(axis=1, keepdims=True), "a1*b1": grid}
    assert [each.level for each in budget.levels] == list(losses)
    for i, name in enumerate(losses):
        noise = np.stack([each[i].noisy - true[name] for each in drawn])
        scale = stated_scale(mechanism, relation, rows, true[name].size, losses[name])
        if scale:
            check(noise.ravel(), LAWS[mechanism], scale)
        else:
            assert not noise.any(), "nobody changes the total, so it carries no noise"


def test_no_two_tables_and_no_two_calls_share_their_noise() -> None:
    cells = space()
    budget = plan_for(cells, epsilon="0.000001", split="even").budget(cells)
    table = table_for(cells)
    drawn = [boundary.measure(table, budget) for _ in range(4)]
    noise = np.concatenate([each.noisy.ravel() for one in drawn for each in one])
    assert len(np.unique(noise)) > 0.99 * len(noise)


def test_what_nobody_can_change_is_exact_and_free() -> None:
    """Under replace-one the grand total is the same in all neighbours, asked for or not."""
    cells = space()
    plan = plan_for(cells, epsilon=1, neighbours="replace-one", tables="place2:age2:sex1")
    total, *others = plan.settled(cells).budget(cells).levels
    assert (total.level, total.loss, total.law.scale) == ("total", 0, 0)
    assert others
    made = cw.release(table_for(cells), plan)
    true = np.random.default_rng(4).poisson(9.0, cells.cells).sum()
    assert made.counts[0].sum() == true


@pytest.mark.parametrize("given", [{"epsilon": 2}, {"rho": "1/2"}, {"rho": "1/2", "rows": 3}])
@pytest.mark.parametrize("tables", ["", "place1*age1*sex1, place2:age2, sex1:age2"])
def test_a_release_is_whole_consistent_and_read_back(
    given: dict[str, object], tables: str, tmp_path: Path
) -> None:
    made = released(**({"rho": None} | given), tables=tables)
    made.save(tmp_path / "release")
    assert {path.name for path in (tmp_path / "release").iterdir()} == FILES
    assert list(tmp_path.iterdir()) == [tmp_path / "release"]
    back = cw.read_release(tmp_path / "release")
    assert isinstance(back, CrossedRelease)
    assert back.manifest() == made.manifest()
    assert back.budget == made.budget
    assert back.workload.margins == made.workload.margins
    assert made.ranges is not None
    assert back.ranges is not None
    kept = [(made.counts, back.counts), (made.ranges.low, back.ranges.low),
            (made.ranges.high, back.ranges.high)]  # fmt: skip
    for ours, theirs in kept:
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)
    for one, other in zip(made.measurements, back.measurements, strict=True):
        assert (one.margin, one.law) == (other.margin, other.law)
        np.testing.assert_array_equal(one.noisy, other.noisy)


def test_every_two_published_tables_agree_in_the_file(tmp_path: Path) -> None:
    """Grouped as a reader would: every table by the levels it shares with another."""
    made = released()
    made.save(tmp_path / "release")
    rows = pl.read_csv(tmp_path / "release" / "counts.csv", infer_schema_length=None)
    assert (rows["count"] >= 0).all()
    assert (rows["low"] <= rows["high"]).all()
    levels = {level: rows.filter(pl.col("level") == level) for level in rows["level"].unique()}
    columns = {name: [] if name == "total" else name.split("*") for name in levels}
    above = {"place2": "place1", "age2": "age1"}
    for one, other in combinations(levels, 2):
        shared = [
            column
            for column in above.keys() | set(above.values()) | {"sex1"}
            if all(column in own or column in [above.get(c) for c in own]
                   for own in (columns[one], columns[other]))
        ]  # fmt: skip
        sums = [
            levels[each].group_by(shared).agg(pl.col("count").sum()).sort(shared)
            if shared else levels[each].select(pl.col("count").sum())
            for each in (one, other)
        ]  # fmt: skip
        assert sums[0].equals(sums[1]), (one, other)


def test_published_tables_are_sums_of_the_cells() -> None:
    made = released()
    cells = made.counts[made.workload.margins.index(made.workload.finest)]
    for each, counts in zip(made.workload.margins, made.counts, strict=True):
        np.testing.assert_array_equal(made.workload.sums(cells, each), counts)


def test_counts_that_do_not_agree_are_seen() -> None:
    """One count more, in any one table, and the folder would not get its name."""
    made = released(tables="place1*age1*sex1, place2:age2, sex1:age2")
    for i, counts in enumerate(made.counts):
        wrong = counts.copy()
        wrong.flat[-1] += 1
        tables = [*made.counts[:i], wrong, *made.counts[i + 1 :]]
        with pytest.raises(CountwiseError, match="do not have the same sums"):
            check_margins(made.workload, tables)
    wrong = made.counts[0] - 10**6
    with pytest.raises(CountwiseError, match="whole numbers of 0 or more"):
        check_margins(made.workload, [wrong, *made.counts[1:]])


def test_a_changed_folder_is_refused(tmp_path: Path) -> None:
    made, folder = released(), tmp_path / "release"
    made.save(folder)
    manifest = json.loads((folder / "release.json").read_text())
    assert manifest["format"] == 2
    (folder / "counts.csv").write_text("level,count\n")
    with pytest.raises(ReleaseError, match=r"counts\.csv was changed"):
        cw.read_release(folder)
    del manifest["measured"]
    (folder / "release.json").write_text(json.dumps(manifest))
    with pytest.raises(ReleaseError, match="has no 'measured'; a release of format 2 does"):
        cw.read_release(folder)


def test_what_takes_a_tree_says_so(tmp_path: Path) -> None:
    from countwise.release.document import read_release

    released().save(tmp_path / "release")
    with pytest.raises(ReleaseError, match="takes the release of one tree"):
        read_release(tmp_path / "release")
    table = table_for(space())
    with pytest.raises(TableError, match="crosses several variables"):
        table.hierarchy  # noqa: B018
    with pytest.raises(InputError, match="the plan is for the levels"):
        cw.release(Confidential(flat("a", 3).tree, np.arange(3)), plan_for(space(), epsilon=1))
    with pytest.raises(InputError, match="the table has place: place1 > place2"):
        cw.release(table, cw.Plan(epsilon=1))


def test_nothing_of_the_true_counts_is_shown() -> None:
    counts = np.full(space().cells, 739)
    table = table_for(space(), counts)
    assert "739" not in repr(table)
    assert repr(table).startswith("Confidential(2 place1, 5 place2, 2 age1, 5 age2, 2 sex1)")
    made = cw.release(table, plan_for(space(), epsilon="0.001"))
    assert "739" not in json.dumps(made.manifest())


def test_the_certificate_has_a_line_a_table() -> None:
    made = released(tables="place2*age2*sex1")
    page = made.certificate()
    for each in made.accuracy:
        name, counts, drawn, fitted = (re.escape(part) for part in each.in_words())
        line = (
            rf"{name}</t[dh]>\s*<td[^>]*>{counts}</td>\s*<td[^>]*>{drawn}</td>\s*<td[^>]*>{fitted}"
        )
        assert re.search(line, page), each
    assert "release format 2" in page
    assert "measured table" in page


def test_a_plan_file_of_tables_is_read_back(tmp_path: Path) -> None:
    text = """
by = ["state", "county"]
rho = "0.5"
[variables.age]
levels = ["band", "year"]
[variables.sex]
levels = ["sex"]
[[tables]]
by = ["county", "age", "sex"]
weight = 2
[[tables]]
by = "state*(band + sex)"
"""
    (tmp_path / "plan.toml").write_text(text)
    plan = cw.read_plan(tmp_path / "plan.toml")
    assert [(each.by, each.weight) for each in plan.wishes] == [
        ("county:age:sex", 2), ("state*(band + sex)", 1)
    ]  # fmt: skip
    (tmp_path / "again.toml").write_text(plan.to_toml())
    assert cw.read_plan(tmp_path / "again.toml") == plan
    assert "variables" not in cw.Plan(epsilon=1).to_dict()
    assert "tables" not in cw.Plan(epsilon=1).to_dict()


CHILDREN = "age1=00000,sex1=00001"  # cells of this band and sex can only be zero


def with_zeros() -> tuple[Workload, np.ndarray]:
    """Cells, and counts with nobody of the second sex in the first band."""
    cells = space()
    counts = np.random.default_rng(6).poisson(9.0, cells.shape)
    counts[:, :3, 1] = 0
    return cells, counts.reshape(-1)


@pytest.mark.parametrize("unit", ["epsilon", "rho"])
def test_exact_tables_and_zeros_are_kept_and_read_back(unit: str, tmp_path: Path) -> None:
    cells, counts = with_zeros()
    plan = plan_for(cells, **{unit: 1}, exact=["place2"], zeros=[CHILDREN + ",place1=*"])
    made = cw.release(Confidential(cells, counts), plan)
    made.save(tmp_path / "release")
    back = cw.read_release(tmp_path / "release")
    assert isinstance(back, CrossedRelease)
    assert back.manifest() == made.manifest()
    assert "exact" in pl.read_parquet(tmp_path / "release" / "measurements.parquet").columns
    grid, sums = counts.reshape(cells.shape), made.workload.sums
    by_name = dict(zip(map(made.workload.name, made.workload.margins), made.counts, strict=True))
    for name in ("total", "place1", "place2"):
        np.testing.assert_array_equal(by_name[name], sums(grid, margin(cells, name)))
    assert not by_name["place2*age2*sex1"][:, :3, 1].any()
    for one, other in zip(made.measurements, back.measurements, strict=True):
        assert (one.exact is None) == (other.exact is None)
        if one.exact is not None:
            np.testing.assert_array_equal(one.exact, other.exact)
            true = sums(grid, one.margin)
            np.testing.assert_array_equal(one.noisy[one.exact], true[one.exact])
            assert not one.law.scale or not true[one.exact].any()
    exact = {each.level: each.exact for each in made.budget.levels}
    assert (exact["total"], exact["place1"], exact["place2"]) == (1, 2, 5)
    page = made.certificate()
    assert "place2: 5 exact" in page
    assert "not protected" in page


def test_counts_beside_exact_ones_keep_their_noise() -> None:
    """Only what is exact is bare: with very wide noise nearly no other count is hit."""
    cells, counts = with_zeros()
    budget = plan_for(cells, epsilon="0.0001", zeros=[CHILDREN], split="even").budget(cells)
    partly = 0
    for each in boundary.measure(Confidential(cells, counts), budget):
        off = each.noisy != cells.sums(counts.reshape(cells.shape), each.margin)
        free = np.ones(off.shape, dtype=bool) if each.exact is None else ~each.exact
        assert not off[~free].any()
        assert off[free].mean() > 0.9 or free.sum() < 10
        partly += int(0 < free.sum() < free.size)
    assert partly > 1


@pytest.mark.parametrize("place", range(4))
def test_a_person_where_nobody_can_be_is_seen(place: int) -> None:
    cells, counts = with_zeros()
    budget = plan_for(cells, rho=1, zeros=[CHILDREN]).budget(cells)
    boundary.measure(Confidential(cells, counts), budget)
    grid = counts.reshape(cells.shape).copy()
    grid[place, place % 3, 1] = 8675309
    with pytest.raises(TableError, match="can only be zero") as refusal:
        boundary.measure(Confidential(cells, grid.reshape(-1)), budget)
    assert "8675309" not in str(refusal.value)


def test_people_who_move_below_exact_tables_cost_what_is_promised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Within the same exact counts someone elsewhere costs at most twice the loss."""
    monkeypatch.setitem(boundary.SAMPLERS, "exact", lambda _, size: np.zeros(size, dtype=np.int64))
    cells, rng = space(), np.random.default_rng(9)
    plan = plan_for(cells, epsilon=1, exact=["place1"], split="even")
    budget, worst = plan.budget(cells), 0.0
    assert budget.loss == 1
    for _ in range(60):
        counts = rng.integers(1, 4, cells.shape)
        one, other = counts.copy(), counts.copy()
        here, there = (tuple(rng.integers(0, n) for n in (2, 5, 2)) for _ in range(2))
        one[here] += 1
        other[there] += 1
        pair = [boundary.measure(Confidential(cells, each.reshape(-1)), budget)
                for each in (one, other)]  # fmt: skip
        spent = 0.0
        for a, b in zip(*pair, strict=True):
            apart = np.abs(a.noisy - b.noisy).sum()
            assert a.law.scale or not apart
            spent += apart / float(a.law.scale) if a.law.scale else 0.0
        worst = max(worst, spent)
    assert 1 < worst <= 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"exact": ["place1=00000"]}, "whole ones are exact"),
        ({"exact": ["plaice1"]}, "Did you mean 'place1'"),
        ({"zeros": ["age1=00007"]}, "level 'age1' has no '00007'"),
        ({"zeros": ["age1=00000,age2=00001,sx=1"]}, "Did you mean 'sex'"),
        ({"zeros": ["sex1=*"]}, "every cell is declared exact or zero"),
        ({"exact": ["place2,age2,sex1"]}, "every cell is declared exact or zero"),
        ({"exact": ["place2", "sex1"], "zeros": [CHILDREN]}, "keep one of these tables exact"),
        ({"zeros": [CHILDREN], "split": {"place2*sex1": 1, "age2": 1}}, "tells these counts apart"),
    ],
)
def test_what_can_not_be_exact_or_zero_is_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        plan_for(space(), epsilon=1, **given).settled(space()).budget(space())


@pytest.mark.parametrize(
    "tables",
    [["block1:age1", "total"], ["block1:age1", "block1", "age1", "total"], ["age1", "block1:age1"]],
)
def test_no_table_that_a_person_moves_is_without_noise(tables: list[str]) -> None:
    """Shares that come to nothing are no way to publish true counts, whatever the order."""
    cells = Workload(variables=(flat("block", 20_000), flat("age", 110)))
    plan = plan_for(cells, tables=tables, epsilon=1, split="relative")
    budget = plan.budget(cells)
    assert budget.loss == 1
    assert all(each.loss > 0 and each.law.scale > 0 for each in budget.levels)


def test_tables_that_nothing_determines_are_refused_before_anything_is_spent() -> None:
    cells = space()
    tables = ["place2:age2:sex1"]
    for given in ({"epsilon": {"place2": 1}}, {"epsilon": 1, "split": {"place2": 1}}):
        with pytest.raises(InputError, match="is a sum of no table with a loss"):
            plan_for(cells, tables=tables, **given).budget(cells)


def test_a_loss_is_stated_once_a_table() -> None:
    cells = space()
    with pytest.raises(InputError, match="stated twice"):
        plan_for(cells, epsilon={"place2*sex1": 1, "sex1*place2": 1})
    with pytest.raises(InputError, match="2 tables at once"):
        plan_for(cells, epsilon={"place2+place2*sex1": 1})


def test_rows_may_be_scattered_in_any_table() -> None:
    """The stated ε does not depend on which of two tables comes last."""
    one = (("a", "b"), ("b", "a"))
    levels = {"a": ((3,), Fraction(1, 2)), "b": ((3,), Fraction(4))}
    first, second = (epsilon_of_levels([levels[name] for name in order]) for order in one)
    assert first == pytest.approx(second, rel=1e-9)


def test_next_to_no_noise_is_not_taken_for_none() -> None:
    """Its variance is 0 as a number, of tables that do not refine each other; cells can be zero."""
    cells = space()
    counts = np.random.default_rng(4).poisson(9.0, cells.shape)
    counts[:, :, 1] = 0
    losses = {"place1*age1": 100_000, "place1*sex1": 100_000, "place2*age2*sex1": "1/2"}
    made = cw.release(
        table_for(cells, counts.reshape(-1)),
        plan_for(cells, rho=losses, zeros=("sex1=00001",), tables="place1*age1*sex1, place2:age2"),
    )
    assert sorted(law.variance == 0.0 for law in made.budget.laws) == [False, True, True]
    for name in ("place1*age1", "place1*sex1"):
        margin = made.workload.find(name)
        found = made.counts[made.workload.margins.index(margin)]
        off = found - cells.sums(counts, margin)
        assert np.abs(off).max() <= 1, "nothing but what whole numbers cost"
    fitted = {each.table: each.fitted for each in made.accuracy}
    assert 0 < fitted["place1*age1"] < 0.1 < fitted["place2*age2"]
