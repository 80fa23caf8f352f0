"""Who may send what: tokens and sessions, and the checks that every request passes before it is routed.

The checks come in this order: the path is normalised; the framing of the body, the Host header, the Origin header, and
repeated headers are checked; then the token or the session, whether it may write, and the size of the body. Replies
get security headers. An exception becomes one sentence without a traceback.

A browser gets a session in exchange for a token. A session is a signed text that is valid for half a day. The signing
key is made when the server starts, so a session from another server, or from before a restart, is invalid. The token
itself never becomes a cookie.
"""

import asyncio
import contextlib
import hmac
import ipaddress
import secrets
import time
from collections import Counter
from collections.abc import Iterable
from typing import Literal
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..text.escapes import escape_slashes
from ..text.logs import log
from .refusals import SURPRISE, Refusal, refusal_reply

Role = Literal["read", "write"]
SESSION_SECONDS = 12 * 3600
WARNING_SECONDS = 60.0  # between two warnings of the same kind
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


class RequestAccess:
    """The access tokens, the sessions given for them, and the host names that the server accepts.

    Without a write token the server is read-only. ``secure`` says whether the session's cookie needs TLS.

    >>> access = RequestAccess("reading-token", [], "writing-token")
    >>> access.role_of_token("reading-token"), access.role_of_token("writing-token"), access.role_of_token("another")
    ('read', 'write', None)
    >>> session = access.new_session("read")
    >>> forged = session.replace("read", "write")
    >>> [access.role_of_session(text) for text in (session, forged, "reading-token")]
    ['read', None, None]
    """

    def __init__(
        self,
        token: str,
        hosts: Iterable[str],
        write_token: str | None = None,
        cookie: str = "thresher",
        *,
        secure: bool = False,
    ) -> None:
        self.hosts = {host.lower() for host in hosts}  # the Host headers that name this server
        self.may_write, self.cookie, self.secure = write_token is not None, cookie, secure
        self._tokens: list[tuple[bytes, Role]] = [(token.encode(), "read")]
        if write_token is not None:
            self._tokens.append((write_token.encode(), "write"))
        self._key = secrets.token_bytes(32)

    def role_of_token(self, token: str) -> Role | None:
        """The role of a token, or None if it is wrong. All tokens are compared, each in constant time."""
        sent = token.encode("utf-8", "replace")
        roles = [role for known, role in self._tokens if hmac.compare_digest(sent, known)]
        return roles[0] if roles else None

    def new_session(self, role: Role) -> str:
        text = f"{role}.{int(time.time()) + SESSION_SECONDS}.{secrets.token_urlsafe(9)}"
        return f"{text}.{self._signature(text)}"

    def role_of_session(self, session: str) -> Role | None:
        """The role of a session, or None if it is invalid or has expired."""
        text, _, signature = session.rpartition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), self._signature(text).encode()):
            return None
        role, end, _ = text.split(".", 2)  # the signature is right, so the text is ours
        return ("write" if role == "write" else "read") if time.time() < int(end) else None

    def _signature(self, text: str) -> str:
        return hmac.digest(self._key, text.encode("utf-8", "replace"), "sha256").hex()


def request_ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """A numeric address, or None for a name."""
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None


def request_caller(text: str) -> str:
    """The caller behind an address. With IPv6, a household has a /64 of addresses.

    >>> request_caller("10.0.0.5"), request_caller("::ffff:10.0.0.5"), request_caller("2001:db8::1:2:3:4")
    ('10.0.0.5', '10.0.0.5', '2001:db8::/64')
    """
    address = request_ip(text)
    if isinstance(address, ipaddress.IPv6Address):
        return str(address.ipv4_mapped or ipaddress.ip_network((address, 64), strict=False))
    return str(address or text)


class RareRequestWarning:
    """A warning that is logged at most once a minute, with the number of those left out since."""

    def __init__(self) -> None:
        self._next, self._held = 0.0, 0

    def log(self, text: str) -> None:
        now = time.monotonic()
        if now < self._next:
            self._held += 1
            return
        more = f" ({self._held:,} more since the last such line)" if self._held else ""
        self._next, self._held = now + WARNING_SECONDS, 0
        log.warning(f"{text}{more}")


