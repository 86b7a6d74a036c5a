"""Machine code made ready before a process shuts itself in."""

from countwise.kernels.compilation import keep_in_memory
from countwise.verification.trial_requests import try_requests


def warm_up() -> None:
    """Run every kind of request once; from then on nothing is written to disk."""
    try_requests()
    keep_in_memory()
