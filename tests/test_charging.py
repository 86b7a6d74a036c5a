"""One account of everything: what releases, verifications and tabulations charge to a ledger."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import sqlalchemy as sa
from alembic import command
from typer.testing import CliRunner

import countwise as cw
from countwise.cli import app
from countwise.errors import BudgetError, InputError, LedgerError, PlanError
from countwise.examples.workers import workers
from countwise.front_door.charging import payment
from countwise.ledger.chain import LedgerCheck, check
from countwise.ledger.ledger import Balance, Entry, Ledger
from countwise.ledger.prices import Terms, read_loss
from countwise.ledger.storage import open_engine, writing
from countwise.release.checkpoints import Staging
from countwise.release.folder import place
from countwise.release.piece_tasks import TaskContext
from countwise.release.plan_loss import is_plan_of, loss_of
from countwise.server.database_versions import is_current, settings

pytestmark = pytest.mark.filterwarnings(
    "ignore:fetch_arrow_table:DeprecationWarning"  # Ibis 12 on DuckDB 2
)

CELLS = "region,county,n\nN,a,30\nN,b,5\nS,c,7\n"
OLD = Path(__file__).parent / "ledgers" / "before_relations.sql"
OLD_HEAD = "19:3cb336c0192ba9d4761904df42d3a60e1844350fb45d0c3aa05a5d7d9e8563af"


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


class Account:
    """A ledger with a data set `people`, and a table to be released from it."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.table = folder / "cells.csv"
        self.table.write_text(CELLS)

    def grant(self, *words: object) -> str:
        return run("ledger", "grant", self.url, "--dataset", "people", *words)

    def release(self, out: str, *words: object, table: Path | None = None) -> str:
        return run(
            "release", table or self.table, "--by", "region,county", "--count", "n",
            "--cells-are-public", "--out", self.folder / out, "--ledger", self.url,
            "--dataset", "people", *words,
        )  # fmt: skip

    def entries(self) -> list[Entry]:
        return self._look(lambda book: list(book.all()))

    def balance(self) -> Balance:
        return self._look(lambda book: book.balance("dataset", "people"))

    def finding(self) -> LedgerCheck:
        return self._look(lambda book: check(book.all()))

    def _look(self, what: Callable[[Any], Any]) -> Any:
        engine = open_engine(self.url)
        with Ledger(engine).reading() as book:
            found = what(book)
        engine.dispose()
        return found


@pytest.fixture
def account(database: str, tmp_path: Path) -> Account:
    return Account(database, tmp_path)


@pytest.fixture
def here(tmp_path: Path) -> Account:
    """The same in a file."""
    return Account(f"sqlite:///{tmp_path}/l.db", tmp_path)


def test_a_data_set_that_has_no_budget_is_said_to_have_none(account: Account) -> None:
    account.grant("--epsilon", 1)
    with pytest.raises(BudgetError, match="no budget for data set 'poeple'") as refusal:
        account.release("one", "--epsilon", 1, "--dataset", "poeple")
    assert refusal.value.exit_code == 3
    with pytest.raises(BudgetError, match="ε = 0 left"):
        verify("--epsilon", 1, "--ledger", account.url, "--dataset", "poeple")


def test_releases_of_different_relations_do_not_add_up(account: Account) -> None:
    """A replace-one release has no price where people come and go, nor has an exact count."""
    account.grant("--epsilon", 1)
    for more in (["--neighbours", "replace-one"], ["--exact", "total"], ["--exact", "region=N"]):
        with pytest.raises(BudgetError, match="has no price") as refusal:
            account.release("one", "--epsilon", "0.5", *more)
        assert refusal.value.exit_code == 3
        assert not (account.folder / "one").exists()
        assert not place(account.folder / "one").exists()
    said = account.release("one", "--epsilon", "0.5")
    assert "ε = 0.5 spent of 1, 0.5 left" in said
    assert "one person with one row comes or goes (add-remove)" in said
    assert account.balance().spent == 500_000
    assert account.finding().flaws == ()


