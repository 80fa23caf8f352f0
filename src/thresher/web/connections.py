"""The server's connections: as many as there are descriptors for; those that block others are closed.

asyncio's own loop has no limits: it accepts until the descriptors are used up, and then logs a traceback for every try.
Here a full server makes room by closing the connection that has been idle longest, at the address that has the most.
Connections with a request that passed the checks stay open until it is answered. A client without a token never
blocks others, whatever it sends and does not read.
"""

import asyncio
import contextlib
import errno
import resource
import socket
import ssl
from collections.abc import Callable
from typing import NamedTuple

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from ..errors import InvalidInput
from .access import Rarely, caller_of
from .request_checks import PASSED

MOST = 4096  # connections, however many descriptors there are
ROOM = 100  # descriptors that stores, logs and files need, at least
AT_ONCE = 64  # connections accepted before others get their turn
PAUSE = 0.5  # seconds until the next try when descriptors have run out
SPARE = 16  # idle connections that are closed then
LOOK = 1.0  # seconds between two checks for connections that are too slow
HANDSHAKE = 10.0  # seconds for TLS
HEAD = 10.0  # seconds from the connection, or the first byte of a later request, to the end of its headers
IDLE = 60  # seconds between two requests
UNREAD = 20.0  # seconds in which a client that has something to read must read some of it
UNSEEN = 128 * 1024  # bytes that the system buffers for a client that does not read; megabytes by default
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
OUT = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
GONE = (errno.EAGAIN, errno.EINTR, errno.ECONNABORTED, errno.EPROTO, errno.EPERM)


class Limits(NamedTuple):
    """How many connections there may be, in total and from one address."""

    connections: int
    each: int


