"""With pytest-xdist: the controller asks the studies which worker makes which run, and workers make them.

xdist tells its workers only which tests to run, by their positions, but a run also needs its seed and number. The loop
in which a worker waits for work is an ordinary pytest hook, and a scheduler may send any command over the worker's
channel. So this loop replaces xdist's. It reads the same channel:

- ``("thresher", {"runs": [[serial, position, seed, number], …], "left": seconds})`` comes from `Scheduler`. A test
  without a seed runs once, in the ordinary way.
- ``("stop", {})`` comes from there, too: runs that have not begun are given back.
- ``("shutdown", {})`` comes from xdist, and at the end of the channel.

Answers go back in the order of the runs, as the event ``runtest_protocol_complete``, which xdist passes on to the
scheduler unchanged: ``item_index`` is the serial number, and ``duration`` is the answer in JSON. An answer is an
outcome, null for a run that never began, or a string that says why a run that began has no outcome. Runs make no
reports, so no plugin logs them, neither in the worker nor in the controller.
"""

import json
import math
import time
from collections import deque
from collections.abc import Callable, Generator
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import pytest
from xdist.scheduler import LoadScheduling

from .plugin import (
    StudySession,
    plugin_store_explained,
    plugin_tests_and_arms,
    refuse_plugin_collection_errors,
)
from .repeating import RepeatedOutcome, interruption_while_repeating, repeat_once, tear_down_repeated
from .reports import ReportedTest
from .session_code import session_code
from .session_options import Options, SessionBar, session_bars
from .studies import Ask, SessionStudies

HELLO, LAST = -1, -2  # serial numbers of two other answers: the collected tests, and an error in the last teardown


class SchedulingWorker:
    """The loop of one worker."""

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self._options = options
        self._interactor: Any = next(p for p in config.pluginmanager.get_plugins() if hasattr(p, "sendevent"))
        self._runs = SimpleQueue[list[Any] | None]()
        self._stopped, self._until = False, math.inf

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run what the controller asks for, until it ends this worker."""
        for item in session.items:
            setattr(item, "_nodeid", scheduled_nodeid(item))  # noqa: B010 - pytest declares it nowhere
        self._send(HELLO, description_for_scheduling(session, self._options))
        self._interactor.channel.setcallback(self._receive, endmarker=("shutdown", {}))
        try:
            while (run := self._runs.get()) is not None:
                self._send(run[0], self._answer(session, *run))
                if session.shouldstop or session.shouldfail:
                    break  # xdist's controller then ends the run
        finally:
            self._stopped = True
            while not self._runs.empty() and (run := self._runs.get()) is not None:
                self._send(run[0], None)
        self._send(LAST, tear_down_repeated(session, None))
        return True

    def _receive(self, command: tuple[str, dict[str, Any]]) -> None:
        """Take a command, in the thread that reads the channel."""
        name, arguments = command
        if name == "thresher":
            self._until = time.monotonic() + arguments["left"]
            for run in arguments["runs"]:
                self._runs.put(run)
        elif name == "stop":
            self._stopped = True
        elif name == "shutdown":
            self._runs.put(None)

    def _answer(self, session: pytest.Session, serial: int, position: int, seed: int | None, number: int) -> object:
        """An outcome, or None if the run never began."""
        if self._stopped or (seed is not None and time.monotonic() >= self._until):
            return None
        item = session.items[position]
        if seed is None:
            self._interactor.item_index = position  # for the reports that xdist sends
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            return RepeatedOutcome()
        try:
            return repeat_once(item, seed=seed, number=number, isolation=self._options.isolation)
        except BaseException as error:  # Ctrl-C or pytest.exit: the run has begun
            self._send(serial, interruption_while_repeating(error))
            raise

    def _send(self, serial: int, answer: object) -> None:
        self._interactor.sendevent("runtest_protocol_complete", item_index=serial, duration=json.dumps(answer))


def scheduled_nodeid(item: pytest.Item) -> str:
    """The node id without the group that ``--dist loadgroup`` appends to it before pytest 9.2."""
    return item.nodeid.removesuffix(f"@{scheduled_group(item)}")


def scheduled_group(item: pytest.Item) -> str | None:
    """The group that the test's markers name, read as xdist reads them. It is for ``--dist loadgroup``."""
    marks = list(item.iter_markers("xdist_group")) if item.config.getoption("loadgroup", False) else []
    names = {str(mark.args[0] if mark.args else mark.kwargs.get("name", "default")) for mark in marks}
    return "_".join(sorted(names)) or None


