"""`countwise plan` within a ledger's budget, for several releases, and what a table costs."""

import json
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from click.testing import Result
from typer.testing import CliRunner

import countwise as cw
from countwise.cli import app
from countwise.errors import BudgetError, InputError, PlanError
from countwise.front_door.ledger_functions import ledger_at
from countwise.ledger.prices import Loss, price
from countwise.ledger.series import MOST_RELEASES, loss_left, series, unit_left
from countwise.release.plan_loss import loss_of

CROSSED = ("--by", "county", "--across", "race, sex")


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    rows = [(c, r, s) for c in "abcdefgh" for r in "xyz" for s in "FM"]
    frame = pl.DataFrame(rows, schema=["county", "race", "sex"], orient="row")
    frame.write_csv(tmp_path / "cells.csv")
    return tmp_path / "cells.csv"


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """A data set with ε = 3 and ρ = 0.5, counted where anything of a person may change."""
    url = f"sqlite:///{tmp_path / 'l.db'}"
    words = ("--dataset", "people", "--epsilon", "3", "--rho", "1/2", "--neighbours", "any-change")
    assert run("ledger", "grant", url, *words).exit_code == 0
    return url


def plan(cells: Path, *words: str) -> dict[str, object]:
    done = run("plan", cells, *words, "--json")
    assert done.exit_code == 0, done.exception
    return dict(json.loads(done.stdout))


def test_without_a_loss_it_plans_with_what_is_left(cells: Path, ledger: str) -> None:
    account = ("--ledger", ledger, "--dataset", "people", "--releases", "12")
    found = plan(cells, *CROSSED, *account)
    loss = Fraction(str(found["rho"]))
    assert 24 * loss <= Fraction(1, 2) < 24 * loss * Fraction(1001, 1000)
    said = found["series"]
    assert isinstance(said, dict)
    assert said["affordable"] == 12
    with ledger_at(ledger) as opened, opened.reading() as book:
        assert book.balance("dataset", "people").spent == 0, "planning charges nothing"


def test_what_it_found_is_charged_and_no_more(cells: Path, ledger: str, tmp_path: Path) -> None:
    """Twice half of the budget is all of it; a third is refused with the exit code of budgets."""
    account = ("--ledger", ledger, "--dataset", "people")
    halves = plan(cells, *CROSSED, *account, "--releases", "2")
    pl.read_csv(cells).with_columns(n=pl.lit(5)).write_csv(tmp_path / "counts.csv")
    for name, code in (("one", 0), ("two", 0), ("three", 3)):
        words = ("--count", "n", "--rho", str(halves["rho"]), "--cells-are-public", *account)
        done = run("release", tmp_path / "counts.csv", *CROSSED, *words, "--out", tmp_path / name)
        ended = getattr(done.exception, "exit_code", done.exit_code)
        assert ended == code, done.exception


def test_a_stated_loss_is_held_against_the_budget(cells: Path, ledger: str) -> None:
    account = ("--ledger", ledger, "--dataset", "people")
    words = ("--by", "county,race,sex", "--epsilon", "1", "--releases", "2")
    done = run("plan", cells, *words, *account)
    assert done.exit_code == 0, done.exception
    assert "would be charged ε = 4 for 2 releases, times 2" in done.stdout.replace("\n", " ")
    assert "What is left is enough only for one release." in done.stdout


def test_releases_without_a_ledger_add_up(cells: Path) -> None:
    found = plan(cells, *CROSSED, "--epsilon", "1/3", "--releases", "12")
    said = found["series"]
    assert isinstance(said, dict)
    assert said["words"] == ["12 such releases of the same people: ε = 4."]


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (("--ledger", "LEDGER"), PlanError, "whose budget"),
        (("--dataset", "people"), PlanError, "add --ledger"),
        (("--ledger", "LEDGER", "--dataset", "nobody"), BudgetError, "no budget"),
        (("--ledger", "sqlite:///none.db", "--dataset", "people"), InputError, "no such ledger"),
        (("--releases", str(MOST_RELEASES + 1), "--epsilon", "1"), InputError, "at most"),
    ],
)
def test_refusals(
    words: tuple[str, ...], error: type[Exception], said: str, cells: Path, ledger: str
) -> None:
    done = run("plan", cells, *CROSSED, *(ledger if w == "LEDGER" else w for w in words))
    assert isinstance(done.exception, error)
    assert said in str(done.exception)


