"""The pytest plugin: wrong labels, overhead, speed-up with two workers, and how many runs it saves; real suites.

Runs saved: pytest-flakefinder makes a number of runs N of each test that is fixed in advance. For the same certainty,
N is the smallest number for which the exact binomial test at level risk/K, with K tests, decides each of the suite's
tests with probability at least 1 - risk: it says "at least the bar" or "below the bar" of a test with pass rate p.
"""

import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path

from . import suites
from .report import Figure, fastest
from .suites import PYTEST, SUITES, Label, labels, suite, wrong

TESTS, SESSIONS, BAR, RISK = 200, 100, 0.8, 0.05
SHARES = (0.02,) * 4 + (0.1,) * 3 + (0.3,) * 3  # how often the flaky ones of them fail
PLAIN = [sys.executable, "-m", "pytest", "--disable-plugin-autoload", "-p", "no:cacheprovider", "-q"]
SUITE = f"""
import random, pytest

@pytest.mark.parametrize("number", range({TESTS - len(SHARES)}))
def test_sound(number):
    pass

@pytest.mark.parametrize("share", {SHARES}, ids=[str(at) for at in range({len(SHARES)})])
def test_flaky(share):
    assert random.random() >= share
"""
WAITING = """
import time, pytest

@pytest.mark.parametrize("number", range(40))
def test_waits(number):
    time.sleep(0.02)
    with open("times", "a") as file:
        print(time.monotonic(), file=file)
"""
RUNS = 400  # of the tests that wait
TWO = ["-p", "xdist", "-n", "2"]


