"""The server: its connections, its application, and its start.

uvicorn waits for the first request of a connection without a time limit, and asyncio accepts connections until file
descriptors run out. Here the head of a request must arrive within ten seconds. A full server closes the connection that
has been idle longest, but none that is being answered. For more protection, put a reverse proxy in front.
"""

import asyncio
import errno
import logging
import os
import re
import resource
import secrets
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, NamedTuple

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from uvicorn.protocols.http.h11_impl import H11Protocol

from .._version import __version__
from ..errors import InvalidInput, StoreFailed, ThresherError, UnknownStudy
from ..log.store import Store
from ..text.escapes import unescape_slashes
from ..text.logs import log
from . import api, pages
from .refusals import SURPRISE, Refusal, refusal_of, refusal_of_malformed, refusal_reply
from .request_checks import CheckedApp, RareRequestWarning, RequestAccess, request_ip
from .served_studies import ServedStudies

MOST = 4096  # connections, even if more descriptors are available
RESERVED = 100  # the least number of descriptors that is left to stores, logs and files
HEAD = 10.0  # seconds for the head of a request
IDLE = 60  # seconds between two requests
TOO_MANY, NO_DESCRIPTORS = RareRequestWarning(), RareRequestWarning()


class ServerConnection(H11Protocol):
    """One connection, with a time limit for the head of a request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.idle_since = self.loop.time()
        self._timeout = self._start_timeout()
        # otherwise, the second write of a reply waits 40 ms for the client's delayed acknowledgement of the first
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > most_server_connections():
            TOO_MANY.log(f"{len(self.connections):,} connections: idle ones are closed to make room")
            connections: set[Any] = self.connections
            idle = [connection for connection in connections if not connection.is_answering]
            if idle:
                idle_longest = min(idle, key=lambda connection: connection.idle_since)
                idle_longest.transport.abort()
                connections.discard(idle_longest)  # the loop tells it only in its next turn that it is closed

    def connection_lost(self, exc: Exception | None) -> None:
        self._timeout.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """The first bytes of a later request start its time limit, and more bytes do not extend it."""
        if self._timeout.cancelled() and not self.is_answering:
            self._timeout = self._start_timeout()
        super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        if self.is_answering:
            self._timeout.cancel()

    def on_response_complete(self) -> None:
        self.idle_since = self.loop.time()
        super().on_response_complete()

    @property
    def is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _start_timeout(self) -> asyncio.TimerHandle:
        return self.loop.call_later(HEAD, self.transport.abort)


def most_server_connections() -> int:
    """As many connections as this process may open files, without those that stores, logs and files need."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST if files == resource.RLIM_INFINITY else max(1, min(MOST, files - max(RESERVED, files // 8)))