def description_for_scheduling(session: pytest.Session, options: Options) -> dict[str, Any]:
    """The tests as the controller needs to know them, ready for JSON."""
    try:
        bar_of = session_bars(session.items, options)
    except pytest.UsageError as error:
        return {"error": str(error), "tests": [], "ordinary": []}
    ordinary, arms = plugin_tests_and_arms(session.items)
    positions = {item: position for position, item in enumerate(session.items)}

    def collected(item: pytest.Item) -> ReportedTest:
        place = (*item.location, str(item.path), list(item.keywords))
        return ReportedTest(item.nodeid, positions[item], bar_of[item], scheduled_group(item), *place)

    return {
        "tests": [collected(item) for item in arms.values()],
        "ordinary": [(item.nodeid, positions[item]) for item in ordinary],
        "code": session_code(session, options),
    }


# In the controller of pytest-xdist: which worker makes which run.
#
# xdist asks plugins for a scheduler, tells it which tests the workers collected and completed, and lets it send them
# work. This scheduler asks the studies instead of a list of tests. The worker above is the other end.

Node = Any  # xdist's WorkerController; xdist publishes no types
LEAST, MOST = 2, 32  # runs queued on a worker, so that it need not wait for the controller
AHEAD = 0.25  # seconds of work queued on a worker, but at least LEAST runs


class WorkerRun(NamedTuple):
    """One run for a worker."""

    nodeid: str
    position: int  # in the collection
    scope: str | None = None  # one worker at a time makes runs of a scope
    ask: Ask | None = None  # None for a test that runs once, in the ordinary way


