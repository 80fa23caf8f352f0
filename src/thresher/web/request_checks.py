"""The checks that every request must pass before it is routed, whatever its method and path.

In this order: the path is normalised, the framing of the body checked, the Host header, the Origin header where there
is one, headers that must not be repeated, the token or the session, whether it may write, the size of the body. Only
then does the application see the request. Its replies get security headers; an exception becomes one sentence
without a traceback.
"""

import asyncio
import contextlib
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..text.logs import log
from .access import LIFE, Access, Entry, Role, Throttle
from .refusals import SURPRISE, Refusal, reply

MOST_BYTES = 1_000_000  # of a body
SLOW = 60.0  # seconds for a body to arrive
HEALTHY = b'{"ok":true}'
READING = ("GET", "HEAD", "OPTIONS")
ONCE = ("authorization", "thresher-agent", "last-event-id", "idempotency-key")  # headers that may come only once
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
    b"cache-control": b"no-store",
}


class CheckedApp:
    """The application behind its checks."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
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
        answer = _Answer(scope, receive, send)
        try:
            passed = normalised(scope)
            headers = Headers(raw=[(name.lower(), value) for name, value in scope["headers"]])
            _check_framing(headers)
            self._check_host(headers)
            self._check_origin(headers)
            _check_repeated(headers)
            if passed["path"] == "/healthz" and scope["method"] in READING:  # neither a store nor a thread is needed
                await answer.send(Response(HEALTHY, media_type="application/json"))
                return
            if await self._entered(passed, answer):
                return
            self._check_writing(scope["method"], self._role(headers, passed))
            await self.app(passed, await _bounded(passed, headers, receive), answer)
        except Refusal as refusal:
            await answer.refuse(refusal)
        except Exception:
            # without the query, which may hold the token, and with the path quoted, so that it is one line
            log.exception(f"{scope['method']} {quote(scope['path'])} failed")
            await answer.refuse(SURPRISE)

    def _check_host(self, headers: Headers) -> None:
        """Refuse pages of another name that resolves to this address (DNS rebinding)."""
        found = headers.getlist("host")
        if len(found) != 1:
            raise Refusal(400, "Host", found or None, "there must be exactly one", "send one Host header")
        if found[0].lower() not in self._hosts:
            remedy = "use the address that was printed, or start with --allow-host NAME"
            raise Refusal(421, "Host", found[0], "is not a name of this server", remedy)

    def _check_origin(self, headers: Headers) -> None:
        """A page may act only on the server that served it: another port of the same name is another site."""
        here = [host.lower() for host in headers.getlist("host")]
        for origin in headers.getlist("origin"):
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
        where = scope["raw_path"].decode() + (f"?{rest}" if rest else "")
        cookie = f"{self._access.cookie}={self._entry.session(role)}; HttpOnly; SameSite=Strict; Path=/; Max-Age={LIFE}"
        cookie += "; Secure" if self._access.secure else ""
        await answer.send(Response(status_code=303, headers={"location": where, "set-cookie": cookie}))
        return True

    def _role(self, headers: Headers, scope: Scope) -> Role:
        for bearer in headers.getlist("authorization"):  # at most one
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

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send, self._begun = scope, receive, send, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            own = {name.lower() for name, _ in message["headers"]}
            safety = [pair for pair in SAFETY.items() if pair[0] not in own]
            message = {**message, "headers": [*message["headers"], *safety]}
        await self._send(message)

    async def send(self, response: Response) -> None:
        if self._scope["method"] == "HEAD":
            response.body = b""
        await response(self._scope, self._receive, self)

    async def refuse(self, refusal: Refusal) -> None:
        if self._begun:  # a reply that broke off cannot be repaired; the server closes the connection
            return
        response = reply(refusal, self._scope)
        if refusal.status in CLOSED:
            response.headers["connection"] = "close"
        await self.send(response)


async def _bounded(scope: Scope, headers: Headers, receive: Receive) -> Receive:
    """The body, read in full before anything acts on it, if it is small enough."""
    stated = headers.getlist("content-length")
    if not stated and not headers.getlist("transfer-encoding"):
        return receive
    if any(not length.isdecimal() or len(length) > 10 or int(length) > MOST_BYTES for length in stated):
        raise _too_large()
    body = bytearray()
    try:
        async with asyncio.timeout(SLOW):
            with contextlib.suppress(ClientDisconnect):
                async for part in Request(scope, receive).stream():
                    body += part
                    if len(body) > MOST_BYTES:
                        raise _too_large()
    except TimeoutError:
        rule = f"must arrive within {SLOW:g} s"
        raise Refusal(408, "body", None, rule, "send it again, and faster") from None
    left: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


def _check_framing(headers: Headers) -> None:
    """Two lengths for one body let a request be smuggled past a proxy that trusts the other one."""
    if headers.getlist("content-length") and headers.getlist("transfer-encoding"):
        rule = "must not come with Transfer-Encoding"
        raise Refusal(400, "Content-Length", None, rule, "send one of the two")


def _check_repeated(headers: Headers) -> None:
    """A repeated header: a proxy may have checked the other value."""
    for name in ONCE:
        if len(headers.getlist(name)) > 1:
            shown = name.title().replace("-Id", "-ID")
            raise Refusal(400, shown, None, "must not come more than once", f"send one {shown} header")


def _cookies(headers: Headers, name: str) -> list[str]:
    """All values of a cookie. Other programs on this machine set cookies, too; oddities in theirs are ignored."""
    pairs = (part.partition("=") for text in headers.getlist("cookie") for part in text.split(";"))
    return [value.strip().strip('"') for key, _, value in pairs if key.strip() == name]


def _unknown() -> Refusal:
    remedy = "open the address that thresher serve printed, or send the token in the Authorization header"
    return Refusal(401, "token", None, "is missing or wrong", remedy)


def _too_large() -> Refusal:
    return Refusal(413, "body", None, f"must not be larger than {MOST_BYTES:,} bytes", "send less at once")


def normalised(scope: Scope) -> Scope:
    """The request with its path in one form: a check must see the same path as the routes, or it could be evaded.

    A study's name may contain a slash: an encoded one stays encoded in ``path``, and `segment` decodes it.

    >>> normalised({"raw_path": b"/x/../api//studies/a%2Fb", "path": ""})["path"]
    '/api/studies/a%2Fb'
    """
    raw = scope.get("raw_path") or quote(scope["path"]).encode()
    parts: list[str] = []
    for piece in raw.partition(b"?")[0].split(b"/"):
        try:
            part = unquote_to_bytes(piece).decode()
        except UnicodeDecodeError:
            raise Refusal(400, "path", None, "must be UTF-8", "encode it as UTF-8") from None
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    path = "/" + "/".join(kept(part) for part in parts)
    return {**scope, "path": path, "raw_path": ("/" + "/".join(quote(part, safe="") for part in parts)).encode()}


def kept(part: str) -> str:
    """A segment as part of a path: its slashes do not separate.

    >>> kept("50%/x")
    '50%25%2Fx'
    """
    return part.replace("%", "%25").replace("/", "%2F")


def segment(part: str) -> str:
    """The segment that `kept` encoded.

    >>> segment(kept("50%/x"))
    '50%/x'
    """
    return part.replace("%2F", "/").replace("%25", "%")
