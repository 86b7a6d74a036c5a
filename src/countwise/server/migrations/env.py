"""Run by Alembic, on the connection that `countwise.server.database_versions` hands over."""

from alembic import context

import countwise.server.tables  # noqa: F401  (adds its tables to the metadata)
from countwise.ledger.ledger import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
