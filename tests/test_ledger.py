"""The ledger: caps in one transaction, steps of a charge, the chain, and crowds of writers."""

import multiprocessing
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from uuid import uuid4

import pytest
import sqlalchemy as sa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from countwise.errors import BudgetError, InputError, PlanError, StorageError
from countwise.front_door.ledger_functions import ledger_at
from countwise.ledger.chain import check
from countwise.ledger.ledger import AFTER, KINDS, Ledger, metadata
from countwise.ledger.prices import in_epsilon, micro
from countwise.ledger.storage import open_engine
from crowds import ACCOUNTS, crowd, try_charge


def new_ledger(url, caps=10_000_000, **how):
    engine = open_engine(url, **how)
    metadata.create_all(engine)
    ledger = Ledger(engine)
    with ledger.writing() as book:
        for scope, name in ACCOUNTS.items():
            book.set_cap(scope, name, caps)
    return ledger


@pytest.fixture
def ledger(database):
    made = new_ledger(database)
    yield made
    made.engine.dispose()


def finding(ledger, **how):
    with ledger.reading() as book:
        return check(book.all(), **how)


def test_micro_rounds_up():
    assert micro(1) == 1_000_000
    assert micro("0.1") == 100_000
    assert micro("1/3") == 333_334
    assert micro(Fraction(1, 10**12)) == 1
    assert in_epsilon(micro("0.25")) == "0.25"


@pytest.mark.parametrize(
    "bad",
    ["nan", float("nan"), "inf", float("inf"), -1, "-0.5", 0, 5e-324, 1e308, "1e400", "", "x"],
)
def test_no_such_epsilon(bad):
    with pytest.raises(PlanError):
        micro(bad)


@pytest.mark.parametrize("bad", [0, -1, 1.5, float("nan"), float("inf"), True, None, "1", 10**30])
def test_no_such_charge(ledger, bad):
    with pytest.raises((InputError, BudgetError)), ledger.writing() as book:
        book.reserve("c", bad, ACCOUNTS)
    with pytest.raises(InputError), ledger.writing() as book:
        book.set_cap("user", "ann", -1 if bad == 0 else bad if bad is not True else 10**13)
    assert finding(ledger).length == 3


def test_all_caps_or_none(ledger):
    with ledger.writing() as book:
        book.set_cap("project", "pay", 1_500_000, note="less")
    assert try_charge(ledger)
    said = r"project 'pay' has ε = 0.5 left and this asks for 1\."
    with pytest.raises(BudgetError, match=said), ledger.writing() as book:
        book.reserve("second", 1_000_000, ACCOUNTS)
    with ledger.reading() as book:
        assert book.balance("user", "ann").spent == 1_000_000
        assert book.balance("dataset", "workers").left == 9_000_000
        assert book.state("second") is None
    with pytest.raises(BudgetError, match="'bob' has ε = 0 left"), ledger.writing() as book:
        book.reserve("third", 1, ACCOUNTS | {"user": "bob"})
    with pytest.raises(InputError, match="must name the data set"), ledger.writing() as book:
        book.reserve("fourth", 1, {"user": "ann"})


def test_every_step_and_no_other(ledger):
    """From each state, exactly the drawn steps are allowed; what is refused writes nothing."""
    paths = {"reserved": (), "computed": ("computed",), "released": ("computed", "released"),
             "burnt": ("burnt",), "returned": ("returned",)}  # fmt: skip
    for state, path in paths.items():
        for kind in KINDS:
            charge = f"{state}-{kind}"
            with ledger.writing() as book:
                book.reserve(charge, 10, ACCOUNTS)
                for step in path:
                    book.advance(charge, step)
            if state in AFTER.get(kind, ()):
                with ledger.writing() as book:
                    book.advance(charge, kind)
            else:
                before = finding(ledger).length
                with pytest.raises(InputError, match="can not become"), ledger.writing() as book:
                    book.advance(charge, kind)
                assert finding(ledger).length == before
    assert finding(ledger).flaws == ()


def test_a_fault_in_the_transaction_takes_the_charge_back(ledger):
    with pytest.raises(ZeroDivisionError), ledger.writing() as book:
        _ = book.reserve("c", 10, ACCOUNTS).micro / 0
    with ledger.reading() as book:
        assert book.balance("user", "ann").spent == 0


