"""The gate: the checks that every request must pass before it is routed, whatever its method and path.

In this order: the path is normalised, the framing of the body checked, the Host header, the Origin header where there
is one, headers that must not be repeated, the token or the session, whether it may write, the size of the body. Only
then does the application see the request. Its replies get security headers; an exception becomes one sentence
without a traceback.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from ..text.logs import log
from .access import LIFE, Access, Entry, Role, Throttle
from .paths import normalised
from .refusals import Refusal, page_or_json

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 1_000_000  # of a body
SLOW = 60.0  # seconds for a body to arrive
HEALTHY = b'{"ok":true}'
READING = ("GET", "HEAD", "OPTIONS")
LET_IN = "thresher.let_in"  # in a request's state: what to call when it has passed the checks
ONCE = (b"authorization", b"thresher-agent", b"last-event-id", b"idempotency-key")  # headers that may come only once
# After these the connection is closed: the rest of the body is not read, or the sender is unknown.
CLOSED = (400, 401, 403, 408, 413, 421, 429)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SAFETY = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
}
SURPRISE = Refusal(500, "server", None, "something went wrong", "its log says more; try again")


class Gate:
    """The application behind its checks."""

    def __init__(self, app: App, access: Access) -> None:
        self.app, self._access = app, access
        self._entry, self._throttle = Entry(access.token, access.write_token), Throttle()
        self._hosts = {host.lower() for host in access.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = _Answer(send, scope["method"])
        try:
            passed = normalised(scope)
            headers = [(name.lower(), value) for name, value in scope["headers"]]
            _check_framing(headers)
            self._check_host(headers)
            self._check_origin(headers)
            _check_repeated(headers)
            if passed["path"] == "/healthz" and scope["method"] in READING:  # neither a store nor a thread is needed
                await answer.whole(200, [(b"content-type", b"application/json")], HEALTHY)
                return
            if await self._entered(passed, answer):
                return
            self._check_writing(scope["method"], self._role(headers, passed))
            scope.get("state", {}).get(LET_IN, lambda: None)()
            await self.app(passed, await _bounded(headers, receive), answer)
        except Refusal as refusal:
            await answer.refuse(refusal, scope)
        except Exception:
            # without the query, which may hold the token, and with the path quoted, so that it is one line
            log.exception(f"{scope['method']} {quote(scope['path'])} failed")
            await answer.refuse(SURPRISE, scope)

    def _check_host(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Refuse pages of another name that resolves to this address (DNS rebinding)."""
        found = _all(headers, b"host")
        if len(found) != 1:
            raise Refusal(400, "Host", found or None, "there must be exactly one", "send one Host header")
        if found[0].lower() not in self._hosts:
            remedy = "use the address that was printed, or start with --allow-host NAME"
            raise Refusal(421, "Host", found[0], "is not a name of this server", remedy)

    def _check_origin(self, headers: list[tuple[bytes, bytes]]) -> None:
        """A page may act only on the server that served it: another port of the same name is another site."""
        here = [host.lower() for host in _all(headers, b"host")]
        for origin in _all(headers, b"origin"):
            scheme, _, host = origin.partition("://")
            if scheme.lower() not in ("http", "https") or host.lower() not in here:
                raise Refusal(403, "Origin", origin, "is not this server's", "use pages that this server served")

    async def _entered(self, scope: Scope, answer: "_Answer") -> bool:
        """Whether the token was in the address: then start a session, and redirect to the address without it."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if not given or scope["method"] not in ("GET", "HEAD"):
            return False
        roles = [self._entry.role(value) for value in given]
        role = roles[0]
        if role is None or any(other != role for other in roles):
            raise self._wrong(scope)
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        where = scope["raw_path"] + (b"?" + rest.encode() if rest else b"")
        cookie = f"{self._access.cookie}={self._entry.session(role)}; HttpOnly; SameSite=Strict; Path=/; Max-Age={LIFE}"
        cookie += "; Secure" if self._access.secure else ""
        await answer.whole(
            303, [(b"location", where), (b"set-cookie", cookie.encode()), (b"cache-control", b"no-store")], b""
        )
        return True

    def _role(self, headers: list[tuple[bytes, bytes]], scope: Scope) -> Role:
        for bearer in _all(headers, b"authorization"):  # at most one
            kind, _, value = bearer.partition(" ")
            role = self._entry.role(value.strip()) if kind.lower() == "bearer" else None
            if role is None:
                raise self._wrong(scope)
            return role
        roles = [self._entry.role_in(value) for value in _cookies(headers, self._access.cookie)]
        if "write" in roles:
            return "write"
        if "read" in roles:
            return "read"
        raise _unknown()  # not counted: a page with an expired session keeps asking, and sessions cannot be guessed

    def _wrong(self, scope: Scope) -> Refusal:
        """A wrong token. A caller that sends many must wait; the right token is still accepted."""
        address = (scope.get("client") or ("?", 0))[0]
        seconds = self._throttle.wait(str(address))
        if not seconds:
            return _unknown()
        rule = "this address has sent too many wrong ones"
        return Refusal(429, "token", None, rule, "wait, then send the right one", retry=seconds)

    def _check_writing(self, method: str, role: Role) -> None:
        if method in READING or role == "write":
            return
        if self._access.write_token is None:
            raise Refusal(403, "method", method, "this server is read-only", "start it with --write")
        remedy = "send the write token, which thresher serve --write printed"
        raise Refusal(403, "method", method, "this token or session may only read", remedy)


class _Answer:
    """Sends the application's reply with security headers; knows whether the reply has begun."""

    def __init__(self, send: Send, method: str) -> None:
        self._send, self._method, self._begun = send, method, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            own = {name.lower() for name, _ in message["headers"]}
            safety = [pair for pair in SAFETY.items() if pair[0] not in own]
            if b"cache-control" not in own:
                safety.append((b"cache-control", b"no-store"))
            message = {**message, "headers": [*message["headers"], *safety]}
        await self._send(message)

    async def whole(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        headers = [*headers, (b"content-length", str(len(body)).encode())]
        await self({"type": "http.response.start", "status": status, "headers": headers})
        await self({"type": "http.response.body", "body": b"" if self._method == "HEAD" else body})

    async def refuse(self, refusal: Refusal, scope: Scope) -> None:
        if self._begun:  # a reply that broke off cannot be repaired; the server closes the connection
            return
        kind, body = page_or_json(refusal, scope)
        headers = [(b"content-type", kind)]
        headers += [(name.lower().encode(), value.encode()) for name, value in refusal.headers.items()]
        if refusal.status in CLOSED:
            headers.append((b"connection", b"close"))
        await self.whole(refusal.status, headers, body)


async def _bounded(headers: list[tuple[bytes, bytes]], receive: Receive) -> Receive:
    """The body, read in full before anything acts on it, if it is small enough."""
    stated = _all(headers, b"content-length")
    if not stated and not _all(headers, b"transfer-encoding"):
        return receive
    if any(not length.isdecimal() or len(length) > 10 or int(length) > MOST_BYTES for length in stated):
        raise _too_large()
    try:
        async with asyncio.timeout(SLOW):
            body = await _whole(receive)
    except TimeoutError:
        rule = f"must arrive within {SLOW:g} s"
        raise Refusal(408, "body", None, rule, "send it again, and faster") from None
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


async def _whole(receive: Receive) -> bytes:
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            break
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        more = message.get("more_body", False)
        if size > MOST_BYTES:
            raise _too_large()
    return b"".join(parts)


def _check_framing(headers: list[tuple[bytes, bytes]]) -> None:
    """Two lengths for one body let a request be smuggled past a proxy that trusts the other one."""
    if _all(headers, b"content-length") and _all(headers, b"transfer-encoding"):
        rule = "must not come with Transfer-Encoding"
        raise Refusal(400, "Content-Length", None, rule, "send one of the two")


def _check_repeated(headers: list[tuple[bytes, bytes]]) -> None:
    """A repeated header: a proxy may have checked the other value."""
    for name in ONCE:
        if len(_all(headers, name)) > 1:
            shown = name.decode().title().replace("-Id", "-ID")
            raise Refusal(400, shown, None, "must not come more than once", f"send one {shown} header")


def _all(headers: list[tuple[bytes, bytes]], wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in headers if name == wanted]


def _cookies(headers: list[tuple[bytes, bytes]], name: str) -> list[str]:
    """All values of a cookie. Other programs on this machine set cookies, too; oddities in theirs are ignored."""
    pairs = (part.partition("=") for text in _all(headers, b"cookie") for part in text.split(";"))
    return [value.strip().strip('"') for key, _, value in pairs if key.strip() == name]


def _unknown() -> Refusal:
    remedy = "open the address that thresher serve printed, or send the token in the Authorization header"
    return Refusal(401, "token", None, "is missing or wrong", remedy)


def _too_large() -> Refusal:
    return Refusal(413, "body", None, f"must not be larger than {MOST_BYTES:,} bytes", "send less at once")
