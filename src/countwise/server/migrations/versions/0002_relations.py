"""The ledger counts ρ beside ε, and keeps between which neighbours a loss is counted."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Columns that entries made before have empty; their hashes do not cover them."""
    op.add_column(
        "ledger_entries",
        sa.Column("rho", sa.BigInteger(), nullable=False, server_default="0"),
    )
    op.add_column(
        "ledger_entries", sa.Column("terms", sa.Text(), nullable=False, server_default="")
    )
