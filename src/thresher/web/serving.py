"""Starting the server: its socket, its names, its token."""

import errno
import ipaddress
import logging
import os
import re
import secrets
import socket
from collections.abc import Callable, Iterable

import uvicorn

from ..errors import InvalidInput
from ..store import Store
from .app import create_app

TOKEN = re.compile(r"[A-Za-z0-9._~-]{8,200}")


def serve(
    store: Store,
    *,
    host: str,
    port: int,
    token: str | None,
    allowed: Iterable[str],
    write: bool,
    announce: Callable[[str], None],
) -> None:
    """Serve until a signal comes. ``announce`` gets the address with the token, once the server listens."""
    secret = checked_token(token)
    names = [checked_name(name) for name in allowed]
    family, address = resolved(host)
    if is_any(address) and not names:
        remedy = "name the server as its users will: --allow-host NAME"
        raise InvalidInput("host", host, "listens under every name, so the allowed ones must be said", remedy)
    with _listening(family, host, address, port) as listener:
        bound = listener.getsockname()[1]
        hosts = host_headers(host, bound, names) | host_headers(address, bound, names)
        app = create_app(store, token=secret, hosts=hosts, write=write, cookie=f"thresher-{bound}")
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # it would say that it ended streams when it stops
        config = uvicorn.Config(
            app,
            access_log=False,  # addresses may hold the token
            log_config=None,
            lifespan="off",
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=1,  # streams do not end by themselves
        )
        announce(f"http://{shown(host, address, bound, names)}/?token={secret}")
        uvicorn.Server(config).run(sockets=[listener])


def checked_token(token: str | None) -> str:
    """The token; a random one if none was chosen."""
    if token is None:
        return secrets.token_urlsafe(24)
    if not TOKEN.fullmatch(token):  # the value is not shown: it may be nearly right
        rule = "must have 8 to 200 characters of letters, digits and . _ ~ -"
        raise InvalidInput("token", rule=rule, remedy="leave --token out for a random one")
    return token


def checked_name(name: str) -> str:
    """A name that may stand in a Host header."""
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
        found |= {name} if re.search(r":\d+$", name) and not name.endswith("]") else {name, f"{name}:{port}"}
    return {name.lower() for name in found}


def bracketed(host: str) -> str:
    """An address as it stands in a URL.

    >>> bracketed("::1"), bracketed("127.0.0.1")
    ('[::1]', '127.0.0.1')
    """
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host


def is_any(address: str) -> bool:
    """Whether whoever listens there listens at all addresses of the machine.

    >>> is_any("0.0.0.0"), is_any("::"), is_any("127.0.0.1"), is_any("box")
    (True, True, False, False)
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return found.is_unspecified or bool(mapped and mapped.is_unspecified)


def shown(host: str, address: str, port: int, names: list[str]) -> str:
    """The server as its first address names it; an allowed name may bring the port of a proxy.

    >>> shown("0", "0.0.0.0", 80, ["box:8000"]), shown("::1", "::1", 9000, [])
    ('box:8000', '[::1]:9000')
    """
    name = names[0] if is_any(address) else bracketed(host)
    return name if re.search(r"[^:\]]:\d+$|\]:\d+$", name) else f"{name}:{port}"


def resolved(host: str) -> tuple[socket.AddressFamily, str]:
    """The address that a name stands for: ``0`` and the like mean every address of the machine, and must be known."""
    try:
        found = socket.getaddrinfo(host or "?", None, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        rule = "is neither an address nor a name that this machine knows"
        raise InvalidInput("host", host, rule, "write 127.0.0.1, or an address of this machine") from None
    return found[0], str(found[4][0])


def _listening(family: socket.AddressFamily, host: str, address: str, port: int) -> socket.socket:
    try:
        return socket.create_server((address, port), family=family, backlog=512)
    except OSError as error:
        rule = f"cannot be listened at ({os.strerror(error.errno) if error.errno else error})"
        remedy = "choose another --port, or 0 for any free one"
        if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            remedy = "give --host an address of this machine"
        raise InvalidInput("address", f"{bracketed(host)}:{port}", rule, remedy) from None
