"""Telling how far work has come."""

from collections.abc import Callable

Tell = Callable[[str], None]


def silent(stage: str) -> None:
    """Tells nobody."""


Report = Callable[[str, int, int], None]
"""Takes the name of a stage, how many of its steps are done, and how many there are."""


def unheard(stage: str, done: int, of: int) -> None:
    """Reports to nobody."""
