"""One run of a test, with its own seed and fresh fixtures, and the outcome of the run."""

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

from ...errors import InvalidInput, error_line
from ...text.masking import masked
from .session_options import Isolation, session_seed

# Seeds: each run draws different random numbers, and a run with the same seed draws the same numbers.

GOLDEN = 0x9E3779B9  # keeps the seeds of setup, call and teardown apart
SEED = pytest.StashKey[int]()


@contextmanager
def seeded_while_repeating(config: pytest.Config, seed: int) -> Iterator[None]:
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


def load_numpy_before_repeating() -> None:
    """Load numpy if it is installed, because a test that loads it would draw before it is seeded."""
    if find_spec("numpy"):
        import_module("numpy.random")


def _randomly_seed(config: pytest.Config) -> int | None:
    """The seed of pytest-randomly; None if it is not active."""
    seed = getattr(config.option, "randomly_seed", None)
    return seed if isinstance(seed, int) else None  # if the plugin is blocked, the option is a word


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
    """The seed of all Hypothesis tests, as --hypothesis-seed sets it."""
    return getattr(sys.modules.get("hypothesis.core"), "global_force_seed", None)


def _set_hypothesis(seed: int | None) -> None:
    core: Any = sys.modules.get("hypothesis.core")
    if core is not None:
        core.global_force_seed = seed


def _numpy_random() -> Any:
    """The module ``numpy.random``, if numpy is loaded. Newer versions load it when it is first used."""
    return getattr(sys.modules.get("numpy"), "random", None)


# Temporary folders: those of thousands of runs take space, and pytest looks at all of them to make a new one.

MOST = 256  # folders that are kept for a while
FOLDER = pytest.StashKey[Path]()
KEPT = pytest.StashKey[bool]()  # whether a folder of this test was kept
WAITING = pytest.StashKey[deque[Path]]()


def remove_folders_while_repeating(item: pytest.Item, *, failed: bool) -> None:
    """Remove the folders of runs that ended some time ago, but keep that of a test's first failed run."""
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
        current = Path(os.getcwd())  # noqa: PTH109 - a test may have removed it
    except OSError:
        return
    if not current.is_relative_to(folder):  # a test may have changed to it
        shutil.rmtree(folder, ignore_errors=True)


# One run.

TIMEOUT = ("Timeout (>", "from pytest-timeout")  # the message with which pytest-timeout fails a test
SWITCH_OFF = "switch it off: retries would change the pass rate that is asked about"
SETUP_STATE = "_setupstate"  # the attribute of the session that knows which fixtures are set up


class RepeatedOutcome(NamedTuple):
    """The outcome of one run, ready for JSON: a reward, a failure, or that the test skipped itself."""

    reward: float | None = None
    failure: str | None = None  # why there is no reward, such as an error in setup or a timeout
    skipped: str | None = None  # why the test skipped itself
    traceback: str | None = None  # as pytest shows it
    message: str | None = None  # the last line of the traceback
    sections: Sequence[Sequence[str]] = ()  # captured output of a run that failed
    seconds: float = 0.0
    earlier_error: str | None = None  # an error in tearing down fixtures of tests that ran before
    raised: str | None = None  # the class of the exception with which it failed

    @property
    def failed(self) -> bool:
        """Whether the test failed: an assertion or another exception."""
        return self.reward is not None and self.traceback is not None


@dataclass
class Run:
    """A run in progress: what the test recorded, and the reports of its phases and subtests."""

    reward: float | None = None
    invalid: str | None = None  # why the recorded value is no reward
    is_over: bool = False
    calls: int = 0  # pytest itself calls the test once
    reports: list[pytest.TestReport] = field(default_factory=list)
    subtests: list[pytest.TestReport] = field(default_factory=list)


