"""One run of a test, with fresh fixtures and its own seed, and its outcome."""

import math
import os
import random
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from _pytest.outcomes import OutcomeException
from _pytest.runner import runtestprotocol

from ...errors import InvalidInput, told_of
from ...text.masking import masked
from .session_options import Isolation, seed_of

# Seeds: each run draws different random numbers, and the same seed draws the same numbers again.

GOLDEN = 0x9E3779B9  # separates the seeds of setup, call and teardown
SEED = pytest.StashKey[int]()


@contextmanager
def of_pull(config: pytest.Config, seed: int) -> Iterator[None]:
    """Use this seed within the block."""
    config.stash[SEED] = seed
    randomly, hypothesis = _randomly_seed(config), _hypothesis_seed()
    if randomly is not None:  # pytest-randomly seeds setup, call and teardown from this option
        config.option.randomly_seed = seed
    try:
        yield
    finally:
        if randomly is not None:
            config.option.randomly_seed = randomly
        _set_hypothesis(hypothesis)
        del config.stash[SEED]


def load_numpy() -> None:
    """Load numpy, if it is installed: a test that loads it by itself would draw before it is seeded."""
    if find_spec("numpy"):
        import_module("numpy.random")


def _randomly_seed(config: pytest.Config) -> int | None:
    """The seed of pytest-randomly; None if it is not active."""
    found = getattr(config.option, "randomly_seed", None)
    return found if isinstance(found, int) else None  # a word, if the plugin is blocked


def _seed(config: pytest.Config, phase: int) -> None:
    seed = config.stash.get(SEED, None)
    if seed is None:
        return
    value = (seed + phase * GOLDEN) % 2**32
    random.seed(value)
    numpy = _numpy_random()
    if numpy is not None:
        numpy.seed(value)
    _set_hypothesis(value)


def _hypothesis_seed() -> int | None:
    """The seed of all of Hypothesis's tests, as --hypothesis-seed sets it."""
    return getattr(sys.modules.get("hypothesis.core"), "global_force_seed", None)


def _set_hypothesis(seed: int | None) -> None:
    core: Any = sys.modules.get("hypothesis.core")
    if core is not None:
        core.global_force_seed = seed


def _numpy_random() -> Any:
    """The module ``numpy.random``, if numpy is loaded; newer versions load it when it is first used."""
    return getattr(sys.modules.get("numpy"), "random", None)


class Seeding:
    """Seeds every phase of a test. What a shared fixture draws does not shift the numbers that tests draw."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        _seed(item.config, 0)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        _seed(item.config, 1)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        _seed(item.config, 2)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, Any, Any]:
        if fixturedef.scope == "function":
            return (yield)
        numpy = _numpy_random()
        state, states = random.getstate(), None if numpy is None else numpy.get_state()
        try:
            return (yield)
        finally:
            random.setstate(state)
            if numpy is not None:
                numpy.set_state(states)


# Removes the temporary folders of runs: thousands take space, and pytest looks at all of them to make a new one.

MOST = 256  # folders that wait to be removed
FOLDER = pytest.StashKey[Path]()
KEPT = pytest.StashKey[bool]()  # whether a folder of this test was kept
WAITING = pytest.StashKey[deque[Path]]()


class Noting:
    """The hook that notes the folder of the fixture ``tmp_path``."""

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, Any, Any]:
        value = yield
        if fixturedef.argname == "tmp_path" and isinstance(value, Path):
            request.node.stash[FOLDER] = value
        return value


def tidy(item: pytest.Item, *, failed: bool) -> None:
    """Remove the folders of runs that ended some time ago, except that of the first run of a test that failed."""
    folder = item.stash.get(FOLDER, None)
    if folder is None:
        return
    del item.stash[FOLDER]
    if failed and not item.stash.get(KEPT, False):
        item.stash[KEPT] = True
        return
    waiting = item.config.stash.setdefault(WAITING, deque[Path]())
    waiting.append(folder)
    if len(waiting) > MOST:
        _remove(waiting.popleft())


def _remove(folder: Path) -> None:
    try:
        here = Path(os.getcwd())  # noqa: PTH109 - a test may have removed it
    except OSError:
        return
    if not here.is_relative_to(folder):  # a test may have changed to it
        shutil.rmtree(folder, ignore_errors=True)


TIMEOUT = ("Timeout (>", "from pytest-timeout")  # how pytest-timeout fails a test
SWITCH_OFF = "switch it off: retries would change the pass rate that is asked about"
SETUP_STATE = "_setupstate"  # of the pytest session: the fixtures that are set up now


class Outcome(NamedTuple):
    """The outcome of one run, ready for JSON: a reward, a failure, or that the test skipped itself."""

    reward: float | None = None
    failure: str | None = None  # why there is no reward: an error in setup or teardown, a timeout
    skipped: str | None = None  # why it skipped itself
    traceback: str | None = None  # as pytest shows it
    message: str | None = None  # the last line of the traceback
    sections: Sequence[Sequence[str]] = ()  # captured output of a run that failed
    seconds: float = 0.0
    aside: str | None = None  # an error in tearing down fixtures of tests that ran before
    raised: str | None = None  # the class of the exception with which it failed

    @property
    def failed(self) -> bool:
        """Whether the test failed: an assertion or another exception."""
        return self.reward is not None and self.traceback is not None


@dataclass
class Run:
    """A run in progress: what the test recorded, and the reports of its phases and subtests."""

    reward: float | None = None
    wrong: str | None = None  # why what was recorded is no reward
    over: bool = False
    calls: int = 0  # how often the test was called; by pytest itself, once
    reports: list[pytest.TestReport] = field(default_factory=list)
    subtests: list[pytest.TestReport] = field(default_factory=list)


@dataclass(frozen=True)
class ThresherPull:
    """One run of a test, as the fixture ``thresher_pull`` shows it to the test."""

    arm: str  # the test
    seed: int  # no other run of the test has it; `random` and numpy are already seeded with it
    number: int  # counts the runs of this test, from 1
    _run: Run = field(default_factory=Run, repr=False, compare=False)

    def reward(self, value: float) -> None:
        """Record a number between 0 and 1 as this run's reward, once. If the test fails afterwards, its reward is 0."""
        if self._run.over:
            raise InvalidInput("reward", value, "was recorded after its run had ended", "record it in the test")
        if self._run.reward is not None:
            rule = f"is the second of this run, which has {self._run.reward:g}"
            raise InvalidInput("reward", value, rule, "record one number per run")
        try:
            number = float(value)
        except Exception:  # whatever it is, it is no number
            number = math.nan
        if not math.isfinite(number):
            self._run.wrong = str(InvalidInput("reward", value, "must be a finite number"))
            raise InvalidInput("reward", value, "must be a finite number", "record a number between 0 and 1")
        self._run.reward = number