@pytest.mark.parametrize("relation", ["replace-one", "any-change"])
def test_where_rows_change_an_add_remove_release_costs_twice(
    account: Account, relation: str
) -> None:
    account.grant("--epsilon", 2, "--neighbours", relation)
    said = account.release("one", "--epsilon", "0.5")
    assert "Charged to the ledger: ε = 1 of data set 'people'" in said
    last = account.entries()[-1]
    assert (last.kind, last.micro) == ("spent", 1_000_000)
    assert last.note == "release at ε = 0.5 (add-remove), times 2"
    if relation == "replace-one":
        account.release("two", "--epsilon", "0.5", "--neighbours", "replace-one")
        assert account.balance().spent == 1_500_000
    else:
        with pytest.raises(BudgetError, match="no price"):
            account.release("two", "--epsilon", "0.5", "--neighbours", "replace-one")
    with pytest.raises(BudgetError, match=r"ε = .* left and this asks for 2\."):
        account.release("three", "--epsilon", 1)
    assert account.finding().flaws == ()


def test_exact_counts_are_charged_for_who_moves_below_them_and_recorded(account: Account) -> None:
    account.grant("--epsilon", 10, "--neighbours", "replace-one")
    account.release("one", "--epsilon", "0.5", "--exact", "region")
    account.release("two", "--epsilon", "0.5", "--exact", "total")
    account.release("three", "--epsilon", "0.5", "--exact", "region", "--neighbours", "replace-one")
    first, second, third = account.entries()[-3:]
    assert [each.micro for each in (first, second, third)] == [1_000_000, 1_000_000, 500_000]
    assert first.note == ("release at ε = 0.5 (add-remove), times 2, given the exact counts region")
    assert "given" not in second.note  # nobody with one row can change the number of people
    assert read_loss(first.terms).exact == ("region",)
    words = account.balance().in_words()
    assert words.endswith("become any other's (replace-one), and that agree on region.")
    assert account.finding().flaws == ()


def test_an_entry_says_what_was_released(here: Account) -> None:
    """Relation, rows, and the hash of the plan that the release folder has."""
    here.grant("--epsilon", 10, "--rows", 2)
    with pytest.raises(BudgetError, match="takes on trust that nobody has more than one row"):
        here.release("one", "--epsilon", 1)
    here.release("one", "--epsilon", 1, "--rows", 2)
    manifest = json.loads((here.folder / "one" / "release.json").read_text())
    kept = read_loss(here.entries()[-1].terms)
    assert (kept.neighbours, kept.rows, kept.bounded, kept.exact) == ("add-remove", 2, False, ())
    assert is_plan_of(manifest["plan"], kept.plan)
    assert not is_plan_of(manifest["plan"] | {"rows": 1}, kept.plan)
    words = ("--mechanism", "geometric", "--split", "even", "--rows", 2, "--epsilon", 1)
    here.release("two", *words)
    kept = read_loss(here.entries()[-1].terms)
    assert kept == loss_of(cw.read_release(here.folder / "two").plan)
    manifest = json.loads((here.folder / "two" / "release.json").read_text())
    assert is_plan_of(manifest["plan"], kept.plan)
    assert not is_plan_of(manifest["plan"] | {"mechanism": "laplace"}, kept.plan)