def limits(connections: int | None = None, each: int | None = None, descriptors: int | None = None) -> Limits:
    """The chosen limits, or those that fit the descriptors of this process.

    >>> limits(descriptors=1024), limits(descriptors=1_000_000), limits(100, descriptors=1024)
    (Limits(connections=896, each=448), Limits(connections=4096, each=2048), Limits(connections=100, each=50))
    """
    found = descriptors if descriptors is not None else resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    fits = max(1, found - max(ROOM, found // 8)) if found != resource.RLIM_INFINITY else 1 << 30
    if connections is not None and connections > fits:
        rule = f"must be at most {fits:,}: this process may open {found:,} files, and stores need some"
        raise InvalidInput("max connections", connections, rule, "raise the limit with ulimit -n, or choose fewer")
    total = min(MOST, fits) if connections is None else connections
    return Limits(total, min(total, max(1, total // 2) if each is None else each))


class Connection(H11Protocol):
    """One connection, from accept to close: uvicorn's, with limits on the time for requests and for reading replies."""

    def __init__(self, config: Config, state: ServerState, acceptor: "Acceptor", caller: "Caller") -> None:
        super().__init__(config=config, server_state=state, app_state={PASSED: self.busy})
        self._acceptor, self._caller = acceptor, caller
        self.entering: asyncio.Task[None] | None = None  # until it is open: TLS takes a handshake
        self._head: float | None = None  # when the head of a request is due; None: no request has begun
        self._left, self._since = 0, 0.0  # unread bytes, and since when their number has not fallen
        caller.connections.add(self)
        self.idle()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head = self.loop.time() + HEAD

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.leave()

    def data_received(self, data: bytes) -> None:
        """Bytes of a request's head, or of a body that was already answered, do not extend its time."""
        if self._head is None and not self._is_answering:
            self._head = self.loop.time() + HEAD
        super().data_received(data)

    def handle_events(self) -> None:
        """A request may have begun. Until it has passed the checks, it may be closed to make room."""
        super().handle_events()
        if self._is_answering:
            self._head = None

    def on_response_complete(self) -> None:
        """A request is answered; the next one may already be there."""
        self.idle()
        super().on_response_complete()

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _is_open(self) -> bool:
        return self.transport is not None

    def is_slow(self, now: float) -> bool:
        """Whether its time is up: for its request, or for reading what was sent. A TLS handshake has its own limit."""
        if not self._is_open:
            return False
        left = self.transport.get_write_buffer_size()
        if left == 0 or self._left == 0 or left < self._left:
            self._since = now
        self._left = left
        return (self._head is not None and now > self._head) or (left > 0 and now > self._since + UNREAD)

    def idle(self) -> None:
        """Nothing is being answered: this one may be closed to make room."""
        if self in self._caller.connections:
            self._caller.idle[self] = None

    def busy(self) -> None:
        """A request passed the checks, and is being answered."""
        self._caller.idle.pop(self, None)

    def leave(self) -> None:
        """It is closed. Calling this twice does no harm."""
        if self in self._caller.connections:
            self._caller.connections.discard(self)
            self._caller.idle.pop(self, None)
            self._acceptor.left(self._caller)

    def cut(self) -> None:
        """Close it now, even if something is left to send."""
        if self._is_open:
            self.transport.abort()
        elif self.entering is not None:
            self.entering.cancel()
        self.leave()


class Caller:
    """The connections of one address; idle ones in the order in which they became idle."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.connections: set[Connection] = set()
        self.idle: dict[Connection, None] = {}


class Acceptor:
    """Accepts connections on a socket, in place of the `asyncio.Server` that uvicorn expects."""

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[["Acceptor", Caller], Connection],
        *,
        limits: Limits,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._listener, self._make, self._limits, self._tls = listener, make, limits, tls
        self._callers: dict[str, Caller] = {}
        self._total = 0
        self._loop = asyncio.get_running_loop()
        self._full, self._out = Rarely(), Rarely()
        self._closed = False
        listener.setblocking(False)
        self._open()
        self._look()

    def close(self) -> None:
        self._closed = True
        self._loop.remove_reader(self._listener.fileno())

    async def wait_closed(self) -> None:
        """Nothing is left to wait for: the server waits for its connections itself."""

    # -- coming in ----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._listener.fileno(), self._ready)

    def _ready(self) -> None:
        for _ in range(AT_ONCE):
            try:
                accepted, address = self._listener.accept()
            except OSError as error:
                if error.errno not in GONE:
                    self._pause(error)
                return
            self._receive(accepted, caller_of(str(address[0])))

    def _pause(self, error: OSError) -> None:
        """The system is out of something: make room, and try again in a moment. The listener would report at once."""
        what = "file descriptors" if error.errno in OUT[:2] else f"resources ({error.strerror})"
        self._out.warn(f"out of {what}: new connections wait; raise ulimit -n, or lower --max-connections")
        for _ in range(SPARE):
            self._make_room()
        self._loop.remove_reader(self._listener.fileno())
        self._loop.call_later(PAUSE, self._open)

    def _receive(self, accepted: socket.socket, name: str) -> None:
        caller = self._callers.setdefault(name, Caller(name))
        full = len(caller.connections) >= self._limits.each or self._total >= self._limits.connections
        if full:
            count = f"{self._total:,} connections, {len(caller.connections):,} of them from {name}"
            self._full.warn(f"{count}: idle ones are closed to make room")
            has_room = _evict(caller) if len(caller.connections) >= self._limits.each else self._make_room()
            if not has_room:
                _refuse(accepted, plain=self._tls is None)
                self._forget(caller)
                return
            self._callers[name] = caller  # the closed connection may have been the last of its address
        connection = self._make(self, caller)
        self._total += 1
        connection.entering = self._loop.create_task(self._enter(accepted, connection))
        connection.entering.add_done_callback(lambda task: _entered(task, accepted, connection))

    async def _enter(self, accepted: socket.socket, connection: Connection) -> None:
        # asyncio would set it only if the listener had been made with IPPROTO_TCP, which create_server does not do.
        # Without it the second write of a reply waits 40 ms for the client's delayed acknowledgement of the first
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNSEEN)
        times = {"ssl_handshake_timeout": HANDSHAKE, "ssl_shutdown_timeout": 1.0} if self._tls else {}
        await self._loop.connect_accepted_socket(lambda: connection, accepted, ssl=self._tls, **times)

    # -- bookkeeping --------------------------------------------------------------------------------------------

    def left(self, caller: Caller) -> None:
        """A connection of this caller is closed."""
        self._total -= 1
        self._forget(caller)

    def _forget(self, caller: Caller) -> None:
        if not caller.connections:
            del self._callers[caller.name]

    def _make_room(self) -> bool:
        """Close an idle connection of the address that has the most; returns whether there was one."""
        found = [caller for caller in self._callers.values() if caller.idle]
        return bool(found) and _evict(max(found, key=lambda caller: len(caller.connections)))

    def _look(self) -> None:
        """Close the connections whose time is up."""
        if self._closed:
            return
        now = self._loop.time()
        for connection in [each for caller in self._callers.values() for each in caller.connections]:
            if connection.is_slow(now):
                connection.cut()
        self._loop.call_later(LOOK, self._look)


def _entered(task: "asyncio.Task[None]", accepted: socket.socket, connection: Connection) -> None:
    """The connection is open, or failed: the client left, or its TLS handshake failed or took too long."""
    connection.entering = None
    if task.cancelled() or task.exception() is not None:
        accepted.close()
        connection.leave()


def _evict(caller: Caller) -> bool:
    """Close the connection that has been idle longest; returns whether there was one."""
    connection = next(iter(caller.idle), None)
    if connection is not None:
        connection.cut()
    return connection is not None


def _refuse(accepted: socket.socket, *, plain: bool) -> None:
    with contextlib.suppress(OSError), accepted:
        accepted.setblocking(False)
        if plain:
            accepted.send(BUSY)