class RequestThrottle:
    """Counts wrong tokens per caller and minute. Right tokens are not counted."""

    MOST, WINDOW = 10, 60.0  # wrong tokens per caller, and the seconds after which all counts start again

    def __init__(self) -> None:
        self._wrong, self._window_ends = Counter[str](), 0.0
        self._warning = RareRequestWarning()

    def count_wrong(self, address: str) -> int:
        """Count a wrong token. Returns the seconds until this caller may try another; 0 means now.

        >>> throttle = RequestThrottle()
        >>> [throttle.count_wrong("10.0.0.5") for _ in range(11)]
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 60]
        """
        caller, now = request_caller(address), time.monotonic()
        if now >= self._window_ends:
            self._wrong.clear()
            self._window_ends = now + self.WINDOW
        self._wrong[caller] += 1
        if self._wrong[caller] <= self.MOST:
            return 0
        self._warning.log(f"many wrong tokens from {caller}")
        return max(1, round(self._window_ends - now))


class CheckedApp:
    """The application behind its checks."""

    def __init__(self, app: ASGIApp, access: RequestAccess) -> None:
        self.app, self._access, self._throttle = app, access, RequestThrottle()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = _RequestReply(scope, receive, send)
        try:
            scope = normalise_request_to_check(scope)
            headers = Headers(raw=[(name.lower(), value) for name, value in scope["headers"]])
            _check_headers(headers, self._access)
            if scope["path"] == "/healthz" and scope["method"] in READING:  # neither a store nor a thread is needed
                await answer.send(Response(HEALTHY, media_type="application/json"))
            elif redirect := self._token_to_session(scope):
                await answer.send(redirect)
            else:
                self._check_role(scope["method"], self._role(headers, scope))
                await self.app(scope, await _read_body(scope, headers, receive), answer)
        except Refusal as refusal:
            await answer.refuse(refusal)
        except Exception:
            # without the query, which may hold the token, and with the path quoted, so that it is one line
            log.exception(f"{scope['method']} {quote(scope['path'])} failed")
            await answer.refuse(SURPRISE)

    def _token_to_session(self, scope: Scope) -> Response | None:
        """If the address has a token, start a session and redirect to the address without the token."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in query if name == "token"]
        if not tokens or scope["method"] not in ("GET", "HEAD"):
            return None
        role, *others = [self._access.role_of_token(token) for token in tokens]
        if role is None or any(other != role for other in others):
            raise self._wrong_token(scope)
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        location = scope["raw_path"].decode() + (f"?{rest}" if rest else "")
        session = f"{self._access.cookie}={self._access.new_session(role)}"
        cookie = f"{session}; HttpOnly; SameSite=Strict; Path=/; Max-Age={SESSION_SECONDS}"
        cookie += "; Secure" if self._access.secure else ""
        return Response(status_code=303, headers={"location": location, "set-cookie": cookie})

    def _role(self, headers: Headers, scope: Scope) -> Role:
        if "authorization" in headers:
            kind, _, token = headers["authorization"].partition(" ")
            role = self._access.role_of_token(token.strip()) if kind.lower() == "bearer" else None
            if role is None:
                raise self._wrong_token(scope)
            return role
        roles = [self._access.role_of_session(session) for session in _cookies(headers, self._access.cookie)]
        if "write" in roles:
            return "write"
        if "read" in roles:
            return "read"
        raise _no_token()  # not counted: a page with an expired session keeps asking, and sessions cannot be guessed

    def _wrong_token(self, scope: Scope) -> Refusal:
        """A wrong token. A caller that sends many must wait; the right token is still accepted."""
        address = (scope.get("client") or ("?", 0))[0]
        seconds = self._throttle.count_wrong(str(address))
        if not seconds:
            return _no_token()
        rule = "this address has sent too many wrong ones"
        return Refusal(429, "token", None, rule, "wait, then send the right one", retry=seconds)

    def _check_role(self, method: str, role: Role) -> None:
        if method in READING or role == "write":
            return
        if not self._access.may_write:
            raise Refusal(403, "method", method, "this server is read-only", "start it with --write")
        remedy = "send the write token, which thresher serve --write printed"
        raise Refusal(403, "method", method, "this token or session may only read", remedy)


class _RequestReply:
    """Sends the application's reply with security headers, and knows whether the reply has begun."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send, self._begun = scope, receive, send, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            names = {name.lower() for name, _ in message["headers"]}
            safety = [header for header in SAFETY.items() if header[0] not in names]
            message = {**message, "headers": [*message["headers"], *safety]}
        await self._send(message)

    async def send(self, response: Response) -> None:
        if self._scope["method"] == "HEAD":
            response.body = b""
        await response(self._scope, self._receive, self)

    async def refuse(self, refusal: Refusal) -> None:
        if self._begun:  # a reply that broke off cannot be repaired; the server closes the connection
            return
        response = refusal_reply(refusal, self._scope)
        if refusal.status in CLOSED:
            response.headers["connection"] = "close"
        await self.send(response)


