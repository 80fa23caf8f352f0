"""Starting the server: its socket, its names, its tokens."""

import asyncio
import errno
import logging
import os
import re
import secrets
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from types import FrameType
from typing import NamedTuple

import uvicorn

from ..errors import InvalidInput
from ..log.store import Store
from ..text.logs import log
from .access import Access, ip_of
from .app import create_app
from .connections import IDLE, Connection, complain
from .served_studies import ServedStudies

TOKEN = re.compile(r"[A-Za-z0-9._~-]{8,200}")
LAST = 2.0  # seconds after Ctrl-C in which threads must have ended
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


def serve(store: Store, options: Options, announce: Callable[[str], None], *, reader: Store | None = None) -> None:
    """Serve until a signal comes. ``announce`` gets the address with the token, once the server listens.

    With ``write`` it then gets the address with the token that writes. ``reader`` is the same store, opened a second
    time, so that no reader waits for a writer.
    """
    token, write_token = tokens(options)
    names = [checked_name(name) for name in options.allowed]
    family, address = resolved(options.host)
    if is_any(address) and not names:
        remedy = "name the server as its users will: --allow-host NAME"
        raise InvalidInput("host", options.host, "listens under every name, so the allowed ones must be given", remedy)
    tls = tls_of(options)
    with _listening(family, options.host, address, options.port) as listener:
        bound = listener.getsockname()[1]
        hosts = host_headers(options.host, bound, names) | host_headers(address, bound, names)
        cookie, served = f"thresher-{bound}", ServedStudies(store, reader)
        app = create_app(served, Access(token, hosts, write_token, cookie, secure=tls is not None))
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # it would log every stream that it ends when it stops
        config = uvicorn.Config(
            app,
            loop="asyncio",
            http=Connection,
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
        if tls is None and not is_loopback(address):
            log.warning(
                "this is reachable from other machines without encryption: anyone who sees the traffic sees the "
                "tokens: use --tls-cert and --tls-key, a proxy with TLS, or a tunnel"
            )
        start = f"http{'s' if tls else ''}://{shown(options.host, address, bound, names)}/?token="
        announce(f"{start}{token}")
        if write_token is not None:
            announce(f"to write: {start}{write_token}")
        config.load()
        config.ssl = tls
        Server(config, served).run(sockets=[listener])


class Server(uvicorn.Server):
    """uvicorn's server, which ends soon after Ctrl-C even if threads are waiting."""

    def __init__(self, config: uvicorn.Config, served: ServedStudies) -> None:
        super().__init__(config)
        self._served, self._is_interrupted = served, False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(complain)
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._is_interrupted = self._is_interrupted or sig == signal.SIGINT
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop soon: only writes that were not acknowledged may be lost."""
        self._served.end()
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # asyncio may try to accept once more
        if self._is_interrupted:  # SIGTERM ends the process after the shutdown anyway
            last = threading.Timer(LAST, os._exit, [128 + signal.SIGINT])
            last.daemon = True
            last.start()
        await super().shutdown(sockets)


def tokens(options: Options) -> tuple[str, str | None]:
    """The token that reads and, with ``write``, the one that writes; random ones if none were chosen."""
    token = checked_token(options.token)
    if not options.write:
        return token, None
    write_token = checked_token(options.write_token, "--write-token")
    if write_token == token:
        remedy = "choose another --write-token; without it, a random one is made"
        raise InvalidInput("the two tokens", rule="must differ", remedy=remedy)
    return token, write_token


def checked_token(token: str | None, option: str = "--token") -> str:
    """The token; a random one if none was chosen."""
    if token is None:
        return secrets.token_urlsafe(24)
    if not TOKEN.fullmatch(token):  # the value is not shown: it may be nearly right
        rule = "must have 8 to 200 characters of letters, digits and . _ ~ -"
        raise InvalidInput(option, rule=rule, remedy="without the option a random one is made")
    return token


def tls_of(options: Options) -> ssl.SSLContext | None:
    if options.tls_cert is None:
        if options.tls_key is not None:
            remedy = "name the certificate: --tls-cert FILE"
            raise InvalidInput("tls key", options.tls_key, "is useless without a certificate", remedy)
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # TLS 1.2 at least
    try:
        context.load_cert_chain(options.tls_cert, options.tls_key, password=_no_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        files = " and ".join(file for file in (options.tls_cert, options.tls_key) if file)
        remedy = "give --tls-cert a certificate and --tls-key its key, both as PEM files"
        raise InvalidInput("tls certificate", files, f"cannot be used ({why})", remedy) from None
    context.set_alpn_protocols(["http/1.1"])
    return context


def _no_password() -> str:
    """Without this, OpenSSL would ask on the terminal."""
    raise ValueError("the key has a password")


def checked_name(name: str) -> str:
    """A name that may appear in a Host header."""
    if not re.fullmatch(r"[A-Za-z0-9.-]+(:\d+)?|\[[0-9A-Fa-f:.]+\](:\d+)?", name):
        raise InvalidInput("allowed host", name, "must be NAME or NAME:PORT", "write it without http:// and slashes")
    return name


def host_headers(host: str, port: int, allowed: Iterable[str]) -> set[str]:
    """The Host headers that name this server.

    >>> sorted(host_headers("127.0.0.1", 8000, ["box"]))
    ['127.0.0.1:8000', '[::1]:8000', 'box', 'box:8000', 'localhost:8000']
    """
    own = {"127.0.0.1", "localhost", "[::1]"} | (set() if is_any(host) else {bracketed(host)})
    found = {f"{name}:{port}" for name in own} | (own if port == 80 else set())
    for name in allowed:
        found |= {name, with_port(name, port)}
    return {name.lower() for name in found}


def bracketed(host: str) -> str:
    """An address as written in a URL.

    >>> bracketed("::1"), bracketed("127.0.0.1")
    ('[::1]', '127.0.0.1')
    """
    found = ip_of(host)
    return f"[{host}]" if found and found.version == 6 else host


def is_any(address: str) -> bool:
    """Whether it means all addresses of the machine.

    >>> is_any("0.0.0.0"), is_any("::"), is_any("127.0.0.1"), is_any("box")
    (True, True, False, False)
    """
    found = ip_of(address)
    return any(each.is_unspecified for each in (found, getattr(found, "ipv4_mapped", None)) if each)


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach it.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("10.0.0.5")
    (True, True, False, False)
    """
    found = ip_of(address)
    return found is not None and found.is_loopback


def shown(host: str, address: str, port: int, names: list[str]) -> str:
    """The server's name in the printed address; an allowed name may include a proxy's port.

    >>> shown("0", "0.0.0.0", 80, ["box:8000"]), shown("::1", "::1", 9000, [])
    ('box:8000', '[::1]:9000')
    """
    return with_port(names[0] if is_any(address) else bracketed(host), port)


def with_port(name: str, port: int) -> str:
    """A name as it is if it names a port, otherwise with this one."""
    return name if re.search(r":\d+$", name) else f"{name}:{port}"


def resolved(host: str) -> tuple[socket.AddressFamily, str]:
    """The address of a name. ``0`` and the like mean every address of the machine, and must be recognised."""
    try:
        found = socket.getaddrinfo(host or "?", None, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        rule = "is neither an address nor a name that this machine can resolve"
        raise InvalidInput("host", host, rule, "write 127.0.0.1, or an address of this machine") from None
    return found[0], str(found[4][0])


def _listening(family: socket.AddressFamily, host: str, address: str, port: int) -> socket.socket:
    try:
        return socket.create_server((address, port), family=family, backlog=512)
    except OSError as error:
        rule = f"cannot be used ({os.strerror(error.errno) if error.errno else error})"
        remedy = "choose another --port, or 0 for any free one"
        if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            remedy = "give --host an address of this machine"
        raise InvalidInput("address", f"{bracketed(host)}:{port}", rule, remedy) from None