def test_rho_is_taken_where_it_was_granted(account: Account) -> None:
    gaussian = ("--rho", "0.1", "--mechanism", "gaussian")
    account.grant("--epsilon", 1)
    with pytest.raises(BudgetError, match="counted in ε alone") as refusal:
        account.release("one", *gaussian)
    assert refusal.value.exit_code == 3
    run("ledger", "grant", account.url, "--dataset", "people", "--rho", "0.25")  # nothing spent yet
    account.release("one", *gaussian)
    account.release("two", "--rho", "1/7", "--mechanism", "gaussian")
    account.release("three", "--epsilon", 1)
    with pytest.raises(BudgetError, match=r"ρ = 0\.007142857142 left and this asks for 0\.1\."):
        account.release("four", *gaussian)
    balance = account.balance()
    assert (balance.spent, balance.rho_spent) == (1_000_000, 10**11 + -(-(10**12) // 7))
    words = balance.in_words()
    assert "ε = 1 spent of 1, 0 left; ρ = 0.242857142858 spent of 0.25" in words
    assert "at δ = 1e-06" in words
    found = account.finding()
    assert found.flaws == ()
    assert found.rho_spent["dataset", "people"] == balance.rho_spent


def test_in_rho_alone_pure_losses_cost_half_their_square(account: Account) -> None:
    account.grant("--rho", "0.5", "--delta", "1e-9")
    account.release("one", "--epsilon", "0.5")
    assert account.balance().rho_spent == 125 * 10**9
    assert account.balance().terms == Terms(unit="rho", delta=Fraction(1, 10**9))


def test_terms_do_not_change_once_something_was_charged(account: Account) -> None:
    account.grant("--epsilon", 1)
    account.grant("--neighbours", "replace-one")  # nothing was charged: may be said anew
    account.release("one", "--epsilon", "0.25")
    for more in (["--neighbours", "any-change"], ["--rows", 2], ["--rho", 1]):
        with pytest.raises(InputError, match="something was charged to it"):
            account.grant("--epsilon", 1, *more)
    account.grant("--epsilon", 1, "--neighbours", "replace-one")
    assert (account.balance().cap, account.balance().spent) == (2_000_000, 500_000)
    for wrong in (["--epsilon", 1, "--delta", 1], ["--epsilon", 1, "--neighbours", "x"], []):
        with pytest.raises(InputError):
            account.grant(*wrong)
    with pytest.raises(InputError, match="are of a data set"):
        run("ledger", "grant", account.url, "--user", "ann", "--epsilon", 1, "--rows", 2)
    assert account.finding().flaws == ()


def bad(account: Account) -> Path:
    """The table with a row that must be refused, at its end."""
    path = account.folder / "bad.csv"
    path.write_text(CELLS + "S,d,-1\n")
    return path


def test_a_charge_is_never_returned_and_its_entry_is_the_same_whatever_the_rows(
    account: Account, databases: Callable[[], str]
) -> None:
    """Two ledgers, one run refused for a row and one not: the same lines but for name and time."""
    other = Account(databases(), account.folder)
    for each in (account, other):
        each.grant("--epsilon", 1)
    with pytest.raises(InputError, match=r"row 5: column 'n' is negative") as refusal:
        account.release("one", "--epsilon", 1, table=bad(account))
    assert refusal.value.__notes__ == [
        "ε = 1 of data set 'people' stays charged; no noise was drawn. Correct the input and run "
        "the same command again: it is not charged a second time."
    ]
    other.release("two", "--epsilon", 1)
    written = [
        [(each.kind, each.micro, each.rho, each.note, each.terms) for each in ledger.entries()]
        for ledger in (account, other)
    ]
    assert written[0] == written[1]
    assert [each.kind for each in account.entries()] == ["cap", "spent"]
    assert account.balance().left == 0


def test_a_run_refused_for_a_row_is_not_charged_again(here: Account) -> None:
    """Of the paid run its charge is left, beside the output; and it buys noise once."""
    here.grant("--epsilon", 1)
    with pytest.raises(InputError, match="negative"):
        here.release("one", "--epsilon", 1, table=bad(here))
    left = place(here.folder / "one")
    assert sorted(path.name for path in left.iterdir()) == ["lock", "run.json"]
    with pytest.raises(InputError, match="give up what was charged for it with --fresh"):
        here.release("one", "--epsilon", "0.5")
    here.release("one", "--epsilon", 1)
    assert not left.exists()
    assert here.balance().spent == 1_000_000
    with pytest.raises(BudgetError, match="ε = 0 left"):
        here.release("two", "--epsilon", 1)
    assert not place(here.folder / "two").exists()


def test_what_can_be_seen_without_a_row_charges_nothing(here: Account) -> None:
    here.grant("--epsilon", 1)
    wrong: list[tuple[list[object], str]] = [
        (["--by", "what,county"], "no column 'what'"),
        (["--count", "m"], "no column 'm'"),
        (["--domain", here.folder / "none.csv"], "no such file"),
        (["--domain", here.folder / "none.toml"], "no such"),
        (["--mechanism", "what"], "mechanism must be one of"),
        (["--piece", 1, "--count", "m"], "no column 'm'"),
    ]
    for words, message in wrong:
        with pytest.raises(InputError, match=message):
            here.release("one", "--epsilon", 1, *words)
    with pytest.raises(InputError, match="no such file"):
        here.release("one", "--epsilon", 1, table=here.folder / "none.csv")
    with pytest.raises(PlanError, match="add --dataset"):
        run("release", here.table, "--by", "region,county", "--count", "n", "--cells-are-public",
            "--epsilon", 1, "--out", here.folder / "one", "--ledger", here.url)  # fmt: skip
    with pytest.raises(PlanError, match="add --ledger"):
        run("release", here.table, "--by", "region,county", "--count", "n", "--cells-are-public",
            "--epsilon", 1, "--out", here.folder / "one", "--dataset", "people")  # fmt: skip
    assert [each.kind for each in here.entries()] == ["cap"]
    assert [path.name for path in here.folder.iterdir() if path.name.startswith(".")] == []


def large(folder: Path, *, wrong: bool) -> Path:
    """A table of twelve pieces; perhaps with a count that must be refused in the last."""
    grids = np.indices((12, 5, 10)).reshape(3, -1)
    counts = np.arange(grids.shape[1])
    counts[-1] = -1 if wrong else 5
    by = ("state", "county", "kind")
    names = {name: [f"{name} {i:02}" for i in grid] for name, grid in zip(by, grids, strict=True)}
    path = folder / "large.parquet"
    pl.DataFrame(names | {"n": counts}).write_parquet(path)
    return path


def release_large(here: Account, *words: object) -> str:
    return run(
        "release", here.folder / "large.parquet", "--by", "state,county,kind", "--count", "n",
        "--cells-are-public", "--epsilon", 1, "--adjust", "clipped", "--piece", 50,
        "--out", here.folder / "rel", "--ledger", here.url, "--dataset", "people", *words,
    )  # fmt: skip


def test_in_pieces_no_noise_is_drawn_for_a_table_that_is_refused(
    here: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a charge is at stake, every piece is read before the first is measured."""
    here.grant("--epsilon", 1)
    large(here.folder, wrong=True)
    measured: list[int] = []
    real = TaskContext.measure

    def noted(work: TaskContext, table: Any, piece: int) -> bytes:
        assert isinstance(work.store, Staging)
        assert work.store.drawn
        assert here.balance().spent == 1_000_000
        measured.append(piece)
        return real(work, table, piece)

    monkeypatch.setattr(TaskContext, "measure", noted)
    with pytest.raises(InputError, match="negative") as refusal:
        release_large(here)
    assert "no noise was drawn" in refusal.value.__notes__[0]
    assert measured == []
    large(here.folder, wrong=False)
    release_large(here)
    assert sorted(measured) == list(range(12))
    assert here.balance().spent == 1_000_000
    assert [each.kind for each in here.entries()] == ["cap", "spent"]


def test_in_pieces_what_is_refused_after_noise_stays_spent(
    here: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that changes between checking and measuring: nothing is returned or kept."""
    here.grant("--epsilon", 2)
    large(here.folder, wrong=False)
    real = TaskContext.measure

    def changed(work: TaskContext, table: Any, piece: int) -> bytes:
        if piece == 7:
            raise InputError("the last row changed.")
        return real(work, table, piece)

    with monkeypatch.context() as patch:
        patch.setattr(TaskContext, "measure", changed)
        with pytest.raises(InputError, match="the last row changed") as refusal:
            release_large(here)
    assert refusal.value.__notes__ == [
        "ε = 1 of data set 'people' is spent: the run had come to where its noise is drawn."
    ]
    assert not place(here.folder / "rel").exists()
    assert here.balance().spent == 1_000_000
    release_large(here)
    assert here.balance().spent == 2_000_000
    assert {each.kind for each in here.entries()} == {"cap", "spent"}


def test_a_run_that_is_gone_on_with_is_paid_once(
    here: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.grant("--epsilon", 1)
    large(here.folder, wrong=False)
    with monkeypatch.context() as patch:
        patch.setattr(TaskContext, "adjust_top", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            release_large(here)
    assert (place(here.folder / "rel") / "run.json").stat().st_mode & 0o777 == 0o600
    assert json.loads(release_large(here, "--json"))["resumed"] is True
    assert here.balance().spent == 1_000_000


def test_a_charge_by_a_name_is_made_once(account: Account) -> None:
    account.grant("--epsilon", 1)
    paid = payment(account.url, loss_of(cw.Plan(epsilon=1)), dataset="people")
    for _ in range(3):
        paid.pay("a run that keeps its name")
    assert account.balance().spent == 1_000_000


def test_a_killed_run_does_not_pay_for_the_next(here: Account) -> None:
    """Killed after noise was drawn in memory: what it paid is used up, and nothing is kept."""
    here.grant("--epsilon", 2)
    code = (
        "import os, sys\n"
        "from countwise.release.publication import Publication\n"
        "Publication.write = lambda *_, **__: os.kill(os.getpid(), 9)\n"
        "from countwise.cli import main\n"
        "main()\n"
    )
    words = ["release", here.table, "--by", "region,county", "--count", "n", "--cells-are-public",
             "--epsilon", 1, "--out", here.folder / "one", "--ledger", here.url,
             "--dataset", "people"]  # fmt: skip
    killed = subprocess.run([sys.executable, "-c", code, *map(str, words)], check=False)
    assert killed.returncode == -9
    assert (place(here.folder / "one") / "drawn").exists()
    run(*words)
    assert here.balance().spent == 2_000_000
    assert not place(here.folder / "one").exists()


def verify(*words: object) -> str:
    return run(
        "verify", workers(), "--schema", workers("workers.toml"), "--model",
        "hours ~ education_years + age", "--claim", "education_years > 0.5", *words,
    )  # fmt: skip


def test_verification_is_charged_on_the_command_line_too(account: Account) -> None:
    """At its ε in every relation, in the account that releases are charged to."""
    account.grant("--epsilon", 2, "--neighbours", "any-change", "--rows", 3)
    where = ("--ledger", account.url, "--dataset", "people")
    said = verify("--epsilon", "0.5", *where)
    assert "ε = 0.5 spent of 2, 1.5 left" in said
    account.release("one", "--epsilon", "0.5", "--rows", 3)
    assert account.balance().spent == 1_500_000
    with pytest.raises(BudgetError, match=r"ε = 0\.5 left and this asks for 1\.") as refusal:
        verify("--epsilon", 1, *where)
    assert refusal.value.exit_code == 3
    kept = read_loss(account.entries()[1].terms)
    assert (kept.what, kept.neighbours, kept.rows) == ("verification", "any-change", None)
    with pytest.raises(InputError, match="a rehearsal spends nothing"):
        run("verify", "--rehearse", workers("workers_synthetic.csv"), "--schema",
            workers("workers.toml"), "--model", "hours ~ age", "--claim", "age > 0",
            "--epsilon", 1, *where)  # fmt: skip
    assert account.finding().flaws == ()


def test_a_verification_of_a_file_without_its_columns_charges_nothing(here: Account) -> None:
    here.grant("--epsilon", 1)
    with pytest.raises(InputError, match="no column"):
        run("verify", here.table, "--schema", workers("workers.toml"), "--model", "hours ~ age",
            "--claim", "age > 0", "--epsilon", 1, "--ledger", here.url,
            "--dataset", "people")  # fmt: skip
    assert here.balance().spent == 0


def test_cells_that_were_counted_for_a_data_set_are_released_from_it(account: Account) -> None:
    """Tabulating draws no noise and spends nothing; the file says what its release must charge."""
    folder = account.folder
    (folder / "people.csv").write_text("id,region\n1,N\n1,S\n2,S\n3,N\n")
    (folder / "domain.toml").write_text('[columns.region]\nlevels = ["N", "S"]\n')

    def tabulate(out: str, *words: object) -> str:
        return run("tabulate", folder / "people.csv", "--by", "region", "--domain",
                   folder / "domain.toml", "--person", "id", "--out", folder / out,
                   "--ledger", account.url, *words)  # fmt: skip

    def release(out: str, *words: object) -> str:
        return run("release", folder / "cells.parquet", "--by", "region", "--cells-are-public",
                   "--epsilon", "0.5", "--out", folder / out, *words)  # fmt: skip

    account.grant("--epsilon", 1, "--rows", 5)
    with pytest.raises(InputError, match="the ledger knows no data set 'others'"):
        tabulate("cells.parquet", "--dataset", "others")
    with pytest.raises(InputError, match="a CSV file can not carry --dataset"):
        tabulate("others.csv", "--dataset", "people")
    with pytest.raises(InputError, match="add --dataset"):
        tabulate("cells.parquet")
    assert "nothing was spent" in tabulate("cells.parquet", "--dataset", "people")
    last = account.entries()[-1]
    assert (last.kind, last.amount.in_words()) == ("tabulated", "ε = 0")
    with pytest.raises(InputError, match="was counted for data set 'people' of a ledger"):
        release("one")
    with pytest.raises(InputError, match="not 'others'"):
        release("one", "--ledger", account.url, "--dataset", "others")
    release("one", "--ledger", account.url)  # one row each, and five are counted: it was bounded
    assert account.balance().spent == 500_000
    assert account.finding().flaws == ()
    assert account.finding().states["tabulated"] == 1


def test_show_says_in_words_what_was_spent_and_what_is_left(here: Account) -> None:
    here.grant("--epsilon", 2, "--rho", "0.5", "--neighbours", "replace-one")
    here.release("one", "--epsilon", "0.5")
    here.release("two", "--rho", "0.1", "--mechanism", "gaussian")
    said = run("ledger", "show", here.url)
    assert "data set people: ε = 1 spent of 2, 1 left; ρ = 0.2 spent of 0.5, 0.3 left." in said
    assert "Counted between tables where one person's rows (one row) become any other's" in said
    (facts,) = json.loads(run("ledger", "show", here.url, "--json"))["accounts"]
    assert (facts["unit"], facts["rho_left"]) == ("both", 3 * 10**11)
    assert facts["terms"] == {
        "delta": "1/1000000", "neighbours": "replace-one", "rows": 1, "unit": "both"
    }  # fmt: skip


TAMPERINGS = {
    "UPDATE ledger_entries SET rho = 5 WHERE seq = 2": "was changed",
    "UPDATE ledger_entries SET terms = '' WHERE seq = 1": "was changed",
    "UPDATE ledger_entries SET terms = '' WHERE seq = 2": "was changed",
}


@pytest.mark.parametrize("statement", TAMPERINGS)
def test_what_is_kept_of_a_charge_is_under_its_hash(here: Account, statement: str) -> None:
    here.grant("--epsilon", 2)
    here.release("one", "--epsilon", "0.5")
    engine = open_engine(here.url)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER ledger_no_update")
        connection.exec_driver_sql(statement)
    engine.dispose()
    assert any(TAMPERINGS[statement] in each.what for each in here.finding().flaws)


def test_a_price_that_is_not_what_an_entry_says_is_found(here: Account) -> None:
    """Written by someone who makes the hashes too."""
    here.grant("--epsilon", 2, "--neighbours", "any-change")
    engine = open_engine(here.url)
    text = loss_of(cw.Plan(epsilon=1)).to_text()
    with Ledger(engine).writing() as book:
        book._charged("spent", "c", 1_000_000, {"dataset": "people"}, terms=text, note="")
    engine.dispose()
    (flaw,) = here.finding().flaws
    assert flaw.what == "is not the price of what it says"


def old_ledger(url: str) -> None:
    """The ledger that an earlier version of countwise wrote."""
    engine = open_engine(url)
    script = OLD.read_text()
    if url.startswith("sqlite"):
        raw = engine.raw_connection()
        raw.driver_connection.executescript(script)
        raw.close()
    else:
        how = settings()
        with writing(engine) as connection:
            how.attributes["connection"] = connection
            command.upgrade(how, "0001")
            for line in script.splitlines():
                if line.startswith('INSERT INTO "ledger_entries"'):
                    connection.exec_driver_sql(line.replace("%", "%%"))
    engine.dispose()


def test_a_ledger_of_an_earlier_version_is_read(account: Account) -> None:
    """Its chain holds, its sums are the same, and it is told what it does not say."""
    old_ledger(account.url)
    with pytest.raises(InputError, match="countwise ledger upgrade"):
        run("ledger", "show", account.url)
    assert OLD_HEAD in run("ledger", "upgrade", account.url).replace("\n", "")
    engine = open_engine(account.url)
    assert is_current(engine)
    engine.dispose()
    found = account.finding()
    assert found.flaws == ()
    assert f"{found.length}:{found.head}" == OLD_HEAD
    assert found.spent == {
        ("user", "ann"): 833_334, ("dataset", "census"): 2_458_334, ("project", "pay"): 833_334
    }  # fmt: skip
    where = ("--ledger", account.url, "--dataset", "census")
    verify("--epsilon", "0.5", *where)  # has the same price in every relation
    with pytest.raises(BudgetError, match="does not say yet whose change it counts"):
        account.release("one", "--epsilon", 1, "--dataset", "census")
    with pytest.raises(InputError, match="To fix, add --neighbours"):
        run("ledger", "grant", account.url, "--dataset", "census", "--rows", 2)
    said = run("ledger", "grant", account.url, "--dataset", "census", "--neighbours", "add-remove")
    assert "ε = 2.958334 spent of 5" in said
    assert "ε = 1.625 of it was charged for releases before the ledger recorded" in said
    account.release("one", "--epsilon", 1, "--dataset", "census")
    assert account.finding().flaws == ()
    assert account.finding().spent["dataset", "census"] == 3_958_334


def test_an_old_database_can_not_be_taken_for_a_new_one(here: Account) -> None:
    """A file that holds no ledger is not made one by looking."""
    shutil.copy(here.table, here.folder / "l.db")
    with pytest.raises((InputError, LedgerError, sa.exc.DatabaseError)):
        run("ledger", "show", here.url)