PULL = pytest.StashKey[ThresherPull]()
RUN = pytest.StashKey[Run]()
FIRST = pytest.StashKey[dict[str, Any]]()


def pull_of(item: pytest.Item) -> ThresherPull:
    """The item's current run; without --thresher, its only one."""
    found = item.stash.get(PULL, None)
    if found is None:
        given = seed_of(item.config)
        found = ThresherPull(item.nodeid, random.SystemRandom().getrandbits(32) if given is None else given, 1)
        item.stash[PULL] = found
    return found


def run_once(item: pytest.Item, *, seed: int, number: int, isolation: Isolation) -> Outcome:
    """Run the item once in this process. Reports are not logged.

    With isolation "function", the fixtures of its class, module and session stay set up; with "module", those of the
    session; with "session", none.

    KeyboardInterrupt and `pytest.exit` pass through: the caller drops the pull.
    """
    aside, is_first, run = leave(item.session, item), FIRST not in item.stash, Run()
    _renew(item)
    item.stash[PULL], item.stash[RUN] = ThresherPull(item.nodeid, seed, number, run), run
    began, process = time.perf_counter(), os.getpid()
    try:
        with quiet(item.config, run, is_first=is_first), of_pull(item.config, seed):
            item.ihook.pytest_runtest_protocol(item=item, nextitem=_kept(item, isolation))
    finally:
        if os.getpid() != process:  # the test forked, and this is the child: it must not run the other tests
            os._exit(0)
        run.over = True
        del item.stash[PULL], item.stash[RUN]
    outcome = _outcome(run)._replace(seconds=time.perf_counter() - began, aside=aside)
    if any(report.when == "setup" and report.failed for report in run.reports):
        more = leave(item.session, None)  # pytest keeps the error of a shared fixture: the next run sets it up again
        outcome = outcome if more is None else outcome._replace(failure=f"{outcome.failure}; in teardown: {more}")
    tidy(item, failed=outcome.traceback is not None)
    return outcome


class Repeating(Noting):
    """The hooks that turn pytest's protocol into one of our runs."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Collect the reports of our runs instead of logging them."""
        run = item.stash.get(RUN, None)
        if run is None:
            return None
        run.reports = runtestprotocol(item, nextitem=nextitem, log=False)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Count calls: plugins such as pytest-retry call a failed test again before they report it."""
        run = item.stash.get(RUN, None)
        if run is not None:
            run.calls += 1

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note what was raised: a report has it only as text, from which pytest removes the class of an assertion."""
        report = yield
        if call.excinfo is not None:
            report.thresher_raised = call.excinfo.typename  # type: ignore[attr-defined]
        return report