def log_server_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log once a minute that descriptors have run out. asyncio would log a traceback for each of 512 attempts."""
    if isinstance(context.get("exception"), OSError) and "socket" in context:
        NO_DESCRIPTORS.log("out of file descriptors: new connections wait; raise ulimit -n")
    else:
        loop.default_exception_handler(context)


# The application.

MOST_DIGITS = sys.get_int_max_str_digits()  # of a whole number that Python reads
NOT_JSON = f"must be JSON in UTF-8, not nested too deeply, with whole numbers of at most {MOST_DIGITS:,} digits"


def create_app(served: ServedStudies, access: RequestAccess) -> CheckedApp:
    """A server for the studies of a store, as an ASGI application."""
    app = FastAPI(
        title="thresher",
        version=__version__,
        description="Which of K noisy options clear a bar? Ask for pulls, tell rewards, read the verdict.",
        docs_url=None,  # FastAPI's pages load scripts from another host
        redoc_url=None,
    )
    app.include_router(api.api_router(served))
    app.include_router(pages.pages_router(served, write=access.may_write))

    @app.exception_handler(ThresherError)
    def library_error(request: Request, error: ThresherError) -> Response:
        if isinstance(error, StoreFailed):
            log.warning(str(error))
        if isinstance(error, UnknownStudy):
            served.forget(unescape_slashes(request.path_params.get("study", "")))
        return _error_reply(request, refusal_of(error))

    app.add_exception_handler(Refusal, _error_reply)  # type: ignore[arg-type]  # it is called only with these
    app.add_exception_handler(Exception, lambda request, _: _error_reply(request, SURPRISE))  # `CheckedApp` logs it

    @app.exception_handler(RequestValidationError)
    def malformed_request(request: Request, error: RequestValidationError) -> Response:
        return _error_reply(request, refusal_of_malformed(request, error))

    @app.exception_handler(HTTPException)
    def http_error(request: Request, error: HTTPException) -> Response:
        status = error.status_code
        if status == 404:
            path, remedy = unescape_slashes(request.url.path), "/docs lists the addresses of the interface"
            refusal = Refusal(status, "path", path, "is not here", remedy)
        elif status == 405:
            rule = "is not a method that this address takes"
            refusal = Refusal(status, "method", request.method, rule, "/docs lists the methods of each address")
        else:
            rule = NOT_JSON if status == 400 else str(error.detail)
            refusal = Refusal(status, "body", None, rule, "/docs describes the interface")
        response = _error_reply(request, refusal)
        response.headers.update(error.headers or {})
        return response

    return CheckedApp(app, access)


def _error_reply(request: Request, refusal: Refusal) -> Response:
    return refusal_reply(refusal, request.scope, is_page=not request.url.path.startswith("/api/"))


# Starting the server.

TOKEN = re.compile(r"[A-Za-z0-9._~-]{8,200}")
SHUTDOWN = 2.0  # seconds after Ctrl-C within which threads must end
TIDY = 60  # seconds between two checks for studies to forget


class Options(NamedTuple):
    """What ``thresher serve`` was started with."""

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    write: bool = False
    write_token: str | None = None
    allowed: tuple[str, ...] = ()
    tls_cert: str | None = None
    tls_key: str | None = None


def run_server(store: Store, options: Options, announce: Callable[[str], None], *, reader: Store | None = None) -> None:
    """Serve until a signal comes. Once the server listens, ``announce`` gets the address with the token.

    With ``write`` it then gets the address with the write token. ``reader`` is the same store, opened a second time, so
    that no reader waits for a writer.
    """
    token, write_token = server_tokens(options)
    names = [server_host_name(name) for name in options.allowed]
    family, address = resolve_host(options.host)
    if is_server_on_any_address(address) and not names:
        remedy = "name the server as its users will: --allow-host NAME"
        raise InvalidInput("host", options.host, "listens under every name, so the allowed ones must be given", remedy)
    tls = server_tls_context(options)
    with _listening_socket(family, options.host, address, options.port) as listener:
        bound = listener.getsockname()[1]
        hosts = server_host_headers(options.host, bound, names) | server_host_headers(address, bound, names)
        cookie, served = f"thresher-{bound}", ServedStudies(store, reader)
        app = create_app(served, RequestAccess(token, hosts, write_token, cookie, secure=tls is not None))
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # it would log every stream that it ends when it stops
        config = uvicorn.Config(
            app,
            loop="asyncio",
            http=ServerConnection,
            access_log=False,  # addresses may hold the token
            log_config=None,
            lifespan="off",
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_keep_alive=IDLE,
            timeout_graceful_shutdown=1,  # streams never end on their own
            callback_notify=served.tidy_soon,
            timeout_notify=TIDY,
        )
        if tls is None and not is_server_on_loopback(address):
            log.warning(
                "this is reachable from other machines without encryption: anyone who sees the traffic sees the "
                "tokens: use --tls-cert and --tls-key, a proxy with TLS, or a tunnel"
            )
        start = f"http{'s' if tls else ''}://{printed_host(options.host, address, bound, names)}/?token="
        announce(f"{start}{token}")
        if write_token is not None:
            announce(f"to write: {start}{write_token}")
        config.load()
        config.ssl = tls
        Server(config, served).run(sockets=[listener])


class Server(uvicorn.Server):
    """uvicorn's server, but it ends soon after Ctrl-C even if threads are waiting."""

    def __init__(self, config: uvicorn.Config, served: ServedStudies) -> None:
        super().__init__(config)
        self._served, self._is_interrupted = served, False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(log_server_loop_error)
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._is_interrupted = self._is_interrupted or sig == signal.SIGINT
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop soon. Only writes that were not acknowledged may be lost."""
        self._served.shut_down()
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # asyncio may try to accept once more
        if self._is_interrupted:  # SIGTERM ends the process after the shutdown anyway
            exit_timer = threading.Timer(SHUTDOWN, os._exit, [128 + signal.SIGINT])
            exit_timer.daemon = True
            exit_timer.start()
        await super().shutdown(sockets)


def server_tokens(options: Options) -> tuple[str, str | None]:
    """The read token and, with ``write``, the write token. Tokens that were not chosen are random."""
    token = server_token(options.token)
    if not options.write:
        return token, None
    write_token = server_token(options.write_token, "--write-token")
    if write_token == token:
        remedy = "choose another --write-token; without it, a random one is made"
        raise InvalidInput("the two tokens", rule="must differ", remedy=remedy)
    return token, write_token


def server_token(token: str | None, option: str = "--token") -> str:
    """Check a chosen token, or make a random one."""
    if token is None:
        return secrets.token_urlsafe(24)
    if not TOKEN.fullmatch(token):  # the value is not shown, because it may be nearly right
        rule = "must have 8 to 200 characters of letters, digits and . _ ~ -"
        raise InvalidInput(option, rule=rule, remedy="without the option a random one is made")
    return token


def server_tls_context(options: Options) -> ssl.SSLContext | None:
    if options.tls_cert is None:
        if options.tls_key is not None:
            remedy = "name the certificate: --tls-cert FILE"
            raise InvalidInput("tls key", options.tls_key, "is useless without a certificate", remedy)
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # TLS 1.2 at least
    try:
        context.load_cert_chain(options.tls_cert, options.tls_key, password=_no_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        files = " and ".join(file for file in (options.tls_cert, options.tls_key) if file)
        remedy = "give --tls-cert a certificate and --tls-key its key, both as PEM files"
        raise InvalidInput("tls certificate", files, f"cannot be used ({reason})", remedy) from None
    context.set_alpn_protocols(["http/1.1"])
    return context


def _no_password() -> str:
    """Without this, OpenSSL would ask on the terminal."""
    raise ValueError("the key has a password")


def server_host_name(name: str) -> str:
    """A name that may appear in a Host header."""
    if not re.fullmatch(r"[A-Za-z0-9.-]+(:\d+)?|\[[0-9A-Fa-f:.]+\](:\d+)?", name):
        raise InvalidInput("allowed host", name, "must be NAME or NAME:PORT", "write it without http:// and slashes")
    return name


def server_host_headers(host: str, port: int, allowed: Iterable[str]) -> set[str]:
    """The Host headers that name this server.

    >>> sorted(server_host_headers("127.0.0.1", 8000, ["box"]))
    ['127.0.0.1:8000', '[::1]:8000', 'box', 'box:8000', 'localhost:8000']
    >>> sorted(server_host_headers("0.0.0.0", 80, ["Box"]) - server_host_headers("127.0.0.1", 80, []))
    ['box', 'box:80']
    >>> sorted(server_host_headers("10.0.0.5", 80, []) - server_host_headers("127.0.0.1", 80, []))
    ['10.0.0.5', '10.0.0.5:80']
    """
    own = {"127.0.0.1", "localhost", "[::1]"} | (set() if is_server_on_any_address(host) else {server_url_host(host)})
    headers = {f"{name}:{port}" for name in own} | (own if port == 80 else set())
    for name in allowed:
        headers |= {name, server_with_port(name, port)}
    return {header.lower() for header in headers}


def server_url_host(host: str) -> str:
    """An address as written in a URL.

    >>> server_url_host("::1"), server_url_host("127.0.0.1")
    ('[::1]', '127.0.0.1')
    """
    ip = request_ip(host)
    return f"[{host}]" if ip and ip.version == 6 else host


def is_server_on_any_address(address: str) -> bool:
    """Whether the address means all addresses of the machine.

    >>> [is_server_on_any_address(address) for address in ("0.0.0.0", "::", "127.0.0.1", "box")]
    [True, True, False, False]
    """
    ip = request_ip(address)
    return ip is not None and (getattr(ip, "ipv4_mapped", None) or ip).is_unspecified


def is_server_on_loopback(address: str) -> bool:
    """Whether only this machine can reach the address.

    >>> [is_server_on_loopback(address) for address in ("127.0.0.1", "::1", "0.0.0.0", "10.0.0.5")]
    [True, True, False, False]
    """
    ip = request_ip(address)
    return ip is not None and ip.is_loopback


def printed_host(host: str, address: str, port: int, names: list[str]) -> str:
    """The server's name in the printed address. An allowed name may include a proxy's port.

    >>> printed_host("0", "0.0.0.0", 80, ["box:8000"]), printed_host("::1", "::1", 9000, [])
    ('box:8000', '[::1]:9000')
    """
    return server_with_port(names[0] if is_server_on_any_address(address) else server_url_host(host), port)


def server_with_port(name: str, port: int) -> str:
    """A name with this port, unless it already has one."""
    return name if re.search(r":\d+$", name) else f"{name}:{port}"


def resolve_host(host: str) -> tuple[socket.AddressFamily, str]:
    """Resolve a name. ``0`` and similar names mean every address of the machine, and must be recognised."""
    try:
        family, *_, address = socket.getaddrinfo(host or "?", None, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        rule = "is neither an address nor a name that this machine can resolve"
        raise InvalidInput("host", host, rule, "write 127.0.0.1, or an address of this machine") from None
    return family, str(address[0])


def _listening_socket(family: socket.AddressFamily, host: str, address: str, port: int) -> socket.socket:
    try:
        return socket.create_server((address, port), family=family, backlog=512)
    except OSError as error:
        rule = f"cannot be used ({os.strerror(error.errno) if error.errno else error})"
        remedy = "choose another --port, or 0 for any free one"
        if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            remedy = "give --host an address of this machine"
        raise InvalidInput("address", f"{server_url_host(host)}:{port}", rule, remedy) from None
