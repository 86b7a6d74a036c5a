"""Jobs: charged first, answered once, whatever dies when."""

import json
import socket
import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime

import pytest
import sqlalchemy as sa

from countwise.errors import AnswerError, BudgetError
from countwise.ledger.prices import Terms, read_loss
from countwise.server import jobs
from countwise.server.failpoints import FAILPOINTS
from countwise.server.refusals import Conflict, NotThere
from countwise.server.tables import answers
from countwise.verification.receipt import check_receipt
from needs import shut_in
from offices import ANN, BOB, EPSILON, SLOT, Office, ask, example_config, killed_at, open_office


@pytest.fixture
def office(database, tmp_path, computer):
    made = open_office(example_config(tmp_path, database), computer)
    yield made
    made.engine.dispose()


def noisy(office):
    with office.engine.connect() as connection:
        return list(connection.scalars(sa.select(answers.c.noisy).order_by(answers.c.place)))


def test_charged_answered_and_the_same_again_for_free(office):
    job = office.service.submit(ANN, ask(), "one")
    assert (job.status, job.cost) == ("queued", "1")
    assert office.spent() == EPSILON  # before any row was read
    with pytest.raises(Conflict):
        office.service.answer(ANN, job.id)
    same = {
        "one": ask(),
        "spaces": ask(model=" hours~education_years+ age +C( sex )", claim="0.5<education_years"),
        "prior": ask(alpha=(0.5,)),
        "epsilon": ask(epsilon="1.0"),
    }
    for key, each in same.items():
        again = office.service.submit(ANN, each, key)
        assert (again.id == job.id) is (key == "one")
        assert again.cost == ("1" if key == "one" else "0")
    other = office.service.submit(BOB, ask(), "one")
    assert other.cost == "0"
    assert office.service.plan(BOB, ask()).stored
    office.work()
    first = office.service.answer(ANN, job.id)
    assert first.verdict == "supported"
    assert office.service.answer(BOB, other.id).noisy.tolist() == first.noisy.tolist()
    late = office.service.submit(BOB, ask(), "late")
    assert (late.status, late.cost) == ("answered", "0")
    assert office.states() == ["released"]
    assert office.spent() == EPSILON
    assert office.service.submit(ANN, ask(epsilon="2"), "more").cost == "2"
    with pytest.raises(Conflict, match="used for another"):
        office.service.submit(ANN, ask(epsilon="2"), "one")
    with pytest.raises(NotThere):
        office.service.answer(BOB, job.id)
    assert office.finding().flaws == ()


def test_receipts_are_checked_offline_and_can_not_be_changed(office):
    job = office.service.submit(ANN, ask(), "one")
    office.work()
    receipt = json.loads(json.dumps(office.service.receipt(ANN, job.id)))
    key = receipt["key"]
    assert check_receipt(receipt, trusted=key).verdict == "supported"
    for change in ({"dataset": "x"}, {"slot": 1.0}, {"charge": "0" * 32}, {"key": "00" * 32}):
        with pytest.raises(AnswerError):
            check_receipt(receipt | change)
    forged = receipt | {"answer": receipt["answer"] | {"noisy": [1, 2, 47]}}
    with pytest.raises(AnswerError, match="signature"):
        check_receipt(forged)
    with pytest.raises(AnswerError, match="another key"):
        check_receipt(receipt, trusted="11" * 32)


def test_a_budget_that_is_spent_refuses_and_more_is_granted(office):
    for i in range(10):
        office.service.submit(ANN, ask(partitions=50 + i), f"k{i}")
    with pytest.raises(BudgetError, match="data"):
        office.service.submit(ANN, ask(partitions=49), "more")
    assert office.spent() == 10 * EPSILON
    assert not office.service.plan(ANN, ask(partitions=49)).allowed
    from offices import STEWARD

    office.stewardship.grant(STEWARD, "dataset", "workers", "1")
    assert office.service.submit(ANN, ask(partitions=49), "more").cost == "1"


def test_cancelling(office):
    queued = office.service.submit(ANN, ask(), "queued")
    assert office.service.cancel(ANN, queued.id).status == "cancelled"
    assert office.spent() == 0  # no worker ever took it
    running = office.service.submit(ANN, ask(), "running")
    jobs.take(office.ledger, "w", start=time.time(), slot_seconds=SLOT, attempts=3)
    assert office.service.cancel(ANN, running.id).status == "cancelled"
    assert office.spent() == EPSILON
    shared = office.service.submit(ANN, ask(), "shared")
    other = office.service.submit(BOB, ask(), "other")
    office.service.cancel(ANN, shared.id)
    office.work()
    assert office.service.job(BOB, other.id).status == "answered"
    with pytest.raises(Conflict):
        office.service.cancel(BOB, other.id)
    with pytest.raises(NotThere):
        office.service.cancel(BOB, shared.id)
    assert office.states() == ["returned", "burnt", "released"]
    assert office.finding().flaws == ()


