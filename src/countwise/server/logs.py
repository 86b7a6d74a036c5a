"""Structured logs: one JSON object a line on standard error, names and ids only."""

import json
import os
import sys
from datetime import UTC, datetime


def log(event: str, *, level: str = "info", **fields: str | int | float | None) -> None:
    """Write a line. Callers pass names, ids and states; never a text or a number from data."""
    line = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "level": level,
        "event": event,
        "process": os.getpid(),
        **fields,
    }
    print(json.dumps(line, ensure_ascii=True), file=sys.stderr, flush=True)
