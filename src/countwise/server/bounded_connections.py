"""HTTP connections with bounds: how many, and how long a request may take to arrive.

A request must have arrived whole, head and body, so many seconds after its first byte (or after
the connection was made); else the connection is ended. Between requests a connection may be idle
for `timeout_keep_alive`, which is uvicorn's own. A proxy in front should have bounds of its own
for each address (deploy/nginx.conf), which this process can not tell apart behind one.
"""

import asyncio
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class BoundedProtocol(H11Protocol):
    """Uvicorn's HTTP/1.1 with those bounds; `bounded` makes one with its figures."""

    arrival_seconds: ClassVar[float] = 15.0
    most_connections: ClassVar[int] = 1000

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._arrival: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A new connection; one too many is ended at once."""
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            transport.abort()
            return
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Part of a request: its clock runs until it is whole."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """A request was answered; part of the next one may be there already."""
        super().on_response_complete()
        self._watch()

    def _watch(self) -> None:
        if self._whole():
            self._forget()
        else:
            self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._forget()
        super().connection_lost(exc)

    def _whole(self) -> bool:
        idle = self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]
        return idle or self.conn.their_state not in (h11.IDLE, h11.SEND_BODY)

    def _expect(self) -> None:
        if self._arrival is None:
            self._arrival = self.loop.call_later(self.arrival_seconds, self.transport.abort)

    def _forget(self) -> None:
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None


def bounded(*, arrival_seconds: float, most_connections: int) -> type[BoundedProtocol]:
    """The protocol with these figures."""
    figures = {"arrival_seconds": arrival_seconds, "most_connections": most_connections}
    return type("BoundedProtocol", (BoundedProtocol,), figures)
