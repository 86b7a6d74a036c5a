"""The audit log: who did what to what. It holds names and ids, never a value of data.

Each event has a hash that covers the one before it, as the ledger's entries have.
"""

import hashlib
import json
import time
from typing import Any

import sqlalchemy as sa

from countwise.ledger.storage import writing
from countwise.server.tables import audit

START = hashlib.sha256(b"countwise audit log 1").hexdigest()
FORGOT = "deleted old events"
"""The event that says which older ones were deleted: a chain may begin behind it."""


def note(
    place: sa.Engine | sa.Connection, actor: str, event: str, subject: str = "", **detail: object
) -> None:
    """Write an event, within a writing transaction where a connection is given."""
    if isinstance(place, sa.Engine):
        with writing(place) as connection:
            note(connection, actor, event, subject, **detail)
        return
    last = place.scalar(sa.select(audit.c.hash).order_by(audit.c.id.desc()).limit(1))
    fields: dict[str, Any] = {
        "at": time.time(),
        "actor": actor,
        "event": event,
        "subject": subject,
        "detail": json.dumps(detail, sort_keys=True) if detail else "",
        "previous": last or START,
    }
    place.execute(sa.insert(audit).values(**fields, hash=event_hash(fields)))


def event_hash(fields: dict[str, Any]) -> str:
    """The hash of an event, which covers the hash before it."""
    names = ("at", "actor", "event", "subject", "detail", "previous")
    line = json.dumps([fields[name] for name in names], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(line.encode()).hexdigest()


def check_events(connection: sa.Connection) -> list[str]:
    """What is wrong with the audit log: events changed, removed or put in between."""
    head, first, forgotten, flaws = "", "", set[str](), list[str]()
    for row in connection.execute(sa.select(audit).order_by(audit.c.id)).mappings():
        fields = dict(row)
        if not first:
            head = first = fields["previous"]
        if fields["event"] == FORGOT:
            forgotten.add(json.loads(fields["detail"] or "{}").get("last", ""))
        if fields["previous"] != head:
            flaws.append(f"event {fields['id']} does not follow from the event before it")
        if event_hash(fields) != fields["hash"]:
            flaws.append(f"event {fields['id']} was changed: its hash is not that of its fields")
        head = fields["hash"]
    if first not in ("", START) and first not in forgotten:
        flaws.append("events were removed at the beginning")
    return flaws
