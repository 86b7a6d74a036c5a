"""A small statistics office for tests: a server's database with users, budgets and data."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa
import uvicorn

from countwise.examples.workers import workers
from countwise.ledger.chain import LedgerCheck, check
from countwise.ledger.ledger import Ledger
from countwise.ledger.storage import open_engine
from countwise.server import accounts, start, worker
from countwise.server.accounts import ALLOWED, Actor
from countwise.server.app import create_app
from countwise.server.bounded_connections import bounded
from countwise.server.config import Config, load_config
from countwise.server.jobs import release_due, take
from countwise.server.service import Service
from countwise.server.stewardship import Stewardship
from countwise.server.tables import answers
from countwise.verification.question import Question

MODEL, CLAIM = "hours ~ education_years + age + C(sex)", "education_years > 0.5"
SLOT = 5.0
PASSWORD = "a long password"
EPSILON = 1_000_000


def ask(**how: Any) -> Question:
    fields = {"dataset": "workers", "model": MODEL, "claim": CLAIM, "epsilon": "1"}
    return Question(**fields | how)


def body(**how: Any) -> dict[str, Any]:
    return {"dataset": "workers", "model": MODEL, "claim": CLAIM, "epsilon": "1"} | how


def actor(name: str, role: str = "analyst") -> Actor:
    return Actor(name=name, role=role, scopes=ALLOWED[role], csrf="c")


ANN, BOB, STEWARD = actor("ann"), actor("bob"), actor("steward", "steward")


@dataclass
class Office:
    """The parts of a server without its processes."""

    config: Config
    computer: worker.Computer

    def __post_init__(self) -> None:
        self.clock = float(int(time.time()))
        self.engine = open_engine(self.config.url, wait=self.config.wait_seconds)
        self.ledger = Ledger(self.engine, grain=self.config.slot_seconds)
        self.service = Service(self.config, self.engine)
        self.stewardship = Stewardship(self.config, self.engine)

    def work(self, slots: int = 1) -> None:
        """What a worker does in so many slots of a clock that need not be waited for."""
        seconds = self.config.slot_seconds
        for _ in range(slots):
            release_due(self.ledger, self.clock)
            work = take(self.ledger, "w", start=self.clock, slot_seconds=seconds, attempts=3)
            if work is not None:
                noisy = self.computer.compute(work, until=time.time() + 60)
                worker.finish(self.ledger, work, noisy)
            self.clock += seconds
        release_due(self.ledger, self.clock)

    def finding(self) -> LedgerCheck:
        with self.ledger.reading() as book:
            return check(book.all())

    def spent(self, scope: Any = "dataset", name: str = "workers") -> int:
        with self.ledger.reading() as book:
            return book.balance(scope, name).spent

    def states(self) -> list[str]:
        with self.engine.connect() as connection:
            return list(connection.scalars(sa.select(answers.c.state).order_by(answers.c.place)))

    def again(self) -> "Office":
        """The same office after a restart."""
        self.engine.dispose()
        return Office(self.config, self.computer)


def example_config(folder: Path, url: str, **settings: Any) -> Config:
    """A configuration with short slots, wide limits, and the example's rows in a folder."""
    config = load_config(None, environment={}, state=folder / "state", database=url)
    known = replace(config.datasets["workers"], data=workers())
    given = {"slot_seconds": SLOT, "queries_per_minute": 10**6, "sign_ins_per_minute": 10**5}
    return replace(config, **given | settings, datasets={"workers": known})


def open_office(config: Config, computer: worker.Computer, *, budget: int = 10) -> Office:
    """An office with analysts ann and bob; the data set's budget is for so many answers."""
    start.prepare(config)
    office = Office(config, computer)
    with office.ledger.writing() as book:
        for name in ("ann", "bob"):
            accounts.add_user(book.connection, name, "analyst", PASSWORD)
            book.set_cap("user", name, 1000 * EPSILON)
        book.set_cap("dataset", "workers", budget * EPSILON)
    for name in ("ann", "bob"):
        office.stewardship.allow(STEWARD, name, "workers")
    return office


def own_password(office: Office, name: str) -> None:
    """The password of the tests, as one that its user chose."""
    with office.ledger.writing() as book:
        accounts.set_password(book.connection, name, PASSWORD)


@contextmanager
def serving(office: Office) -> Iterator[str]:
    """The address of the office's web application, answered by a thread."""
    server = uvicorn.Server(
        uvicorn.Config(
            create_app(office.config),
            port=0,
            log_config=None,
            timeout_keep_alive=300,
            http=bounded(
                arrival_seconds=office.config.arrival_seconds,
                most_connections=office.config.connections,
            ),
        )
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def new_key(office: Office, name: str, *scopes: str) -> str:
    role = "steward" if name == "steward" else "analyst"
    wanted = scopes or tuple(sorted(ALLOWED[role]))
    return office.service.new_key(actor(name, role), "test", wanted).key


def client(address: str, key: str = "", **how: Any) -> httpx.Client:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.Client(base_url=address, headers=headers, timeout=60, **how)


def first_session(caller: httpx.Client, password: str) -> dict[str, Any]:
    """Sign in as the first steward, who has a first password to change, and again after that."""
    for old in (password, PASSWORD):
        given = {"name": "steward", "password": old}
        made: dict[str, Any] = caller.post("/api/v1/session", json=given).json()
        caller.headers["X-CSRF-Token"] = made["csrf"]
        if old == password:
            changed = caller.put("/api/v1/password", json={"old": old, "new": PASSWORD})
            assert changed.status_code == 204
    return made


def wait_for(what: Callable[[], Any], seconds: float = 150) -> Any:
    """The first true value of something that is asked again and again."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            found = what()
        except (OSError, ValueError, LookupError, httpx.HTTPError):
            found = None
        if found:
            return found
        time.sleep(0.3)
    raise AssertionError("waited in vain")


def killed_at(name: str, work: Callable[[], object]) -> bool:
    """Run something in a child that is killed at a failpoint; whether it got there."""
    child = os.fork()
    if child == 0:
        os.environ["COUNTWISE_FAILPOINT"] = name
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
