"""What plans could do to public tables that cross: predictions, rankings, and the commands."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import countwise as cw
from countwise.cli import app
from countwise.errors import InputError
from countwise.margins.reconstruction import Reconstruction
from countwise.margins.shares import NORMAL
from countwise.margins.whole import Method, real_cells
from countwise.release.table_accuracy import table_accuracy
from countwise.risk import simulated_tables
from countwise.risk.simulated_tables import SimulatedError, overall, repeated, table_errors
from countwise.risk.table_advice import ONE_TREE, advise_tables
from countwise.tables.workload import Workload
from crossed_tables import flat, tree

ACROSS = {"age": ("age",), "sex": ("sex",)}


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many releases as are asked for, on a busy machine too."""
    monkeypatch.setattr(simulated_tables, "SECONDS", np.inf)


@pytest.fixture(scope="module")
def space() -> Workload:
    """Places in two levels by age by sex: 48 cells."""
    return Workload(variables=(tree("place", (3, 5)), flat("age", 3), flat("sex", 2)))


def plan(**given: object) -> cw.Plan:
    by = ("place_high", "place_low")
    return cw.Plan(by=by, across=ACROSS, **({"rho": "1/2"} | given))  # type: ignore[arg-type]


def test_least_squares_is_predicted_where_counts_are_large(space: Workload) -> None:
    """Counts far from zero: nothing is clipped, so errors are those of the closed form."""
    cells = np.full(space.shape, 1000)
    settled = plan().settled(space)
    workload, budget = settled.workload(space), settled.budget(space)
    made = table_errors(
        workload, cells, budget, method="least-squares", repetitions=60,
        rng=np.random.default_rng(3),
    )  # fmt: skip
    found = made.errors
    assert made.releases >= 2
    fitted = table_accuracy(workload, budget)
    for error, known in zip(found, fitted, strict=True):
        assert error.table == known.table
        least = np.sqrt((known.fitted / NORMAL) ** 2 + 1 / 12)
        assert abs(error.rmse - least) < 5 * max(error.uncertain, 0.06 * least)
    ratios = [e.rmse / (k.fitted / NORMAL) for e, k in zip(found, fitted, strict=True)]
    assert np.mean(ratios) == pytest.approx(1.02, abs=0.08)


def test_figures_are_means_over_releases(space: Workload) -> None:
    workload = plan().workload(space)
    cells, tables = np.zeros(space.shape, np.int64), iter([1, 3, 3])
    made = repeated(
        workload, cells, lambda: np.full(space.shape, next(tables)), repetitions=3, rounding=0.0
    )
    assert made.releases == 3
    total = made.errors[0]
    assert total.rmse == pytest.approx(48 * np.sqrt(19 / 3))
    spread = np.std([1.0, 9.0, 9.0], ddof=1) / np.sqrt(3)
    assert total.uncertain == pytest.approx(48 * spread / (2 * np.sqrt(19 / 3)))
    alike = [
        SimulatedError(table=t, counts=1, rmse=r, uncertain=0.0) for t, r in (("a", 2), ("b", 8))
    ]
    assert overall(alike) == pytest.approx(4.0)


