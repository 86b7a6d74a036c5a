"""What happened, for a steward to read: the audit log and the entries of the ledger."""

import csv
import io
from dataclasses import asdict, fields
from typing import Any

import sqlalchemy as sa

from countwise.ledger.ledger import Entry
from countwise.ledger.ledger import entries as entry_table
from countwise.ledger.storage import reading
from countwise.server.accounts import Actor
from countwise.server.events import note
from countwise.server.responses import EntryView, EventView, entry_view
from countwise.server.tables import audit

MOST_ROWS = 10_000  # in one answer; the rest by its last entry


class Histories:
    """The audit log and the ledger; every method refuses whoever may not look."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine

    def events(
        self,
        actor: Actor,
        *,
        by: str = "",
        event: str = "",
        subject: str = "",
        since: float | None = None,
        until: float | None = None,
        limit: int = 200,
    ) -> list[EventView]:
        """The audit log, the newest first, of one person, kind, subject or time."""
        actor.need("audit")
        query = sa.select(*(audit.c[each.name] for each in fields(EventView)))
        for column, value in (("actor", by), ("event", event), ("subject", subject)):
            if value:
                query = query.where(audit.c[column] == value)
        if since is not None:
            query = query.where(audit.c.at >= since)
        if until is not None:
            query = query.where(audit.c.at < until)
        query = query.order_by(audit.c.id.desc()).limit(max(1, min(limit, MOST_ROWS)))
        with reading(self.engine) as connection:
            return [EventView(**row) for row in connection.execute(query).mappings()]

    def export(self, actor: Actor, **which: Any) -> str:
        """The same as CSV text; a cell that a spreadsheet would run is quoted away."""
        rows = self.events(actor, **which | {"limit": MOST_ROWS})
        note(self.engine, actor.name, "exported audit log")
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow([field.name for field in fields(EventView)])
        for row in rows:
            writer.writerow(map(_cell, asdict(row).values()))
        return out.getvalue()

    def entries(
        self,
        actor: Actor,
        *,
        user: str = "",
        dataset: str = "",
        project: str = "",
        kind: str = "",
        after: int = 0,
        limit: int = 200,
    ) -> list[EntryView]:
        """Entries of the ledger in their order, of one account or kind."""
        actor.need("audit")
        query = sa.select(entry_table).where(entry_table.c.seq > after)
        for name, value in (("user", user), ("dataset", dataset), ("project", project)):
            if value:
                query = query.where(entry_table.c[name] == value)
        if kind:
            query = query.where(entry_table.c.kind == kind)
        query = query.order_by(entry_table.c.seq).limit(max(1, min(limit, MOST_ROWS)))
        with reading(self.engine) as connection:
            rows = connection.execute(query).mappings()
            return [entry_view(Entry(**row)) for row in rows]


def _cell(value: object) -> object:
    text = str(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else value
