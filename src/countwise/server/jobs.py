"""The queue: an answer is charged for, queued, computed by a worker, and released at a slot's end.

Time is cut into slots of fixed length. A worker takes work at the start of a slot and nothing
else until its end; when the answer may be seen is fixed then, so no time that can be watched
depends on data. Until then the noisy counts are in the worker's memory alone, so that nothing that
is kept tells when they were ready. Every step is one transaction that moves the answer and its
charge together:

    queued (reserved) ─▶ running (reserved) ─▶ released (computed, released)
                             └─▶ burnt

Why a crash gives nothing away: noise is drawn in a process without network, disk or database;
the noisy counts reach the world only through the transaction that stores them. A worker that
dies before it took its noise along, unseen by anyone, and the charge stands; so the answer may be
computed anew and is still the only one from its charge. A worker thought dead that comes back
finds that the claim is no longer its own and its noise is thrown away. Once stored, counts are
never drawn again, and a hash of them is in the ledger's entry of their release. An answer that does
not agree with its charge in the ledger is set aside as broken, and the others go on. After a few
attempts, or a failure while computing, the charge is burnt, with one note for all causes: the
ledger does not tell what data did.
"""

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from countwise.ledger.ledger import Book, Entry, Ledger
from countwise.ledger.ledger import Scope as Account
from countwise.ledger.prices import Loss, micro
from countwise.server.failpoints import failpoint
from countwise.server.logs import log
from countwise.server.refusals import Conflict, NotThere
from countwise.server.tables import answers, jobs, workers
from countwise.verification.question import Question, read_question
from countwise.verification.receipt import commitment

QUEUED, RUNNING, COMPUTED = "queued", "running", "computed"
NO_ANSWER = "no answer came of it"
TIED = "noisy counts "  # how the note of a release begins that has their hash
FORGOTTEN = 86_400.0  # seconds after which a worker not seen is no longer listed
RELEASED, BURNT, RETURNED, BROKEN = "released", "burnt", "returned", "broken"


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """What a worker has to do: whose claim it is, what was asked, and when the slot ends."""

    answer: str
    claim: str
    dataset: str
    question: Question
    slot: float


def enqueue(
    book: Book,
    *,
    user: str,
    key: str,
    question: Question,
    reading: Mapping[str, Any],
    version: str,
    query: str,
    loss: Loss,
    accounts: Mapping[Account, str],
) -> str:
    """The job of a submission: the one with the same key, or a new one, charged if need be.

    An answer that stands, or is on its way, to the same query is shared at no cost.
    """
    base, fingerprint, asked = book.connection, question.fingerprint, json.dumps(question.to_dict())
    known = base.execute(sa.select(jobs).where(jobs.c.user == user, jobs.c.key == key)).first()
    if known is not None:
        if known.fingerprint != fingerprint:
            raise Conflict("this idempotency key was used for another submission.")
        return str(known.id)
    same = (answers.c.dataset == question.dataset) & (answers.c.query == query)
    answer, cost = base.scalar(sa.select(answers.c.id).where(same)), 0
    if answer is None:
        answer, cost = uuid4().hex, micro(loss.epsilon)
        entry = book.charge(answer, loss, accounts, note=f"query {query}")
        failpoint("submit.charged")
        base.execute(
            sa.insert(answers).values(
                id=answer,
                dataset=question.dataset,
                version=version,
                query=query,
                request=asked,
                state=QUEUED,
                created=moment(),
                place=entry.seq,
                entry_hash=entry.hash,
                attempts=0,
            )
        )
    job = uuid4().hex
    base.execute(
        sa.insert(jobs).values(
            id=job,
            user=user,
            answer=answer,
            asked=asked,
            reading=json.dumps(reading),
            key=key,
            fingerprint=fingerprint,
            micro=cost,
            created=moment(),
            cancelled=False,
        )
    )
    return job


def moment() -> float:
    """Now, to the middle of a millisecond: written with four decimals at any time."""
    return round(int(time.time() * 1000) / 1000 + 0.0005, 4)


def take(
    ledger: Ledger, worker: str, *, start: float, slot_seconds: float, attempts: int
) -> Assignment | None:
    """At the start of a slot: release what is due, look after the orphans, take the next work."""
    with ledger.writing() as book:
        base = book.connection
        gone = base.execute(
            sa.update(workers).where(workers.c.id == worker).values(seen=time.time())
        )
        if gone.rowcount == 0:
            base.execute(sa.insert(workers).values(id=worker, seen=time.time()))
            base.execute(sa.delete(workers).where(workers.c.seen < time.time() - FORGOTTEN))
        _adopt(book, before=start - slot_seconds, attempts=attempts)
        found = _next(book)
        if found is None:
            return None
        claim, slot = uuid4().hex, start + slot_seconds
        _set(base, found.id, state=RUNNING, claim=claim, attempts=found.attempts + 1, slot=slot)
        failpoint("claim.written")
    failpoint("claim.committed")
    return Assignment(
        answer=found.id,
        claim=claim,
        dataset=found.dataset,
        question=read_question(json.loads(found.request)),
        slot=slot,
    )


