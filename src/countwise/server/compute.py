"""The process that reads confidential rows: no network, no database, no file to write.

It makes itself ready, shuts itself in, and then forks one child for each piece of work. The child
reads the rows, draws the noise, and hands over noisy counts in a record of fixed size. Started by
a worker as `python -m countwise.server.compute`; they talk over standard input and output.
"""

import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

from countwise.server import sandbox

RECORD = 4096  # bytes of an answer in a pipe: what the system writes at once


def main() -> None:
    """Get ready, say what is enforced, and work until the worker goes."""
    sandbox.die_with_parent()
    network = sandbox.no_network()  # before NumPy starts threads
    from countwise.server.precompilation import warm_up

    paths = [Path(name) for name in json.loads(sys.stdin.readline())]
    warm_up()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    files = sandbox.only_files(read=paths)
    missing = sum(not sandbox.can_read(path) for path in paths)
    out = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints does not get among the records
    _write(out, {"network": not network, "files": not files, "missing": missing})
    for line in sys.stdin:
        _write(out, _one(json.loads(line), nowhere))


def _one(work: dict[str, Any], nowhere: int) -> dict[str, Any]:
    """The record of one piece of work, done by a child that is killed when its time is over.

    What a library prints there could quote a row, so it goes nowhere.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            sandbox.die_with_parent()
            sandbox.limit(memory_mb=work["memory_mb"], cpu_seconds=work["cpu_seconds"])
            os.write(writing, json.dumps({"noisy": _noisy(work)}).encode())
        finally:
            os._exit(0)
    os.close(writing)
    try:
        said = _read(reading, until=time.monotonic() + work["seconds"])
        record: dict[str, Any] = json.loads(said)
    except (TimeoutError, ValueError):
        record = {"failed": True}
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
    return record


def _noisy(work: dict[str, Any]) -> list[float]:
    """Read the rows and cross the boundary; nothing else comes back."""
    from countwise.verification.question import read_question
    from countwise.verification.records import read_records
    from countwise.verification.request import make_request
    from countwise.verification.schema import read_schema
    from countwise.verification.verify import verify

    request = make_request(read_schema(work["schema"]), read_question(work["question"]))
    records = read_records(
        work["data"], request.schema, columns=request.columns, table=work["table"]
    )
    return [float(each) for each in verify(records, request)]


def _read(pipe: int, *, until: float) -> bytes:
    said = b""
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            raise TimeoutError
        part = os.read(pipe, RECORD)
        if not part:
            return said
        said += part


def _write(out: int, record: dict[str, Any]) -> None:
    """A record, always of the same size."""
    text = json.dumps(record).encode()
    assert len(text) < RECORD
    os.write(out, text.ljust(RECORD - 1) + b"\n")


if __name__ == "__main__":
    main()