def test_two_hundred_threads_and_a_budget_for_ten(ledger):
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: try_charge(ledger), range(200)))
    assert sum(answers) == 10
    found = finding(ledger)
    assert found.flaws == ()
    assert set(found.spent.values()) == {10_000_000}


def test_two_processes_and_a_budget_for_ten(ledger, database):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    crowds = [context.Process(target=crowd, args=(database, 100, results)) for _ in range(2)]
    for each in crowds:
        each.start()
    assert sum(results.get(timeout=120) for _ in crowds) == 10
    for each in crowds:
        each.join()
    found = finding(ledger)
    assert found.flaws == ()
    assert found.spent["dataset", "workers"] == 10_000_000


def tamper(ledger, statement):
    """As someone with the database's own rights would."""
    with ledger.engine.begin() as connection:
        if connection.dialect.name == "sqlite":
            for verb in ("update", "delete"):
                connection.exec_driver_sql(f"DROP TRIGGER ledger_no_{verb}")
        else:
            connection.exec_driver_sql("DROP TRIGGER ledger_no_change ON ledger_entries")
        connection.exec_driver_sql(statement)


TAMPERINGS = {
    "UPDATE ledger_entries SET micro = micro - 1 WHERE seq = 5": "was changed",
    "UPDATE ledger_entries SET note = 'x' WHERE seq = 1": "was changed",
    "UPDATE ledger_entries SET \"user\" = 'bob' WHERE seq = 4": "was changed",
    "UPDATE ledger_entries SET kind = 'burnt' WHERE seq = 6": "was changed",
    "UPDATE ledger_entries SET hash = previous WHERE seq = 4": "was changed",
    "DELETE FROM ledger_entries WHERE seq = 5": "entry 5 is missing",
    "DELETE FROM ledger_entries WHERE seq = 1": "entry 1 is missing",
}


@pytest.mark.parametrize("statement", TAMPERINGS)
def test_tampering_with_one_row_is_found(ledger, statement):
    with ledger.writing() as book:
        book.reserve("c", 10, ACCOUNTS)
        book.reserve("d", 10, ACCOUNTS)
        book.advance("c", "computed")
    with pytest.raises(sa.exc.DBAPIError, match="append-only"), ledger.engine.begin() as raw:
        raw.exec_driver_sql(statement)
    assert finding(ledger).flaws == ()
    tamper(ledger, statement)
    flaws = finding(ledger).flaws
    assert any(TAMPERINGS[statement] in each.what for each in flaws), flaws


def test_a_cut_end_is_found_by_a_noted_hash(ledger):
    with ledger.writing() as book:
        last = book.reserve("c", 10, ACCOUNTS)
    assert finding(ledger, noted={last.seq: last.hash}).flaws == ()
    tamper(ledger, f"DELETE FROM ledger_entries WHERE seq = {last.seq}")
    assert finding(ledger).flaws == ()  # a chain alone can not tell
    (flaw,) = finding(ledger, noted={last.seq: last.hash}).flaws
    assert flaw.what == "was noted, and is not there"


def test_locked_is_said_and_charges_nothing(tmp_path):
    ledger = new_ledger(f"sqlite:///{tmp_path}/l.db", wait=0.3)
    other = sqlite3.connect(tmp_path / "l.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageError, match="in use by another writer"):
        try_charge(ledger)
    other.execute("ROLLBACK")
    other.close()
    assert finding(ledger).length == 3
    assert try_charge(ledger)
    ledger.engine.dispose()


def test_a_full_disk_is_said_and_charges_nothing(small_disk):
    ledger = new_ledger(small_disk.url)
    small_disk.squeeze(ledger.engine)
    made, problem = 0, None
    while problem is None and made < 2000:
        try:
            with ledger.writing() as book:
                book.reserve(uuid4().hex, 1, ACCOUNTS, note="x" * 200)
            made += 1
        except StorageError as caught:
            problem = str(caught)
    assert problem is not None
    assert "disk of the database is full" in problem
    assert made > 0
    found = finding(ledger)
    assert found.flaws == ()
    assert found.spent["user", "ann"] == made
    ledger.engine.dispose()


def test_a_ledger_needs_a_file_or_a_server():
    for url in ("sqlite://", "mysql://x/y", "what", "sqlite:///:memory:"):
        with pytest.raises(InputError):
            open_engine(url)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    cells, damaged = tmp_path / "cells.csv", tmp_path / "l.db"
    cells.write_text("region,n\nN,31337\n")
    with ledger_at(f"sqlite:///{damaged}", make=True) as ledger, ledger.writing() as book:
        book.set_cap("dataset", "d", 1)
    pages = sqlite3.connect(damaged)
    pages.execute("PRAGMA journal_mode=DELETE")
    pages.close()
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:4096] + b"x" * (len(whole) - 4096))
    for path in (cells, damaged):
        before = path.read_bytes()
        for make in (False, True):
            with (
                pytest.raises(InputError, match="no database of SQLite, or a damaged one"),
                ledger_at(f"sqlite:///{path}", make=make) as ledger,
                ledger.reading() as book,
            ):
                book.balance("dataset", "d")
        assert path.read_bytes() == before