@pytest.mark.parametrize("name", FAILPOINTS)
def test_killed_at_every_step(office, name):
    """Spent is at least what was released, and no charge ever has two noisy results."""
    submitted = name.startswith("submit")
    if not submitted:
        job = office.service.submit(ANN, ask(), "one")

    def step():
        restarted = Office(office.config, office.computer)
        if submitted:
            restarted.service.submit(ANN, ask(), "one")
        elif name.startswith("cancel"):
            restarted.service.cancel(ANN, job.id)
        else:
            restarted.work()

    office.engine.dispose()
    assert killed_at(name, step)
    office = office.again()
    stored = noisy(office)
    expected = 0 if name == "submit.charged" else EPSILON
    assert office.spent() == expected
    again = office.service.submit(ANN, ask(), "one")  # a client that was not told tries again
    office.work(4)
    assert office.service.job(ANN, again.id).status == "answered"
    kept = [each for each in noisy(office) if each is not None]
    assert len(kept) == 1
    if stored and stored[0] is not None:
        assert kept == stored  # what was stored is not drawn again
    found = office.finding()
    assert found.flaws == ()
    assert found.states["released"] == 1
    assert office.spent() == EPSILON
    office.engine.dispose()


def test_a_worker_that_comes_back_from_the_dead(office):
    job = office.service.submit(ANN, ask(), "one")
    past = time.time() - 100
    first = jobs.take(office.ledger, "slow", start=past, slot_seconds=SLOT, attempts=3)
    second = jobs.take(office.ledger, "w", start=time.time(), slot_seconds=SLOT, attempts=3)
    assert first.answer == second.answer
    assert jobs.publish(office.ledger, second, [40.0, 8.0, 2.0])
    assert not jobs.publish(office.ledger, first, [1.0, 1.0, 48.0])
    jobs.give_up(office.ledger, first)
    assert office.service.answer(ANN, job.id).noisy.tolist() == [40, 8, 2]


def test_lost_too_often_is_burnt(office):
    job = office.service.submit(ANN, ask(), "one")
    for i in range(3, 0, -1):
        start = time.time() - 100 * i
        assert jobs.take(office.ledger, "w", start=start, slot_seconds=SLOT, attempts=3)
    assert jobs.take(office.ledger, "w", start=time.time(), slot_seconds=SLOT, attempts=3) is None
    assert office.service.job(ANN, job.id).status == "failed"
    assert office.spent() == EPSILON
    assert office.service.submit(ANN, ask(), "two").cost == "1"  # asking again is paid again


def test_the_ledger_does_not_tell_how_an_answer_failed(office):
    """Lost by its worker or out of memory: one note for all, whatever the data did."""
    office.service.submit(ANN, ask(), "one")
    for i in range(3, 0, -1):
        jobs.take(office.ledger, "w", start=time.time() - 100 * i, slot_seconds=SLOT, attempts=3)
    jobs.take(office.ledger, "w", start=time.time(), slot_seconds=SLOT, attempts=3)
    office.service.submit(ANN, ask(), "two")
    work = jobs.take(office.ledger, "w", start=time.time(), slot_seconds=SLOT, attempts=3)
    jobs.give_up(office.ledger, work)
    with office.ledger.reading() as book:
        burnt = [each for each in book.all() if each.kind == "burnt"]
    assert [each.note for each in burnt] == ["no answer came of it"] * 2
    assert [each.terms for each in burnt] == [""] * 2


