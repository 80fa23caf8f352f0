"""Callers by network address, and warnings that no caller can repeat endlessly."""

import ipaddress
import time

from ..text.logs import log

EVERY = 60.0  # seconds between two lines of the same kind


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
