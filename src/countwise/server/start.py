"""Starting: make what is missing, refuse what is broken, run the processes and look after them."""

import os
import secrets
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import uvicorn

from countwise.errors import ConfigError
from countwise.examples.workers import workers as example_file
from countwise.ledger.ledger import Ledger
from countwise.ledger.prices import MICRO
from countwise.ledger.storage import open_engine, reading
from countwise.server import accounts, sandbox, worker
from countwise.server.bounded_connections import bounded
from countwise.server.calculator import Calculator
from countwise.server.config import EXAMPLE, Config
from countwise.server.database_versions import is_current, upgrade
from countwise.server.events import note
from countwise.server.heads import refuse_behind
from countwise.server.logs import log, only_json
from countwise.server.scribe import Scribe
from countwise.server.signing_keys import make_keys, read_keys, rotate
from countwise.server.tables import access, users

STEWARD = "steward"
SOCKET = "COUNTWISE_SOCKET"
EXAMPLE_BUDGET, STEWARD_BUDGET = 20 * MICRO, 10 * MICRO
"""Twenty and ten questions at ε = 1, of made-up rows."""


def prepare(config: Config) -> str | None:
    """Folders, tables, signing key, example and first steward; its password if just made."""
    config.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    make_keys(config.signing_key)
    _make_database_file(config)
    engine = open_engine(config.url, wait=config.wait_seconds)
    try:
        upgrade(engine)
        with reading(engine) as connection:
            if connection.scalar(sa.select(sa.func.count()).select_from(users)):
                return None
        return _first_steward(config, engine)
    finally:
        engine.dispose()


def _make_database_file(config: Config) -> None:
    """A SQLite file that its owner alone can open, or its folder's group if that may write there.

    SQLite gives the files it puts beside it the same rights.
    """
    url = sa.make_url(config.url)
    if url.get_backend_name() != "sqlite" or not url.database:
        return
    file = Path(url.database)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    shared = file.parent.stat().st_mode & stat.S_IWGRP
    os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    if file.stat().st_uid == os.geteuid():
        file.chmod(0o660 if shared else 0o600)


def rotate_key(config: Config) -> str:
    """Another signing key, and its public half; web processes take it at their next start."""
    found = rotate(config.signing_key).periods[-1].key
    engine = open_engine(config.url, wait=config.wait_seconds)
    try:
        note(engine, "operator", "rotated signing key", found)
    finally:
        engine.dispose()
    return found


def _first_steward(config: Config, engine: sa.Engine) -> str:
    password = secrets.token_urlsafe(16)
    with Ledger(engine).writing() as book:
        accounts.add_user(book.connection, STEWARD, "steward", password, first=True)
        note(book.connection, STEWARD, "added user", STEWARD, role="steward")
        if EXAMPLE in config.datasets and config.example:
            book.set_cap("dataset", EXAMPLE, EXAMPLE_BUDGET, note="at first start")
            book.set_cap("user", STEWARD, STEWARD_BUDGET, note="at first start")
            book.connection.execute(sa.insert(access).values(user=STEWARD, dataset=EXAMPLE))
    return password


