"""The plugin that runs tests until they are settled; registered only if --thresher or --thresher-seed is given."""

import contextlib
import hashlib
import os
import platform
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path

import pytest
from _pytest.skipping import evaluate_skip_marks, evaluate_xfail_marks
from _pytest.terminal import TerminalReporter

from ...core.verdict import Verdict
from ...errors import StoreFailed, ThresherError
from ...text.phrasing import plural
from ...text.quantities import number
from . import repeating, reports
from .repeating import Repeating, interrupted, leave, run_once
from .reports import Progress
from .session_options import Options, bars, options_of, seed_of
from .studies import Ask, Result, Sift

# The loop of a pytest run in one process: ask for a batch of runs, make them in the order of the tests, tell.

STORED = 8  # with a storage, at least
BATCH = 64  # runs asked for at once, at most: tests of the same module share one setup of its fixtures
FIRST = 8  # the same before it is known how long a run takes
LASTS = 0.5  # seconds that a batch takes: after an interruption, its runs that never began are charged


class Loop:
    """Runs the tests of a study until it is done, the time is over or pytest is to stop."""

    def __init__(self, session: pytest.Session, items: dict[str, pytest.Item], sift: Sift) -> None:
        self._session, self._items, self._sift = session, items, sift
        self._order = {nodeid: at for at, nodeid in enumerate(items)}

    def run(self) -> None:
        """Run until there is nothing more to do."""
        try:
            while not self._is_over() and (asks := self._sift.ask(self._size())):
                self._batch(sorted(asks, key=lambda ask: self._order[ask.nodeid]))
                if self._sift.failed_enough:
                    break
        finally:
            self._sift.aside(leave(self._session, None))

    def _size(self) -> int:
        """How many runs to ask for at once: about one of each test; a few more where each write takes time."""
        pace = self._sift.pace.get(None)
        most = FIRST if pace is None else max(1, int(LASTS / max(pace, 1e-9)))
        return min(BATCH, most, max(self._sift.open, STORED if self._sift.options.storage else 1))

    def _batch(self, asks: Sequence[Ask]) -> None:
        """Make these runs. Those that have not begun when the time is over, or pytest stops, are taken back."""
        at = 0
        try:
            while at < len(asks) and not self._is_over():
                at += 1
                self._one(asks[at - 1])
        finally:
            self._sift.unbegun(asks[at:])

    def _one(self, ask: Ask) -> None:
        item, isolation = self._items[ask.nodeid], self._sift.options.isolation
        try:
            outcome = run_once(item, seed=ask.seed, number=ask.number, isolation=isolation)
        except BaseException as error:  # Ctrl-C, pytest.exit: whatever the test did, its run has begun
            self._sift.lost(ask, interrupted(error))
            raise
        self._sift.tell(ask, outcome)

    def _is_over(self) -> bool:
        return self._sift.is_out_of_time or bool(self._session.shouldstop) or bool(self._session.shouldfail)


OPEN_LEFT = 8  # the exit code if tests are left open and --thresher-open is fail
SUMMARY = "GITHUB_STEP_SUMMARY"


def start(config: pytest.Config) -> None:
    """Register what the options ask for."""
    seed = seed_of(config)
    if seed is not None and config.getoption("thresher") is not None:
        rule = "runs tests once, so it cannot be used with --thresher; leave one out"
        raise pytest.UsageError(f"--thresher-seed: {rule}")
    plugin = _plugin(config, options_of(config)) if seed is None else Once(seed)
    config.pluginmanager.register(repeating.Seeding(), "thresher-seeding")
    config.pluginmanager.register(plugin, "thresher-sift")


def _plugin(config: pytest.Config, options: Options) -> object:
    """The plugin for this process: with xdist, a worker's or the controller's; otherwise one that does everything."""
    if hasattr(config, "workerinput"):
        from .scheduling import Worker

        return Worker(config, options)
    if config.getoption("dist", "no") != "no" and config.getoption("tx", None) and not config.option.collectonly:
        from .scheduling import Controller

        return Controller(config, options)
    return Plugin(config, options)


