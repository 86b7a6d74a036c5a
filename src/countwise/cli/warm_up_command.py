"""countwise warm-up: machine code, compiled ahead."""

from time import perf_counter

from countwise import compiled_ahead
from countwise.cli import options
from countwise.cli.console import out, print_json, progress

EXAMPLE = "Example: countwise warm-up"


def warm_up(json: options.Json = False) -> None:
    """Compile what commands use ahead, once for all commands: for images, services and impatient
    users.
    """
    start = perf_counter()
    with progress(len(compiled_ahead.JOBS)) as tell:
        folder = compiled_ahead.compile_ahead(tell)
    if json:
        print_json({"folder": str(folder), "seconds": round(perf_counter() - start, 1)})
    else:
        out.print(f"All is compiled. It is kept in {folder}", soft_wrap=True)