def place_example(config: Config) -> None:
    """The example's rows, where only their owner reads them."""
    known = config.datasets.get(EXAMPLE)
    if known is None or not config.example or known.schema_file != example_file("workers.toml"):
        return
    known.data.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not known.data.exists():
        handle = os.open(known.data, os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(example_file().read_bytes())


def check_ready(config: Config) -> None:
    """Refuse to start on a database of another version."""
    engine = open_engine(config.url, wait=config.wait_seconds)
    try:
        if not is_current(engine):
            raise ConfigError(
                "the database's tables are of another version, or not there yet. To fix, run "
                "countwise serve --only prepare as the user of the web part, which brings them up "
                "to date."
            )
    finally:
        engine.dispose()


def check_evidence(config: Config) -> None:
    """Refuse to start on a database behind what was signed, or one that was changed."""
    keys = read_keys(config.signing_key)
    engine = open_engine(config.url, wait=config.wait_seconds)
    try:
        with Ledger(engine).reading() as book:
            refuse_behind(config.heads_file, book, keys.public)
    finally:
        engine.dispose()


def run_web(config: Config) -> None:
    """Answer HTTP, in a process that shut itself off from confidential files."""
    from countwise.server.app import create_app
    from countwise.server.precompilation import warm_up

    check_ready(config)
    check_evidence(config)
    given = os.environ.get(SOCKET)
    if given:
        sandbox.die_with_parent()
    listening = socket.socket(fileno=int(given)) if given else listen(config)
    shut, calculator = False, Calculator(_public(config) if config.isolation else ())
    calculator.start()
    only_json()
    if config.isolation:
        warm_up()
        shut = sandbox.only_files(read=_public(config), write=_own(config))
    seen = [dataset.name for dataset in config.datasets.values() if sandbox.can_read(dataset.data)]
    if seen and config.isolation:
        raise ConfigError(
            f"the web process can read the confidential rows of {', '.join(seen)}. To fix, keep "
            "them away from the state folder and the software, on a system with Landlock; or run "
            "--only web as a user who may not read them; or set isolation = false."
        )
    calculator.wait()
    app = create_app(config, calculator=calculator)
    log("web ready", port=listening.getsockname()[1], files_shut=int(shut))
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http=bounded(
                arrival_seconds=config.arrival_seconds, most_connections=config.connections
            ),
            ws="none",
            log_config=None,
            **forwarding(config),
            access_log=False,
            server_header=False,
            date_header=True,
            timeout_graceful_shutdown=5,
            timeout_keep_alive=30,
        )
    )
    scribe = Scribe(config, app.state.service)
    scribe.start()
    try:
        server.run(sockets=[listening])
    finally:
        scribe.stop()
        calculator.stop()


def forwarding(config: Config) -> dict[str, Any]:
    """Whose word is taken for where a call comes from: that of the proxies named, or nobody's."""
    trusted = config.trusted_proxies
    return {"proxy_headers": bool(trusted), "forwarded_allow_ips": trusted or None}


def _public(config: Config) -> list[Path]:
    return [path for d in config.datasets.values() for path in (d.schema_file, d.synthetic)]


def _own(config: Config) -> list[Path]:
    """Where the web process may write: its folder, and that of a SQLite database."""
    own = [config.home, config.heads_file.absolute().parent]
    url = sa.make_url(config.url)
    if url.get_backend_name() == "sqlite" and url.database:
        own.append(Path(url.database).absolute().parent)
    return own


def run_worker(config: Config) -> None:
    """Compute answers."""
    check_ready(config)
    only_json()
    sandbox.die_with_parent()
    worker.run(config)


def listen(config: Config) -> socket.socket:
    """A socket at the configured address, or a refusal; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        return socket.create_server((config.host, config.port), family=family, backlog=1024)
    except OSError as problem:
        raise ConfigError(
            f"can not listen at {config.host}, port {config.port}: {problem.strerror}. To fix, "
            "choose another --host or --port (0 takes a free port)."
        ) from None


def run_all(config: Config, listening: socket.socket, arguments: list[str]) -> None:
    """Web processes and workers, started anew when they end, until told to stop."""
    commands = ["web"] * config.web_processes + ["worker"] * config.workers
    running: dict[int, tuple[subprocess.Popen[bytes], float]] = {}
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)

    def launch(place: int) -> None:
        command = [sys.executable, "-P", "-m", "countwise", "serve", *arguments]
        web = commands[place] == "web"
        process = subprocess.Popen(
            [*command, "--only", commands[place]],
            pass_fds=[listening.fileno()] if web else [],
            env=os.environ | ({SOCKET: str(listening.fileno())} if web else {}),
        )
        running[place] = process, time.monotonic()

    log("serving", host=config.host, port=listening.getsockname()[1])
    for place in range(len(commands)):
        launch(place)
    refused = None
    while not stopping and refused is None:
        time.sleep(0.2)
        for place, (process, since) in list(running.items()):
            code = process.poll()
            if code == ConfigError.exit_code:
                refused = commands[place]
            elif code is not None and time.monotonic() > since + 2:
                log("ended", level="error", kind=commands[place], code=code)
                launch(place)
    for process, _ in running.values():
        process.terminate()
    deadline = time.monotonic() + config.slot_seconds + 10
    for process, _ in running.values():
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if refused is not None:
        raise ConfigError(f"the {refused} process refused to start; it said why above.")
