"""Telling how far work has come."""

from collections.abc import Callable
from contextlib import AbstractContextManager

Tell = Callable[[str], None]


def silent(stage: str) -> None:
    """Tells nobody."""


Report = Callable[[str, int, int], None]
"""Takes the name of a stage, how many of its steps are done, and how many there are."""


def unheard(stage: str, done: int, of: int) -> None:
    """Reports to nobody."""


Compiling = Callable[[str | None], AbstractContextManager[object]]
"""Entered while a function is compiled: the folder that keeps it, if one can be written to."""

listeners: list[Compiling] = []
"""Who is told of compilation; empty in a library, which says nothing by itself."""
