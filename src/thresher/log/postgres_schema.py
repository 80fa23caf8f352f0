"""The tables in PostgreSQL, the statements on them, and its URLs, whose passwords are never shown."""

import functools
import time
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import conninfo, sql

from ..core.events import Event
from ..errors import InvalidInput
from ..text.masking import masked
from .store import COLUMNS, SCHEMA, check_store_version, store_read_queries

KEY = 0x74687273  # the first half of our advisory locks: other programs use other numbers
TABLES = """
CREATE TABLE IF NOT EXISTS thresher_events (
    study text COLLATE "C" NOT NULL, seq bigint NOT NULL, kind text NOT NULL, pull bigint, arm bigint,
    reward double precision, reason text, cause text, late bigint, budget bigint, spec text, key text,
    time double precision, agent text, digest bytea NOT NULL,
    PRIMARY KEY (study, seq)
);
CREATE TABLE IF NOT EXISTS thresher_heads (
    study text COLLATE "C" NOT NULL PRIMARY KEY, seq bigint NOT NULL, digest bytea NOT NULL
);
CREATE TABLE IF NOT EXISTS thresher_leases (
    study text COLLATE "C" NOT NULL, pull bigint NOT NULL, until timestamptz NOT NULL, PRIMARY KEY (study, pull)
);
CREATE TABLE IF NOT EXISTS thresher_agents (
    study text COLLATE "C" NOT NULL, agent text NOT NULL, command text NOT NULL,
    time timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (study, agent)
);
CREATE TABLE IF NOT EXISTS thresher_schema (version bigint NOT NULL);
"""
_TYPES = dict.fromkeys(("kind", "reason", "cause", "spec", "key", "agent"), "text")
_TYPES |= dict.fromkeys(("reward", "time"), "double precision")
_TYPES["digest"] = "bytea"
_CASTS = {name: _TYPES.get(name, "bigint") for name in Event._fields}
_ONE = f"(VALUES ({', '.join(f'%({name})s::{cast}' for name, cast in _CASTS.items())}))"
_MANY = f"unnest({', '.join(f'%({name})s::{cast}[]' for name, cast in _CASTS.items())})"  # a list a column

READ, HEAD, NAMES = store_read_queries("thresher_", "%s")


@functools.cache
def append_statement(*, is_single: bool, begins_log: bool, begins: bool, ends: bool) -> str:
    """The statement that appends one event or many, with only the parts that are needed for leases.

    The head must be the previous event: then no other agent has written, the study was not deleted, and the server has
    not lost the event in a crash. Changing the head locks its row, so writers queue there. Event 1 has no previous
    event, and creates the head. The commit that follows does not wait for the disk.

    Deleting a study locks the whole table (`PostgresStore.delete`), so no append can come in between.
    """
    new = _ONE if is_single else _MANY
    moved = """UPDATE thresher_heads SET seq = %(end)s, digest = %(last)s
    WHERE study = %(study)s AND seq = %(first)s - 1 AND digest = %(before)s"""
    made = """INSERT INTO thresher_heads SELECT %(study)s, %(end)s, %(last)s::bytea WHERE NOT EXISTS
    (SELECT 1 FROM thresher_events WHERE study = %(study)s) ON CONFLICT DO NOTHING"""
    parts = f"""head AS ({made if begins_log else moved} RETURNING 1), written AS (INSERT INTO thresher_events
    (study, {COLUMNS}) SELECT %(study)s, new.* FROM {new} AS new ({COLUMNS}) WHERE EXISTS (SELECT 1 FROM head)
    RETURNING 1)"""  # noqa: S608
    if begins:
        parts += """, begun AS (INSERT INTO thresher_leases
        SELECT %(study)s, pull, clock_timestamp() + make_interval(secs => %(lease)s)
        FROM unnest(%(begun)s::bigint[]) AS pull WHERE EXISTS (SELECT 1 FROM written))"""
    if ends:
        parts += """, gone AS (DELETE FROM thresher_leases WHERE study = %(study)s AND pull = ANY(%(over)s)
        AND EXISTS (SELECT 1 FROM written))"""
    level = "CASE WHEN %(waits)s::boolean THEN current_setting('synchronous_commit') ELSE 'off' END"
    return f"WITH {parts} SELECT count(*), set_config('synchronous_commit', {level}, true) FROM written"  # noqa: S608 - of our own column names


# Commits that wait write a message into the server's log: one that writes nothing would not wait. With it, all commits
# before it are on the disk.
_MARK = "pg_logical_emit_message(true, 'thresher', '')"
FLUSH = f"SELECT EXISTS (SELECT FROM thresher_events WHERE study = %s AND seq = %s AND digest = %s), {_MARK}"  # noqa: S608
TURN = "pg_advisory_xact_lock"
TRY_TURN = "pg_try_advisory_xact_lock"
RENEW = """UPDATE thresher_leases SET until = clock_timestamp() + make_interval(secs => %s)
WHERE study = %s AND pull = ANY(%s)"""
NOTE = """INSERT INTO thresher_agents (study, agent, command) VALUES (%s, %s, %s)
ON CONFLICT (study, agent) DO UPDATE SET command = excluded.command, time = clock_timestamp()"""

