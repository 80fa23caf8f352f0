"""How many pairs of ask and tell one agent makes when it exchanges rewards for pulls, against one at a time."""

import json
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from postgres import Server

import thresher

from .asking import WRITE_TOKEN, WRITER, served
from .report import Figure, fastest

BATCH, PAIRS, SINGLES = 64, 6400, 600
TURNS = 9  # the sides take turns, and the best of each counts, because the machine is shared
QUESTION = {"arms": [f"arm {number}" for number in range(100)], "at_least": 0.5}  # on the bar: no arm settles
NAMES = count()


def reward_of(pull: thresher.Pull) -> int:
    return pull.seed & 1


def a_study(url: str, budget: int) -> thresher.Study:
    return thresher.create_study(f"s{next(NAMES)}", **QUESTION, budget=budget, storage=url)  # type: ignore[arg-type]


def timed(url: str, pairs: int, work: Callable[[thresher.Study], object]) -> float:
    """Seconds of one pair, in a new study that ends after that many."""
    study = a_study(url, pairs)
    began = time.perf_counter()
    work(study)
    seconds = time.perf_counter() - began
    assert study.verdict().told == pairs
    study.close()
    return seconds / pairs


def single(study: thresher.Study) -> None:
    while pull := study.ask():
        study.tell(pull, reward_of(pull))


def exchanging(study: thresher.Study) -> None:
    pulls = study.ask_many(BATCH)
    while pulls:
        pulls = study.exchange([(pull, reward_of(pull)) for pull in pulls], BATCH)


def running(study: thresher.Study) -> None:
    thresher.run(study, reward_of, workers=BATCH)


def against_single(kind: str, url: str, bar: float | None) -> Iterator[Figure]:
    exchange, run, alone = fastest(
        partial(timed, url, PAIRS, exchanging),
        partial(timed, url, PAIRS, running),
        partial(timed, url, SINGLES, single),
        turns=TURNS,
    )
    yield Figure(f"{kind}: exchange of {BATCH} against run with {BATCH} workers", run / exchange, "×", 1.0)
    yield Figure(f"{kind}: exchange of {BATCH} against single pairs", alone / exchange, "×", bar)
    for words, seconds in (("exchange", exchange), ("run", run), ("single pairs", alone)):
        yield Figure(f"{kind}: {words}", 1 / seconds, "pairs/s")


class Agent:
    """An agent over HTTP on one connection that stays open."""

    def __init__(self, url: str) -> None:
        self._address = url.removeprefix("http://")
        host, _, port = self._address.partition(":")
        self._connection = socket.create_connection((host, int(port)), timeout=60)

    def post(self, study: str, path: str, body: object) -> bytes:
        data = json.dumps(body)
        head = [f"POST /api/studies/{study}/{path} HTTP/1.1", f"Host: {self._address}"]
        head += [f"Authorization: Bearer {WRITE_TOKEN}", "Content-Type: application/json"]
        self._connection.sendall("\r\n".join([*head, f"Content-Length: {len(data)}", "", data]).encode())
        received = self._connection.recv(1_000_000)
        head_end = received.index(b"\r\n\r\n") + 4
        length = int(received[:head_end].lower().partition(b"content-length:")[2].split()[0])
        while len(received) < head_end + length:
            received += self._connection.recv(1_000_000)
        assert received.startswith(b"HTTP/1.1 200"), received
        return received[head_end:]


def over_http(url: str, batch: int) -> float:
    """Seconds of one pair."""
    name = f"s{next(NAMES)}"
    new = {"name": name, **QUESTION, "budget": PAIRS}
    httpx.post(f"{url}/api/studies", headers=WRITER, json=new, timeout=60).raise_for_status()
    agent, began = Agent(url), time.perf_counter()
    pulls = json.loads(agent.post(name, "ask", {"n": batch}))["pulls"]
    while pulls:
        rewards = [{"pull": pull["pull"], "reward": pull["seed"] & 1} for pull in pulls]
        pulls = json.loads(agent.post(name, "exchange", {"rewards": rewards, "n": batch}))["pulls"]
    seconds = time.perf_counter() - began
    summary = httpx.get(f"{url}/api/studies/{name}", headers=WRITER, timeout=60).json()
    assert summary["told"] == PAIRS
    return seconds / PAIRS


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="thresher-bench-") as folder:
        yield from against_single("SQLite, full durability", f"sqlite:///{folder}/exchange.db", None)
        with served(f"sqlite:///{folder}/http.db", "--write", "--write-token", WRITE_TOKEN) as url:
            for batch, bar in ((BATCH, 5000), (4 * BATCH, None)):
                (seconds,) = fastest(partial(over_http, url, batch), turns=TURNS)
                yield Figure(f"HTTP, SQLite, full durability: exchange of {batch}", 1 / seconds, "pairs/s", bar)
    server = Server()
    try:
        yield from against_single("PostgreSQL", server.url, 5.0)
    finally:
        server.close()
