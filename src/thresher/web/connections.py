"""The server's connections: how many there may be, and how long they may say nothing.

uvicorn would wait for ever for the first request of a connection, and asyncio accepts until the file descriptors have
run out. Here a request's head has ten seconds, and a full server closes the connection that has been idle longest, but
none that is being answered. Against more than that, put a reverse proxy in front.
"""

import asyncio
import resource
import socket
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from .access import Rarely

MOST = 4096  # connections, however many descriptors there are
ROOM = 100  # descriptors that stores, logs and files need, at least
HEAD = 10.0  # seconds for the head of a request
IDLE = 60  # seconds between two requests
FULL, OUT = Rarely(), Rarely()


class Connection(H11Protocol):
    """One connection, with a time limit for the head of a request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.idle_since = self.loop.time()
        self._end = self._timer()
        # without it, the second write of a reply waits 40 ms for the client's delayed acknowledgement of the first
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > most():
            FULL.warn(f"{len(self.connections):,} connections: idle ones are closed to make room")
            mine: set[Any] = self.connections
            idle = [connection for connection in mine if not connection.is_answering]
            if idle:
                longest = min(idle, key=lambda connection: connection.idle_since)
                longest.transport.abort()
                mine.discard(longest)  # it is told only in the loop's next turn that it is closed

    def connection_lost(self, exc: Exception | None) -> None:
        self._end.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """The first bytes of a later request start its time; more bytes do not extend it."""
        if self._end.cancelled() and not self.is_answering:
            self._end = self._timer()
        super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        if self.is_answering:
            self._end.cancel()

    def on_response_complete(self) -> None:
        self.idle_since = self.loop.time()
        super().on_response_complete()

    @property
    def is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _timer(self) -> asyncio.TimerHandle:
        return self.loop.call_later(HEAD, self.transport.abort)


def most() -> int:
    """As many connections as this process may open files, without those that stores, logs and files need."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST if files == resource.RLIM_INFINITY else max(1, min(MOST, files - max(ROOM, files // 8)))


def complain(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log once a minute that descriptors have run out: asyncio would log a traceback for each of 512 tries."""
    if isinstance(context.get("exception"), OSError) and "socket" in context:
        OUT.warn("out of file descriptors: new connections wait; raise ulimit -n")
    else:
        loop.default_exception_handler(context)
