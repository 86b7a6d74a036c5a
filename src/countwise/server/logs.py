"""Structured logs: one JSON object a line on standard error, names and ids only."""

import json
import logging
import os
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType

LONGEST_LINE = 300  # characters of what a library said


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


class JsonHandler(logging.Handler):
    """What libraries log, as lines of ours: cut short, and of a fault its kind and place alone."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        fault = record.exc_info[1] if record.exc_info else None
        if fault is not None:
            log_fault(fault, by=record.name)
            return
        said = record.getMessage().splitlines() or [""]
        log("library", level=record.levelname.lower(), by=record.name, said=said[0][:LONGEST_LINE])


def log_fault(fault: BaseException, *, by: str) -> None:
    """The kind of a fault and where it is; its own message could quote what was sent."""
    place, trace = "", fault.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        place = f"{os.path.basename(code.co_filename)}:{trace.tb_lineno} {code.co_name}"
        trace = trace.tb_next
    log("fault", level="error", by=by, kind=type(fault).__name__, place=place)


def only_json() -> None:
    """From now on whatever this process writes to its log is a JSON object a line."""
    logging.basicConfig(handlers=[JsonHandler()], level=logging.WARNING, force=True)
    logging.captureWarnings(True)

    def unhandled(
        kind: type[BaseException], fault: BaseException, trace: TracebackType | None
    ) -> None:
        log_fault(fault.with_traceback(trace), by=kind.__module__)

    sys.excepthook = unhandled
    threading.excepthook = lambda found: (
        log_fault(found.exc_value, by="thread") if found.exc_value is not None else None
    )
