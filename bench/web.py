"""The page of a large study in a real browser, and how much viewers slow down the agents."""

import bisect
import contextlib
import random
import selectors
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import httpx
from logs import append

import thresher
from thresher.core.events import Event
from thresher.log.store import open_store

from .asking import BEARER, TOKEN, served
from .report import Figure

ARMS, PULLS = 10_000, 1_000_000
SIZE = f"{ARMS:,} arms, {PULLS:,} pulls:"
VISITS, TELLS = 7, 8
VIEWERS, PAIRS, TURN, SETTLE = 50, 12, 2.5, 0.4  # seconds of a turn, and how many at its start do not count
ARGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
AGENT = """
import random, sys, time, thresher
def evaluate(pull):
    time.sleep(0.02)
    return random.Random(pull.seed).random() < 0.5
study = thresher.open_study(sys.argv[2], storage=sys.argv[1])
thresher.run(study, evaluate, workers=8)
"""


def large(storage: str) -> None:
    """A study of a million rewards, written as a log: coins so fair that none is settled."""
    store, rng, batch, now = open_store(storage), random.Random(1), [], time.time() - PULLS / 500
    names = [f"arm {k:05}" for k in range(ARMS)]
    thresher.create_study("large", arms=names, at_least=0.5, budget=2 * PULLS, storage=store)
    chances = [0.5 + rng.gauss(0, 0.03) for _ in names]
    for at in range(PULLS):
        arm, when, seq = at % ARMS, now + at / 500, 2 * at + 2
        reward = float(rng.random() < chances[arm])
        batch.append(Event(seq, "asked", pull=at + 1, arm=arm, key="bench", time=when))
        batch.append(Event(seq + 1, "told", pull=at + 1, arm=arm, reward=reward, key="bench", time=when))
        if len(batch) == 50_000:
            append(store, "large", batch)
            batch = []


class Page:
    """A browser that visits the large study."""

    def __init__(self, chromium: Any, url: str) -> None:
        self.page = chromium.new_context(viewport={"width": 1280, "height": 1000}).new_page()
        self.page.goto(f"{url}/docs?token={TOKEN}")
        self.page.goto(f"{url}/study/large")
        while not self.page.evaluate("performance.getEntriesByName('chart').length"):
            self.page.wait_for_timeout(20)

    def when(self, mark: str) -> float:
        """Seconds since the visit began."""
        return float(self.page.evaluate(f"performance.getEntriesByName('{mark}')[0].startTime")) / 1000

    def told(self) -> str:
        return str(self.page.evaluate("document.getElementById('f-told').textContent"))


def flowing(page: Page, storage: str) -> tuple[list[float], list[int]]:
    """Seconds from a reward in the log to its appearance on the open page, and the bytes that brought it."""
    store, pull, seq = open_store(storage), PULLS, 2 * PULLS + 1
    sizes: list[int] = []
    network = page.page.context.new_cdp_session(page.page)
    network.send("Network.enable")
    network.on("Network.dataReceived", lambda found: sizes.append(found["dataLength"]))
    seconds = []
    for turn in range(TELLS):
        page.page.wait_for_timeout(1500)  # until earlier rewards are drawn and the server reads again
        before, pull, seq = page.told(), pull + 1, seq + 2
        arm, now = (37 * turn) % ARMS, time.time()
        asked = Event(seq - 1, "asked", pull=pull, arm=arm, key="bench", time=now)
        append(store, "large", [asked, Event(seq, "told", pull=pull, arm=arm, reward=1.0, key="bench", time=now)])
        start = time.perf_counter()
        while page.told() == before:
            time.sleep(0.005)
        seconds.append(time.perf_counter() - start)
    page.page.wait_for_timeout(500)
    return seconds, sizes


def visits(url: str, storage: str) -> Iterator[Figure]:
    """What a browser sees; medians."""
    from playwright.sync_api import sync_playwright

    texts, charts = [], []
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=shutil.which("chromium"), args=ARGS)
        for _ in range(VISITS):
            page = Page(chromium, url)  # with an empty cache
            texts.append(page.when("first-contentful-paint"))
            charts.append(page.when("chart"))
            if len(charts) < VISITS:
                page.page.context.close()
        seconds, sizes = flowing(page, storage)
        chromium.close()
    yield Figure(f"{SIZE} question and answer painted", statistics.median(texts), "s", 1.5, at_most=True)
    yield Figure(f"{SIZE} chart drawn", statistics.median(charts), "s", 3, at_most=True)
    yield Figure(f"{SIZE} from a reward to the open page", statistics.median(seconds), "s", 1, at_most=True)
    yield Figure(f"{SIZE} bytes that bring it", statistics.median(sizes), "B", 4000, at_most=True)


