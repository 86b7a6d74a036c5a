"""Four eyes: budgets above a threshold are proposed by one steward and approved by another.

The threshold is for all raises together that were made by one steward since the last cap that two
agreed on, or that was set on the machine itself: it is compared with the lowest cap since then.
"""

import time
from uuid import uuid4

import sqlalchemy as sa

from countwise.ledger.ledger import Balance, Book, Scope, entries
from countwise.ledger.prices import in_epsilon
from countwise.server.events import note
from countwise.server.refusals import Conflict, Forbidden, NotThere
from countwise.server.responses import ProposalView
from countwise.server.tables import proposals

WAITING, APPROVED, TURNED_DOWN = "waiting", "approved", "refused"


def agreed_cap(book: Book, scope: Scope, name: str) -> int:
    """The lowest cap of an account since one that no steward set alone; 0 without such a one."""
    caps = sa.select(entries.c.micro, entries.c.note).where(
        entries.c[scope] == name, entries.c.kind == "cap"
    )
    lowest = 0
    for row in book.connection.execute(caps.order_by(entries.c.seq)):
        alone = row.note.startswith("by ") and ", approved by " not in row.note
        lowest = min(lowest, row.micro) if alone else row.micro
    return lowest


def propose(book: Book, by: str, scope: Scope, name: str, cap: int) -> str:
    """Write a cap down as a proposal; its id."""
    identity = uuid4().hex
    book.connection.execute(
        sa.insert(proposals).values(
            id=identity,
            scope=scope,
            name=name,
            micro=cap,
            by=by,
            created=time.time(),
            state=WAITING,
        )
    )
    note(book.connection, by, "proposed cap", f"{scope} {name}", cap=cap, proposal=identity)
    return identity


def waiting_proposals(connection: sa.Connection) -> list[ProposalView]:
    """Those that wait, the oldest first."""
    query = sa.select(proposals).where(proposals.c.state == WAITING).order_by(proposals.c.created)
    return [
        ProposalView(
            id=row.id,
            scope=row.scope,
            name=row.name,
            cap=in_epsilon(row.micro),
            by=row.by,
            created=row.created,
        )
        for row in connection.execute(query)
    ]


def decide(book: Book, by: str, proposal: str, *, approve: bool) -> Balance:
    """Set the cap that was proposed, if another steward approves; the balance after that."""
    mine = proposals.c.id == proposal
    row = book.connection.execute(sa.select(proposals).where(mine)).first()
    if row is None:
        raise NotThere("there is no such proposal.")
    if row.state != WAITING:
        raise Conflict("this proposal was decided already.")
    if approve and row.by == by:
        raise Forbidden("a proposal is approved by another steward than the one who made it.")
    state = APPROVED if approve else TURNED_DOWN
    book.connection.execute(sa.update(proposals).where(mine).values(state=state, decided_by=by))
    if approve:
        book.set_cap(row.scope, row.name, row.micro, note=f"by {row.by}, approved by {by}")
    note(book.connection, by, f"{state} cap", f"{row.scope} {row.name}", proposal=proposal)
    return book.balance(row.scope, row.name)
