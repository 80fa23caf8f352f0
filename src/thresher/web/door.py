"""The door: it accepts as many connections as there are descriptors for, and closes those that block others.

asyncio's own loop has no limits: it accepts until the descriptors are used up, and then logs a traceback for every try.
Here a full server makes room by closing the connection that has been idle longest, at the address that has the most.
Connections with a request that the gate has let in stay open until it is answered. A client without a token never
blocks others, whatever it sends and does not read.
"""

import asyncio
import contextlib
import errno
import resource
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ..errors import InvalidInput
from .callers import Rarely, caller_of

if TYPE_CHECKING:
    from .wire import Wire

MOST = 4096  # connections, however many descriptors there are
ROOM = 100  # descriptors that stores, logs and files need, at least
AT_ONCE = 64  # connections accepted before others get their turn
PAUSE = 0.5  # seconds until the next try when descriptors have run out
SPARE = 16  # idle connections that are closed then
LOOK = 1.0  # seconds between two checks for connections that are too slow
HANDSHAKE = 10.0  # seconds for TLS
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


class Guest:
    """One connection as the door tracks it, from accept to close."""

    def __init__(self, door: "Door", caller: "Caller") -> None:
        self.door, self.caller = door, caller
        self.connection: Wire | None = None  # None: the TLS handshake is not over
        self.entering: asyncio.Task[None] | None = None
        caller.guests.add(self)
        self.idle()

    def idle(self) -> None:
        """Nothing is being answered: this one may be closed to make room."""
        if self in self.caller.guests:
            self.caller.idle[self] = None

    def busy(self) -> None:
        """A request was let in, and is being answered."""
        self.caller.idle.pop(self, None)

    def leave(self) -> None:
        """It is closed. Calling this twice does no harm."""
        if self in self.caller.guests:
            self.caller.guests.discard(self)
            self.caller.idle.pop(self, None)
            self.door.left(self.caller)

    def cut(self) -> None:
        if self.connection is not None:
            self.connection.cut()
        elif self.entering is not None:
            self.entering.cancel()
        self.leave()


class Caller:
    """The connections of one address; idle ones in the order in which they became idle."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.guests: set[Guest] = set()
        self.idle: dict[Guest, None] = {}


class Door:
    """Accepts connections on a socket, in place of the `asyncio.Server` that uvicorn expects."""

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[Guest], asyncio.Protocol],
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
                connection, address = self._listener.accept()
            except OSError as error:
                if error.errno not in GONE:
                    self._pause(error)
                return
            self._receive(connection, caller_of(str(address[0])))

    def _pause(self, error: OSError) -> None:
        """The system is out of something: make room, and try again in a moment. The listener would report at once."""
        what = "file descriptors" if error.errno in OUT[:2] else f"resources ({error.strerror})"
        self._out.warn(f"out of {what}: new connections wait; raise ulimit -n, or lower --max-connections")
        for _ in range(SPARE):
            self._make_room()
        self._loop.remove_reader(self._listener.fileno())
        self._loop.call_later(PAUSE, self._open)

    def _receive(self, connection: socket.socket, name: str) -> None:
        caller = self._callers.setdefault(name, Caller(name))
        full = len(caller.guests) >= self._limits.each or self._total >= self._limits.connections
        if full:
            count = f"{self._total:,} connections, {len(caller.guests):,} of them from {name}"
            self._full.warn(f"{count}: idle ones are closed to make room")
            has_room = _evict(caller) if len(caller.guests) >= self._limits.each else self._make_room()
            if not has_room:
                _refuse(connection, plain=self._tls is None)
                self._forget(caller)
                return
            self._callers[name] = caller  # the closed connection may have been the last of its address
        guest = Guest(self, caller)
        self._total += 1
        guest.entering = self._loop.create_task(self._enter(connection, guest))
        guest.entering.add_done_callback(lambda task: _entered(task, connection, guest))

    async def _enter(self, connection: socket.socket, guest: Guest) -> None:
        # asyncio would set it only if the listener had been made with IPPROTO_TCP, which create_server does not do.
        # Without it the second write of a reply waits 40 ms for the client's delayed acknowledgement of the first
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNSEEN)
        times = {"ssl_handshake_timeout": HANDSHAKE, "ssl_shutdown_timeout": 1.0} if self._tls else {}
        await self._loop.connect_accepted_socket(lambda: self._make(guest), connection, ssl=self._tls, **times)

    # -- bookkeeping --------------------------------------------------------------------------------------------

    def left(self, caller: Caller) -> None:
        """A connection of this caller is closed."""
        self._total -= 1
        self._forget(caller)

    def _forget(self, caller: Caller) -> None:
        if not caller.guests:
            del self._callers[caller.name]

    def _make_room(self) -> bool:
        """Close an idle connection of the address that has the most; returns whether there was one."""
        found = [caller for caller in self._callers.values() if caller.idle]
        return bool(found) and _evict(max(found, key=lambda caller: len(caller.guests)))

    def _look(self) -> None:
        """Close the connections whose time is up."""
        if self._closed:
            return
        now = self._loop.time()
        guests = [guest for caller in self._callers.values() for guest in caller.guests]
        for guest in guests:
            if guest.connection is not None and guest.connection.is_slow(now):
                guest.cut()
        self._loop.call_later(LOOK, self._look)


def _entered(task: "asyncio.Task[None]", connection: socket.socket, guest: Guest) -> None:
    """The connection is open, or failed: the client left, or its TLS handshake failed or took too long."""
    guest.entering = None
    if task.cancelled() or task.exception() is not None:
        connection.close()
        guest.leave()


def _evict(caller: Caller) -> bool:
    """Close the connection that has been idle longest; returns whether there was one."""
    guest = next(iter(caller.idle), None)
    if guest is not None:
        guest.cut()
    return guest is not None


def _refuse(connection: socket.socket, *, plain: bool) -> None:
    with contextlib.suppress(OSError), connection:
        connection.setblocking(False)
        if plain:
            connection.send(BUSY)
