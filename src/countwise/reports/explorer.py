"""A release to look around in: its page with sums of what one clicks, answered on this machine.

Serves one release folder, read-only, to this machine alone: it listens at the loopback address and
answers no request that was sent to another name, as a page elsewhere could make a browser do.
"""

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from urllib.parse import parse_qs, urlsplit

from countwise.errors import CountwiseError
from countwise.inference.chosen_sums import ChosenSums
from countwise.release.counts_page import page_listing, release_page, with_ranges
from countwise.release.crossed_release import CrossedRelease
from countwise.release.document import Release

HOST = "127.0.0.1"
NAMES = (HOST, "localhost")
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True)
class Reply:
    """What is sent back."""

    status: int
    kind: str
    body: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Explorer:
    """The pages of a release, and sums over rows of its listing."""

    release: Release | CrossedRelease

    @cached_property
    def page(self) -> str:
        """The counts, each of which can be chosen."""
        return release_page(self.release, exploring=True)

    @cached_property
    def _sums(self) -> ChosenSums:
        table, _ = page_listing(with_ranges(self.release))
        return ChosenSums(release=self.release, table=table.frame)

    def reply(self, address: str, host: str) -> Reply:
        """The answer to a GET."""
        if host.rpartition(":")[0] not in NAMES and host not in NAMES:
            return Reply(403, "text/plain", "This is for this machine alone.")
        asked = urlsplit(address)
        if asked.path == "/":
            return Reply(200, "text/html", self.page)
        if asked.path == "/certificate.html":
            return Reply(200, "text/html", self.release.certificate())
        if asked.path == "/sum":
            return self._sum(parse_qs(asked.query).get("rows", [""])[0])
        return Reply(404, "text/plain", "There is no such page.")

    def _sum(self, rows: str) -> Reply:
        try:
            places = [int(each) for each in rows.split(",")]
        except ValueError:
            return Reply(400, "application/json", json.dumps({"error": "rows are numbers"}))
        try:
            found = asdict(self._sums.sum(places))
        except CountwiseError as problem:
            return Reply(400, "application/json", json.dumps({"error": str(problem)}))
        return Reply(200, "application/json", json.dumps(found))


def explorer_server(release: Release | CrossedRelease, *, port: int) -> ThreadingHTTPServer:
    """A server of a release at the loopback address; port 0 takes a free one."""
    explorer, one_at_a_time = Explorer(release=release), Lock()

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "countwise", ""

        def do_GET(self) -> None:
            with one_at_a_time:
                found = explorer.reply(self.path, self.headers.get("Host", ""))
            body = found.body.encode()
            self.send_response(found.status)
            self.send_header("Content-Type", f"{found.kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Security-Policy", POLICY)
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nobody but the user looks, and what they look at is nobody's business."""

    return ThreadingHTTPServer((HOST, port), Handler)
