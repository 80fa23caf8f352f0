"""Mutants of core, log and run: small changes to the source, and the share of them that the tests notice.

``python -m bench mutants`` takes a sample of each room. ``python -m bench.mutants --rooms log --reached reached.json``
takes one of a part, and keeps which tests run which lines: to find that out, all tests of the rooms run once.
For each mutant only the tests that run the changed line are run, fastest first, until one fails. The share is the raw
one: some mutants change nothing that anybody could notice. A survivor is a place to look, not a test to write.
"""

import argparse
import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from .mutations import Mutation, mutations
from .reached import MEASURED, Reached, collect
from .report import Figure

ROOT = Path(__file__).parent.parent
SAMPLE, SEED, AT_ONCE = 60, 1, 2  # mutants of each room
TESTS = {  # the tests that should notice a mutant of each room
    "core": ("tests/core", "tests/study"),
    "log": ("tests/log", "tests/study"),
    "run": ("tests/run", "tests/log", "tests/cli"),
}
MOST, LONGEST = 40.0, 10.0  # seconds of tests for a mutant, and of one test
HUNG = 30  # seconds after which a test hangs, and pytest ends
OPTIONS = ["-q", "-x", "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin", "--hypothesis-seed=0"]
OPTIONS += ["-o", f"faulthandler_timeout={HUNG}"]
RESULTS = Path("bench-mutants.json")


class Mutant(NamedTuple):
    """What became of a mutation."""

    mutation: Mutation
    outcome: str  # caught or survived
    reason: str

    def __str__(self) -> str:
        at = f"{self.mutation.file.removeprefix('src/thresher/')}:{self.mutation.line}:{self.mutation.column}"
        return f"{self.outcome:<10} {at:<32} {self.mutation.change}  [{self.reason}]"

    def as_row(self) -> dict[str, object]:
        where = {
            "file": self.mutation.file,
            "line": self.mutation.line,
            "column": self.mutation.column,
            "change": self.mutation.change,
        }
        return {**where, "outcome": self.outcome, "reason": self.reason}


def sample(room: str, count: int, seed: int = SEED, only: str = "") -> list[Mutation]:
    """A sample that takes from each file of a room in proportion to its size."""
    ranked, sources = [], {}
    for path in sorted((ROOT / "src/thresher" / room).rglob("*.py")):
        file = str(path.relative_to(ROOT))
        if only not in file:
            continue
        sources[file] = path.read_text()
        found = mutations(file, sources[file])
        random.Random(f"{seed} {file}").shuffle(found)
        ranked += [((rank + 0.5) / len(found), mutation) for rank, mutation in enumerate(found)]
    valid = (mutation for _, mutation in sorted(ranked) if mutation.is_valid(sources[mutation.file]))
    return list(itertools.islice(valid, count))


def copied(folder: Path) -> Path:
    """A copy of the project: the mutated file must not be seen by anybody else."""
    skipped = shutil.ignore_patterns("__pycache__", ".*", "build", "*.db", "*.json.tmp")
    for name in ("src", "tests", "bench", "examples", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=skipped)
    for name in ("pyproject.toml", "README.md", "Makefile", "CHANGELOG.md", "constraints.txt"):
        shutil.copy(ROOT / name, folder / name)
    return folder


