"""Runs tests until they are settled. It is loaded only with --thresher or --thresher-seed."""

import contextlib
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from _pytest.skipping import evaluate_skip_marks, evaluate_xfail_marks
from _pytest.terminal import TerminalReporter

from ...core.verdict import Verdict
from ...errors import CannotGoOn, StoreFailed, ThresherError
from ...text.phrasing import plural
from ...text.quantities import percent_text
from . import repeating, reports
from .repeating import interruption_while_repeating, repeat_once, tear_down_repeated
from .reports import TestReportProgress
from .session_code import session_code
from .session_options import Options, SessionBar, session_bars, session_options, session_seed
from .studies import Ask, PytestStudyResult, SessionStudies

OPEN_LEFT = 8  # the exit code if tests are left open and --thresher-open is fail
SUMMARY = "GITHUB_STEP_SUMMARY"


def register_plugin_hooks(config: pytest.Config) -> None:
    """Register the hooks that the options ask for."""
    seed = session_seed(config)
    if seed is not None and config.getoption("thresher") is not None:
        rule = "runs tests once, so it cannot be used with --thresher; leave one out"
        raise pytest.UsageError(f"--thresher-seed: {rule}")
    loop = _loop(config, session_options(config)) if seed is None else PluginSeededOnce(seed)
    config.pluginmanager.register(repeating.RunHooks(), "thresher-runs")
    config.pluginmanager.register(loop, "thresher-loop")


def _loop(config: pytest.Config, options: Options) -> object:
    """The loop for this process. With xdist, it is a worker's or the controller's."""
    if hasattr(config, "workerinput"):
        from .scheduling import SchedulingWorker

        return SchedulingWorker(config, options)
    session = StudySession(config, options)
    config.pluginmanager.register(session, "thresher-session")
    if config.getoption("dist", "no") != "no" and config.getoption("tx", None) and not config.option.collectonly:
        from .scheduling import SchedulingController

        return SchedulingController(session)
    return SingleProcess(session)


