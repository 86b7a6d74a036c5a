"""Named places where a test may kill the process, to see that nothing is lost or said twice.

COUNTWISE_FAILPOINT=name kills the process, as kill -9 does, when it gets there.
"""

import os
import signal

FAILPOINTS = (
    "submit.charged",  # in the transaction, charge written
    "submit.committed",  # charged and queued, the caller not told
    "claim.written",  # in the transaction that gives a worker its work
    "claim.committed",  # a worker has work and did not begin
    "compute.done",  # the noisy counts are in the worker's memory only
    "release.written",  # in the transaction that stores them and lets them be seen
    "release.committed",  # to be seen
    "cancel.written",  # in the transaction that cancels
)


def failpoint(name: str) -> None:
    """Die here if the environment says so."""
    assert name in FAILPOINTS
    if os.environ.get("COUNTWISE_FAILPOINT") == name:
        os.kill(os.getpid(), signal.SIGKILL)
