"""The notation of tables: what it stands for, and what is said where it can not be read."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

from countwise.errors import InputError, TableError
from countwise.release.plan import Plan
from countwise.tables import notation, workload
from countwise.tables.crossed_cells import variables_of
from countwise.tables.notation import margin_of, margins_of, name_of, read_variables, wanted
from countwise.tables.workload import Margin, Workload
from crossings import flat, variable

NAMES = variables_of(("state", "county"), "age: band > year, sex, race")


def tables(text: str) -> list[str]:
    return [name_of(each, NAMES) for each in margins_of(text, NAMES)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sex", ["sex"]),
        ("total", ["total"]),
        ("age", ["year"]),
        ("county", ["county"]),
        ("sex:county", ["county*sex"]),
        ("sex*race", ["total", "sex", "race", "sex*race"]),
        ("sex + race", ["sex", "race"]),
        ("county:(band + year)", ["county*band", "county*year"]),
        ("county*(band + year)", ["total", "county", "band", "year", "county*band", "county*year"]),
        ("county:sex*race", ["total", "county*sex", "race", "county*sex*race"]),
        ("(state + county):total", ["state", "county"]),
        ("state:county", ["county"]),
        ("((sex))", ["sex"]),
        (" sex :  race ", ["sex*race"]),
    ],
)
def test_what_a_wish_stands_for(text: str, found: list[str]) -> None:
    assert tables(text) == found


def subsets(words: list[str]) -> Iterator[tuple[str, ...]]:
    for size in range(len(words) + 1):
        yield from combinations(words, size)


def test_a_star_is_every_subset_of_what_it_joins() -> None:
    words = ["county", "year", "sex", "race"]
    expected = {"*".join(each) or "total" for each in subsets(words)}
    assert set(tables("county*year*sex*race")) == expected
    assert set(tables("race*(sex*(year*county))")) == expected


def test_a_name_is_read_as_the_margin_it_names() -> None:
    for margin in notation.default_margins(NAMES):
        assert margin_of(name_of(margin, NAMES), NAMES) == margin


def test_the_default_is_every_level_with_up_to_two_others_and_the_cells() -> None:
    found = [name_of(each, NAMES).split("*") for each in wanted([], NAMES)[0]]
    assert len({tuple(each) for each in found}) == len(found)
    first, others = ["total", "state", "county"], [["band", "year"], ["sex"], ["race"]]
    expected = [["county", "year", "sex", "race"]]
    for level in first:
        start = [] if level == "total" else [level]
        expected.append(start or ["total"])
        expected += [[*start, one] for own in others for one in own]
        expected += [[*start, a, b] for x, y in combinations(others, 2) for a in x for b in y]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("conty*sex", "Did you mean 'county'"),
        ("zzz", "There are county, age, sex, race, state, band, year"),
        ("county*", "missing after '[*]'"),
        ("*county", "a level is missing"),
        ("", "a level is missing"),
        ("county**sex", "missing after '[*]'"),
        ("(county*sex", "not closed"),
        ("county)", "was not opened"),
        ("county(sex)", "a sign is missing before '[(]'"),
        ("()", "missing after '[(]'"),
    ],
)
def test_what_can_not_be_read_is_said(text: str, said: str) -> None:
    with pytest.raises(TableError, match=said):
        margins_of(text, NAMES)


@pytest.mark.parametrize(
    "twice",
    ["county*year*sex*race, sex:race", "county:year:sex:race, race:sex, sex:race",
     "county*year*sex*race, county*sex*race*age"],
)  # fmt: skip
def test_a_table_that_is_listed_twice_is_refused(twice: str) -> None:
    with pytest.raises(TableError, match="is listed twice"):
        wanted(twice.split(","), NAMES)


def test_totals_that_two_wishes_share_are_published_once() -> None:
    found = wanted(["county*year*sex", "county*race"], NAMES)
    assert [name_of(each, NAMES) for each in found[1]] == ["race", "county*race"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"across": "sex, sex"}, "named twice"),
        ({"across": "sex:"}, "can not be read"),
        ({"across": "band > year, sex"}, "such as age: band > year, or, .* write band, year"),
        ({"across": "age: band >"}, "can not be read"),
        ({"across": ": band"}, "can not be read"),
        ({"across": "county, sex"}, "in --by and in --across"),
        ({"across": "age: state > year"}, "belongs to two variables, 'county' and 'age'"),
        ({"across": "state, sex"}, "belongs to two variables, 'county' and 'state'"),
        ({"across": "year: sex, sex: year"}, "names a variable, and a level of another"),
        ({"across": "total: sex"}, "the word for everyone"),
        ({"across": "count"}, "a name the release uses itself"),
        ({"across": "a*b"}, "can not be written in a list of tables"),
        ({"across": {"a:b": ["x"]}}, "can not be written in a list of tables"),
        ({"across": {"age": []}}, "has no levels"),
        ({"across": "sex", "tables": "county*sx"}, "Did you mean 'sex'"),
        ({"across": "sex", "tables": "county"}, "level 'sex' of variable 'sex' is in no table"),
        ({"across": "sex", "tables": "state*sex"}, "level 'county' of variable 'county' is in no"),
        ({"tables": "county"}, "tables are of variables that cross"),
        ({"across": "sex", "tables": [{"weight": 2}]}, "a table needs the levels it crosses"),
        ({"across": "sex", "tables": [{"by": "county*sex", "weigth": 2}]}, "Did you mean 'weight'"),
        ({"across": "sex", "tables": [{"by": "county*sex", "weight": 0}]}, "must be positive"),
        ({"across": "sex", "mechanism": "joint"}, "joint noise adds up along one tree"),
        ({"across": "sex", "adjust": "mode"}, "least-squares, auto"),
        ({"across": "sex", "pool": "sex"}, "pool is not there for tables that cross"),
        ({"across": "sex", "split": {"county*sx": 1}}, "Did you mean 'sex'"),
    ],
)
def test_plans_of_tables_are_refused_in_clear_words(given: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Plan(epsilon=1, by=("state", "county"), **given)  # type: ignore[arg-type]


def test_losses_by_table_are_taken_in_any_spelling() -> None:
    plan = Plan(rho={"sex:county": 1, "total": 2}, by=("county",), across="sex")
    assert list(plan.to_dict()["rho"]) == ["county*sex", "total"]


def test_variables_are_read_from_text_and_from_names() -> None:
    text = read_variables(" age : band>year ,sex")
    assert text == read_variables({"age": ["band", "year"], "sex": ["sex"]})


def test_more_counts_than_can_be_held_name_what_would_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload, "MOST_CELLS", 100)
    variables = (variable("a", [3], [3, 3, 4]), flat("b", 8), flat("c", 1))
    small = Workload(variables=variables, margins=(Margin((0, 0, 0)), Margin((1, 1, 0))))
    assert small.cells == 80
    with pytest.raises(TableError, match=r"105 counts together.*leave out a2\*b1\*c1: the others"):
        Workload(variables=variables, margins=(*small.margins, small.finest))
    with pytest.raises(
        TableError, match=r"160 cells, and the most is 100.*without a2 there are 48"
    ):
        Workload(variables=(*variables[:2], flat("c", 2)))


def test_margins_of_random_wishes_agree_with_sets() -> None:
    """Any expression is the set that `+`, `:` and `*` make of the sets of its words."""
    rng = np.random.default_rng(5)
    words = ["state", "county", "band", "year", "sex", "race", "total"]

    def cross(left: set[Margin], right: set[Margin]) -> set[Margin]:
        return {
            Margin(tuple(max(x, y) for x, y in zip(a.levels, b.levels, strict=True)))
            for a in left for b in right
        }  # fmt: skip

    def grow(depth: int) -> tuple[str, set[Margin]]:
        if depth == 0:
            word = str(rng.choice(words))
            return word, {margin_of(word, NAMES)}
        (a, left), (b, right) = grow(depth - 1), grow(int(rng.integers(depth)))
        sign = str(rng.choice(["+", ":", "*"]))
        if sign == "+":
            return f"({a} + {b})", left | right
        if sign == ":":
            return f"({a}):({b})", cross(left, right)
        everyone = {margin_of("total", NAMES)}
        return f"({a})*({b})", cross(left | everyone, right | everyone)

    for _ in range(200):
        text, expected = grow(int(rng.integers(1, 4)))
        assert set(margins_of(text, NAMES)) == expected, text
