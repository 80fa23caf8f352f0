"""Clients that are slow, silent or refused: how long their connections stay open."""

import contextlib
import statistics
import threading
import time
from pathlib import Path

import pytest
from running import served
from sockets import connected, head, whole


def test_slow_clients_are_cut_off(tmp_path: Path) -> None:
    """Clients that send nothing, headers byte by byte, or a body byte by byte after the reply."""
    log = tmp_path / "log"
    taken: dict[str, float] = {}

    def timed(name: str, first: bytes) -> None:
        """Send a byte every quarter of a second until the server closes the connection."""
        start = time.monotonic()
        with connected(server) as connection, contextlib.suppress(OSError):
            connection.settimeout(0.25)
            connection.sendall(first)
            while time.monotonic() - start < 45:
                connection.sendall(b"x" if first else b"")
                with contextlib.suppress(TimeoutError):
                    if connection.recv(100_000) == b"":
                        break
        taken[name] = time.monotonic() - start

    with served("memory", log=log, patience={"server.HEAD": 1.0}) as server:
        knocks = {
            "silent": b"",
            "slow head": b"GET / HTTP/1.1\r\nX: ",
            "slow second head": head(server, "/healthz"),
            "slow body": head(server, "/healthz", "Content-Length: 900000"),
        }
        threads = [threading.Thread(target=timed, args=knock) for knock in knocks.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(taken) == set(knocks)
    assert {name: seconds for name, seconds in taken.items() if not 1 <= seconds < 40} == {}
    assert log.read_text() == ""


def test_a_request_with_two_lengths_ends_its_connection() -> None:
    smuggled = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    with served("memory") as server, connected(server) as connection:
        lines = ["Content-Type: application/json", f"Content-Length: {len(smuggled)}", "Transfer-Encoding: chunked"]
        connection.sendall(head(server, "/api/studies", *lines, method="POST") + smuggled)
        received = b""
        while part := connection.recv(100_000):
            received += part
    assert received.startswith(b"HTTP/1.1 400")
    assert b'"error":"Content-Length"' in received
    assert received.count(b"HTTP/1.1") == 1


@pytest.mark.alone
def test_a_reply_does_not_wait_for_the_clients_acknowledgement() -> None:
    """Without TCP_NODELAY, Nagle's algorithm and delayed acknowledgements cost 40 ms for each reply."""
    with served("memory") as server, connected(server) as connection:
        seconds = []
        for _ in range(50):
            start = time.perf_counter()
            connection.sendall(head(server, "/api/studies"))
            whole(connection)
            seconds.append(time.perf_counter() - start)
    assert statistics.median(seconds) < 0.02
