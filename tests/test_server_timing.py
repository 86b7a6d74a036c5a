"""Time says nothing: what can be seen while a job is computed is the same however long it takes."""

import json
import time
from dataclasses import asdict

import numpy as np
import pytest

from countwise.server import jobs, worker
from countwise.server.tables import answers
from offices import ANN, BOB, STEWARD, ask, client, example_config, new_key, open_office, serving

SLOT, PROBE = 10.0, 0.1
SHORT, LONG = 0.1, 1.0


class ProbedClock(worker.Clock):
    """A time that passes as it is told to; at every probe an observer looks."""

    def __init__(self, begin, look):
        self.time, self.begin, self.look, self.probes = begin, begin, look, 0

    def now(self):
        return self.time

    def sleep_until(self, moment):
        while (probe := self.begin + PROBE * (self.probes + 1)) < moment - 1e-6:
            self.time, self.probes = probe, self.probes + 1
            self.look(self.probes)
        self.time = max(self.time, moment)


class Computing:
    """A process that takes so long to compute, and then has these counts."""

    def __init__(self, clock, seconds):
        self.clock, self.seconds = clock, seconds

    def compute(self, _, *, until):
        assert until > self.clock.now() + self.seconds
        self.clock.sleep_until(self.clock.now() + self.seconds)
        return [40.0, 8.0, 2.0]


@pytest.fixture
def office(tmp_path, computer):
    config = example_config(tmp_path, f"sqlite:///{tmp_path}/a.db", slot_seconds=SLOT)
    made = open_office(config, computer, budget=900_000)
    for name in ("ann", "bob"):
        made.stewardship.grant(STEWARD, "user", name, "900000")
    yield made
    made.engine.dispose()


def plain(reply, names):
    """A reply without what is random: names of jobs become their order, hashes and salts go."""
    text = json.dumps(reply, sort_keys=True)
    for i, name in enumerate(names):
        text = text.replace(name, f"job{i}")
    return text


def observed(office, how, seconds, number):
    """All that an analyst sees with ten probes a second during a slot of somebody else's job."""
    seen, asked, began = [], [], office.clock
    his = office.service.submit(ANN, ask(partitions=100 + number % 500, claim=how), f"k{number}")

    def look(at):
        key = f"p{number}-{at}"
        if at % 10 == 0:  # a question of his own every second
            mine = ask(partitions=50 + len(asked), claim=f"age > {number / 10**6}", epsilon="0.5")
            asked.append(office.service.submit(BOB, mine, key).id)
        states = [asdict(office.service.job(BOB, each)) for each in asked]
        for state in states:
            del state["created"]  # his own doing
        budgets = [asdict(each) for each in office.service.budgets(BOB)]
        seen.append((at, plain([states, budgets], asked)))

    clock = ProbedClock(began, look)
    end = worker.one_slot(
        office.config, office.ledger, Computing(clock, seconds), "w", began, clock
    )
    assert end == began + SLOT
    assert office.service.job(ANN, his.id).status == "answered"
    with office.engine.begin() as connection:  # what he asked is over, before the next slot
        connection.execute(
            answers.update().where(answers.c.state == jobs.QUEUED).values(state=jobs.BROKEN)
        )
    office.clock = end + SLOT
    return [(at, text.replace(str(number), "N")) for at, text in seen], asked


def test_what_an_analyst_sees_does_not_depend_on_how_long_a_job_takes(office):
    """Every state and budget, at every probe, of a job of 0.1 s and of one of 1 s."""
    claims = ("education_years > 0.5", "age > 0.25", "education_years > 2")
    for number, claim in enumerate(claims, start=101):
        views = [
            observed(office, claim, seconds, number + 100 * i)
            for i, seconds in enumerate((SHORT, LONG))
        ]
        times = [[at for at, _ in view] for view, _ in views]
        assert times[0] == times[1]
        assert len(views[0][1]) >= 9
        first, second = (spent_apart(view) for view, _ in views)
        assert first == second


def spent_apart(view):
    """The states seen, and how much budgets fell from one probe to the next."""
    found, last = [], None
    for at, text in view:
        states, budgets = json.loads(text)
        spent = [float(each["spent"]) for each in budgets]
        fell = None if last is None else [round(a - b, 6) for a, b in zip(spent, last, strict=True)]
        status = [(each["status"], each["cost"], each["released_at"]) for each in states]
        found.append((at, status, fell))
        last = spent
    return found


def test_the_ledger_and_the_receipts_do_not_tell_it_either(office):
    """The order of entries is that of slots: nothing is written while a job is computed."""
    orders = []
    for i, seconds in enumerate((SHORT, LONG)):
        before = office.finding().length
        observed(office, "age > 0.25", seconds, 301 + i)
        with office.ledger.reading() as book:
            orders.append([each.kind for each in book.all(after=before)])
    assert orders[0] == orders[1]
    assert orders[0][-2:] == ["computed", "released"]
    job = office.service.jobs(ANN, limit=1)[0]
    receipt = office.service.receipt(ANN, job.id)
    assert "entry" not in json.dumps(receipt["ledger"])


@pytest.mark.parametrize("pairs", [25, pytest.param(200, marks=pytest.mark.study)])
def test_reply_times_do_not_tell_a_short_job_from_a_long_one(office, pairs):
    """A permutation test on how long replies took, to probes that meet a job of either length.

    Jobs and probes are ten times as fast as in the field, in the same proportion.
    """
    rng, took = np.random.default_rng(1), np.zeros((pairs, 2))
    with serving(office) as address, client(address, new_key(office, "bob")) as caller:
        job = office.service.submit(BOB, ask(), "his")
        for pair in range(pairs):
            for side in rng.permutation(2):
                seconds = (SHORT, LONG)[side] / 10
                office.service.submit(
                    ANN, ask(partitions=60 + pair, claim=f"age > {side + 1}"), f"a{pair}-{side}"
                )
                work = jobs.take(
                    office.ledger, "w", start=office.clock, slot_seconds=SLOT, attempts=3
                )
                ready = time.perf_counter() + seconds
                for _ in range(5):
                    start = time.perf_counter()
                    assert caller.get(f"/api/v1/jobs/{job.id}").status_code == 200
                    took[pair, side] += time.perf_counter() - start
                    time.sleep(max(0.0, min(PROBE / 10, ready - time.perf_counter())))
                jobs.publish(office.ledger, work, [40.0, 8.0, 2.0])
                office.clock += SLOT
    gaps = np.log(took[:, 1] / took[:, 0])
    signs = rng.choice((-1, 1), size=(20_000, pairs))
    larger = np.abs((signs * gaps).mean(axis=1)) >= abs(gaps.mean())
    assert (larger.sum() + 1) / 20_001 > 1e-4


def test_slots_follow_one_another_without_a_gap():
    """A worker that published at the end of a slot takes work in the one that begins there."""
    assert worker.following(20.0, 20.02, SLOT) == 20.0
    assert worker.following(20.0, 22.0, SLOT) == 30.0
    assert worker.following(None, 20.02, SLOT) == 30.0
