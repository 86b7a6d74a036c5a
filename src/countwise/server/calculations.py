"""The process that computes plans and rehearsals, from what is public alone.

It makes itself ready, shuts itself off from the network and from all but public files, and forks
one child for each piece of work. A child has a limit of memory and of time: when its time is over
the system ends it. Started by `Calculator`, as `python -m countwise.server.calculations`; each
piece comes over standard input, a socket, with the open end of a pipe for what comes of it.
"""

import json
import math
import os
import signal
import socket
from dataclasses import asdict
from pathlib import Path
from typing import Any

from countwise.server import sandbox

LARGEST_MESSAGE = 1 << 17  # bytes: what is passed are names of files and one question
READY = b"ready"


def main() -> None:
    """Get ready, say so, and work until the other end is closed."""
    channel = socket.socket(fileno=0)
    sandbox.no_network()  # before NumPy starts threads
    from countwise.server.precompilation import warm_up

    public = [Path(name) for name in json.loads(channel.recv(LARGEST_MESSAGE))]
    warm_up()
    if public:
        sandbox.only_files(read=public)
    os.nice(10)  # whoever waits for a page comes first
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    channel.send(READY)
    while True:
        message, handles, _, _ = socket.recv_fds(channel, LARGEST_MESSAGE, 1)
        if not message:
            return
        if handles:
            _begin(json.loads(message), handles[0], channel)
            os.close(handles[0])


def _begin(work: dict[str, Any], out: int, channel: socket.socket) -> None:
    if os.fork() != 0:
        return
    try:
        channel.close()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nowhere, standard)
        seconds = float(work["seconds"])
        sandbox.limit(memory_mb=work["memory_mb"], cpu_seconds=math.ceil(seconds) + 1)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        said = json.dumps(KINDS[work["kind"]](work)).encode()
        while said:
            said = said[os.write(out, said) :]
    finally:
        os._exit(0)


def _chances(work: dict[str, Any]) -> list[dict[str, float]]:
    from countwise.server.verdict_chances import chances
    from countwise.verification.question import read_question
    from countwise.verification.request import make_request
    from countwise.verification.schema import read_schema

    request = make_request(read_schema(work["schema"]), read_question(work["question"]))
    return [asdict(each) for each in chances(request)]


def _rehearsal(work: dict[str, Any]) -> dict[str, Any]:
    from countwise.progress import silent
    from countwise.verification.planner import rehearse
    from countwise.verification.question import read_question
    from countwise.verification.records import read_records
    from countwise.verification.request import make_request
    from countwise.verification.schema import read_schema

    request = make_request(read_schema(work["schema"]), read_question(work["question"]))
    records = read_records(work["synthetic"], request.schema, columns=request.columns)
    found = rehearse(records, request, repetitions=work["repetitions"], tell=silent)
    return {"verdicts": found.verdicts, "answer": found.last.to_dict()}


KINDS = {"chances": _chances, "rehearsal": _rehearsal}

if __name__ == "__main__":
    main()
