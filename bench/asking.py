"""How many pulls one agent gets over HTTP, on one connection that stays open."""

import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from .report import Figure

TOKEN, WRITE_TOKEN = "a-token-for-the-bench", "a-token-that-writes"
BEARER = {"authorization": f"Bearer {TOKEN}"}
WRITER = {"authorization": f"Bearer {WRITE_TOKEN}"}
SECONDS, TURNS = (
    2.0,
    5,
)  # length and number of turns; the best counts, because the machine is shared
BAR = 400  # asks a second
SLOW_DISK = 0.0015  # seconds for a sync; a slower disk cannot reach the bar
NEW = {"name": "asked", "arms": ["a", "b", "c"], "at_least": 0.5, "budget": 10_000_000}


@contextlib.contextmanager
def served(storage: str, *options: str) -> Iterator[str]:
    argv = [sys.executable, "-m", "thresher", "serve", "--storage", storage, "--port", "0", "--token", TOKEN]
    with subprocess.Popen([*argv, *options], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            yield process.stdout.readline().decode().partition("/?")[0]
        finally:
            process.terminate()


class Agent:
    """An agent that costs almost nothing: one connection that sends the same bytes every time."""

    def __init__(self, url: str) -> None:
        address = url.removeprefix("http://")
        host, _, port = address.partition(":")
        self._connection = socket.create_connection((host, int(port)), timeout=60)
        head = ["POST /api/studies/asked/ask HTTP/1.1", f"Host: {address}", f"Authorization: Bearer {WRITE_TOKEN}"]
        self._request = "\r\n".join([*head, "Content-Length: 0", "", ""]).encode()

    def ask(self) -> None:
        self._connection.sendall(self._request)
        received = b""
        while not received.endswith(b"}"):
            received += self._connection.recv(100_000)
        assert b'"pull":' in received, received

    def turn(self) -> list[float]:
        """Seconds of each ask."""
        seconds: list[float] = []
        while sum(seconds) < SECONDS:
            start = time.perf_counter()
            self.ask()
            seconds.append(time.perf_counter() - start)
        return seconds


def best_turn(storage: str, disk: Path | None = None) -> tuple[float, float]:
    """Asks a second in the best turn, and the seconds that a sync of the disk took just before it."""
    with served(storage, "--write", "--write-token", WRITE_TOKEN) as url:
        httpx.post(f"{url}/api/studies", headers=WRITER, json=NEW, timeout=60).raise_for_status()
        agent, turns = Agent(url), []
        for _ in range(TURNS):
            sync = syncing(disk) if disk else 0.0
            seconds = agent.turn()
            turns.append((len(seconds) / sum(seconds), sync))
    return max(turns)


def syncing(folder: Path) -> float:
    """Median seconds that this disk takes to write what a commit writes: two pages, in a file of fixed length."""
    handle = os.open(folder / "sync", os.O_RDWR | os.O_CREAT)
    try:
        os.write(handle, bytes(200 * 4096))
        os.fsync(handle)
        seconds = []
        for at in range(100):
            os.pwrite(handle, os.urandom(2 * 4096), 8192 * at)
            start = time.perf_counter()
            os.fdatasync(handle)
            seconds.append(time.perf_counter() - start)
    finally:
        os.close(handle)
    return statistics.median(seconds)


def figures() -> Iterator[Figure]:
    what = "one agent over HTTP:"
    yield Figure(f"{what} in memory", best_turn("memory")[0], "asks/s", BAR)
    with tempfile.TemporaryDirectory() as folder:
        normal, _ = best_turn(f"sqlite:///{folder}/normal.db?durability=normal")
        yield Figure(f"{what} SQLite, durability=normal", normal, "asks/s", BAR)
        rate, sync = best_turn(f"sqlite:///{folder}/full.db", Path(folder))
        words = f"one sync takes {1000 * sync:.2g} ms"
        if sync > SLOW_DISK:
            yield Figure(f"{what} SQLite, default durability; this disk is too slow, {words}", rate, "asks/s")
        else:
            yield Figure(f"{what} SQLite, default durability; {words}", rate, "asks/s", BAR)
