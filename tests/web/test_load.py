"""The service stays up: real sockets against a real process, on loopback, for a few seconds each."""

import contextlib
import os
import resource
import selectors
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from running import BEARER, TOKEN, WRITE_TOKEN, WRITER, Served, served, stuck, until

import thresher
from thresher.web import door, house, wire

FILES = 1024  # what the server may open


def cpu(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def connected(server: Served, size: int | None = None, source: str | None = None) -> socket.socket:
    host, _, port = server.url.removeprefix("http://").partition(":")
    found = socket.socket()
    if size is not None:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
    if source is not None:
        found.bind((source, 0))
    found.settimeout(60)
    found.connect((host, int(port)))
    return found


def head(server: Served, path: str, *lines: str, method: str = "GET", token: str | None = TOKEN) -> bytes:
    host = server.url.removeprefix("http://")
    first = [f"{method} {path} HTTP/1.1", f"Host: {host}"] + ([f"Authorization: Bearer {token}"] if token else [])
    return "\r\n".join([*first, *lines, "", ""]).encode()


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
@pytest.mark.parametrize("options", [[], ["--max-connections", "896", "--max-per-address", "896"]])
def test_1100_silent_connections_block_nobody(tmp_path: Path, many_files: None, options: list[str]) -> None:
    log = tmp_path / "log"
    storage = f"sqlite:///{tmp_path}/s.db"
    thresher.create_study("coins", arms=["a"], threshold=0.5, storage=storage)
    with served(storage, *options, log=log, files=FILES) as server, contextlib.ExitStack() as stack:
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
    with served("memory", log=log, files=FILES) as server, contextlib.ExitStack() as stack:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (40, FILES))  # after it worked out what fits
        for _ in range(100):
            stack.enter_context(connected(server))
        until(lambda: "out of file descriptors" in log.read_text())
        assert is_idle(server)
        assert httpx.get(f"{server.url}/healthz", timeout=30).status_code == 200
    assert log.read_text().count("\n") == 1