def _next(book: Book) -> Any:
    """The oldest answer that waits; one that does not agree with the ledger is set aside."""
    waiting = sa.select(answers).where(answers.c.state == QUEUED).order_by(answers.c.place).limit(1)
    while (found := book.connection.execute(waiting).first()) is not None:
        if book.state(found.id) == "reserved":
            return found
        _set_aside(book, found.id)
    return None


def _adopt(book: Book, *, before: float, attempts: int) -> None:
    """Answers whose worker did not come back a whole slot after its time: again, or burnt."""
    lost = sa.select(answers).where(answers.c.state == RUNNING, answers.c.slot <= before)
    for row in book.connection.execute(lost).all():
        if row.attempts >= attempts:
            _burn(book, row.id, note=NO_ANSWER)
        else:
            _set(book.connection, row.id, state=QUEUED, claim=None, slot=None)


def publish(ledger: Ledger, work: Assignment, noisy: list[float]) -> bool:
    """Keep the noisy counts and let them be seen; comes at the slot's end.

    False if the claim is no longer this worker's; then they are lost.
    """
    with ledger.writing() as book:
        if not _mine(book, work):
            return False
        if book.state(work.answer) != "reserved":
            _set_aside(book, work.answer)
            return False
        salt = secrets.token_hex(16)
        book.advance(work.answer, "computed")
        entry = book.advance(work.answer, "released", note=noted(work.answer, salt, noisy))
        _set(
            book.connection,
            work.answer,
            state=RELEASED,
            noisy=json.dumps(noisy),
            salt=salt,
            released_hash=entry.hash,
        )
        failpoint("release.written")
    failpoint("release.committed")
    return True


def noted(answer: str, salt: str, noisy: list[float]) -> str:
    """The note of a release: what ties its noisy counts to the chain."""
    return f"{TIED}{commitment(answer, salt, noisy)}"


def agrees(entry: Entry | None, row: Any) -> bool:
    """Whether what is stored of a release is what its entry in the ledger says.

    Whether it has a hash of the noisy counts is for the entry to say, not for what it checks:
    releases of versions before have none, and no salt.
    """
    if entry is None or not entry.note.startswith(TIED):
        return entry is not None and row.salt is None
    if row.salt is None or row.noisy is None:
        return False
    expected = noted(row.answer, row.salt, json.loads(row.noisy))
    return entry.note == expected and entry.hash == row.released_hash


def give_up(ledger: Ledger, work: Assignment) -> None:
    """The answer could not be computed: what it cost stays spent. Comes at the slot's end."""
    with ledger.writing() as book:
        if _mine(book, work):
            _burn(book, work.answer, note=NO_ANSWER)


def release_due(ledger: Ledger, now: float) -> int:
    """Let answers be seen that an earlier version of the server computed and held; how many."""
    due = sa.select(answers.c.id).where(answers.c.state == COMPUTED, answers.c.slot <= now)
    with ledger.reading() as book:
        if book.connection.execute(due.limit(1)).first() is None:
            return 0
    with ledger.writing() as book:
        names = list(book.connection.scalars(due.order_by(answers.c.place)))
        for name in names:
            if book.state(name) != "computed":
                _set_aside(book, name)
                continue
            book.advance(name, "released")
            _set(book.connection, name, state=RELEASED)
    return len(names)


def cancel(ledger: Ledger, job: str, user: str) -> None:
    """Give a job up. Only if no worker ever took it is its charge returned."""
    with ledger.writing() as book:
        base = book.connection
        row = base.execute(sa.select(jobs).where(jobs.c.id == job, jobs.c.user == user)).first()
        if row is None:
            raise NotThere("there is no such job.")
        if row.cancelled:
            return
        answer = base.execute(sa.select(answers).where(answers.c.id == row.answer)).one()
        if answer.state in (RELEASED, BURNT, BROKEN):
            raise Conflict("the job is over; it can not be cancelled.")
        base.execute(sa.update(jobs).where(jobs.c.id == job).values(cancelled=True))
        others = sa.select(jobs.c.id).where(jobs.c.answer == answer.id, ~jobs.c.cancelled)
        if base.execute(others.limit(1)).first() is None:
            if answer.state == QUEUED and answer.attempts == 0:
                book.advance(answer.id, "returned", note="cancelled before any row was read")
                _set(base, answer.id, state=RETURNED, query=None)
            else:
                _burn(book, answer.id, note="cancelled")
        failpoint("cancel.written")


def _mine(book: Book, work: Assignment) -> bool:
    mine = sa.select(answers.c.id).where(
        answers.c.id == work.answer, answers.c.claim == work.claim, answers.c.state == RUNNING
    )
    return book.connection.execute(mine).first() is not None


def _set_aside(book: Book, answer: str) -> None:
    """This answer does not go on, whatever its charge; the queue does."""
    _set(book.connection, answer, state=BROKEN, query=None, claim=None)
    log("inconsistent", level="error", answer=answer)


def _burn(book: Book, answer: str, *, note: str) -> None:
    if book.state(answer) not in ("reserved", "computed"):
        _set_aside(book, answer)
        return
    book.advance(answer, "burnt", note=note)
    _set(book.connection, answer, state=BURNT, query=None, claim=None, noisy=None)


def _set(connection: sa.Connection, answer: str, **values: Any) -> None:
    connection.execute(sa.update(answers).where(answers.c.id == answer).values(**values))
