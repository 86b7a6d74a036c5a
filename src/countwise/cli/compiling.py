"""Saying that the machine is compiling, which a first use can do for a minute."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from countwise.progress import listeners

KEPT = "compiling, once: what is compiled is kept in {folder} for every later command"
NOT_KEPT = (
    "compiling, in every command anew: no folder for machine code can be written to. To fix, set "
    "NUMBA_CACHE_DIR to one that can"
)


@contextmanager
def told() -> Iterator[None]:
    """Within this, standard error says when something is compiled, and whether that is kept."""
    teller = Teller()
    listeners.append(teller.tell)
    try:
        yield
    finally:
        listeners.remove(teller.tell)


@dataclass(kw_only=True)
class Teller:
    """Says it once in a line; on a terminal a spinner beside it shows that the machine works."""

    said: bool = False

    @contextmanager
    def tell(self, folder: str | None) -> Iterator[None]:
        """For as long as one function takes."""
        from rich.errors import LiveError

        from countwise.cli.console import err

        if not self.said:
            said = NOT_KEPT if folder is None else KEPT.format(folder=folder)
            err.print(f"countwise: {said}.", soft_wrap=True)
            self.said = True
        spinner = err.status("compiling, once" if folder else "compiling")
        try:
            if err.is_terminal:
                spinner.start()
        except LiveError:  # a bar is there already, and older versions of Rich show one thing
            pass
        try:
            yield
        finally:
            spinner.stop()