def test_a_data_set_has_one_cap_for_all_at_a_delta(tmp_path: Path) -> None:
    """No grant brings ε and ρ together beyond it; what is granted then is spent within both."""
    url = f"sqlite:///{tmp_path / 'l.db'}"
    account = ("ledger", "grant", url, "--dataset", "people")
    said = ("--epsilon", "1", "--rho", "1/10", "--delta", "1e-6", "--most", "4")
    assert run(*account, *said).exit_code == 0
    again = run(*account, "--epsilon", "2")
    assert isinstance(again.exception, InputError)
    assert "it may lose 4 at most" in str(again.exception)
    assert run(*account, "--epsilon", "0.5").exit_code == 0
    with ledger_at(url) as opened, opened.reading() as book:
        balance = book.balance("dataset", "people")
        assert balance.terms is not None
        assert balance.terms.most == 4
        assert (balance.cap, balance.left) == (1_500_000, 1_500_000)
    other = run("ledger", "grant", url, "--dataset", "b", "--rho", "9", "--most", "2")
    assert isinstance(other.exception, InputError)
    assert isinstance(run(*account, "--most", "0").exception, InputError)
    assert isinstance(
        run("ledger", "grant", url, "--user", "u", "--most", "1").exception, InputError
    )
    assert run("ledger", "check", url).exit_code == 0


def test_nothing_left(ledger: str) -> None:
    loss = loss_of(cw.Plan(rho="1/4"))
    with ledger_at(ledger) as opened, opened.writing() as book:
        book.charge("one", loss, {"dataset": "people"}, kind="spent")
        assert unit_left(book, "people") == "epsilon"
        with pytest.raises(BudgetError, match="nothing is left"):
            loss_left(book, "people", loss)
        assert loss_left(book, "people", loss_of(cw.Plan(epsilon=1)), 7) == Fraction("0.2142")


def test_a_series_costs_what_its_charges_cost(ledger: str) -> None:
    """Each charge is rounded up on its own, and so the sum is of rounded ones."""
    loss = Loss(what="release", epsilon=Fraction(1, 7), neighbours="add-remove", rows=1)
    with ledger_at(ledger) as opened, opened.writing() as book:
        planned = series(loss, 7, book=book, dataset="people")
        for i in range(7):
            book.charge(str(i), loss, {"dataset": "people"}, kind="spent")
        balance = book.balance("dataset", "people")
        assert balance.spent == planned.cost.epsilon
        assert planned.price == price(loss, balance.terms, dataset="people")


def test_the_expensive_table_is_named(cells: Path) -> None:
    words = ("--tables", "race*sex: ±30; county: ±30; county*race*sex: ±3", "--unit", "rho")
    found = plan(cells, *CROSSED, *words)
    said = found["expensive"]
    assert isinstance(said, dict)
    assert said["table"] == "county*race*sex"
    other = plan(cells, *CROSSED, "--tables", "race*sex: ±30; county: ±30", "--unit", "rho")
    assert said["without_it"] == pytest.approx(float(Fraction(str(other["rho"]))))


def test_leaving_a_table_out_helps_the_others(cells: Path) -> None:
    found = plan(cells, *CROSSED, "--tables", "race*sex; county; county*race*sex", "--rho", "1")
    said = found["expensive"]
    assert isinstance(said, dict)
    assert said["table"] == "county*race*sex"
    assert said["without_it"] < said["with_it"]