def leave(session: pytest.Session, item: pytest.Item | None) -> str | None:
    """Tear down the fixtures that the item does not need. Returns the error, if there is one."""
    try:
        getattr(session, SETUP_STATE).teardown_exact(item)
    except (Exception, OutcomeException) as error:
        if isinstance(error, pytest.exit.Exception):
            raise
        return told_of(error)
    return None


def interrupted(error: BaseException) -> str:
    """Why a run that raised this has no outcome."""
    return f"interrupted by {type(error).__name__}"


def _kept(item: pytest.Item, isolation: Isolation) -> Any:
    """The node whose fixtures stay set up; pytest takes it for the next item."""
    if isolation == "session":
        return None
    if isolation == "function":
        return item.parent
    module = item.getparent(pytest.File)  # type: ignore[type-abstract]
    return None if module is None else module.parent


def _renew(item: pytest.Item) -> None:
    """Remove what an earlier run left on the item."""
    first = item.stash.get(FIRST, None)
    doctest = getattr(item, "dtest", None)
    if first is None:
        first = item.stash[FIRST] = {"properties": list(item.user_properties)}
        if doctest is not None:
            first["globals"] = dict(doctest.globs)  # a doctest empties them when it ends
    item.user_properties[:] = first["properties"]
    item._report_sections.clear()
    if doctest is not None:
        doctest.globs = dict(first["globals"])
    if getattr(item, "cls", None) is not None:  # `self` and the method bound to it
        vars(item).pop("_instance", None)
        vars(item).pop("_obj", None)
    vars(item).pop("_excinfo", None)  # of unittest


@contextmanager
def quiet(config: pytest.Config, run: Run, *, is_first: bool) -> Iterator[None]:
    """Collect the reports that subtests log by themselves, and ignore warnings except those of a test's first run."""
    logged = _instead(config.hook.pytest_runtest_logreport, lambda given: run.subtests.append(given["report"]))
    warned = nullcontext() if is_first else _instead(config.hook.pytest_warning_recorded, lambda _: None)
    with logged, warned:
        try:
            yield
        finally:
            _forget_subtests(config)


@contextmanager
def _instead(hook: Any, act: Callable[[Mapping[str, Any]], None]) -> Iterator[None]:
    """Act in the place of a hook's implementations.

    If another folder has a conftest.py with this hook, pytest calls a copy without it, which executes in the same way.
    """
    execute = hook._hookexec

    def instead(name: str, implementations: object, given: Mapping[str, Any], *_: object) -> list[object]:
        act(given)
        return []

    hook._hookexec = instead
    try:
        yield
    finally:
        hook._hookexec = execute


def _forget_subtests(config: pytest.Config) -> None:
    """Pytest counts failed subtests per test, and would fail the test's final report for them."""
    try:
        from _pytest.subtests import failed_subtests_key
    except ImportError:  # before pytest 9
        return
    config.stash.get(failed_subtests_key, {}).clear()


def _outcome(run: Run) -> Outcome:
    """What came of a run that has ended."""
    for report in run.reports:
        if report.skipped or hasattr(report, "wasxfail"):
            return Outcome(skipped=_why_skipped(report))
    if not run.reports:
        return Outcome(failure="pytest made no report of this run; another plugin ran the test")
    if run.calls > 1:
        return Outcome(failure=f"another plugin called the test {run.calls} times in one run; {SWITCH_OFF}")
    for report in run.reports:
        if report.failed and report.when != "call":
            return _failed(report, failure=f"error in {report.when}: {_crash(report)}")
    bad = next((report for report in [*run.subtests, *run.reports] if report.failed), None)
    if bad is not None and all(part in _crash(bad) for part in TIMEOUT):
        return _failed(bad, failure=f"timeout: {_crash(bad)}")
    if bad is not None:
        return _failed(bad, reward=0.0)
    if run.wrong is not None:
        return Outcome(failure=run.wrong)
    if not any(report.when == "call" for report in run.reports):
        return Outcome(failure="the test was set up and not called")
    return Outcome(reward=1.0 if run.reward is None else run.reward)


def _failed(report: pytest.TestReport, **why: Any) -> Outcome:
    """The outcome of a run that failed, with what pytest shows of the failure."""
    sections = [(title, masked(text)) for title, text in report.sections]
    raised = getattr(report, "thresher_raised", None)
    text = masked(report.longreprtext)
    return Outcome(traceback=text, message=_crash(report), sections=sections, raised=raised, **why)


def _crash(report: pytest.TestReport) -> str:
    """What went wrong, in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = str(crash.message if crash is not None else report.longreprtext).strip().splitlines()
    if crash is None:  # such as a fixture that does not exist
        lines = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")] or lines
    return masked(lines[0])[:300] if lines else "it failed"


def _why_skipped(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return f"xfail: {report.wasxfail}".rstrip(": ")
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return masked(str(reason).removeprefix("Skipped: ")[:300]) or "skipped"