def run(folder: Path, text: str, argv: Sequence[str]) -> float:
    """Run pytest on a file in a folder. Returns the seconds it took."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench.ini").write_text("[pytest]\n")
    (folder / "test_bench.py").write_text(text)
    began = time.perf_counter()
    done = suites.run(argv, folder)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stdout + done.stderr)
    return time.perf_counter() - began


# -- wrong labels -----------------------------------------------------------------------------------------------


def session(folder: Path) -> dict[str, Label]:
    """One run of pytest over all tests: what it said."""
    run(folder, SUITE, [*PYTEST, "--thresher", str(BAR), "--junitxml=out.xml"])
    return labels(folder / "out.xml")


def sessions(folder: Path) -> tuple[list[Figure], float]:
    """Many of them. Also returns the mean number of runs."""
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(session, [folder / str(at) for at in range(SESSIONS)]))
    flaky = {f"test_flaky[{at}]": share for at, share in enumerate(SHARES)}
    known = {f"test_sound[{number}]": 0.0 for number in range(TESTS - len(SHARES))} | flaky
    bad = sum(bool(wrong(each, known, BAR)) for each in found)
    settled = statistics.mean(sum(label.certified for label in each.values()) for each in found)
    runs = statistics.mean(sum(label.runs for label in each.values()) for each in found)
    what = f"{TESTS} tests, {len(SHARES)} of them flaky, bar {BAR}, {SESSIONS} runs of pytest:"
    return [
        Figure(f"{what} with a wrong certified label", bad, "of them", 2, at_most=True),
        Figure(f"{what} settled", settled, "tests", TESTS - 1),
        Figure(f"{what} runs", runs, "runs"),
    ], runs


# -- runs saved -------------------------------------------------------------------------------------------------


def tail(n: int, p: float, least: int) -> float:
    """P(X ≥ least) for X ~ Binomial(n, p)."""
    if least <= 0:
        return 1.0
    if least > n:
        return 0.0
    log_p, log_q = math.log(p), math.log1p(-p)

    @cache
    def term(k: int) -> float:
        choose = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        return math.exp(choose + k * log_p + (n - k) * log_q)

    return math.fsum(term(k) for k in range(least, n + 1))


def decided(n: int, p: float, bar: float, level: float) -> float:
    """How likely n runs of a test with pass rate p decide on which side of the bar it is."""
    if p >= bar:  # decided if so many pass that a test at the bar would do that with probability of at most the level
        least = next((k for k in range(n + 1) if tail(n, bar, k) <= level), n + 1)
        return float(least <= n) if p == 1 else tail(n, p, least)
    most = next((k for k in range(n, -1, -1) if 1 - tail(n, bar, k + 1) <= level), -1)
    return 1 - tail(n, p, most + 1)


def fixed_number(rates: Sequence[float], *, tests: int, bar: float, risk: float) -> int:
    """The N of the docstring."""
    hardest = 1
    for p in sorted(set(rates), reverse=True):
        if decided(hardest, p, bar, risk / tests) >= 1 - risk:
            continue
        low, high = hardest, 2 * hardest
        while decided(high, p, bar, risk / tests) < 1 - risk:
            low, high = high, 2 * high
        while high - low > 1:  # it is a little jagged; so is the answer, by a run or two
            middle = (low + high) // 2
            low, high = (low, middle) if decided(middle, p, bar, risk / tests) >= 1 - risk else (middle, high)
        hardest = high
    return hardest


def saved(runs: float) -> Iterator[Figure]:
    """Against pytest-flakefinder."""
    n = fixed_number([1.0, *(1 - share for share in SHARES)], tests=TESTS, bar=BAR, risk=RISK)
    sound = fixed_number([1.0], tests=TESTS, bar=BAR, risk=RISK)
    yield Figure("the same certainty with a fixed number of runs (flakefinder): runs per test", n, "runs")
    yield Figure("runs, as a share of flakefinder's", runs / (n * TESTS), "×", 0.5, at_most=True)
    yield Figure("a fixed number that settles tests that never fail, and no others", sound, "runs")


# -- time -------------------------------------------------------------------------------------------------------


def overhead(folder: Path) -> Iterator[Figure]:
    """Milliseconds per run of an empty test, compared with pytest-flakefinder."""
    empty = f"import pytest\n@pytest.mark.parametrize('number', range({TESTS}))\ndef test_it(number):\n    pass\n"
    few, many = 10, 40
    ours = [[*PYTEST, "--thresher", "0.99", "--thresher-budget", str(TESTS * n)] for n in (few, many)]
    theirs = [[*PLAIN, "-p", "flakefinder", "--flake-finder", f"--flake-runs={n}"] for n in (few, many)]
    took = fastest(*(partial(run, folder, empty, argv) for argv in ours + theirs), turns=3)
    each = 1000 / (TESTS * (many - few))
    yield Figure("an empty test: per run", (took[1] - took[0]) * each, "ms", 2, at_most=True)
    yield Figure("an empty test: per run with pytest-flakefinder", (took[3] - took[2]) * each, "ms")


def rate(folder: Path, options: Sequence[str]) -> float:
    """Runs per second, from the first to the last."""
    (folder / "times").unlink(missing_ok=True)
    run(folder, WAITING, [*PYTEST, "--thresher", "0.99", "--thresher-budget", str(RUNS), *options])
    times = sorted(map(float, (folder / "times").read_text().split()))
    return (len(times) - 1) / (times[-1] - times[0])


def speed_up(folder: Path) -> Iterator[Figure]:
    """Two workers against one process, for tests that wait: the best of three turns of each."""
    one, two = fastest(lambda: 1 / rate(folder, []), lambda: 1 / rate(folder, TWO), turns=3)
    yield Figure("tests that wait 20 ms: runs per second in one process", 1 / one, "runs/s")
    yield Figure("tests that wait 20 ms: speed-up with -n 2", one / two, "×", 1.7)


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield from overhead(folder / "overhead")
        yield from speed_up(folder / "waiting")
        for at, given in enumerate(SUITES):
            (folder / f"suite-{at}").mkdir()
            yield from suite(given, folder / f"suite-{at}")
        found, runs = sessions(folder)
        yield from found
        yield from saved(runs)
