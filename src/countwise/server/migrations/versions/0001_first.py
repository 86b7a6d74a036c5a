"""The first tables: ledger, accounts, answers, jobs, audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
TRIGGERS = {
    "sqlite": [
        "CREATE TRIGGER ledger_no_update BEFORE UPDATE ON ledger_entries "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
        "CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger_entries "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    ],
    "postgresql": [
        "CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$",
        "CREATE TRIGGER ledger_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entries "
        "FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()",
    ],
}


def upgrade() -> None:
    """Make all tables; the ledger's can only be added to."""
    op.create_table(
        "answers",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("dataset", sa.String(length=64), nullable=False),
        sa.Column("version", sa.String(length=200), nullable=False),
        sa.Column("query", sa.String(length=64), nullable=True),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("place", sa.BigInteger(), nullable=False),
        sa.Column("entry_hash", sa.String(length=64), nullable=False),
        sa.Column("claim", sa.String(length=32), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("slot", sa.Float(), nullable=True),
        sa.Column("noisy", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("dataset", "query", name="one_standing_answer"),
    )
    op.create_index("answers_by_state", "answers", ["state", "place"], unique=False)
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("actor", sa.String(length=64), nullable=False),
        sa.Column("event", sa.String(length=40), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_audit_at"), "audit", ["at"], unique=False)
    op.create_table(
        "ledger_entries",
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.String(length=40), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("charge", sa.String(length=64), nullable=False),
        sa.Column("user", sa.String(length=200), nullable=False),
        sa.Column("dataset", sa.String(length=200), nullable=False),
        sa.Column("project", sa.String(length=200), nullable=False),
        sa.Column("micro", sa.BigInteger(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("previous", sa.String(length=64), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index("ledger_by_charge", "ledger_entries", ["charge", "kind"], unique=False)
    op.create_index("ledger_by_dataset", "ledger_entries", ["dataset", "kind"], unique=False)
    op.create_index("ledger_by_project", "ledger_entries", ["project", "kind"], unique=False)
    op.create_index("ledger_by_user", "ledger_entries", ["user", "kind"], unique=False)
    op.create_table(
        "rates",
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("minute", sa.BigInteger(), nullable=False),
        sa.Column("hits", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "users",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=10), nullable=False),
        sa.Column("password", sa.String(length=200), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("seen", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "access",
        sa.Column("user", sa.String(length=64), nullable=False),
        sa.Column("dataset", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["user"],
            ["users.name"],
        ),
        sa.PrimaryKeyConstraint("user", "dataset"),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("user", sa.String(length=64), nullable=False),
        sa.Column("label", sa.String(length=200), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("scopes", sa.String(length=200), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("expires", sa.Float(), nullable=True),
        sa.Column("revoked", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(
            ["user"],
            ["users.name"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_api_keys_user"), "api_keys", ["user"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("user", sa.String(length=64), nullable=False),
        sa.Column("answer", sa.String(length=32), nullable=False),
        sa.Column("asked", sa.Text(), nullable=False),
        sa.Column("reading", sa.Text(), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("micro", sa.BigInteger(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("cancelled", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["answer"],
            ["answers.id"],
        ),
        sa.ForeignKeyConstraint(
            ["user"],
            ["users.name"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("user", "key", name="one_job_a_key"),
    )
    op.create_index(op.f("ix_jobs_answer"), "jobs", ["answer"], unique=False)
    op.create_index("jobs_by_user", "jobs", ["user", "created"], unique=False)
    op.create_table(
        "members",
        sa.Column("user", sa.String(length=64), nullable=False),
        sa.Column("project", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["user"],
            ["users.name"],
        ),
        sa.PrimaryKeyConstraint("user", "project"),
    )
    op.create_table(
        "sessions",
        sa.Column("token", sa.String(length=64), nullable=False),
        sa.Column("user", sa.String(length=64), nullable=False),
        sa.Column("csrf", sa.String(length=64), nullable=False),
        sa.Column("seen", sa.Float(), nullable=False),
        sa.Column("expires", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user"],
            ["users.name"],
        ),
        sa.PrimaryKeyConstraint("token"),
    )
    op.create_index(op.f("ix_sessions_user"), "sessions", ["user"], unique=False)
    for statement in TRIGGERS[op.get_bind().dialect.name]:
        op.execute(statement)