def test_an_entry_of_the_server_says_what_was_asked_and_is_priced_in_rho_too(office):
    """Any change of a person's rows, at ε²/2 of ρ where the data set is counted in that alone."""
    with office.ledger.writing() as book:
        terms = Terms(neighbours="add-remove", rows=9, unit="rho")
        book.set_cap("dataset", "workers", 0, rho=10**12, terms=terms)
        book.set_cap("user", "ann", 10 * EPSILON, rho=10**12)
    assert office.service.plan(ANN, ask()).allowed
    job = office.service.submit(ANN, ask(), "one")
    assert job.cost == "1"
    (budget,) = [each.budget for each in office.service.datasets(ANN)]
    assert (budget.unit, budget.cap, budget.left) == ("ρ", "1", "0.5")
    with office.ledger.reading() as book:
        last = list(book.all())[-1]
        assert (last.micro, last.rho) == (0, 10**12 // 2)
        assert book.balance("user", "ann").rho_left == 10**12 // 2
    kept = read_loss(last.terms)
    assert (kept.neighbours, kept.rows, last.note[:6]) == ("any-change", None, "query ")
    assert kept.plan in last.note
    office.work()
    assert office.service.answer(ANN, job.id).verdict == "supported"
    assert not office.service.plan(BOB, ask(claim="age > 0")).allowed  # has no budget of ρ
    with pytest.raises(BudgetError, match="user 'bob' has ρ = 0 left"):
        office.service.submit(BOB, ask(claim="age > 0"), "two")
    assert office.finding().flaws == ()


def test_that_it_is_computed_already_is_kept_nowhere(office):
    """Until the slot's end there is nothing to see but that it runs, and when it will be out."""
    job = office.service.submit(ANN, ask(), "one")
    start = float(time.time() // SLOT * SLOT)
    work = jobs.take(office.ledger, "w", start=start, slot_seconds=SLOT, attempts=3)
    before = office.finding(), office.service.job(ANN, job.id)
    assert before[1].released_at == work.slot
    noisy = office.computer.compute(work, until=time.time() + 60)
    assert (office.finding(), office.service.job(ANN, job.id)) == before
    for look in (office.service.answer, office.service.receipt):
        with pytest.raises(Conflict):
            look(ANN, job.id)
    assert jobs.publish(office.ledger, work, noisy)
    with office.ledger.reading() as book:
        computed, released = (book.entry(work.answer, kind) for kind in ("computed", "released"))
    assert released.seq == computed.seq + 1
    assert released.at == computed.at


def test_times_of_the_ledger_are_slots(office):
    office.service.submit(ANN, ask(), "one")
    office.work()
    office.service.submit(ANN, ask(partitions=60), "two")
    with office.ledger.reading() as book:
        times = [datetime.fromisoformat(each.at).timestamp() for each in book.all()]
    added = times[-4:]
    assert all(each % SLOT == 0 for each in added)
    assert time.time() - added[-1] < 60


def test_out_of_memory_is_said_and_the_charge_stands(office):
    job = office.service.submit(ANN, ask(), "one")
    small = replace(office.config, memory_mb=256)
    office.computer.config, wide = small, office.computer.config
    try:
        office.work()
    finally:
        office.computer.config = wide
    assert office.service.job(ANN, job.id).status == "failed"
    assert office.spent() == EPSILON
    assert office.finding().states["burnt"] == 1
    again = office.service.submit(ANN, ask(), "two")
    office.work()
    assert office.service.job(ANN, again.id).status == "answered"


def test_too_slow_is_said_at_the_slots_end(office):
    job = office.service.submit(ANN, ask(), "one")
    work = jobs.take(office.ledger, "w", start=time.time(), slot_seconds=SLOT, attempts=3)
    assert office.computer.compute(work, until=time.time() + 0.003) is None
    assert office.service.job(ANN, job.id).status == "running"
    jobs.give_up(office.ledger, work)
    assert office.service.job(ANN, job.id).status == "failed"


INSIDE = """
import socket, sys, os
from pathlib import Path
from countwise.server import sandbox
listening, readable, hidden = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
assert sandbox.can_read(readable) and sandbox.can_read(hidden)
assert sandbox.no_network()
assert sandbox.only_files(read=[readable])
assert sandbox.can_read(readable)
assert not sandbox.can_read(hidden)
for address in (("127.0.0.1", listening), ("192.0.2.1", 80)):
    try:
        socket.create_connection(address, timeout=2)
    except OSError:
        pass
    else:
        raise SystemExit("connected")
for place in (hidden.parent / "new", Path("/tmp/countwise-new"), readable):
    try:
        place.open("a")
    except OSError:
        pass
    else:
        raise SystemExit("wrote")
sandbox.limit(memory_mb=1024, cpu_seconds=5)
try:
    bytearray(2 << 30)
except MemoryError:
    print("shut in")
"""


def test_the_sandbox_holds(tmp_path):
    shut_in()
    (tmp_path / "hidden").mkdir()
    readable, hidden = tmp_path / "data.csv", tmp_path / "hidden" / "other.csv"
    readable.write_text("x")
    hidden.write_text("y")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-c", INSIDE, port, readable, hidden],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.stdout == "shut in\n", done.stderr