NAMES = {"user": ["ann", "bob"], "dataset": ["d", "e"], "project": ["", "p"]}


class LedgerMachine(RuleBasedStateMachine):
    """Any order of caps and charges, against a model of a few lines."""

    url = ""

    def __init__(self):
        super().__init__()
        self.ledger = Ledger(open_engine(self.url))
        with self.ledger.engine.begin() as connection:
            metadata.drop_all(connection)
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql("DROP FUNCTION IF EXISTS ledger_refuse")
            metadata.create_all(connection)
        self.caps, self.spent, self.charges, self.length = {}, {}, {}, 0

    def teardown(self):
        self.ledger.engine.dispose()

    @rule(data=st.data(), scope=st.sampled_from(["user", "dataset", "project"]),
          amount=st.integers(0, 50))  # fmt: skip
    def cap(self, data, scope, amount):
        name = data.draw(st.sampled_from([each for each in NAMES[scope] if each]))
        with self.ledger.writing() as book:
            book.set_cap(scope, name, amount)
        self.caps[scope, name] = amount
        self.length += 1

    @rule(user=st.sampled_from(NAMES["user"]), dataset=st.sampled_from(NAMES["dataset"]),
          project=st.sampled_from(NAMES["project"]), amount=st.integers(-3, 30),
          lost=st.booleans())  # fmt: skip
    def reserve(self, user, dataset, project, amount, lost):
        accounts = {"user": user, "dataset": dataset} | ({"project": project} if project else {})
        keys = list(accounts.items())
        fits = amount >= 1 and all(
            self.spent.get(key, 0) + amount <= self.caps.get(key, 0) for key in keys
        )
        charge = uuid4().hex
        try:
            with self.ledger.writing() as book:
                book.reserve(charge, amount, accounts)
                if lost:
                    raise KeyboardInterrupt
        except (InputError, BudgetError):
            assert not fits
        except KeyboardInterrupt:
            assert fits
        else:
            assert fits
            for key in keys:
                self.spent[key] = self.spent.get(key, 0) + amount
            self.charges[charge] = ["reserved", amount, keys]
            self.length += 1

    @rule(data=st.data(), kind=st.sampled_from(KINDS))
    def step(self, data, kind):
        if not self.charges:
            return
        charge = data.draw(st.sampled_from(sorted(self.charges)))
        state, amount, keys = self.charges[charge]
        allowed = state in AFTER.get(kind, ())
        try:
            with self.ledger.writing() as book:
                book.advance(charge, kind)
        except InputError:
            assert not allowed
            return
        assert allowed
        self.charges[charge][0] = kind
        self.length += 1
        if kind == "returned":
            for key in keys:
                self.spent[key] -= amount

    @invariant()
    def agrees(self):
        found = finding(self.ledger)
        assert found.flaws == ()
        assert found.length == self.length
        with self.ledger.reading() as book:
            for scope, names in NAMES.items():
                for name in filter(None, names):
                    balance = book.balance(scope, name)
                    assert balance.spent == self.spent.get((scope, name), 0)
                    assert balance.cap == self.caps.get((scope, name), 0)
                    released = sum(
                        amount for state, amount, keys in self.charges.values()
                        if state == "released" and (scope, name) in keys
                    )  # fmt: skip
                    assert balance.spent >= released


def test_any_order_of_steps(database):
    machine = type("Machine", (LedgerMachine,), {"url": database})
    from hypothesis.stateful import run_state_machine_as_test

    count = 25 if database.startswith("sqlite") else 15
    run_state_machine_as_test(
        machine, settings=settings(max_examples=count, stateful_step_count=25, deadline=None)
    )
