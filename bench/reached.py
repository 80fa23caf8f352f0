"""Which tests run which lines: one run of the tests under coverage, a context for each test, in child processes too.

This module is also the pytest plugin of that run (``-p bench.reached``).
"""

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NOW = "THRESHER_BENCH_TEST"  # the environment variable with the id of the test that runs
DATA, SECONDS, MEASURED = "reached.coverage", "seconds.json", ("core", "log", "run")
# Python imports a module of this name when it starts: programs that tests start are measured too. Workers are not: they
# would start too slowly, and end without writing what was measured.
CHILD = f"""
import os, sys
if os.environ.get({NOW!r}) and not any(word in " ".join(sys.orig_argv) for word in ("multiprocessing", "loky")):
    import atexit, coverage
    measured = coverage.Coverage(config_file=os.environ["THRESHER_BENCH_SETTINGS"], data_suffix=True)
    atexit.register(lambda: (measured.stop(), measured.save()))
    measured.start()
"""


@dataclass
class Reached:
    """The tests that passed, with their durations in seconds, and the tests that run each line of a file."""

    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)

    def by(self, file: str, lines: Iterable[int]) -> list[str]:
        """The tests that run one of these lines; if none does, or no lines are given, all that use the module."""
        found = self.lines.get(file, {})
        some = {test for line in lines for test in found.get(line, ())}
        return sorted(some or {test for tests in found.values() for test in tests}, key=lambda test: self.seconds[test])

    def write(self, path: Path) -> None:
        numbers = {test: number for number, test in enumerate(self.seconds)}
        lines = {
            file: {line: [numbers[test] for test in tests] for line, tests in found.items()}
            for file, found in self.lines.items()
        }
        path.write_text(json.dumps({"seconds": self.seconds, "lines": lines}))

    @classmethod
    def read(cls, path: Path) -> "Reached":
        data = json.loads(path.read_text())
        tests = list(data["seconds"])
        lines = {
            file: {int(line): [tests[number] for number in numbers] for line, numbers in found.items()}
            for file, found in data["lines"].items()
        }
        return cls(data["seconds"], lines)

    def renew(self, newer: "Reached") -> None:
        """Take in what was measured later, for other tests or for some of the same."""
        self.seconds |= newer.seconds
        for file, lines in newer.lines.items():
            known = self.lines.setdefault(file, {})
            for line, tests in lines.items():
                known[line] = list(dict.fromkeys([*known.get(line, []), *tests]))


def collect(folder: Path, tests: Iterable[str], scratch: Path, *options: str) -> Reached:
    """Run the tests of a copy of the project once, and see what they reach."""
    scratch.mkdir(parents=True, exist_ok=True)
    (scratch / "sitecustomize.py").write_text(CHILD)
    settings = scratch / "coveragerc"
    sources = "".join(f"\n    {folder}/src/thresher/{room}" for room in MEASURED)
    settings.write_text(
        f"[run]\nparallel = true\ncontext = ${{{NOW}}}\ndata_file = {scratch / DATA}\ndisable_warnings = "
        f"no-data-collected,module-not-measured,module-not-imported\nsource ={sources}\n"
    )
    path = [folder / "src", folder, scratch, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "THRESHER_BENCH_SETTINGS": str(settings),
        "COVERAGE_CORE": "ctrace",
        "THRESHER_BENCH_SCRATCH": str(scratch),
    }
    argv = [sys.executable, "-m", "pytest", "-p", "bench.reached", "-q", "-m", "not alone", *options, *tests]
    with (scratch / "output").open("w+") as output:
        subprocess.run(argv, cwd=folder, env=environment, stdout=output, stderr=output)
        if not (scratch / SECONDS).exists():
            output.seek(0)
            raise RuntimeError(f"the tests did not come to their end:\n{output.read()[-3000:]}")
    return _combined(folder, scratch)


def _combined(folder: Path, scratch: Path) -> Reached:
    import coverage

    seconds = json.loads((scratch / SECONDS).read_text())
    lines: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for part in scratch.glob(f"{DATA}*"):
        data = coverage.CoverageData(str(part))
        try:
            data.read()
        except coverage.CoverageException:  # a process was killed while it wrote this
            continue
        for file in data.measured_files():
            name = str(Path(file).relative_to(folder))
            for line, tests in data.contexts_by_lineno(file).items():
                known = lines[name][line]
                known.extend(test for test in tests if test in seconds and test not in known)
    return Reached(seconds, lines)


class Plugin:
    """Changes coverage's context with each test, and notes the durations of the tests that pass."""

    def __init__(self, coverage: Any, scratch: Path) -> None:
        self._coverage, self._scratch = coverage, scratch
        self._seconds: dict[str, float] = defaultdict(float)
        self._failed: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        os.environ[NOW] = nodeid
        self._coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        passed = {test: seconds for test, seconds in self._seconds.items() if test not in self._failed}
        (self._scratch / SECONDS).write_text(json.dumps(passed))


def pytest_configure(config: pytest.Config) -> None:
    import coverage

    scratch = Path(os.environ["THRESHER_BENCH_SCRATCH"])
    measured = coverage.Coverage(config_file=str(scratch / "coveragerc"), context=None, data_suffix=True)
    measured.set_option("run:context", None)
    measured.start()
    config.pluginmanager.register(Plugin(measured, scratch))
