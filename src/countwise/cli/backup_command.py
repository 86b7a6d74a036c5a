"""countwise backup: a copy of the server's database, checked."""

from pathlib import Path
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json
from countwise.cli.serve_command import ConfigFile, Database, State, needs_server
from countwise.release.folder import whole

EXAMPLE = "Example: countwise backup --state countwise-state --out backup-2026-11-16"


def backup(
    folder: Annotated[Path, typer.Option("--out", help="Folder to write; must not exist.")],
    config_file: ConfigFile = None,
    state: State = None,
    database: Database = None,
    json: options.Json = False,
) -> None:
    """Copy the database while the server runs, and check the ledger of the copy."""
    needs_server()
    from countwise.server.backup import back_up
    from countwise.server.config import load_config

    config = load_config(config_file, state=state, database=database)
    with whole(folder, overwrite=False) as partial:
        partial.mkdir(mode=0o700)
        found = back_up(config, partial)
    if json:
        print_json({"folder": str(folder), "file": found.file, "entries": found.entries})
        return
    out.print(f"Copied to {folder / found.file}.", markup=False, soft_wrap=True)
    if found.entries is not None:
        out.print(f"Its ledger is whole: {found.entries:,} entries.", markup=False)
