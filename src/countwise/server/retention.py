"""What is deleted when: old events of the audit log, and old jobs with their answers.

The ledger is never touched: what was charged stays known. Of the audit log the chain goes on, and
an event says up to which hash the older ones are gone.
"""

import sqlalchemy as sa

from countwise.ledger.storage import writing
from countwise.server.config import Config
from countwise.server.events import FORGOT, note
from countwise.server.http import DEVICE_DAYS
from countwise.server.jobs import BROKEN, BURNT, RELEASED, RETURNED
from countwise.server.tables import answers, audit, devices, jobs, rates

DAY = 86_400.0  # seconds
OVER = (RELEASED, BURNT, RETURNED, BROKEN)


def delete_old(engine: sa.Engine, config: Config, now: float) -> None:
    """Delete what the settings say is too old; 0 days are for ever."""
    with writing(engine) as connection:
        connection.execute(sa.delete(devices).where(devices.c.created < now - DEVICE_DAYS * DAY))
        connection.execute(sa.delete(rates).where(rates.c.minute < now // 60 - 2))
        if config.keep_jobs_days:
            _jobs(connection, now - config.keep_jobs_days * DAY)
        if config.keep_audit_days:
            _events(connection, now - config.keep_audit_days * DAY)


def _jobs(connection: sa.Connection, before: float) -> None:
    """Jobs that are over, and answers that nobody's job is about any more."""
    over = sa.select(answers.c.id).where(answers.c.state.in_(OVER), answers.c.created < before)
    connection.execute(sa.delete(jobs).where(jobs.c.created < before, jobs.c.answer.in_(over)))
    asked = sa.select(jobs.c.answer)
    connection.execute(
        sa.delete(answers).where(
            answers.c.id.in_(over.scalar_subquery()), answers.c.id.not_in(asked)
        )
    )


def _events(connection: sa.Connection, before: float) -> None:
    """Events, but for the newest, which a head outside the database may be of."""
    newest = sa.select(sa.func.max(audit.c.id)).scalar_subquery()
    last = connection.execute(
        sa.select(audit.c.id, audit.c.hash)
        .where(audit.c.at < before, audit.c.id < newest)
        .order_by(audit.c.id.desc())
        .limit(1)
    ).first()
    if last is not None:
        connection.execute(sa.delete(audit).where(audit.c.id <= last.id))
        note(connection, "server", FORGOT, last=last.hash)