class Once:
    """With --thresher-seed: tests run once, in the ordinary way, with that seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        repeating.load_numpy()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        with repeating.of_pull(item.config, self.seed):
            return (yield)


class Plugin(Repeating):
    """Runs the tests in one process, and shows people and other plugins what came of them."""

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self.config, self.options = config, options
        self.bars: dict[pytest.Item, float] = {}
        self.sift: Sift | None = None
        self.results: list[Result] = []
        self.verdicts: list[Verdict] = []

    def pytest_report_header(self) -> str:
        bar, confidence = (number(each, exact=True) for each in (self.options.at_least, self.options.confidence))
        return f"thresher: at least {bar} of runs must pass, confidence {confidence}"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.bars = bars(session.items, self.options)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        option = self.config.option
        if option.collectonly or getattr(option, "setuponly", False):
            return None
        refuse_errors(session)
        ordinary, arms = divided(session.items)
        version = fingerprint(self.config, session.items) if self.options.storage else ""  # before tests load more
        run_ordinary(session, ordinary)
        sift = self.begin({nodeid: self.bars[item] for nodeid, item in arms.items()}, version)
        with store_explained():
            try:
                Loop(session, arms, sift).run()
            finally:
                self.report(arms)
        stop_if_asked(session)
        return True

    # -- what a run with xdist uses as well -----------------------------------------------------------------------

    def begin(self, tests: dict[str, float], version: str) -> Sift:
        """Create the studies, or resume them."""
        self.progress = Progress(self.config)
        try:
            self.sift = Sift(tests, self.options, version=version, shown=self.progress)
        except ThresherError as error:
            option = "--thresher-" if error.what == "storage" else ""
            raise pytest.UsageError(f"{option}{error}") from None
        return self.sift

    def report(self, arms: Mapping[str, pytest.Item | reports.Collected]) -> None:
        """Log one report for each test, if the studies have begun."""
        if self.sift is None:
            return
        self.progress.end()
        self.verdicts = self.sift.verdicts()
        self.results = self.sift.results(self.verdicts)
        for result in self.results:
            item = arms[result.nodeid]
            hook = item.ihook if isinstance(item, pytest.Item) else self.config.hook
            hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
            for report in reports.reports(result, item):
                hook.pytest_runtest_logreport(report=report)
            hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        return reports.status_of(report)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reports.add_to_junit(self.config, report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        left = any(result.status in ("open", "flaky") for result in self.results)
        if left and self.options.open_fails and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = OPEN_LEFT
        if self.results and os.environ.get(SUMMARY):
            text = reports.to_markdown(self.results, self.verdicts, self.options)
            try:
                with Path(os.environ[SUMMARY]).open("a", encoding="utf-8") as file:
                    file.write(text)
            except OSError as error:
                warning = f"{SUMMARY} {os.environ[SUMMARY]!r}: cannot be written ({error.strerror})"
                self.config.issue_config_time_warning(pytest.PytestWarning(warning), 2)

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        if self.results:
            reports.write(terminalreporter, self.results, self.verdicts, self.options)

    def pytest_unconfigure(self) -> None:
        if self.sift is not None:
            with contextlib.suppress(StoreFailed):
                self.sift.close()


@contextlib.contextmanager
def store_explained() -> Iterator[None]:
    """If the store fails, end pytest with one line: rewards that cannot be written do not count."""
    try:
        yield
    except StoreFailed as error:
        pytest.exit(f"--thresher-storage: {error}", returncode=pytest.ExitCode.INTERNAL_ERROR)


def refuse_errors(session: pytest.Session) -> None:
    """Stop, as pytest does, if some tests could not be collected."""
    if session.testsfailed and not session.config.option.continue_on_collection_errors:
        raise session.Interrupted(f"{plural(session.testsfailed, 'error')} during collection")


def divided(items: Iterable[pytest.Item]) -> tuple[list[pytest.Item], dict[str, pytest.Item]]:
    """The tests that run once, because of a mark that skips them or expects them to fail, and the arms by node id."""
    ordinary, arms = list[pytest.Item](), dict[str, pytest.Item]()
    for item in items:
        if is_ordinary(item) or item.nodeid in arms:  # collected twice
            ordinary.append(item)
        else:
            arms[item.nodeid] = item
    return ordinary, arms


def is_ordinary(item: pytest.Item) -> bool:
    """Whether a mark skips the test or expects it to fail: it then runs once, as without thresher."""
    for owner in (getattr(item, "obj", None), getattr(item, "cls", None)):
        if getattr(owner, "__unittest_skip__", False) or getattr(owner, "__unittest_expecting_failure__", False):
            return True
    try:
        return evaluate_skip_marks(item) is not None or evaluate_xfail_marks(item) is not None
    except (Exception, pytest.fail.Exception):  # a condition that cannot be evaluated: pytest reports it
        return True


def run_ordinary(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Run tests once, as pytest does."""
    for at, item in enumerate(items):
        nextitem = items[at + 1] if at + 1 < len(items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
        stop_if_asked(session)


def stop_if_asked(session: pytest.Session) -> None:
    """Stop, as pytest does between two tests, if a plugin or --maxfail asks for it."""
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


def fingerprint(config: pytest.Config, items: Iterable[pytest.Item]) -> str:
    """A digest of the code under test: runs of different code are never counted together.

    It covers the files of the tests and of all modules below the root directory that are loaded after collection, and
    the versions of Python and of all installed packages.
    """
    root = config.rootpath
    files = {item.path for item in items}
    for module in list(sys.modules.values()):
        name = getattr(module, "__file__", None)
        if isinstance(name, str) and "site-packages" not in name and (path := Path(name)).is_relative_to(root):
            files.add(path)
    installed = sorted(f"{each.metadata['Name']} {each.version}" for each in distributions())
    digest = hashlib.sha256(f"{sys.version} {platform.platform()} {installed}".encode())
    for path in sorted(files):
        digest.update(str(path.relative_to(root) if path.is_relative_to(root) else path).encode())
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()[:16]