def test_one_address_leaves_room_for_others(tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = ["--max-connections", "20", "--max-per-address", "10"]
    with served("memory", *options, log=log) as server, contextlib.ExitStack() as stack:
        mine = [stack.enter_context(connected(server)) for _ in range(12)]
        for each in mine[:2]:
            assert each.recv(1) == b""  # the oldest two were closed
        for each in mine[2:]:
            each.sendall(head(server, "/healthz"))
            assert each.recv(12) == b"HTTP/1.1 200"
    assert "10 of them from 127.0.0.1" in log.read_text()


def test_a_connection_that_is_being_answered_is_not_closed_to_make_room(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/s.db"
    thresher.create_study("coins", arms=["a"], threshold=0.5, storage=storage)
    with served(storage, "--max-per-address", "3") as server, contextlib.ExitStack() as stack:
        streams = [stack.enter_context(connected(server)) for _ in range(3)]
        for each in streams:
            each.sendall(head(server, "/api/studies/coins/stream"))
            assert each.recv(12) == b"HTTP/1.1 200"
        late = stack.enter_context(connected(server))
        assert late.recv(12) == b"HTTP/1.1 503"
        assert thresher.open_study("coins", storage=storage).ask()
        for each in streams:
            while b"event: change" not in each.recv(100_000):
                pass


def test_clients_without_a_token_that_never_read_leave_room_for_others(tmp_path: Path) -> None:
    with (
        served("memory", "--max-connections", "8", "--max-per-address", "4") as server,
        contextlib.ExitStack() as stack,
    ):
        for at in range(8):
            deaf = stack.enter_context(connected(server, size=4096, source=f"127.0.0.{2 + at // 4}"))
            deaf.settimeout(0.2)
            with contextlib.suppress(TimeoutError):  # until the server accepts no more
                while True:
                    deaf.sendall(head(server, "/healthz", token=None) * 100)
        reply = httpx.get(f"{server.url}/api/studies", headers=BEARER, timeout=60)
        assert (reply.status_code, reply.json()["studies"]) == (200, [])


def test_a_refused_request_ends_its_connection() -> None:
    with served("memory") as server:
        for lines, status in (([], b"401"), (["Origin: http://evil.example"], b"403")):
            with connected(server) as connection:
                connection.sendall(head(server, "/api/studies", *lines, token=None) * 3)
                received = b""
                while part := connection.recv(100_000):
                    received += part
            assert received.startswith(b"HTTP/1.1 " + status)
            assert received.count(b"HTTP/1.1") == 1


def test_slow_clients_get_seconds_not_minutes() -> None:
    """The durations that the next tests replace by shorter ones."""
    assert (wire.HEAD, wire.UNREAD, door.HANDSHAKE, house.PATIENCE) == (10.0, 20.0, 10.0, 20.0)


def test_slow_clients_are_cut_off(tmp_path: Path) -> None:
    """Nothing sent, headers byte by byte, a body byte by byte after its reply, and replies that nobody reads."""
    storage = f"sqlite:///{tmp_path}/s.db?durability=normal"
    names = [f"arm {k:05} {'x' * 40}" for k in range(10_000)]
    study = thresher.create_study("many", arms=names, threshold=0.5, storage=storage)
    study.ask_many(10_000)
    log, taken = tmp_path / "log", {}

    def timed(name: str, connection: socket.socket, trickle: bytes) -> None:
        """Send a byte every quarter of a second until the server closes the connection."""
        start = time.monotonic()
        with connection, contextlib.suppress(OSError):
            connection.settimeout(0.25)
            while time.monotonic() - start < 45:
                connection.sendall(trickle)
                with contextlib.suppress(TimeoutError):
                    if connection.recv(100_000) == b"":
                        break
        taken[name] = time.monotonic() - start

    def unread(name: str, connection: socket.socket) -> None:
        start = time.monotonic()
        with connection:
            port = connection.getsockname()[1]
            until(lambda: is_open(server.pid, port))
            until(lambda: not is_open(server.pid, port), seconds=45)
        taken[name] = time.monotonic() - start

    with served(storage, log=log, patience={"wire.HEAD": 3.0, "wire.UNREAD": 4.0}) as server:
        httpx.get(f"{server.url}/api/studies/many", headers=BEARER, timeout=60).raise_for_status()
        knocks = {name: connected(server) for name in ("silent", "slow head", "slow second head", "slow body")}
        knocks["slow head"].sendall(b"GET / HTTP/1.1\r\nX: ")
        knocks["slow second head"].sendall(head(server, "/healthz"))
        knocks["slow body"].sendall(head(server, "/healthz", "Content-Length: 900000"))
        threads = [
            threading.Thread(target=timed, args=(name, connection, b"" if name == "silent" else b"x"))
            for name, connection in knocks.items()
        ]
        for name, path in {
            "unread stream": "/api/studies/many/stream?after=1",
            "unread page": "/api/studies/many/arms",
        }.items():
            lazy = connected(server, size=4096)
            lazy.sendall(head(server, path, *(["Connection: close"] if name == "unread page" else [])))
            threads.append(threading.Thread(target=unread, args=(name, lazy)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(taken) == {*knocks, "unread stream", "unread page"}
    assert {name: seconds for name, seconds in taken.items() if not 2 < seconds < 40} == {}
    assert log.read_text() == ""


@pytest.mark.alone
def test_a_reply_does_not_wait_for_the_clients_acknowledgement() -> None:
    """40 ms for every one, when the two writes of a reply met Nagle's algorithm and delayed acknowledgements."""
    with served("memory") as server, connected(server) as connection:
        seconds = []
        for _ in range(50):
            start = time.perf_counter()
            connection.sendall(head(server, "/api/studies"))
            whole(connection)
            seconds.append(time.perf_counter() - start)
    assert statistics.median(seconds) < 0.02


def test_a_request_with_two_lengths_ends_its_connection() -> None:
    smuggled = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    with served("memory") as server, connected(server) as connection:
        lines = ["Content-Type: application/json", f"Content-Length: {len(smuggled)}", "Transfer-Encoding: chunked"]
        connection.sendall(head(server, "/api/studies", *lines, method="POST") + smuggled)
        received = b""
        while part := connection.recv(100_000):
            received += part
    assert received.startswith(b"HTTP/1.1 400")
    assert received.count(b"HTTP/1.1") == 1


def is_open(pid: int, port: int) -> bool:
    """Whether the server still has a connection to this port."""
    inodes = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[2].rpartition(":")[2], 16) == port:
            inodes.add(f"socket:[{fields[9]}]")
    with contextlib.suppress(OSError):
        links = {str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()}
        return bool(inodes & links)
    return False


def whole(connection: socket.socket) -> bytes:
    """A reply whose body is a JSON object."""
    received = b""
    while not received.endswith(b"}"):
        part = connection.recv(100_000)
        assert part, received
        received += part
    return received


def answers(connections: list[socket.socket], seconds: float) -> Iterator[bytes]:
    """The reply of each connection, in the order in which they come, within some seconds."""
    with selectors.DefaultSelector() as selector:
        for each in connections:
            selector.register(each, selectors.EVENT_READ, each)
        end = time.monotonic() + seconds
        while selector.get_map() and (left := end - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                selector.unregister(key.fileobj)
                yield whole(key.data)


@pytest.mark.alone
def test_a_stuck_writer_blocks_no_reader_and_too_many_writers_are_refused(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/s.db"
    thresher.create_study("coins", arms=["a", "b"], threshold=0.5, budget=1000, storage=storage)
    patience = {"house.PATIENCE": 6.0}
    with served(storage, "--write", patience=patience) as server, contextlib.ExitStack() as stack:
        httpx.post(f"{server.url}/api/studies/coins/ask", headers=WRITER, timeout=30).raise_for_status()
        lock = stack.enter_context(contextlib.ExitStack())
        lock.enter_context(stuck(tmp_path / "s.db"))
        ask = head(server, "/api/studies/coins/ask", "Content-Length: 0", method="POST", token=WRITE_TOKEN)
        askers = [stack.enter_context(connected(server)) for _ in range(320)]
        for asker in askers:
            asker.sendall(ask)
        found = answers(askers, 60)
        refused = [next(found) for _ in range(20)]  # those beyond 300
        assert all(b"300 writes are already waiting" in reply for reply in refused)
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
        refused += [next(found) for _ in range(320 - 20 - 16)]  # those that got no thread in time
        assert all(b"HTTP/1.1 503" in reply and b"retry-after" in reply.lower() for reply in refused)
        lock.close()
        written = list(found)
    assert len(written) == 16, "the writes that had a thread when the other writer went away"
    assert all(b"HTTP/1.1 200" in reply for reply in written)
    assert thresher.open_study("coins", storage=storage).verdict().issued == 17