@contextlib.contextmanager
def viewers(url: str, name: str) -> Iterator[None]:
    """Many viewers: one thread reads and discards what all of them are sent, because only the server's cost counts."""
    host, _, port = url.removeprefix("http://").partition(":")
    address = f"GET /api/studies/{name}/stream?after=1 HTTP/1.1"
    head = "\r\n".join([address, f"Host: {host}:{port}", f"Authorization: Bearer {TOKEN}", "", ""])
    with contextlib.ExitStack() as stack:
        poll = stack.enter_context(selectors.DefaultSelector())
        received: dict[int, int] = {}
        for at in range(VIEWERS):
            connection = stack.enter_context(socket.create_connection((host, int(port))))
            connection.sendall(head.encode())
            poll.register(connection, selectors.EVENT_READ, at)
        ended = threading.Event()

        def drain() -> None:
            while not ended.is_set():
                for key, _ in poll.select(0.1):
                    received[key.data] = received.get(key.data, 0) + len(key.fileobj.recv(1 << 20))  # type: ignore[union-attr]

        thread = threading.Thread(target=drain)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        assert len(received) == VIEWERS, "a viewer who sees nothing costs nothing"
        assert min(received.values()) > 5_000, "nor does one who sees the beginning alone"


def shares(storage: str, url: str) -> tuple[float, list[float]]:
    """Pulls per second of 8 agents without viewers, and for each pair of turns the share that viewers cost."""
    study = thresher.create_study("watched", arms=[f"arm {k}" for k in range(1000)], at_least=0.5, storage=storage)
    turns: list[tuple[bool, float, float]] = []
    with subprocess.Popen([sys.executable, "-c", AGENT, storage, "watched"]) as agents:
        try:
            httpx.get(f"{url}/api/studies/watched", headers=BEARER, timeout=60).raise_for_status()
            time.sleep(4)  # until the agents have started
            for turn in range(2 * PAIRS):
                looked_at = turn % 4 in (1, 2)  # none, some, some, none: a slow drift affects both equally
                with viewers(url, "watched") if looked_at else contextlib.nullcontext():
                    time.sleep(SETTLE)
                    start = time.time()
                    time.sleep(TURN)
                    turns.append((looked_at, start, time.time()))
        finally:
            agents.terminate()
    told = [event.time or 0.0 for event in study.events() if event.kind == "told"]
    rates = [(bisect.bisect(told, end) - bisect.bisect(told, start)) / (end - start) for _, start, end in turns]
    alone = [rate for rate, turn in zip(rates, turns, strict=True) if not turn[0]]
    watched = [rate for rate, turn in zip(rates, turns, strict=True) if turn[0]]
    return statistics.mean(alone), [100 * (1 - b / a) for a, b in zip(alone, watched, strict=True)]


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        storage = f"sqlite:///{Path(folder) / 'bench.db'}?durability=normal"
        large(storage)
        with served(storage) as url:
            before = time.perf_counter()
            httpx.get(f"{url}/api/studies/large", headers=BEARER, timeout=600).raise_for_status()
            yield Figure(f"{SIZE} the server reads the study", time.perf_counter() - before, "s")
            if shutil.which("chromium"):
                yield from visits(url, storage)
    with tempfile.TemporaryDirectory() as folder:
        storage = f"sqlite:///{Path(folder) / 'bench.db'}?durability=normal"
        with served(storage) as url:
            alone, cost = shares(storage, url)
            yield Figure("8 agents, pulls of 20 ms, no viewers", alone, "pulls/s")
            error = statistics.stdev(cost) / len(cost) ** 0.5
            yield Figure(
                f"what {VIEWERS} viewers cost them, mean of {PAIRS} pairs", statistics.mean(cost), "%", 5, at_most=True
            )
            yield Figure("its standard error", error, "%")
