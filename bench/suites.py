"""Real test suites, from the sdists of other projects, with tests of known flakiness added."""

import os
import subprocess
import sys
import tarfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import thresher

from .report import Figure

BAR = 0.8
FLAKY = {"test_added_2": 0.02, "test_added_10": 0.1, "test_added_30": 0.3}  # how often each fails
PYTEST = [sys.executable, "-m", "pytest", "--disable-plugin-autoload", "-p", "thresher.adapters.pytest_plugin"]
PYTEST += ["-p", "no:cacheprovider", "-q", "-c", "bench.ini", "--rootdir=."]


def run(argv: Sequence[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command with this thresher."""
    environment = {**os.environ, "PYTHONPATH": str(Path(thresher.__file__).parents[1])}
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)


class Suite(NamedTuple):
    """Some quick tests of a project."""

    project: str
    style: str
    select: Sequence[str]
    options: Sequence[str] = ()


SUITES = (
    Suite(
        "more-itertools", "unittest classes", ["tests/test_more.py", "-k", "Chunked or Peek or Spy or Bucket or Added"]
    ),
    Suite("packaging", "parametrised", ["tests/test_utils.py"]),
    Suite("janus", "async", ["tests/test_async.py"], ["-p", "asyncio"]),
    Suite(
        "async-timeout", "async, two workers", ["tests/test_timeout.py"], ["-p", "asyncio", "-p", "xdist", "-n", "2"]
    ),
)


class Label(NamedTuple):
    """What a run of pytest said about a test."""

    status: str
    certified: bool
    runs: int


def labels(file: Path) -> dict[str, Label]:
    """From a JUnit XML file."""
    found = {}
    for case in ET.parse(file).findall(".//testcase"):
        values = {each.get("name"): each.get("value") or "" for each in case.iter("property")}
        if "thresher_status" in values:
            certified, runs = values["thresher_certified"] == "true", int(values["thresher_runs"])
            name = str(case.get("name"))
            found[name if name not in found else f"{case.get('classname')}.{name}"] = Label(
                values["thresher_status"], certified, runs
            )
    return found


def wrong(found: dict[str, Label], flaky: dict[str, float], bar: float) -> list[str]:
    """The tests of known flakiness whose certified answer is not true."""
    truth = {name: "reaches" if 1 - share >= bar else "misses" for name, share in flaky.items()}
    return [
        name for name, its in truth.items() if name in found and found[name].certified and found[name].status != its
    ]


def added() -> str:
    tests = [f"def {name}():\n    assert random.random() >= {share}\n" for name, share in FLAKY.items()]
    return "import random\n\n" + "\n".join(tests)


def fetch(project: str, into: Path) -> Path | None:
    """The project's folder, or None if there is no index to download it from."""
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d", str(into)]
    done = subprocess.run([*argv, project], capture_output=True, text=True, timeout=300, check=False)
    files = list(into.glob("*.tar.gz"))
    if done.returncode or not files:
        return None
    with tarfile.open(files[0]) as archive:
        archive.extractall(into, filter="data")
    return next(path for path in into.iterdir() if path.is_dir())


def suite(given: Suite, folder: Path) -> list[Figure]:
    """Run a project's tests until they are settled."""
    home = fetch(given.project, folder)
    if home is None:
        print(f"{given.project}: not measured, because pip cannot download it here")
        return []
    ini = "[pytest]\npythonpath = src .\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
    (home / "bench.ini").write_text(ini if "asyncio" in given.options else "[pytest]\npythonpath = src .\n")
    name = "test_added.py"
    (home / "tests" / name).write_text(added())
    select = [*given.select[:1], f"tests/{name}", *given.select[1:]]
    options = ["--thresher", str(BAR), "--thresher-for", "3m", "--junitxml=bench.xml", *given.options]
    began = time.perf_counter()
    done = run([*PYTEST, *select, *options], home)
    took = time.perf_counter() - began
    found = labels(home / "bench.xml") if (home / "bench.xml").exists() else {}
    if not set(FLAKY) <= set(found):
        raise RuntimeError(f"{given.project}: {done.stdout}{done.stderr}")
    own = [label for test, label in found.items() if test not in FLAKY]
    what = f"{given.project} ({given.style}):"
    return [
        Figure(f"{what} tests of known flakiness with a wrong label", len(wrong(found, FLAKY, BAR)), "tests", 0, True),
        Figure(f"{what} of these, settled", sum(found[test].certified for test in FLAKY), "tests", 3),
        Figure(f"{what} its own tests", len(own), "tests", 10),
        Figure(f"{what} its own tests that reach the bar", sum(label.status == "reaches" for label in own), "tests"),
        Figure(f"{what} runs", sum(label.runs for label in found.values()), "runs"),
        Figure(f"{what} time", took, "s"),
    ]  # fmt: skip
