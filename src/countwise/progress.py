"""Telling how far work has come."""

from collections.abc import Callable

Tell = Callable[[str], None]


def silent(stage: str) -> None:
    """Tells nobody."""
