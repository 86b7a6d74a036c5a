"""countwise serve: the verification server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json
from countwise.errors import InputError

if TYPE_CHECKING:
    from countwise.server.config import Config

EXAMPLE = "Example: countwise serve --state countwise-state --port 8430"
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
    needs_server()
    from countwise.server import start
    from countwise.server.config import load_config

    config = load_config(config_file, state=state, database=database, host=host, port=port)
    if only not in ("all", "prepare", "web", "worker", "rotate"):
        raise InputError(f"only is all, prepare, web, worker or rotate; got {only!r}.")
    if only == "rotate":
        out.print(f"Signing key from now on: {start.rotate_key(config)}", soft_wrap=True)
        return
    if only == "web":
        start.run_web(config)
        return
    if only == "worker":
        start.run_worker(config)
        return
    flags = {"config": config_file, "state": state, "database": database, "host": host}
    flags |= {"port": None if port is None else str(port)}
    given = [(f"--{name}", str(value)) for name, value in flags.items() if value is not None]
    if only == "prepare":
        _prepare(config, config.port, json)
        return
    with start.listen(config) as listening:
        at = listening.getsockname()[1]
        _prepare(config, at, json)
        if not json:
            out.print(f"Serving at http://{config.host}:{at}", markup=False, soft_wrap=True)
        start.run_all(config, listening, [word for pair in given for word in pair])


def _prepare(config: "Config", port: int, json: bool) -> None:
    """Make what is missing; the first steward's password is shown this once."""
    from countwise.server import start

    password = start.prepare(config)
    start.place_example(config)
    if json:
        print_json({"port": port, "steward": start.STEWARD, "password": password})
    elif password is not None:
        out.print(f"First steward: {start.STEWARD}", markup=False)
        out.print(f"Password, shown this once: {password}", markup=False, soft_wrap=True)


def needs_server() -> None:
    """Refuse where the parts the server is made of are not installed."""
    try:
        import alembic  # noqa: F401
        import argon2  # noqa: F401
        import fastapi  # noqa: F401
        import sqlalchemy  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as problem:
        raise InputError(
            f"{problem.name} is not installed, which the server needs. To fix: "
            "pip install 'countwise[server]'"
        ) from None
