"""Starting the server: its socket, its names, its token."""

import ipaddress
import logging
import re
import secrets
import socket
from collections.abc import Callable, Iterable

import uvicorn

from ..errors import InvalidInput
from ..store import Store
from .app import create_app

ANY = ("0.0.0.0", "::")  # noqa: S104  # compared with, not bound to
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
    if host in ANY and not names:
        remedy = "name the server as its users will: --allow-host NAME"
        raise InvalidInput("host", host, "listens under every name, so the allowed ones must be said", remedy)
    with _listening(host, port) as listener:
        bound = listener.getsockname()[1]
        app = create_app(
            store, token=secret, hosts=host_headers(host, bound, names), write=write, cookie=f"thresher-{bound}"
        )
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
        shown = names[0].partition(":")[0] if host in ANY else bracketed(host)
        announce(f"http://{shown}:{bound}/?token={secret}")
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
    own = {"127.0.0.1", "localhost", "[::1]"} | ({bracketed(host)} - set(ANY) - {"[::]"})
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


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        rule = f"cannot be listened at ({error.strerror or error})"
        raise InvalidInput("address", f"{host}:{port}", rule, "choose another --port, or 0 for any free one") from None
