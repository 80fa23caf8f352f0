"""The page of a large study in a real browser, and what viewers cost the agents."""

import contextlib
import random
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

import httpx

import thresher
from thresher.events import Event
from thresher.store import open_store

from .report import Figure

TOKEN = "a-token-for-the-bench"
BEARER = {"authorization": f"Bearer {TOKEN}"}
ARMS, PULLS = 10_000, 1_000_000
VIEWERS, SECONDS, TURNS = 50, 6.0, 3
ARGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
AGENT = """
import random, sys, time, thresher
def evaluate(pull):
    time.sleep(0.02)
    return random.Random(pull.seed).random() < 0.5
study = thresher.open_study(sys.argv[2], storage=sys.argv[1])
thresher.run(study, evaluate, workers=8, seconds=float(sys.argv[3]))
"""


@contextlib.contextmanager
def served(storage: str) -> Iterator[str]:
    argv = [sys.executable, "-m", "thresher.cli", "serve", "--storage", storage, "--port", "0", "--token", TOKEN]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            yield process.stdout.readline().decode().partition("/?")[0]
        finally:
            process.terminate()


def large(storage: str) -> None:
    """A study of a million rewards, written as a log: coins so fair that none is settled."""
    store, rng, batch, now = open_store(storage), random.Random(1), [], time.time() - PULLS / 500
    names = [f"arm {k:05}" for k in range(ARMS)]
    thresher.create_study("large", arms=names, threshold=0.5, budget=2 * PULLS, storage=store)
    chances = [0.5 + rng.gauss(0, 0.03) for _ in names]
    for at in range(PULLS):
        arm, when, seq = at % ARMS, now + at / 500, 2 * at + 2
        reward = float(rng.random() < chances[arm])
        batch.append(Event(seq, "asked", pull=at + 1, arm=arm, key="bench", time=when))
        batch.append(Event(seq + 1, "told", pull=at + 1, arm=arm, reward=reward, key="bench", time=when))
        if len(batch) == 50_000:
            store.append("large", batch)
            batch = []


def paints(url: str) -> tuple[float, float]:
    """Milliseconds until the text is there, and the chart; the median of five visits with an empty cache."""
    from playwright.sync_api import sync_playwright

    texts, charts = [], []
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=shutil.which("chromium"), args=ARGS)
        for _ in range(5):
            page = chromium.new_context(viewport={"width": 1280, "height": 1000}).new_page()
            page.goto(f"{url}/docs?token={TOKEN}")
            page.goto(f"{url}/study/large")
            while not page.evaluate("performance.getEntriesByName('chart').length"):
                page.wait_for_timeout(20)
            texts.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
            charts.append(page.evaluate("performance.getEntriesByName('chart')[0].startTime"))
            page.context.close()
        chromium.close()
    return statistics.median(texts), statistics.median(charts)


@contextlib.contextmanager
def viewer(url: str, name: str) -> Iterator[None]:
    """Somebody who looks on: what is sent is taken and thrown away."""
    host, _, port = url.removeprefix("http://").partition(":")
    lines = [
        f"GET /api/studies/{name}/stream?after=1 HTTP/1.1",
        f"Host: {host}:{port}",
        f"Authorization: Bearer {TOKEN}",
    ]
    head = "\r\n".join([*lines, "", ""])
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode())
        ended, received = threading.Event(), [0]

        def drain() -> None:
            while not ended.is_set() and (data := connection.recv(1 << 20)):
                received.append(len(data))

        thread = threading.Thread(target=drain, daemon=True)
        thread.start()
        yield
        ended.set()
        connection.shutdown(socket.SHUT_RDWR)
        thread.join()
        assert sum(received) > 10_000, "a viewer who sees nothing costs nothing"


def throughput(storage: str, name: str, url: str, viewers: int) -> float:
    """Pulls a second of 8 agents whose pulls take 20 ms, with so many looking on."""
    study = thresher.create_study(name, arms=[f"arm {k}" for k in range(1000)], threshold=0.5, storage=storage)
    with contextlib.ExitStack() as stack:
        for _ in range(viewers):
            stack.enter_context(viewer(url, name))
        subprocess.run([sys.executable, "-c", AGENT, storage, name, str(SECONDS)], check=True)
    events = [event.time or 0.0 for event in study.events() if event.kind == "told"]
    return len(events) / (events[-1] - events[0])


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        storage = f"sqlite:///{Path(folder) / 'bench.db'}?durability=normal"
        large(storage)
        with served(storage) as url:
            before = time.perf_counter()
            httpx.get(f"{url}/api/studies/large", headers=BEARER, timeout=600).raise_for_status()
            what = f"{ARMS:,} arms, {PULLS:,} pulls:"
            yield Figure(f"{what} the server reads the study", time.perf_counter() - before, "s")
            if shutil.which("chromium"):
                text, chart = paints(url)
                yield Figure(f"{what} question and answer painted", text / 1000, "s", 1.5, at_most=True)
                yield Figure(f"{what} chart drawn", chart / 1000, "s", 3, at_most=True)
    with tempfile.TemporaryDirectory() as folder:
        storage = f"sqlite:///{Path(folder) / 'bench.db'}?durability=normal"
        with served(storage) as url:
            alone, watched = [], []
            for turn in range(TURNS):  # in turn, so that noise falls on both
                alone.append(throughput(storage, f"alone-{turn}", url, 0))
                watched.append(throughput(storage, f"watched-{turn}", url, VIEWERS))
            yield Figure("8 agents, pulls of 20 ms, nobody looks on", statistics.median(alone), "pulls/s")
            share = 1 - statistics.median(watched) / statistics.median(alone)
            yield Figure(f"what {VIEWERS} viewers cost them", 100 * share, "%", 5, at_most=True)
