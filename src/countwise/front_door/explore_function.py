"""Looking around in a release with a browser of this machine."""

from collections.abc import Callable
from pathlib import Path

from countwise.front_door.words import PathLike
from countwise.release.crossed_release import CrossedRelease, read_release
from countwise.release.document import Release


def _unsaid(_: str) -> None:
    """Nobody is told."""


def explore(
    release: PathLike | Release | CrossedRelease,
    *,
    port: int = 8431,
    ready: Callable[[str], None] = _unsaid,
) -> None:
    """Serve the pages of a release to this machine alone, with sums of what one clicks.

    Read-only, until it is interrupted; port 0 takes a free one. `ready` is told the address.
    """
    from countwise.reports.explorer import HOST, explorer_server

    made = read_release(release) if isinstance(release, (str, Path)) else release
    with explorer_server(made, port=port) as server:
        ready(f"http://{HOST}:{server.server_address[1]}/")
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            return