class PluginSeededOnce:
    """With --thresher-seed: tests run once, in the ordinary way, with that seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        repeating.load_numpy_before_repeating()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        with repeating.seeded_while_repeating(item.config, self.seed):
            return (yield)


class StudySession:
    """The studies of a pytest session, and the hooks that show their results to people and to other plugins."""

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self.config, self.options = config, options
        self.studies: SessionStudies | None = None
        self.results: list[PytestStudyResult] = []
        self.verdicts: list[Verdict] = []

    def begin(self, tests: dict[str, SessionBar], code: Mapping[str, Any]) -> SessionStudies:
        """Create the studies, resume them or make their next revisions."""
        self.progress = TestReportProgress(self.config)
        project = self.config.rootpath.name
        try:
            self.studies = SessionStudies(tests, self.options, project=project, code=code, on_run=self.progress)
        except ThresherError as error:
            option = "--thresher-" if error.what == "storage" else ""
            raise pytest.UsageError(f"{option}{error}") from None
        self.progress.write(self.studies.revised)
        return self.studies

    def report(self, arms: Mapping[str, pytest.Item | reports.ReportedTest]) -> None:
        """Log one report for each test, if the studies have begun."""
        if self.studies is None:
            return
        self.progress.end()
        self.verdicts = self.studies.verdicts()
        self.results = self.studies.results(self.verdicts)
        for result in self.results:
            item = arms[result.nodeid]
            hook = item.ihook if isinstance(item, pytest.Item) else self.config.hook
            hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
            for report in reports.reports(result, item):
                hook.pytest_runtest_logreport(report=report)
            hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def pytest_report_header(self) -> str:
        confidence = percent_text(self.options.confidence, exact=True)
        return f"thresher: which tests reach {self.options.bar}? Confidence {confidence}"

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        return reports.status_of_test_report(report)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reports.add_report_to_junit(self.config, report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        are_open = any(result.status == "open" for result in self.results)
        if are_open and self.options.open_fails and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = OPEN_LEFT
        if self.results and os.environ.get(SUMMARY):
            text = reports.test_reports_as_markdown(self.results, self.verdicts, self.options)
            try:
                with Path(os.environ[SUMMARY]).open("a", encoding="utf-8") as file:
                    file.write(text)
            except OSError as error:
                warning = f"{SUMMARY} {os.environ[SUMMARY]!r}: cannot be written ({error.strerror})"
                self.config.issue_config_time_warning(pytest.PytestWarning(warning), 2)

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        if self.results:
            reports.write_test_reports(terminalreporter, self.results, self.verdicts, self.options)

    def pytest_unconfigure(self) -> None:
        if self.studies is not None:
            with contextlib.suppress(StoreFailed, CannotGoOn):
                self.studies.close()


# The loop of a session in one process: ask for a batch of runs, make them in the order of the tests, and tell.

MIN_STORED = 8  # runs asked for at once with a storage, at least
MAX_BATCH = 64  # runs asked for at once, at most: tests of the same module share one setup of its fixtures
FIRST_BATCH = 8  # runs asked for at once, at most, while it is not known how long a run takes
BATCH_SECONDS = 0.5  # how long a batch takes: after an interruption, its runs that never began are charged


class SingleProcess:
    """Runs the tests in this process until they are settled."""

    def __init__(self, session: StudySession) -> None:
        self._study_session = session
        self._bars: dict[pytest.Item, SessionBar] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._bars = session_bars(session.items, self._study_session.options)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        option = session.config.option
        if option.collectonly or getattr(option, "setuponly", False):
            return None
        refuse_plugin_collection_errors(session)
        ordinary, arms = plugin_tests_and_arms(session.items)
        # the code is read before tests load more modules
        code = session_code(session, self._study_session.options)
        run_plugin_ordinary_tests(session, ordinary)
        studies = self._study_session.begin({nodeid: self._bars[item] for nodeid, item in arms.items()}, code)
        with plugin_store_explained():
            try:
                run_plugin_arms(session, arms, studies)
            finally:
                self._study_session.report(arms)
        stop_plugin_if_asked(session)
        return True


def run_plugin_arms(session: pytest.Session, items: dict[str, pytest.Item], studies: SessionStudies) -> None:
    """Run tests until the studies are done, the time is over or pytest is to stop."""
    order = {nodeid: position for position, nodeid in enumerate(items)}
    try:
        while not _is_over(session, studies) and (asks := studies.ask(_batch_size(studies))):
            _run_batch(session, items, studies, sorted(asks, key=lambda ask: order[ask.nodeid]))
            if studies.failed_enough:
                break
    finally:
        studies.note_teardown_error(tear_down_repeated(session, None))


def _is_over(session: pytest.Session, studies: SessionStudies) -> bool:
    return studies.is_out_of_time or bool(session.shouldstop) or bool(session.shouldfail)


def _batch_size(studies: SessionStudies) -> int:
    """How many runs to ask for at once: about one of each test, and some more where each write takes time."""
    pace = studies.pace.get(None)
    most = FIRST_BATCH if pace is None else max(1, int(BATCH_SECONDS / max(pace, 1e-9)))
    return min(MAX_BATCH, most, max(studies.open, MIN_STORED if studies.options.storage else 1))


def _run_batch(
    session: pytest.Session, items: dict[str, pytest.Item], studies: SessionStudies, asks: Sequence[Ask]
) -> None:
    """Make these runs. Those that have not begun when the time is over, or pytest stops, are taken back."""
    begun = 0
    try:
        while begun < len(asks) and not _is_over(session, studies):
            ask = asks[begun]
            begun += 1
            try:
                item, isolation = items[ask.nodeid], studies.options.isolation
                outcome = repeat_once(item, seed=ask.seed, number=ask.number, isolation=isolation)
            except BaseException as error:  # Ctrl-C or pytest.exit: the run has begun
                studies.drop_lost(ask, interruption_while_repeating(error))
                raise
            studies.tell(ask, outcome)
    finally:
        studies.take_back(asks[begun:])


# Functions of both loops, the one above and that of xdist's workers.


@contextlib.contextmanager
def plugin_store_explained() -> Iterator[None]:
    """If the store fails or another session revises a study, end pytest with one line: no more runs would count."""
    try:
        yield
    except (StoreFailed, CannotGoOn) as error:
        pytest.exit(f"--thresher-storage: {error}", returncode=pytest.ExitCode.INTERNAL_ERROR)


def refuse_plugin_collection_errors(session: pytest.Session) -> None:
    """Stop, as pytest does, if some tests could not be collected."""
    if session.testsfailed and not session.config.option.continue_on_collection_errors:
        raise session.Interrupted(f"{plural(session.testsfailed, 'error')} during collection")


def plugin_tests_and_arms(items: Iterable[pytest.Item]) -> tuple[list[pytest.Item], dict[str, pytest.Item]]:
    """The tests that run once, because a mark skips them or expects them to fail, and the arms by their node ids."""
    ordinary, arms = list[pytest.Item](), dict[str, pytest.Item]()
    for item in items:
        if is_ordinary_for_plugin(item) or item.nodeid in arms:  # the same test may be collected twice
            ordinary.append(item)
        else:
            arms[item.nodeid] = item
    return ordinary, arms


def is_ordinary_for_plugin(item: pytest.Item) -> bool:
    """Whether a mark skips the test or expects it to fail. It then runs once, as without thresher."""
    for owner in (getattr(item, "obj", None), getattr(item, "cls", None)):
        if getattr(owner, "__unittest_skip__", False) or getattr(owner, "__unittest_expecting_failure__", False):
            return True
    try:
        return evaluate_skip_marks(item) is not None or evaluate_xfail_marks(item) is not None
    except (Exception, pytest.fail.Exception):  # pytest reports a condition that cannot be evaluated
        return True


def run_plugin_ordinary_tests(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Run tests once, as pytest does."""
    for item, nextitem in zip_longest(items, items[1:]):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
        stop_plugin_if_asked(session)


def stop_plugin_if_asked(session: pytest.Session) -> None:
    """Stop, as pytest does between two tests, if a plugin or --maxfail asks for it."""
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
