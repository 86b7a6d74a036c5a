"""The database's tables in the version this software needs, by Alembic's migrations."""

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config as AlembicConfig
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from countwise.errors import ConfigError
from countwise.ledger.storage import reading, writing

MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(engine: sa.Engine) -> None:
    """Bring the tables up to date, in one transaction with no other writer beside."""
    if is_current(engine):
        return
    how = settings()
    with writing(engine) as connection:
        how.attributes["connection"] = connection
        command.upgrade(how, "head")


def is_current(engine: sa.Engine) -> bool:
    """Whether nothing is to be done; a database of a later version is refused."""
    script = ScriptDirectory.from_config(settings())
    with reading(engine) as connection:
        found = MigrationContext.configure(connection).get_current_revision()
    if found is not None and found not in {step.revision for step in script.walk_revisions()}:
        raise ConfigError(
            f"the database is of version {found}, which this version of countwise does not know. "
            "To fix, run the version that made it, or a later one."
        )
    return found == script.get_current_head()


def settings() -> AlembicConfig:
    """Where Alembic finds the migrations."""
    found = AlembicConfig()
    found.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    found.set_main_option("path_separator", "os")
    return found
