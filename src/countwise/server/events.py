"""The audit log: who did what to what. It holds names and ids, never a value of data."""

import json
import time

import sqlalchemy as sa

from countwise.ledger.storage import writing
from countwise.server.tables import audit


def note(
    place: sa.Engine | sa.Connection, actor: str, event: str, subject: str = "", **detail: object
) -> None:
    """Write an event, within a transaction where a connection is given."""
    if isinstance(place, sa.Engine):
        with writing(place) as connection:
            note(connection, actor, event, subject, **detail)
        return
    place.execute(
        sa.insert(audit).values(
            at=time.time(),
            actor=actor,
            event=event,
            subject=subject,
            detail=json.dumps(detail, sort_keys=True) if detail else "",
        )
    )
