"""What watches the server: whether it can work, and figures for Prometheus.

Health is not only that the database can be read: a small change is written to it, at most once in
a few seconds whoever asks, which a full disk or a locked database refuses. No figure is a time that
depends on data.
"""

import shutil
import threading
import time
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import sqlalchemy as sa
from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from countwise.errors import CountwiseError, StorageError
from countwise.ledger.ledger import Book
from countwise.ledger.prices import MICRO, PICO
from countwise.ledger.storage import open_engine, reading, writing
from countwise.server.config import Config
from countwise.server.http import Caller, Services
from countwise.server.jobs import QUEUED
from countwise.server.request_bodies import REFUSALS
from countwise.server.responses import HealthView
from countwise.server.tables import answers, rates, workers

router = APIRouter(responses=REFUSALS)
KEPT_SECONDS, PATIENCE_SECONDS = 5.0, 2.0
LEAST_ROOM = 64 << 20
"""Bytes that must be free beside the server's own files."""


class Pulse:
    """Whether the database takes a change, looked at anew after a few seconds."""

    def __init__(self, engine: sa.Engine, config: Config) -> None:
        self.engine, self.config = engine, config
        self._looking, self._at, self._beats = threading.Lock(), 0.0, True

    def beats(self) -> bool:
        """Whether a change could be written within two seconds, at the last look."""
        with self._looking:
            if time.monotonic() > self._at + KEPT_SECONDS:
                self._beats, self._at = self._write(), time.monotonic()
            return self._beats

    def room(self) -> bool:
        """Whether the disk of the server's own files has room left."""
        try:
            return shutil.disk_usage(self.config.home).free >= LEAST_ROOM
        except OSError:
            return False

    def _write(self) -> bool:
        brief = open_engine(self.config.url, wait=PATIENCE_SECONDS, pool=1)
        values = {"key": "health", "minute": int(time.time() // 60), "hits": 0}
        try:
            with writing(brief) as connection:
                connection.execute(sa.delete(rates).where(rates.c.key == "health"))
                connection.execute(sa.insert(rates).values(**values))
        except (CountwiseError, sa.exc.SQLAlchemyError):
            return False
        finally:
            brief.dispose()
        return True


@router.get("/health", response_model=HealthView)
def health(request: Request, service: Services, response: Response) -> HealthView:
    """Whether the server can work: 200 if so, 503 if not."""
    pulse: Pulse = request.app.state.pulse
    try:
        with reading(service.engine) as connection:
            alive = _workers(connection, service.config)
    except StorageError:
        alive = None
    writable, room = alive is not None and pulse.beats(), pulse.room()
    well = bool(alive) and writable and room
    response.status_code = 200 if well else 503
    return HealthView(
        status="ok" if well else "degraded",
        database=alive is not None,
        writable=writable,
        room=room,
        workers=alive or 0,
    )


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(request: Request, service: Services, actor: Caller) -> PlainTextResponse:
    """Figures for Prometheus. No time that depends on data."""
    actor.need("metrics")
    state = request.app.state
    lines = [f'countwise_info{{version="{version("countwise")}"}} 1']
    lines.append("# TYPE countwise_requests_total counter")
    for (method, route, status), count in sorted(dict(state.requests).items()):
        labels = f'method="{method}",route="{route}",status="{status}"'
        lines.append(f"countwise_requests_total{{{labels}}} {count}")
    lines.append("# TYPE countwise_refusals_total counter")
    for code, count in sorted(dict(state.refusals).items()):
        lines.append(f'countwise_refusals_total{{code="{code}"}} {count}')
    with service.ledger.reading() as book:
        lines += _figures(book, service.config)
    return PlainTextResponse("\n".join(lines) + "\n")


def _figures(book: Book, config: Config) -> Iterator[str]:
    """The queue, the workers and the budgets, the same from whichever process is asked."""
    base = book.connection
    yield "# TYPE countwise_answers gauge"
    shown: dict[str, int] = {}
    by_state = sa.select(answers.c.state, sa.func.count()).group_by(answers.c.state)
    for state, count in base.execute(by_state):
        name = "running" if state == "computed" else state
        shown[name] = shown.get(name, 0) + count
    for name, count in sorted(shown.items()):
        yield f'countwise_answers{{state="{name}"}} {count}'
    oldest: Any = base.scalar(
        sa.select(sa.func.min(answers.c.created)).where(answers.c.state == QUEUED)
    )
    yield "# TYPE countwise_queue_age_seconds gauge"
    yield f"countwise_queue_age_seconds {max(0.0, time.time() - oldest) if oldest else 0:.0f}"
    yield "# TYPE countwise_workers gauge"
    yield f"countwise_workers {_workers(base, config)}"
    yield "# TYPE countwise_free_bytes gauge"
    yield f"countwise_free_bytes {shutil.disk_usage(config.home).free}"
    yield "# TYPE countwise_budget_left gauge"
    for dataset in sorted(config.datasets):
        balance = book.balance("dataset", dataset)
        if balance.unit != "rho":
            yield _left(dataset, "epsilon", balance.left / MICRO)
        if balance.unit != "epsilon":
            yield _left(dataset, "rho", balance.rho_left / PICO)


def _left(dataset: str, unit: str, amount: float) -> str:
    return f'countwise_budget_left{{dataset="{dataset}",unit="{unit}"}} {amount:.9g}'


def _workers(connection: sa.Connection, config: Config) -> int:
    """How many workers were seen of late."""
    since = time.time() - 3 * config.slot_seconds - 5
    query = sa.select(sa.func.count()).select_from(workers).where(workers.c.seen > since)
    return int(connection.scalar(query) or 0)