@dataclass(frozen=True)
class ThresherPull:
    """One run of a test, as the fixture ``thresher_pull`` shows it to the test."""

    arm: str  # the test
    seed: int  # a different one for each run; `random` and numpy are already seeded with it
    number: int  # counts the runs of this test, from 1
    _run: Run = field(default_factory=Run, repr=False, compare=False)

    def reward(self, value: float) -> None:
        """Record a number between 0 and 1 as this run's reward, once. If the test fails afterwards, its reward is 0."""
        if self._run.is_over:
            raise InvalidInput("reward", value, "was recorded after its run had ended", "record it in the test")
        if self._run.reward is not None:
            rule = f"is the second of this run, which has {self._run.reward:g}"
            raise InvalidInput("reward", value, rule, "record one number per run")
        try:
            number = float(value)
        except Exception:  # a conversion may raise anything
            number = math.nan
        if not math.isfinite(number):
            self._run.invalid = str(InvalidInput("reward", value, "must be a finite number"))
            raise InvalidInput("reward", value, "must be a finite number", "record a number between 0 and 1")
        self._run.reward = number


PULL = pytest.StashKey[ThresherPull]()
RUN = pytest.StashKey[Run]()
FIRST = pytest.StashKey[dict[str, Any]]()


def pull_while_repeating(item: pytest.Item) -> ThresherPull:
    """The item's current run; without --thresher, its only one."""
    pull = item.stash.get(PULL, None)
    if pull is None:
        seed = session_seed(item.config)
        pull = ThresherPull(item.nodeid, random.SystemRandom().getrandbits(32) if seed is None else seed, 1)
        item.stash[PULL] = pull
    return pull


def repeat_once(item: pytest.Item, *, seed: int, number: int, isolation: Isolation) -> RepeatedOutcome:
    """Run the item once in this process. Reports are not logged.

    With isolation "function", the fixtures of its class, module and session stay set up; with "module", those of the
    session; with "session", none.

    KeyboardInterrupt and `pytest.exit` pass through, and the caller drops the pull.
    """
    earlier_error, is_first, run = tear_down_repeated(item.session, item), FIRST not in item.stash, Run()
    _reset(item)
    item.stash[PULL], item.stash[RUN] = ThresherPull(item.nodeid, seed, number, run), run
    began, process = time.perf_counter(), os.getpid()
    try:
        with (
            collecting_reports_while_repeating(item.config, run, is_first=is_first),
            seeded_while_repeating(item.config, seed),
        ):
            item.ihook.pytest_runtest_protocol(item=item, nextitem=_next_node(item, isolation))
    finally:
        if os.getpid() != process:  # the test forked, and this is the child, which must not run the other tests
            os._exit(0)
        run.is_over = True
        del item.stash[PULL], item.stash[RUN]
    outcome = _outcome(run)._replace(seconds=time.perf_counter() - began, earlier_error=earlier_error)
    if any(report.when == "setup" and report.failed for report in run.reports):
        # pytest keeps the error of a shared fixture: tear it down, so that the next run sets it up again
        error = tear_down_repeated(item.session, None)
        outcome = outcome if error is None else outcome._replace(failure=f"{outcome.failure}; in teardown: {error}")
    remove_folders_while_repeating(item, failed=outcome.traceback is not None)
    return outcome


class RunHooks:
    """The hooks that make a run of pytest's protocol, and seed its phases. Other tests are only seeded."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Collect the reports of our runs instead of logging them."""
        run = item.stash.get(RUN, None)
        if run is None:
            return None
        run.reports = runtestprotocol(item, nextitem=nextitem, log=False)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        _seed(item.config, 0)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Count calls, because plugins such as pytest-retry call a failed test again before they report it."""
        _seed(item.config, 1)
        run = item.stash.get(RUN, None)
        if run is not None:
            run.calls += 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        _seed(item.config, 2)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note the class of an exception, because a report has only text, which lacks the class of an assertion."""
        report = yield
        if call.excinfo is not None:
            report.thresher_raised = call.excinfo.typename  # type: ignore[attr-defined]
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, Any, Any]:
        """Note the folder of ``tmp_path``. Random numbers that a shared fixture draws do not shift those of tests."""
        if fixturedef.scope == "function":
            value = yield
            if fixturedef.argname == "tmp_path" and isinstance(value, Path):
                request.node.stash[FOLDER] = value
            return value
        numpy = _numpy_random()
        state, numpy_state = random.getstate(), None if numpy is None else numpy.get_state()
        try:
            return (yield)
        finally:
            random.setstate(state)
            if numpy is not None:
                numpy.set_state(numpy_state)


