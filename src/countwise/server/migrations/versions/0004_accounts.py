"""First passwords to be changed, known browsers, users of an identity provider, proposals."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """New tables and columns; sessions there are count as begun long ago."""
    op.add_column(
        "users",
        sa.Column("new_password", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.add_column("users", sa.Column("subject", sa.String(length=300), nullable=True))
    op.create_index("users_by_subject", "users", ["subject"], unique=True)
    op.add_column("sessions", sa.Column("since", sa.Float(), nullable=False, server_default="0"))
    op.create_table(
        "devices",
        sa.Column("token", sa.String(length=64), nullable=False),
        sa.Column("user", sa.String(length=64), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["user"], ["users.name"]),
        sa.PrimaryKeyConstraint("token"),
    )
    op.create_index(op.f("ix_devices_user"), "devices", ["user"], unique=False)
    op.create_table(
        "proposals",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("scope", sa.String(length=10), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("micro", sa.BigInteger(), nullable=False),
        sa.Column("by", sa.String(length=64), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("decided_by", sa.String(length=64), nullable=False, server_default=""),
        sa.PrimaryKeyConstraint("id"),
    )
