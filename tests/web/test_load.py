"""The service stays up: real sockets against a real process, on loopback, for a few seconds each."""

import contextlib
import os
import resource
import selectors
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from running import BEARER, WRITE_TOKEN, WRITER, Served, served, stuck, until
from sockets import connected, head, whole

import thresher

FILES = 1024  # files that the server may open


def cpu(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_idle(server: Served) -> bool:
    """Whether the server uses less than half a core over one second."""
    before = cpu(server.pid)
    time.sleep(1)
    return cpu(server.pid) - before < 0.5


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process open enough sockets for the attack."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 3000:
        pytest.skip("this process may not open 3,000 files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.alone
def test_1100_silent_connections_block_nobody(tmp_path: Path, many_files: None) -> None:
    log = tmp_path / "log"
    storage = f"sqlite:///{tmp_path}/s.db"
    thresher.create_study("coins", arms=["a"], at_least=0.5, storage=storage)
    with served(storage, log=log, files=FILES) as server, contextlib.ExitStack() as stack:
        for _ in range(1100):
            stack.enter_context(connected(server))
        until(lambda: "closed to make room" in log.read_text())
        for _ in range(2):
            start = time.perf_counter()
            assert httpx.get(f"{server.url}/healthz", timeout=5).json() == {"ok": True}
            reply = httpx.get(f"{server.url}/api/studies/coins/verdict", headers=BEARER, timeout=5)
            assert reply.status_code == 200
            assert time.perf_counter() - start < 5
        assert is_idle(server)
    assert len(log.read_bytes()) < 2000


def test_running_out_of_descriptors_is_logged_once_and_temporary(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with (
        served("memory", log=log, files=FILES, patience={"server.HEAD": 2.0}) as server,
        contextlib.ExitStack() as stack,
    ):
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (40, FILES))
        for _ in range(100):
            stack.enter_context(connected(server))
        until(lambda: "out of file descriptors" in log.read_text())
        assert is_idle(server)
        assert httpx.get(f"{server.url}/healthz", timeout=30).status_code == 200
    assert log.read_text().count("out of file descriptors") == 1
    assert log.read_text().count("\n") <= 2


def test_a_connection_that_is_being_answered_is_not_closed_to_make_room(tmp_path: Path) -> None:
    storage, log = f"sqlite:///{tmp_path}/s.db", tmp_path / "log"
    thresher.create_study("coins", arms=["a"], at_least=0.5, storage=storage)
    with served(storage, log=log, patience={"server.MOST": 3}) as server, contextlib.ExitStack() as stack:
        streams = [stack.enter_context(connected(server)) for _ in range(3)]
        for stream in streams:
            stream.sendall(head(server, "/api/studies/coins/stream"))
            assert stream.recv(12) == b"HTTP/1.1 200"
        silent = stack.enter_context(connected(server))
        with contextlib.suppress(ConnectionResetError):
            assert silent.recv(1) == b""
        assert thresher.open_study("coins", storage=storage).ask()
        for stream in streams:
            while b"event: change" not in stream.recv(100_000):
                pass
    assert "4 connections: idle ones are closed" in log.read_text()


def test_too_many_streams_are_refused_in_one_line_until_one_is_closed(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/s.db"
    thresher.create_study("coins", arms=["a"], at_least=0.5, storage=storage)
    stream = "/api/studies/coins/stream"
    with served(storage, patience={"served_studies.STREAMS": 2}) as server, contextlib.ExitStack() as stack:
        streams = [stack.enter_context(connected(server)) for _ in range(2)]
        for connection in streams:
            connection.sendall(head(server, stream))
            while b"retry: 1000" not in connection.recv(10_000):
                pass
        with httpx.stream("GET", f"{server.url}{stream}", headers=BEARER) as refused:
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")
            refused.read()
        rule, remedy = "2 streams are open already", "close pages that nobody looks at, and try again"
        assert refused.json() == {"error": "stream", "value": None, "rule": rule, "remedy": remedy}
        assert httpx.get(f"{server.url}/api/studies/coins", headers=BEARER).status_code == 200
        streams[0].close()

        def is_open() -> bool:
            with httpx.stream("GET", f"{server.url}{stream}", headers=BEARER) as reply:
                return reply.status_code == 200

        until(is_open)


def answers(connections: list[socket.socket], seconds: float) -> Iterator[bytes]:
    """The replies of the connections in the order in which they come, within some seconds."""
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ, connection)
        end = time.monotonic() + seconds
        while selector.get_map() and (left := end - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                selector.unregister(key.fileobj)
                yield whole(key.data)


def asking(stack: contextlib.ExitStack, server: Served, count: int) -> list[socket.socket]:
    """Connections that have each sent a request for a pull."""
    ask = head(server, "/api/studies/coins/ask", "Content-Length: 0", method="POST", token=WRITE_TOKEN)
    askers = [stack.enter_context(connected(server)) for _ in range(count)]
    for asker in askers:
        asker.sendall(ask)
    return askers


@pytest.mark.alone
def test_a_stuck_writer_blocks_no_reader_and_too_many_writers_are_refused(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/s.db?durability=normal"
    thresher.create_study("coins", arms=["a", "b"], at_least=0.5, budget=1000, storage=storage)
    with served(storage, "--write") as server, contextlib.ExitStack() as stack:
        httpx.post(f"{server.url}/api/studies/coins/ask", headers=WRITER, timeout=30).raise_for_status()
        with stuck(tmp_path / "s.db"):
            replies = answers(asking(stack, server, 320), 60)
            refused = [next(replies) for _ in range(20)]  # those beyond 300
            assert all(b"300 writes are already waiting" in reply for reply in refused)
            assert all(b"HTTP/1.1 503" in reply and b"retry-after" in reply.lower() for reply in refused)
            for path in (
                "/healthz",
                "/api/studies",
                "/api/studies/coins/verdict",
                "/api/studies/coins/arms",
                "/study/coins",
            ):
                start = time.perf_counter()
                assert httpx.get(f"{server.url}{path}", headers=BEARER, timeout=10).status_code == 200, path
                assert time.perf_counter() - start < 5, path
        written = list(replies)
    assert len(written) == 300, "the other writer went away"
    assert all(b"HTTP/1.1 200" in reply for reply in written)
    assert thresher.open_study("coins", storage=storage).verdict().issued == 301


def test_a_write_that_gets_no_thread_in_time_is_refused_and_the_others_are_done_later(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/s.db?durability=normal"
    thresher.create_study("coins", arms=["a", "b"], at_least=0.5, budget=1000, storage=storage)
    with (
        served(storage, "--write", patience={"served_studies.PATIENCE": 1.5}) as server,
        contextlib.ExitStack() as stack,
    ):
        with stuck(tmp_path / "s.db"):
            replies = answers(asking(stack, server, 24), 60)
            refused = [next(replies) for _ in range(24 - 16)]
        assert all(b"other writes have been waiting for more than 1.5 s" in reply for reply in refused)
        assert all(b"HTTP/1.1 503" in reply and b"retry-after" in reply.lower() for reply in refused)
        written = list(replies)
    assert len(written) == 16, "the writes that had a thread when the other writer went away"
    assert all(b"HTTP/1.1 200" in reply for reply in written)
    assert thresher.open_study("coins", storage=storage).verdict().issued == 16
