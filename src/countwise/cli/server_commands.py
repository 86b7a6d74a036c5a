"""countwise serve and backup: the verification server, and a checked copy of its database."""

from pathlib import Path
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json
from countwise.front_door import server_functions
from countwise.front_door.server_functions import Prepared

EXAMPLES = {
    "serve": "Example: countwise serve --state countwise-state --port 8430",
    "backup": "Example: countwise backup --state countwise-state --out backup-2026-11-16",
}
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="Configuration, TOML; docs/server.md has its words.")
]
State = Annotated[Path | None, typer.Option(help="Folder of the server's own files.")]
Database = Annotated[
    str | None,
    typer.Option(help="sqlite:///file or postgresql://…; else a file in --state."),
]


def serve(
    config_file: ConfigFile = None,
    state: State = None,
    database: Database = None,
    host: Annotated[str | None, typer.Option(help="Address to listen at.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen at; 0 takes a free one.")] = None,
    only: Annotated[
        str, typer.Option(help="all, or one part: prepare, web, worker, rotate.")
    ] = "all",
    json: options.Json = False,
) -> None:
    """Answer claims about confidential data over HTTP, within budgets. Stops on SIGTERM."""

    def ready(server: Prepared) -> None:
        if json:
            steward = {"steward": server.steward, "password": server.password}
            print_json({"port": server.port} | steward)
            return
        if server.password is not None:
            out.print(f"First steward: {server.steward}", markup=False)
            out.print(f"Password, shown this once: {server.password}", markup=False, soft_wrap=True)
        if only == "all":
            where = f"http://{server.host}:{server.port}"
            out.print(f"Serving at {where}", markup=False, soft_wrap=True)

    key = server_functions.serve(
        config=config_file,
        state=state,
        database=database,
        host=host,
        port=port,
        only=only,
        ready=ready,
    )
    if key is not None:
        out.print(f"Signing key from now on: {key}", soft_wrap=True)


def backup(
    folder: Annotated[Path, typer.Option("--out", help="Folder to write; must not exist.")],
    config_file: ConfigFile = None,
    state: State = None,
    database: Database = None,
    json: options.Json = False,
) -> None:
    """Copy the database while the server runs, and check the ledger of the copy."""
    found = server_functions.backup(folder, config=config_file, state=state, database=database)
    if json:
        print_json({"folder": str(folder), "file": found.file, "entries": found.entries})
        return
    out.print(f"Copied to {folder / found.file}.", markup=False, soft_wrap=True)
    if found.entries is not None:
        out.print(f"Its ledger is whole: {found.entries:,} entries.", markup=False)
