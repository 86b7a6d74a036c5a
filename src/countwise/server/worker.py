"""A worker: takes one piece of work a slot, has it computed by a shut-in process, stores it.

It talks to the database and never opens the data; the process it starts does the opposite.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from typing import Any
from uuid import uuid4

from countwise.errors import ConfigError, CountwiseError, StorageError
from countwise.ledger.ledger import Ledger
from countwise.ledger.storage import open_engine
from countwise.server import jobs
from countwise.server.compute import RECORD
from countwise.server.config import Config
from countwise.server.failpoints import failpoint
from countwise.server.logs import log

PASSED_ON = ("PATH", "PYTHONPATH", "HOME", "LANG", "LD_LIBRARY_PATH", "NUMBA_CACHE_DIR", "TMPDIR")


class Computer:
    """The shut-in process, started anew if it goes."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> dict[str, Any]:
        """Start it and hear what could not be enforced; refuse if anything could not."""
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "countwise.server.compute"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={name: os.environ[name] for name in PASSED_ON if name in os.environ},
        )
        datasets = self.config.datasets.values()
        self._send([str(path.absolute()) for d in datasets for path in (d.data, d.schema_file)])
        found = self._hear(until=time.monotonic() + 300)
        if found is None:
            raise CountwiseError("the computing process did not start.")
        if found["missing"]:
            raise ConfigError(
                f"{found['missing']} of the files that data sets name can not be read by workers."
            )
        if self.config.isolation and (found["network"] or found["files"]):
            open_ = " and ".join(name for name in ("network", "files") if found[name])
            raise ConfigError(
                f"the system does not let a worker shut itself off from {open_}. To fix, allow "
                "namespaces and Landlock, or set isolation = false and isolate it otherwise."
            )
        return found

    def ensure(self) -> None:
        """Start it if it is gone."""
        if self.process is None or self.process.poll() is not None:
            self.start()

    def compute(self, work: jobs.Assignment, *, until: float) -> list[float] | None:
        """The noisy counts, or None if they could not be computed in time and memory."""
        self.ensure()
        known = self.config.datasets.get(work.dataset)
        seconds = until - time.time()
        if known is None or seconds <= 0:
            return None
        self._send(
            {
                "data": str(known.data.absolute()),
                "schema": str(known.schema_file.absolute()),
                "table": known.table,
                "question": work.question.to_dict(),
                "seconds": seconds,
                "memory_mb": self.config.memory_mb,
                "cpu_seconds": self.config.cpu_seconds,
            }
        )
        found = self._hear(until=time.monotonic() + seconds + 1)
        if found is None:
            self.stop()
            return None
        return found.get("noisy")

    def stop(self) -> None:
        """End it."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def _send(self, message: Any) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it is gone, which hearing nothing will show

    def _hear(self, *, until: float) -> dict[str, Any] | None:
        assert self.process is not None
        assert self.process.stdout is not None
        pipe, said = self.process.stdout.fileno(), b""
        while len(said) < RECORD:
            ready, _, _ = select.select([pipe], [], [], max(0.0, until - time.monotonic()))
            part = os.read(pipe, RECORD - len(said)) if ready else b""
            if not part:
                return None
            said += part
        found: dict[str, Any] = json.loads(said)
        return found


def run(config: Config) -> None:
    """Work until told to stop."""
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    name = f"{socket.gethostname()[:20]}-{os.getpid()}-{uuid4().hex[:8]}"
    engine = open_engine(config.url, wait=config.wait_seconds)
    ledger, computer = Ledger(engine, grain=config.slot_seconds), Computer(config)
    computer.start()
    log("worker ready", worker=name, isolation=int(config.isolation))
    end = None
    try:
        while not stopping:
            computer.ensure()  # before anything is taken, because it takes its time
            start = following(end, CLOCK.now(), config.slot_seconds)
            CLOCK.sleep_until(start)
            end = None
            try:
                end = one_slot(config, ledger, computer, name, start)
            except StorageError as problem:
                log("storage", level="error", worker=name, problem=str(problem))
            except ConfigError:
                raise
            except CountwiseError as problem:  # of one piece of work; the next is another
                log("refused", level="error", worker=name, kind=type(problem).__name__)
    finally:
        computer.stop()
        engine.dispose()


class Clock:
    """The time, and waiting for it."""

    def now(self) -> float:
        """Seconds of the epoch."""
        return time.time()

    def sleep_until(self, moment: float) -> None:
        """Wait; a signal to stop does not cut it short."""
        while (left := moment - self.now()) > 0:
            time.sleep(left)


CLOCK = Clock()


def one_slot(
    config: Config,
    ledger: Ledger,
    computer: Computer,
    name: str,
    start: float,
    clock: Clock = CLOCK,
) -> float | None:
    """What happens in a slot, which ends at a time that was fixed when it began; that time."""
    jobs.release_due(ledger, start + 0.01)  # as floats go
    work = jobs.take(
        ledger, name, start=start, slot_seconds=config.slot_seconds, attempts=config.attempts
    )
    if work is None:
        return None
    log("taken", worker=name, answer=work.answer)
    noisy = computer.compute(work, until=work.slot - min(0.5, config.slot_seconds / 10))
    clock.sleep_until(work.slot)
    if not finish(ledger, work, noisy):
        log("not computed", level="error", worker=name, answer=work.answer)
    return work.slot


def finish(ledger: Ledger, work: jobs.Assignment, noisy: list[float] | None) -> bool:
    """At the slot's end, let the noisy counts be seen, or say that there are none."""
    if noisy is None:
        jobs.give_up(ledger, work)
        return False
    failpoint("compute.done")
    jobs.publish(ledger, work, noisy)
    return True


def following(end: float | None, now: float, seconds: float) -> float:
    """The start of the next slot: the one that begins where the last ended, if it just has."""
    if end is not None and now < end + seconds / 10:
        return end
    return (now // seconds + 1) * seconds