class Workshop:
    """Copies of the project, one for each mutant that is tried at a time."""

    def __init__(self, folder: Path, reached: Reached, at_once: int) -> None:
        self._reached = reached
        self._copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(at_once):
            self._copies.put(copied(folder / f"copy-{number}"))
        self._tried = 0

    def outcome(self, mutation: Mutation) -> Mutant:
        source = (ROOT / mutation.file).read_text()
        tests = self._tests(mutation)
        if not tests:
            return Mutant(mutation, "survived", "no test runs this line")
        copy = self._copies.get()
        try:
            return self._try(mutation, source, copy, tests)
        finally:
            self._write(copy / mutation.file, source)
            self._copies.put(copy)

    def _tests(self, mutation: Mutation) -> list[str]:
        chosen: list[str] = []
        total = 0.0
        lines = range(0) if mutation.on_import else range(mutation.line, mutation.last + 1)
        for test in self._reached.by(mutation.file, lines):
            took = self._reached.seconds[test]
            if took <= LONGEST and (total + took <= MOST or not chosen):
                chosen.append(test)
                total += took
        return chosen

    def _write(self, path: Path, source: str) -> None:
        """With a time of its own, or Python would take what it compiled before for this."""
        self._tried += 1
        path.write_text(source)
        os.utime(path, (1e9 + self._tried, 1e9 + self._tried))

    def _try(self, mutation: Mutation, source: str, copy: Path, tests: list[str]) -> Mutant:
        self._write(copy / mutation.file, mutation.applied(source))
        while tests:
            failed = self._failure(copy, tests)
            if failed is None:
                return Mutant(mutation, "survived", f"tests that run this line and pass: {len(tests)}")
            if failed not in tests or self._failure(copy, [failed]):
                return Mutant(mutation, "caught", failed)
            tests = [test for test in tests if test != failed]  # it failed by chance
        return Mutant(mutation, "survived", "a test failed, but only by chance")

    def _failure(self, copy: Path, tests: list[str]) -> str | None:
        """The first test that fails, or what else went wrong; None if all pass."""
        chosen = copy / "chosen.txt"
        chosen.write_text("\n".join(tests))
        path = os.pathsep.join([str(copy / "src"), os.environ.get("PYTHONPATH", "")])
        environment = {
            **os.environ,
            "PYTHONPATH": path,
            "HYPOTHESIS_STORAGE_DIRECTORY": str(copy / ".hypothesis"),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # pytest starts in half the time
        }
        limit = 60 + 3 * sum(self._reached.seconds[test] for test in tests)
        argv = [sys.executable, "-m", "pytest", *OPTIONS, f"--basetemp={copy / 'temporary'}", f"@{chosen}"]
        with tempfile.TemporaryFile("w+") as out:
            process = subprocess.Popen(argv, cwd=copy, env=environment, stdout=out, stderr=out, start_new_session=True)
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                return f"the tests hang for {limit:.0f} s"
            finally:
                _end(process)
            if status == 0:
                return None
            out.seek(0)
            words = [line.partition(" ")[2] for line in out if line.startswith(("FAILED ", "ERROR "))]
        named = [test for test in tests if words and (words[0].strip() == test or words[0].startswith(f"{test} - "))]
        return named[0] if named else words[0].strip() if words else f"pytest ends with {status}"


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End it with all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def measured(tests: Iterable[str]) -> Reached:
    """What these tests reach, in a copy of the project."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        return collect(copied(Path(name) / "measured"), tests, Path(name) / "scratch")


def tests_of(rooms: Iterable[str]) -> list[str]:
    """The folders of the tests of these rooms, with the examples in the rooms themselves."""
    return list(dict.fromkeys(test for room in rooms for test in (*TESTS[room], f"src/thresher/{room}")))


def tried(chosen: Iterable[Mutation], reached: Reached, at_once: int = AT_ONCE) -> Iterator[Mutant]:
    """What becomes of each mutation, in order."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        shop = Workshop(Path(name), reached, at_once)
        with ThreadPoolExecutor(at_once) as pool:
            yield from pool.map(shop.outcome, chosen)


def shown(mutants: Iterable[Mutant]) -> list[Mutant]:
    """Print each mutant that was not caught as soon as it is known, and write all of them to a file."""
    found = []
    for mutant in mutants:
        found.append(mutant)
        if mutant.outcome != "caught":
            print(mutant, flush=True)
    data = {"format": 1, "mutants": [mutant.as_row() for mutant in found]}
    RESULTS.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    return found


class Row(NamedTuple):
    """The mutants of a room."""

    room: str
    caught: int
    survived: int

    @property
    def share(self) -> float:
        """Those that the tests caught, in percent."""
        return 100 * self.caught / max(self.caught + self.survived, 1)

    def __str__(self) -> str:
        return f"{self.room:<6}{self.caught + self.survived:>9}{self.caught:>9}{self.survived:>11}{self.share:>8.1f} %"


def table(mutants: Iterable[Mutant]) -> list[Row]:
    counts = Counter((mutant.mutation.file.split("/")[2], mutant.outcome) for mutant in mutants)
    outcomes = ("caught", "survived")
    return [Row(room, *(counts[room, each] for each in outcomes)) for room in dict.fromkeys(room for room, _ in counts)]


def print_table(rows: Iterable[Row]) -> None:
    print(f"{'room':<6}{'mutants':>9}{'caught':>9}{'survivors':>11}{'share':>10}")
    print(*rows, sep="\n")


def figures() -> Iterator[Figure]:
    reached = measured(tests_of(MEASURED))
    rows = table(shown(tried([each for room in MEASURED for each in sample(room, SAMPLE)], reached)))
    print_table(rows)
    for row in rows:
        yield Figure(f"mutants of {row.room} caught", row.share, "%")


def main() -> int:
    options = argparse.ArgumentParser(
        prog="python -m bench.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--rooms", nargs="+", choices=MEASURED, default=MEASURED, help="all by default")
    options.add_argument("--sample", type=int, default=SAMPLE, metavar="N", help="mutants of each room; %(default)s")
    options.add_argument("--seed", type=int, default=SEED, help="of the sample; %(default)s")
    options.add_argument("--only", default="", metavar="TEXT", help="a part of the files' names")
    options.add_argument("--at-once", type=int, default=AT_ONCE, metavar="N", help="mutants; %(default)s")
    why = "which tests run which lines; written if there is no such file. Delete it when the source changed"
    options.add_argument("--reached", type=Path, metavar="FILE", help=why)
    options.add_argument("--renew", nargs="+", default=[], metavar="TEST", help="measure these for --reached again")
    given = options.parse_args()
    if given.reached and given.reached.exists():
        reached = Reached.read(given.reached)
        if given.renew:
            reached.renew(measured(given.renew))
    else:
        reached = measured(tests_of(given.rooms))
    if given.reached:
        reached.write(given.reached)
    chosen = [each for room in given.rooms for each in sample(room, given.sample, given.seed, given.only)]
    print_table(table(shown(tried(chosen, reached, given.at_once))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