def tear_down_repeated(session: pytest.Session, item: pytest.Item | None) -> str | None:
    """Tear down the fixtures that the item does not need, or all of them. Returns the error, if there is one."""
    try:
        getattr(session, SETUP_STATE).teardown_exact(item)
    except (Exception, OutcomeException) as error:
        if isinstance(error, pytest.exit.Exception):
            raise
        return error_line(error)
    return None


def interruption_while_repeating(error: BaseException) -> str:
    """Why a run that raised this error has no outcome."""
    return f"interrupted by {type(error).__name__}"


def _next_node(item: pytest.Item, isolation: Isolation) -> Any:
    """The node whose fixtures stay set up. pytest takes it for the next item."""
    if isolation == "session":
        return None
    if isolation == "function":
        return item.parent
    module = item.getparent(pytest.File)  # type: ignore[type-abstract]
    return None if module is None else module.parent


def _reset(item: pytest.Item) -> None:
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
def collecting_reports_while_repeating(config: pytest.Config, run: Run, *, is_first: bool) -> Iterator[None]:
    """Collect the reports that subtests log, and ignore warnings except those of a test's first run."""
    hook = config.hook
    logging = _replaced(hook.pytest_runtest_logreport, lambda arguments: run.subtests.append(arguments["report"]))
    warning = nullcontext() if is_first else _replaced(hook.pytest_warning_recorded, lambda _: None)
    with logging, warning:
        try:
            yield
        finally:
            _forget_subtests(config)


@contextmanager
def _replaced(hook: Any, act: Callable[[Mapping[str, Any]], None]) -> Iterator[None]:
    """Call ``act`` instead of a hook's implementations.

    If another folder has a conftest.py with this hook, pytest calls a copy without it, which executes in the same way.
    """
    execute = hook._hookexec

    def call_act(name: str, implementations: object, arguments: Mapping[str, Any], *_: object) -> list[object]:
        act(arguments)
        return []

    hook._hookexec = call_act
    try:
        yield
    finally:
        hook._hookexec = execute


def _forget_subtests(config: pytest.Config) -> None:
    """Reset pytest's counts of failed subtests, which would fail the test's final report."""
    try:
        from _pytest.subtests import failed_subtests_key
    except ImportError:  # before pytest 9
        return
    config.stash.get(failed_subtests_key, {}).clear()


def _outcome(run: Run) -> RepeatedOutcome:
    """The outcome of a run that has ended."""
    for report in run.reports:
        if report.skipped or hasattr(report, "wasxfail"):
            return RepeatedOutcome(skipped=_why_skipped(report))
    if not run.reports:
        return RepeatedOutcome(failure="pytest made no report of this run; another plugin ran the test")
    if run.calls > 1:
        return RepeatedOutcome(failure=f"another plugin called the test {run.calls} times in one run; {SWITCH_OFF}")
    for report in run.reports:
        if report.failed and report.when != "call":
            return _failed(report, failure=f"error in {report.when}: {_crash(report)}")
    for report in [*run.subtests, *run.reports]:
        if report.failed:
            is_timeout = all(part in _crash(report) for part in TIMEOUT)
            return _failed(report, **({"failure": f"timeout: {_crash(report)}"} if is_timeout else {"reward": 0.0}))
    if run.invalid is not None:
        return RepeatedOutcome(failure=run.invalid)
    if not any(report.when == "call" for report in run.reports):
        return RepeatedOutcome(failure="the test was set up and not called")
    return RepeatedOutcome(reward=1.0 if run.reward is None else run.reward)


def _failed(report: pytest.TestReport, **fields: Any) -> RepeatedOutcome:
    """The outcome of a run that failed, with the texts that pytest shows."""
    sections = [(title, masked(text)) for title, text in report.sections]
    raised = getattr(report, "thresher_raised", None)
    text = masked(report.longreprtext)
    return RepeatedOutcome(traceback=text, message=_crash(report), sections=sections, raised=raised, **fields)


def _crash(report: pytest.TestReport) -> str:
    """The error in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = str(crash.message if crash is not None else report.longreprtext).strip().splitlines()
    if crash is None:  # for example, a fixture does not exist
        lines = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")] or lines
    return masked(lines[0])[:300] if lines else "it failed"


def _why_skipped(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return f"xfail: {report.wasxfail}".rstrip(": ")
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return masked(str(reason).removeprefix("Skipped: ")[:300]) or "skipped"