class Scheduler(LoadScheduling):  # type: ignore[misc]  # xdist publishes no types
    """Keeps every worker busy until the studies are done.

    A worker answers its runs in the order in which they were sent. So if it dies, the first of them was running and has
    failed. The others never began, and another worker makes them.
    """

    def __init__(self, config: pytest.Config, log: Any, *, start: Callable[[dict[str, Any]], SessionStudies]) -> None:
        super().__init__(config, log)
        self.collection: list[str] | None = None
        self.studies: SessionStudies  # set when this begins
        self._start = start
        self._hello: dict[str, Any] | None = None  # the tests as a worker described them
        self._begun = self._over = False
        self._runs: dict[str, WorkerRun] = {}  # by node id: a run without its ask
        self._serial = 0
        self._waiting = deque[WorkerRun]()  # runs on no worker
        self._depth: dict[Node, int] = {}
        self._ending = set[Node]()  # workers that gave a run back: they get no further ones
        self._strangers = set[Node]()  # workers that collected other tests

    # -- called by xdist ----------------------------------------------------------------------------------------

    @property
    def tests_finished(self) -> bool:
        """Whether nothing is left to do, or the workers collected different tests, which xdist reports."""
        if not self._begun:
            return self._over
        over = self._is_over()  # may take back waiting runs
        return not self.has_pending and (over or self.studies.done)

    @property
    def has_pending(self) -> bool:
        return bool(self._waiting) or any(self.node2pending.values())

    def schedule(self) -> None:
        """Begin once all workers have collected the same tests and one has described them; then give them work."""
        if self.collection is None and not self._over:
            if not self._check_nodes_have_same_collection():
                self._over = True
                return
            self.collection = next(iter(self.node2collection.values()))
        if self._hello is None or self._over:
            return
        if not self._begun:
            self._begin(self._hello)
        for node in self.nodes:
            if node in self.node2collection:  # otherwise it is still collecting
                self.check_schedule(node)

    def add_node(self, node: Node) -> None:
        """Add a worker. `node2pending` has its runs by serial number, in the order in which they were sent."""
        self.node2pending[node] = {}

    def add_node_collection(self, node: Node, collection: list[str]) -> None:
        """A worker has collected its tests. A replacement that collected other tests gets no runs."""
        super().add_node_collection(node, collection)
        if self._begun and node not in self.node2collection:
            self._strangers.add(node)
            warning = "a new worker collected other tests than the one it replaces, so it makes no runs"
            self.config.issue_config_time_warning(pytest.PytestWarning(warning), 2)

    def mark_test_complete(self, node: Node, item_index: int, duration: Any = None) -> None:
        """Take an answer of a worker."""
        answer = json.loads(duration)
        if item_index == HELLO:
            self._hello = self._hello or answer
            if self.collection_is_completed:
                self.schedule()
        elif item_index == LAST:
            if self._begun:
                self.studies.note_teardown_error(answer, node)
        elif run := self.node2pending.get(node, {}).pop(item_index, None):  # otherwise it was answered before
            self._take_answer(node, run, answer)
            if self._waiting:
                self.schedule()
            else:
                self.check_schedule(node)

    def mark_test_pending(self, item: str) -> None:
        """Plugins that want a test to run again after a crash call this, but the studies decide."""

    def remove_node(self, node: Node) -> str | None:
        """A worker ended or died. Returns the test that killed it, if xdist should report it."""
        runs = list(self.node2pending.pop(node).values())
        self._strangers.discard(node)
        if not runs:
            return None
        first, *others = runs
        spec = node.gateway.spec
        if not spec.popen or getattr(spec, "via", None):  # if its connection broke, runs may have begun
            for run in others:
                if run.ask is not None:
                    self.studies.drop_lost(run.ask, "the connection to its worker broke")
            others = []
        self._waiting.extend(others)
        if first.ask is not None:
            self.studies.tell(
                first.ask, RepeatedOutcome(failure=f"worker {node.gateway.id} crashed while it ran this test")
            )
        self.schedule()
        return None if first.ask is not None else first.nodeid

    # -- giving work --------------------------------------------------------------------------------------------

    def _begin(self, hello: dict[str, Any]) -> None:
        hello["tests"] = [ReportedTest(*test) for test in hello["tests"]]
        self.studies = self._start(hello)
        self._begun = True
        for test in hello["tests"]:
            scope = scheduled_scope(test.nodeid, test.group, dist=self.config.getvalue("dist"))
            self._runs[test.nodeid] = WorkerRun(test.nodeid, test.position, scope)
        self._waiting.extend(WorkerRun(nodeid, position) for nodeid, position in hello["ordinary"])

    def check_schedule(self, node: Node, duration: float = 0) -> None:
        """Send a worker more runs if it has few left."""
        pending = self.node2pending[node]
        if node.shutting_down or node in self._ending or self._is_over():
            return
        if len(pending) >= max(LEAST, self._depth.get(node, 0) // 4):
            return
        self._depth[node] = depth = self._queue_length(node)
        runs = self._take_waiting(node, depth - len(pending))
        while len(runs) + len(pending) < depth and len(self._waiting) < MOST:
            asks = self.studies.ask(depth - len(runs) - len(pending))
            if not asks:
                break
            self._waiting.extend(self._runs[ask.nodeid]._replace(ask=ask) for ask in asks)
            runs += self._take_waiting(node, depth - len(runs) - len(pending))
        if runs:
            self._send(node, sorted(runs, key=lambda run: run.position))  # fixtures of a module are set up less often

    def _queue_length(self, node: Node) -> int:
        """How many runs to queue on the worker."""
        pace = self.studies.pace.get(node)
        if pace is None:
            return LEAST
        return max(LEAST, int(min(MOST, AHEAD / max(pace, 1e-9), self.studies.open // len(self.nodes))))

    def _take_waiting(self, node: Node, most: int) -> list[WorkerRun]:
        """Take waiting runs for this worker, but none of a scope in which another worker has runs."""
        busy = {run.scope for other in self.nodes if other != node for run in self.node2pending[other].values()}
        runs, others = list[WorkerRun](), list[WorkerRun]()
        while self._waiting and len(runs) < most:
            run = self._waiting.popleft()
            (runs if run.scope is None or run.scope not in busy else others).append(run)
        self._waiting.extendleft(reversed(others))
        return runs

    def _send(self, node: Node, runs: list[WorkerRun]) -> None:
        message, pending = list[Any](), self.node2pending[node]
        for run in runs:
            self._serial += 1
            pending[self._serial] = run
            seed, number = (None, 0) if run.ask is None else (run.ask.seed, run.ask.number)
            message.append([self._serial, run.position, seed, number])
        left = max(0.0, self.studies.until - time.monotonic())
        if not self._send_command(node, "thresher", runs=message, left=left):
            self._waiting.extend(pending.pop(serial) for serial, *_ in message)

    def _send_command(self, node: Node, command: str, **arguments: object) -> bool:
        """Send a command. Returns False if the worker has just died; xdist will notice."""
        try:
            node.sendcommand(command, **arguments)
        except OSError:
            self._ending.add(node)
            return False
        return True

    def _take_answer(self, node: Node, run: WorkerRun, answer: Any) -> None:
        if run.ask is None:
            return
        if answer is None:
            self._ending.add(node)
            self.studies.take_back([run.ask])
        elif isinstance(answer, str):
            self.studies.drop_lost(run.ask, answer)
        else:
            outcome = RepeatedOutcome(*answer)
            self.studies.tell(run.ask, outcome, node)
            if outcome.reward != 1 and self.studies.failed_enough:
                self.stop()

    # -- stopping -----------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Begin no more runs."""
        self._over = True
        self._forget_waiting()
        for node, pending in self.node2pending.items():
            if pending and not node.shutting_down:
                self._send_command(node, "stop")

    def finish(self) -> None:
        """Drop the runs of workers that do not answer. Each of these runs may have begun."""
        self._over = True
        self._forget_waiting()
        if self._begun:
            self.studies.drop_all("the worker did not answer when the tests ended")
        for pending in self.node2pending.values():
            pending.clear()

    def _is_over(self) -> bool:
        out_of_time = self.studies.is_out_of_time
        only_strangers = bool(self._strangers) and self._strangers.issuperset(self.nodes)
        if not self._over and (out_of_time or only_strangers):
            self._over = True
            self._forget_waiting()
            if not out_of_time and not self.studies.done:
                self._report_strangers()
        return self._over

    def _report_strangers(self) -> None:
        """Report that no worker is left to make the missing runs, as xdist reports different collections."""
        name = next(iter(self._strangers)).gateway.id
        text = "No worker is left that collected the same tests, so the runs end here. See the warning."
        report = pytest.CollectReport(nodeid=name, outcome="failed", longrepr=text, result=[])
        self.config.hook.pytest_collectreport(report=report)

    def _forget_waiting(self) -> None:
        if self._waiting:
            self.studies.take_back([run.ask for run in self._waiting if run.ask is not None])
        self._waiting.clear()


def scheduled_scope(nodeid: str, group: str | None, *, dist: str) -> str | None:
    """The test's scope with ``--dist loadfile``, ``loadscope`` or ``loadgroup``. One worker at a time runs its tests.

    >>> scheduled_scope("a.py::Test::one", None, dist="loadfile")
    'a.py'
    >>> scheduled_scope("a.py::Test::one", None, dist="loadscope")
    'a.py::Test'
    >>> scheduled_scope("a.py::one", "database", dist="loadgroup"), scheduled_scope("a.py::one", None, dist="load")
    ('database', None)
    """
    if dist == "loadfile":
        return nodeid.split("::", 1)[0]
    if dist == "loadscope":
        return nodeid.rsplit("::", 1)[0]
    return group if dist == "loadgroup" else None


# In the controller: the loop around the scheduler.

GRACE = 5.0  # seconds that workers have to answer after Ctrl-C


class SchedulingController:
    """The loop in the controller of xdist. Tests run in the workers, and are reported here."""

    def __init__(self, session: StudySession) -> None:
        self._study_session = session
        self._scheduler: Scheduler | None = None
        self._tests: dict[str, ReportedTest] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: object) -> Scheduler:
        self._scheduler = Scheduler(config, log, start=self._start)
        return self._scheduler

    @pytest.hookimpl(wrapper=True, trylast=True)  # within the terminal's, which ends the line of results
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Log one report for each test, whatever ends the loop of xdist."""
        with plugin_store_explained():
            try:
                result = yield
            except BaseException:
                self._await_answers()
                raise
            finally:
                if self._scheduler is not None:
                    self._scheduler.finish()
                self._study_session.report(self._tests)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        return result

    def _start(self, hello: dict[str, Any]) -> SessionStudies:
        """Create the studies."""
        session: Any = self._study_session.config.pluginmanager.get_plugin("session")
        refuse_plugin_collection_errors(session)
        if hello.get("error"):
            raise pytest.UsageError(hello["error"])
        self._tests = {test.nodeid: test for test in hello["tests"]}
        return self._study_session.begin({test.nodeid: SessionBar(*test.bar) for test in hello["tests"]}, hello["code"])

    def _await_answers(self) -> None:
        """After Ctrl-C, wait for the workers' answers. Press Ctrl-C again to stop waiting."""
        scheduler, loop = self._scheduler, self._study_session.config.pluginmanager.get_plugin("dsession")
        if scheduler is None or loop is None:
            return
        scheduler.stop()
        until, running = time.monotonic() + GRACE, set(scheduler.nodes)
        while running and scheduler.has_pending and (left := until - time.monotonic()) > 0:
            try:
                event, arguments = loop.queue.get(timeout=left)
            except Empty:
                break
            if event == "runtest_protocol_complete":
                scheduler.mark_test_complete(**arguments)
            elif event in ("workerfinished", "errordown"):
                running.discard(arguments["node"])
