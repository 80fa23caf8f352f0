"""Access: two tokens, and the sessions that browsers get in exchange for one.

A session is a signed text that is valid for half a day. Its key is made when the server starts, so a session of another
server, or from before a restart, is invalid. The token itself never becomes a cookie.
"""

import hmac
import secrets
import time
from typing import Literal

Role = Literal["read", "write"]
LIFE = 12 * 3600  # seconds that a session lasts


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
