"""Printing: results to standard output, everything else to standard error."""

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from countwise.ledger.prices import Charge
from countwise.progress import Tell, remarks

NAME = 24
"""Letters of a word that is not broken where a table is narrow."""
out = Console(highlight=False, markup=False, emoji=False)
err = Console(stderr=True, highlight=False, markup=False, emoji=False)


def print_json(data: object) -> None:
    """Machine-readable results, alone on standard output."""
    print(json.dumps(data, indent=2, ensure_ascii=False))


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table whose first column is words and whose others are numbers; nothing is cut off."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, header in enumerate(headers):
        words = [word for row in rows for word in row[i].split()]
        longest = min(max(map(len, words), default=0), NAME)
        table.add_column(
            header, justify="left" if i == 0 else "right", overflow="fold", min_width=longest
        )
    for row in rows:
        table.add_row(*row)
    out.print(table)


def print_charge(charge: Charge | None, *, json: bool) -> None:
    """What was charged to a ledger; beside JSON it goes to standard error."""
    if charge is not None:
        (err if json else out).print(
            f"Charged to the ledger: {charge.words}. Now {charge.balance}", soft_wrap=True
        )


@contextmanager
def progress() -> Iterator[Tell]:
    """A bar on standard error for the stage that work has come to; gone when it is done.

    Of a stage whose steps are counted it shows how many are done, and the time left for the rest.
    What is remarked on the way is printed there and stays.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    lock, total = Lock(), 0
    with Progress(*columns, console=err, transient=True) as bar, _remarked():
        task = bar.add_task("starting", total=None)

        def tell(stage: str, done: int = 0, of: int = 0, /) -> None:
            nonlocal task, total
            with lock:
                if of != total:
                    bar.remove_task(task)
                    task, total = bar.add_task(stage, total=of or None), of
                bar.update(task, description=stage, completed=done)

        yield tell


@contextmanager
def _remarked() -> Iterator[None]:
    """Within this, what the library remarks is printed."""
    printer, level = _Printer(), remarks.level
    remarks.addHandler(printer)
    remarks.setLevel(logging.INFO)
    try:
        yield
    finally:
        remarks.setLevel(level)
        remarks.removeHandler(printer)


class _Printer(logging.Handler):
    """Prints what is remarked to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line or more."""
        err.print(record.getMessage())