# A network that fails silently is noticed within a minute. Settings in the URL take precedence.
PATIENT = {
    "connect_timeout": "10",
    "keepalives_idle": "20",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
    "application_name": "thresher",
}


def postgres_schema_settings(url: str) -> dict[str, Any]:
    """What psycopg needs to connect. Its own complaints could show parts of a password, so they are not shown."""
    try:
        urlsplit(url)
        parts = conninfo.conninfo_to_dict(url)
        for port in str(parts.get("port") or "").split(","):  # libpq would show it, and it may be a password
            int(port or 0)
        for host in f"{parts.get('host') or ''},{urlsplit(url).path}".split(","):
            if "@" in host[1:]:  # libpq would show it: for libpq a password ends at its first @; @/run is a socket
                raise ValueError("a part of a password")
        return {**PATIENT, **parts}
    except (psycopg.Error, ValueError):
        rule = "is not a URL that PostgreSQL understands"
        remedy = "write postgresql://user@host:5432/database; in a password, write %40 for @ and %2F for /"
        raise InvalidInput("storage", masked(url), rule, remedy) from None


def turn_statement(connection: "psycopg.Connection[Any]", study: str, function: str) -> str:
    """The statement that takes a turn with `TURN` or `TRY_TURN`, without parameters: it can follow another."""
    return f"SELECT {function}({KEY}, hashtext({sql.quote(study, connection)}))"


def transaction_ends(connection: "psycopg.Connection[Any]", *, lock_timeout: float) -> tuple[str, str]:
    """How a transaction begins, and how one that appended ends.

    It begins with settings that end with it: the server's own level of synchronous_commit and its own search_path,
    whatever another program may have left in a pooled session. What is committed is then on the disk, and in the same
    tables as before. A session of our own needs the lock's timeout only, once.

    Where several agents write, an append is committed without waiting for the disk, so that the next one gets its turn.
    Then a transaction that only flushes waits, in the same message: no crash of the server in between can be hidden by
    a pooler.
    """
    query = "SELECT name, reset_val FROM pg_settings WHERE name IN ('synchronous_commit', 'search_path')"
    values = {"lock_timeout": f"{lock_timeout:g}s", **dict(connection.execute(query).fetchall())}
    local = {name: f"set_config('{name}', {sql.quote(value, connection)}, true)" for name, value in values.items()}
    begin, end = "BEGIN ISOLATION LEVEL READ COMMITTED", f"COMMIT; SELECT {local['synchronous_commit']}, {_MARK}"
    if connection.prepare_threshold is None:
        return f"{begin}; SELECT {', '.join(local.values())}", end
    connection.execute("SELECT set_config('lock_timeout', %s, false)", (values["lock_timeout"],))
    return begin, end


def is_own_session(connection: "psycopg.Connection[Any]") -> bool:
    """Whether the session is ours until it ends. A pooler's client is told another number than its server's session."""
    return connection.execute("SELECT pg_backend_pid()").fetchone() == (connection.info.backend_pid,)


def create_tables(connection: "psycopg.Connection[Any]") -> None:
    """Create the tables if they are missing, one agent at a time, and check that their version can be read."""
    has_tables = connection.execute("SELECT to_regclass('thresher_schema') IS NOT NULL").fetchone()
    if has_tables != (True,):
        connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", (KEY,))
        connection.execute(TABLES)  # IF NOT EXISTS: another agent may have made them while we waited
        query = "INSERT INTO thresher_schema SELECT %s WHERE NOT EXISTS (TABLE thresher_schema)"
        connection.execute(query, (SCHEMA,))
    check_store_version(schema_version(connection))


def schema_version(connection: "psycopg.Connection[Any]") -> int:
    """The schema that the tables have now."""
    row = connection.execute("SELECT version FROM thresher_schema").fetchone()
    return int(row[0]) if row else 0


def examine_postgres_schema(connection: "psycopg.Connection[Any]") -> dict[str, str]:
    """What ``thresher doctor`` reports about a server."""
    row = connection.execute(
        "SELECT current_setting('server_version'), reset_val, current_setting('fsync'),"
        " current_setting('full_page_writes'), pg_size_pretty(pg_total_relation_size('thresher_events')),"
        " extract(epoch FROM clock_timestamp())::float8, (SELECT version FROM thresher_schema)"
        " FROM pg_settings WHERE name = 'synchronous_commit'"
    ).fetchone()
    assert row is not None
    version, commit, fsync, pages, size, clock, tables = row
    report = {
        "server": f"PostgreSQL {version} (psycopg {psycopg.__version__})",
        "schema": str(tables),
        "events": str(size),
        "durability": f"synchronous_commit {commit}, fsync {fsync}, full_page_writes {pages}",
        "clock": f"the server's is {clock - time.time():+.1f} s from this machine's; leases follow the server's",
    }
    if commit == "off" or fsync == "off" or pages == "off":
        report["! durability"] = "a crash of the server may lose rewards that were acknowledged: switch all three on"
    return report