def test_of_many_cells_the_choice_is_made_once(
    space: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the table that was chosen is the one that is made from then on."""
    settled = plan(rho="1/50").settled(space)
    asked: list[str] = []

    def counted(seen: Reconstruction, method: Method, rng: np.random.Generator) -> object:
        asked.append(method)
        return real_cells(seen, method, rng)

    monkeypatch.setattr(simulated_tables, "real_cells", counted)
    workload, budget = settled.workload(space), settled.budget(space)
    cells = np.random.default_rng(1).poisson(1.0, space.shape)
    how = {"method": "auto", "repetitions": 3}
    table_errors(workload, cells, budget, rng=np.random.default_rng(2), **how)
    assert asked == ["auto"] * 3
    asked.clear()
    monkeypatch.setattr(simulated_tables, "MANY", 1)
    made = table_errors(workload, cells, budget, rng=np.random.default_rng(2), **how)
    assert asked in (["auto"], ["auto", "least-squares", "least-squares"])
    assert made.releases == 3


def test_another_release_begins_only_where_there_is_time(
    space: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = np.zeros(space.shape, np.int64)
    monkeypatch.setattr(simulated_tables, "SECONDS", 0.0)
    made = repeated(plan().workload(space), cells, lambda: cells, repetitions=50)
    assert made.releases == 2


def test_options_are_ranked_by_all_tables_at_every_loss(space: Workload) -> None:
    rng = np.random.default_rng(5)
    cells = rng.negative_binomial(0.4, 0.02, space.shape)
    plans = [plan(rho=loss) for loss in ("1/20", "1/2")]
    found = advise_tables(space, cells, plans, rng=rng, repetitions=12)
    assert [each.price for each in found] == ["ρ = 0.05"] * 5 + ["ρ = 0.5"] * 5
    for some in (found[:5], found[5:]):
        assert [each.overall for each in some] == sorted(each.overall for each in some)
        assert {each.design for each in some} == {"auto split", "even split", ONE_TREE}
    for one, each in ((one, each) for one in plans for each in found if each.loss == one.rho):
        settled = one.settled(space)
        fitted = table_accuracy(settled.workload(space), settled.budget(space))
        expected = [
            error.table
            for error, known in zip(each.errors, fitted, strict=True)
            if error.table != "place_low*age*sex"
            and error.rmse - 2 * error.uncertain > 1.5 * known.fitted / NORMAL
        ]
        assert list(each.spoiled) == expected
    exact = advise_tables(space, cells, [plan(exact=("place_high",))], rng=rng, repetitions=3)
    assert ONE_TREE not in {each.design for each in exact}
    assert all(np.isfinite(each.overall) for each in exact)


@pytest.fixture
def stand_in(space: Workload, tmp_path: Path) -> Path:
    counts = np.random.default_rng(6).poisson(8.0, space.cells)
    space.frame(space.finest, n=counts).drop("level").write_csv(tmp_path / "public.csv")
    return tmp_path / "public.csv"


WORDS = ("--by", "place_high,place_low", "--across", "age,sex", "--count", "n")


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def test_advice_by_command(stand_in: Path) -> None:
    file = stand_in.with_name("advice.csv")
    ask = ("risk", "advise", stand_in, *WORDS, "--rho", "0.05,1/2", "--repetitions", 3)
    said = run(*ask, "--csv", file)
    assert "all tables" in said
    assert "ρ = 0.05" in said
    rows = pl.read_csv(file)
    assert rows.height == 2 * 5 * 12
    assert set(rows["loss"]) == {"ρ = 0.05", "ρ = 0.5"}
    data = json.loads(run(*ask, "--json"))
    assert len(data["options"]) == 10
    with pytest.raises(InputError, match="two units"):
        run(*ask, "--epsilon", 1)
    with pytest.raises(InputError, match="draws the options of one tree"):
        run(*ask, "--out", stand_in.with_name("page.html"))


def test_advice_on_a_tree_at_several_losses(stand_in: Path) -> None:
    file = stand_in.with_name("advice.csv")
    ask = ("risk", "advise", stand_in, "--by", "place_high,place_low,age,sex", "--count", "n",
           "--repetitions", 3)  # fmt: skip
    said = run(*ask, "--epsilon", "1/2,2", "--csv", file)
    assert "ε = 0.5" in said
    assert "✗: at some totals" in said
    rows = pl.read_csv(file)
    assert set(rows["loss"]) == {"ε = 0.5", "ε = 2"}
    assert rows.filter(pl.col("spoiled"))["adjustment"].is_in(["clipped"]).any()
    with pytest.raises(InputError, match="--rho is for tables that cross"):
        run(*ask, "--rho", 1)


def test_a_plan_shows_what_adjustment_adds_on_a_stand_in(stand_in: Path, space: Workload) -> None:
    ask = ("plan", stand_in, *WORDS, "--rho", "1/2", "--stand-in", stand_in, "--repetitions", 4)
    said = run(*ask)
    assert "4 simulated releases of the stand-in" in said
    data = json.loads(run(*ask, "--json"))
    assert data["releases"] == 4
    assert [each["table"] for each in data["stand_in"]] == [e["table"] for e in data["tables"]]
    assert all(each["error95_adjusted"] > each["uncertain"] > 0 for each in data["stand_in"])
    frame = space.frame(space.finest, n=np.zeros(space.cells, np.int64)).drop("level")
    other = frame.with_columns(pl.col("sex").cast(pl.String) + "x")
    other.write_csv(stand_in.with_name("other.csv"))
    with pytest.raises(InputError, match="is not in the domain"):
        run(*ask[:-3], stand_in.with_name("other.csv"))
