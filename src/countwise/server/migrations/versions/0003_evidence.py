"""What was released is tied to the ledger, receipts are kept, the audit log is a chain."""

import hashlib
import json

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
START = hashlib.sha256(b"countwise audit log 1").hexdigest()


def upgrade() -> None:
    """New columns; the events there are get their hashes, in their order."""
    op.add_column("answers", sa.Column("salt", sa.String(length=32), nullable=True))
    op.add_column("answers", sa.Column("released_hash", sa.String(length=64), nullable=True))
    op.create_index("answers_by_slot", "answers", ["slot"], unique=False)
    op.add_column("jobs", sa.Column("receipt", sa.Text(), nullable=True))
    for name in ("previous", "hash"):
        column = sa.Column(name, sa.String(length=64), nullable=False, server_default="")
        op.add_column("audit", column)
    connection = op.get_bind()
    audit = sa.Table("audit", sa.MetaData(), autoload_with=connection)
    head = START
    for row in connection.execute(sa.select(audit).order_by(audit.c.id)).all():
        fields = [row.at, row.actor, row.event, row.subject, row.detail, head]
        line = json.dumps(fields, ensure_ascii=True, separators=(",", ":"))
        previous, head = head, hashlib.sha256(line.encode()).hexdigest()
        connection.execute(
            sa.update(audit).where(audit.c.id == row.id).values(previous=previous, hash=head)
        )
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(
            "CREATE TRIGGER ledger_no_replace BEFORE INSERT ON ledger_entries WHEN EXISTS "
            "(SELECT 1 FROM ledger_entries WHERE seq = NEW.seq) "
            "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        )
