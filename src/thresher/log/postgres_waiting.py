"""Which PostgreSQL errors are temporary, and so worth waiting for, and which are permanent."""

import re
from typing import Any

import psycopg

# libpq gives no code for a failure to connect, so only its text can be checked. In another language than English the
# failure counts as permanent, unless the server was reached before.
NEVER = (
    "authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "not permitted to log in",
    "does not exist",
)
PASSING = (
    "Is the server running",  # no server listens there, or not yet
    "refused",
    "timeout expired",
    "timed out",
    "unreachable",
    "No route to host",
    "Temporary failure in name resolution",
    "starting up",
    "shutting down",
    "recovery",
    "not yet accepting connections",
    "too many clients",
    "too many connections",
    "connection slots are reserved",
    "closed the connection unexpectedly",
    "reset by peer",
)
_NAMES = re.compile(r'"[^"]*"')  # of databases, users and hosts: they may contain any word

# Sessions that hold an exclusive lock on one of our tables. If there are none, sessions that have held any lock for a
# second: a deletion waits for these, too.
BLOCKERS = """WITH held AS (
    SELECT pid, application_name, xact_start,
        bool_or(mode NOT IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')) AS strong
    FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE granted AND pid <> pg_backend_pid()
    AND relation IN (to_regclass('thresher_schema'), to_regclass('thresher_events'), to_regclass('thresher_heads'),
        to_regclass('thresher_leases'), to_regclass('thresher_agents'))
    GROUP BY pid, application_name, xact_start
) SELECT pid, application_name FROM held
WHERE strong OR (NOT EXISTS (SELECT 1 FROM held WHERE strong) AND xact_start < now() - interval '1 second')
ORDER BY pid"""


def is_leaving(error: psycopg.Error) -> bool:
    """Whether the server, or this session, is being shut down."""
    return (error.sqlstate or "")[:3] in ("57P", "080")


def passes(error: Exception) -> bool:
    """Whether a connection that failed with this error may succeed a moment later by itself.

    >>> refused = 'connection to server at "127.0.0.1", port 1 failed: Connection refused'
    >>> passes(psycopg.OperationalError(refused))
    True
    >>> passes(psycopg.OperationalError('FATAL:  database "recovery" does not exist'))
    False
    """
    if not isinstance(error, psycopg.OperationalError):
        return False
    words = _NAMES.sub("", str(error))
    return is_leaving(error) or (any(w in words for w in PASSING) and not any(w in words for w in NEVER))


def blockers(connection: "psycopg.Connection[Any]") -> str:
    """The sessions that block all others, in words; empty if none are found."""
    try:
        rows = connection.execute(BLOCKERS).fetchall()
    except psycopg.Error:
        return ""
    found = [f"server process {pid}{f', {name}' if name else ''}" for pid, name in rows]
    return f" ({'; '.join(found)})" if found else ""
