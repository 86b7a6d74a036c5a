"""The verification server from Python: serve it, and back its database up."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from countwise.choices import one_of
from countwise.errors import InputError
from countwise.release.folder import whole

if TYPE_CHECKING:
    from countwise.server.backup import Backup
    from countwise.server.config import Config

PARTS = ("all", "prepare", "web", "worker", "rotate")


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A server that is ready: its address, and the first steward's password, told this once."""

    host: str
    port: int
    steward: str
    password: str | None


def _unsaid(_: Prepared) -> None:
    """Nobody is told, and a first password is lost."""


def serve(
    *,
    config: str | Path | None = None,
    state: str | Path | None = None,
    database: str | None = None,
    host: str | None = None,
    port: int | None = None,
    only: str = "all",
    ready: Callable[[Prepared], None] = _unsaid,
) -> str | None:
    """Answer claims about confidential data over HTTP, within budgets, until SIGTERM.

    `ready` is told of the server when it listens, or when all is prepared. With `only="rotate"`
    receipts are signed with a new key from now on, which is returned.
    """
    needs_server()
    from countwise.server import start
    from countwise.server.config import load_config

    one_of(only, PARTS, what="only")
    paths = _path(config), _path(state)
    loaded = load_config(paths[0], state=paths[1], database=database, host=host, port=port)
    if only == "rotate":
        return start.rotate_key(loaded)
    if only == "web":
        start.run_web(loaded)
    elif only == "worker":
        start.run_worker(loaded)
    elif only == "prepare":
        ready(_prepared(loaded, loaded.port))
    else:
        _serve_all(
            loaded, ready, config=config, state=state, database=database, host=host, port=port
        )
    return None


def _serve_all(config_: "Config", ready: Callable[[Prepared], None], **flags: object) -> None:
    """Listen, and run every part; the parts get the same flags."""
    from countwise.server import start

    given = [(f"--{name}", str(value)) for name, value in flags.items() if value is not None]
    with start.listen(config_) as listening:
        ready(_prepared(config_, listening.getsockname()[1]))
        start.run_all(config_, listening, [word for pair in given for word in pair])


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)


def _prepared(config: "Config", port: int) -> Prepared:
    """Make what is missing; the first steward's password is shown this once."""
    from countwise.server import start

    password = start.prepare(config)
    start.place_example(config)
    return Prepared(host=config.host, port=port, steward=start.STEWARD, password=password)


def backup(
    out: str | Path,
    *,
    config: str | Path | None = None,
    state: str | Path | None = None,
    database: str | None = None,
) -> "Backup":
    """Copy the database into a new folder while the server runs, and check the copy's ledger."""
    needs_server()
    from countwise.server.backup import back_up
    from countwise.server.config import load_config

    loaded = load_config(_path(config), state=_path(state), database=database)
    with whole(Path(out), overwrite=False) as partial:
        partial.mkdir(mode=0o700)
        return back_up(loaded, partial)


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
