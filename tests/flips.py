"""What happens to a closed store whose file is damaged: it must be refused or read exactly as before.

The tests try a few dozen faults, ``python -m bench faults`` hundreds.
"""

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw

import thresher
from thresher.core.events import Event
from thresher.core.replay import verify
from thresher.errors import ThresherError
from thresher.log.store import open_store

HARMLESS, REFUSED, ACCEPTED, CRASHED = "harmless", "refused", "accepted", "crashed"
STUDY = "s"


def closed_store(path: Path, pulls: int = 3000) -> Path:
    """A closed SQLite store with one study of 2 × ``pulls`` + 1 events, some of them with reasons and late rewards."""
    url = f"sqlite:///{path}?durability=normal"
    arms, chance = [f"arm {number}" for number in range(20)], random.Random(1)
    study = thresher.create_study(
        STUDY, arms=arms, at_least=0.5, storage=url, max_failures=None, confidence=None, budget=pulls
    )
    while asked := study.ask_many(100):
        for pull in asked:
            if pull.id % 20:
                study.tell(pull, chance.random())
            else:
                study.drop(pull, cause=chance.choice(["failed", "lost"]), reason="a reason of some length, as they are")
    study.store.close()
    assert not path.with_name(f"{path.name}-wal").exists()
    return path


def read(path: Path) -> list[Event]:
    """The events as a user gets them: opens, verifies and exports the study, and raises if one of these does."""
    store = open_store(f"sqlite:///{path}")
    try:
        study = thresher.open_study(STUDY, storage=store)
        events = list(study.events())
        report = verify(events)
        if not report.sound:
            raise ThresherError("event", report.wrong, report.reason or "")
        return events
    finally:
        store.close()


def outcome(path: Path, before: list[Event]) -> str:
    """What a damaged store does: REFUSED (in one line) or HARMLESS; never ACCEPTED or CRASHED."""
    try:
        found = read(path)
    except ThresherError as error:
        return REFUSED if "\n" not in str(error) else CRASHED
    except Exception:
        return CRASHED
    return HARMLESS if found == before else ACCEPTED


def flips(path: Path, count: int, seed: int = 0) -> Iterator[tuple[int, str]]:
    """Flip ``count`` single bits of a closed store, each in a fresh copy; yields the bit and the outcome."""
    before, data, chance = read(path), bytearray(path.read_bytes()), random.Random(seed)
    copy = path.with_name("flipped.db")
    for _ in range(count):
        bit = chance.randrange(8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
        clear(copy)
        copy.write_bytes(data)
        data[bit // 8] ^= 1 << bit % 8
        yield bit, outcome(copy, before)
    clear(copy)


def changes(path: Path, make: Callable[[Path], object]) -> str:
    """The outcome of a change to a copy of a closed store."""
    before, copy = read(path), path.with_name("changed.db")
    clear(copy)
    shutil.copy(path, copy)
    make(copy)
    return outcome(copy, before)


def execute(query: str) -> Callable[[Path], object]:
    """A change made in SQL."""

    def make(path: Path) -> None:
        connection = apsw.Connection(str(path))
        connection.execute(query)
        connection.close()

    return make


def clear(path: Path) -> None:
    for end in ("", "-wal", "-shm", "-lock"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def tally(path: Path, count: int = 500, seed: int = 0) -> Counter[str]:
    """The number of flips with each outcome."""
    return Counter(result for _, result in flips(path, count, seed))


def cuts(path: Path, count: int, seed: int = 0) -> Counter[str]:
    """The number of cuts at random lengths with each outcome."""
    size, chance = path.stat().st_size, random.Random(seed)
    lengths = [chance.randrange(size) for _ in range(count)]
    return Counter(changes(path, lambda copy, length=length: os.truncate(copy, length)) for length in lengths)  # type: ignore[misc]
