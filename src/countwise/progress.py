"""Telling how far work has come, and what was found out on the way."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol


class Tell(Protocol):
    """Takes the name of a stage as it begins and, if its steps are counted, how many are done."""

    def __call__(self, stage: str, done: int = 0, of: int = 0, /) -> None:
        """Work has come this far."""
        ...


def silent(stage: str, done: int = 0, of: int = 0, /) -> None:
    """Tells nobody."""


def counted(tell: Tell, of: int) -> Tell:
    """Tells of every stage that begins as one of so many."""
    begun = 0

    def tell_next(stage: str, done: int = 0, steps: int = 0, /) -> None:
        nonlocal begun
        begun += not steps or not done
        tell(stage, min(begun, of), of)

    return tell_next


remarks = logging.getLogger("countwise")
"""What was found out that the caller may want to know; a library prints none of it by itself."""

Compiling = Callable[[str | None], AbstractContextManager[object]]
"""Entered while a function is compiled: the folder that keeps it, if one can be written to."""

listeners: list[Compiling] = []
"""Who is told of compilation; empty in a library, which says nothing by itself."""
