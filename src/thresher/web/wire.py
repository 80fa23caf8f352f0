"""One connection: uvicorn's, with time limits for a request's head and for reading a reply."""

import asyncio

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from .door import Guest
from .gate import LET_IN

HEAD = 10.0  # seconds from the connection, or the first byte of a later request, to the end of its headers
IDLE = 60  # seconds between two requests
UNREAD = 20.0  # seconds in which a client that has something to read must read some of it


class Wire(H11Protocol):
    """A connection that knows when it is too slow. The door checks all of them once a second."""

    def __init__(self, config: Config, state: ServerState, guest: Guest) -> None:
        super().__init__(config=config, server_state=state, app_state={LET_IN: guest.busy})
        self._guest = guest
        self._head: float | None = None  # when the head of a request is due; None: no request has begun
        self._left, self._since = 0, 0.0  # unread bytes, and since when their number has not fallen

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head = self.loop.time() + HEAD
        self._guest.connection = self

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._guest.leave()

    def data_received(self, data: bytes) -> None:
        """Bytes of a request's head, or of a body that was already answered, do not extend its time."""
        if self._head is None and not self._is_answering:
            self._head = self.loop.time() + HEAD
        super().data_received(data)

    def handle_events(self) -> None:
        """A request may have begun. Until the gate lets it in, it may be closed to make room."""
        super().handle_events()
        if self._is_answering:
            self._head = None

    def on_response_complete(self) -> None:
        """A request is answered; the next one may already be there."""
        self._guest.idle()
        super().on_response_complete()

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def is_slow(self, now: float) -> bool:
        """Whether its time is up: for its request, or for reading what was sent."""
        left = self.transport.get_write_buffer_size()
        if left == 0 or self._left == 0 or left < self._left:
            self._since = now
        self._left = left
        return (self._head is not None and now > self._head) or (left > 0 and now > self._since + UNREAD)

    def cut(self) -> None:
        """Close it now, even if something is left to send."""
        self.transport.abort()