async def _read_body(scope: Scope, headers: Headers, receive: Receive) -> Receive:
    """Read the body in full before anything acts on it, and refuse a large one."""
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
    messages: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


def _check_headers(headers: Headers, access: RequestAccess) -> None:
    """Refuse requests that a proxy in front may have read differently, and those that pages of other sites sent."""
    if headers.getlist("content-length") and headers.getlist("transfer-encoding"):
        rule = "must not come with Transfer-Encoding"  # a proxy may trust the other of the two lengths
        raise Refusal(400, "Content-Length", None, rule, "send one of the two")
    hosts = headers.getlist("host")
    if len(hosts) != 1:
        raise Refusal(400, "Host", hosts or None, "there must be exactly one", "send one Host header")
    if hosts[0].lower() not in access.hosts:  # perhaps a page whose own name resolves to this address (DNS rebinding)
        remedy = "use the address that was printed, or start with --allow-host NAME"
        raise Refusal(421, "Host", hosts[0], "is not a name of this server", remedy)
    for origin in headers.getlist("origin"):
        scheme, _, host = origin.partition("://")
        if scheme.lower() not in ("http", "https") or host.lower() != hosts[0].lower():  # another port is another site
            raise Refusal(403, "Origin", origin, "is not this server's", "use pages that this server served")
    for name in ONCE:
        if len(headers.getlist(name)) > 1:  # a proxy may have checked the other value
            shown = name.title().replace("-Id", "-ID")
            raise Refusal(400, shown, None, "must not come more than once", f"send one {shown} header")


def _cookies(headers: Headers, name: str) -> list[str]:
    """All values of a cookie. Malformed cookies of other programs on this machine are ignored."""
    pairs = (part.partition("=") for text in headers.getlist("cookie") for part in text.split(";"))
    return [value.strip().strip('"') for key, _, value in pairs if key.strip() == name]


def _no_token() -> Refusal:
    remedy = "open the address that thresher serve printed, or send the token in the Authorization header"
    return Refusal(401, "token", None, "is missing or wrong", remedy)


def _too_large() -> Refusal:
    return Refusal(413, "body", None, f"must not be larger than {MOST_BYTES:,} bytes", "send less at once")


def normalise_request_to_check(scope: Scope) -> Scope:
    """The request with its path in one form: a check must see the same path as the routes, or it could be evaded.

    A study's name may contain a slash: an encoded one stays encoded in ``path``, and `unescape_request_slashes`
    decodes it.

    >>> normalise_request_to_check({"raw_path": b"/x/../api//studies/a%2Fb", "path": ""})["path"]
    '/api/studies/a%2Fb'
    """
    raw_path = scope.get("raw_path") or quote(scope["path"]).encode()
    parts: list[str] = []
    for encoded in raw_path.partition(b"?")[0].split(b"/"):
        try:
            part = unquote_to_bytes(encoded).decode()
        except UnicodeDecodeError:
            raise Refusal(400, "path", None, "must be UTF-8", "encode it as UTF-8") from None
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    path = "/" + "/".join(map(escape_slashes, parts))
    return {**scope, "path": path, "raw_path": ("/" + "/".join(quote(part, safe="") for part in parts)).encode()}
