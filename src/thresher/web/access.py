"""Access tokens, the sessions that browsers get in exchange for one, and callers that send wrong ones.

A session is a signed text that is valid for half a day. Its key is made when the server starts, so a session of another
server, or from before a restart, is invalid. The token itself never becomes a cookie.
"""

import hmac
import ipaddress
import secrets
import time
from collections.abc import Iterable
from typing import Literal, NamedTuple

from ..text.logs import log

Role = Literal["read", "write"]
LIFE = 12 * 3600  # seconds that a session lasts
EVERY = 60.0  # seconds between two lines of the same kind


class Access(NamedTuple):
    """The access tokens, and the host names that the server accepts."""

    token: str
    hosts: Iterable[str]  # the Host headers that name this server
    write_token: str | None = None  # None: the server is read-only
    cookie: str = "thresher"
    secure: bool = False  # whether the cookie needs TLS


class Entry:
    """The tokens, and the sessions given for them.

    >>> entry = Entry("reading-token", "writing-token")
    >>> entry.role("reading-token"), entry.role("writing-token"), entry.role("another")
    ('read', 'write', None)
    >>> session = entry.session("read")
    >>> entry.role_in(session), entry.role_in(session.replace("read", "write")), entry.role_in("reading-token")
    ('read', None, None)
    """

    def __init__(self, token: str, write_token: str | None = None) -> None:
        self._tokens: list[tuple[bytes, Role]] = [(token.encode(), "read")]
        if write_token is not None:
            self._tokens.append((write_token.encode(), "write"))
        self._key = secrets.token_bytes(32)

    def role(self, token: str) -> Role | None:
        """The role of a token; None: it is wrong. All tokens are compared, each in constant time."""
        given = token.encode("utf-8", "replace")
        found = [role for known, role in self._tokens if hmac.compare_digest(given, known)]
        return found[0] if found else None

    def session(self, role: Role) -> str:
        text = f"{role}.{int(time.time()) + LIFE}.{secrets.token_urlsafe(9)}"
        return f"{text}.{self._signed(text)}"

    def role_in(self, session: str) -> Role | None:
        """The role of a session; None: it is invalid or has expired."""
        text, _, signature = session.rpartition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), self._signed(text).encode()):
            return None
        role, end, _ = text.split(".", 2)  # ours: the signature is right
        return ("write" if role == "write" else "read") if time.time() < int(end) else None

    def _signed(self, text: str) -> str:
        return hmac.digest(self._key, text.encode("utf-8", "replace"), "sha256").hex()


def ip_of(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """A numeric address; None: it is a name."""
    try:
        return ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None


def caller_of(address: str) -> str:
    """One caller: with IPv6, a household has a /64 of addresses.

    >>> caller_of("10.0.0.5"), caller_of("::ffff:10.0.0.5"), caller_of("2001:db8::1:2:3:4")
    ('10.0.0.5', '10.0.0.5', '2001:db8::/64')
    """
    found = ip_of(address)
    if isinstance(found, ipaddress.IPv6Address):
        return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))
    return str(found or address)


class Rarely:
    """A warning that is logged at most once a minute, with the number left out since."""

    def __init__(self) -> None:
        self._next, self._held = 0.0, 0

    def warn(self, text: str) -> None:
        now = time.monotonic()
        if now < self._next:
            self._held += 1
            return
        more = f" ({self._held:,} more since the last such line)" if self._held else ""
        self._next, self._held = now + EVERY, 0
        log.warning(f"{text}{more}")


class Throttle:
    """Counts wrong tokens per caller; right tokens are not counted."""

    MOST, WINDOW = 10, 60.0  # wrong tokens, and seconds in which they count
    KNOWN = 10_000  # callers that are remembered

    def __init__(self) -> None:
        self._wrong: dict[str, tuple[float, int]] = {}  # when the window ends, and how many
        self._line = Rarely()

    def wait(self, address: str) -> int:
        """Count a wrong token. Returns the seconds until this caller may try another; 0: now.

        >>> throttle = Throttle()
        >>> [throttle.wait("10.0.0.5") for _ in range(11)]
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 60]
        """
        caller, now = caller_of(address), time.monotonic()
        end, count = self._wrong.get(caller, (0.0, 0))
        if end <= now:
            end, count = now + self.WINDOW, 0
            self._make_room(now)
        self._wrong[caller] = end, count + 1
        if count < self.MOST:
            return 0
        self._line.warn(f"many wrong tokens from {caller}")
        return max(1, round(end - now))

    def _make_room(self, now: float) -> None:
        if len(self._wrong) >= self.KNOWN:
            self._wrong = {caller: found for caller, found in self._wrong.items() if found[0] > now}
        while len(self._wrong) >= self.KNOWN:
            del self._wrong[next(iter(self._wrong))]  # the oldest
