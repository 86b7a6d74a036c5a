"""Asks the process of `calculations` for plans and rehearsals, and waits no longer than said."""

import atexit
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from countwise.errors import CountwiseError
from countwise.server.calculations import LARGEST_MESSAGE, READY

START_SECONDS = 300.0  # for its imports, and compilation where nothing is kept


class Calculator:
    """A process that computes aside, started when it is first needed and anew if it goes."""

    def __init__(self, public: Sequence[Path] = ()) -> None:
        self.public = [str(path.absolute()) for path in public]
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._starting = threading.Lock()
        self._ready = False

    def start(self) -> None:
        """Start it without waiting until it is ready."""
        with self._starting:
            if self._process is None or self._process.poll() is not None:
                self._start()

    def wait(self) -> None:
        """Wait until it is ready."""
        self.start()
        with self._starting:
            if self._ready:
                return
            assert self._channel is not None
            self._channel.settimeout(START_SECONDS)
            try:
                said = self._channel.recv(LARGEST_MESSAGE)
            except OSError:
                said = b""
            self._ready = said == READY
        if not self._ready:
            self.stop()
            raise CountwiseError("the process that computes plans did not start.")

    def compute(self, work: dict[str, Any], *, seconds: float, memory_mb: int) -> Any:
        """What comes of a piece of work; None if nothing does in its time and memory."""
        self.wait()
        reading, writing = os.pipe()
        try:
            message = json.dumps(work | {"seconds": seconds, "memory_mb": memory_mb}).encode()
            assert self._channel is not None
            socket.send_fds(self._channel, [message], [writing])
        except OSError:
            os.close(reading)
            self.stop()
            return None
        finally:
            os.close(writing)
        try:
            return json.loads(_read_all(reading, until=time.monotonic() + seconds + 1))
        except (TimeoutError, ValueError):
            return None
        finally:
            os.close(reading)

    def stop(self) -> None:
        """End it."""
        with self._starting:
            if self._channel is not None:
                self._channel.close()
            if self._process is not None:
                self._process.kill()
                self._process.wait()
            self._process, self._channel, self._ready = None, None, False

    def _start(self) -> None:
        own, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "countwise.server.calculations"], stdin=its.fileno()
            )
        if self._channel is not None:
            self._channel.close()
        own.send(json.dumps(self.public).encode())
        self._channel, self._ready = own, False


@cache
def shared_calculator() -> Calculator:
    """The one of this process, for services that were given none of their own."""
    made = Calculator()
    atexit.register(made.stop)
    return made


def _read_all(pipe: int, *, until: float) -> bytes:
    said = b""
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            raise TimeoutError
        part = os.read(pipe, 1 << 16)
        if not part:
            return said
        said += part
