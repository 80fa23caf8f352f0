"""The scheduler of the pytest plugin, with fake workers."""

import json
import random
from collections import Counter, deque
from types import SimpleNamespace
from typing import Any

import pytest
from chances import most

from thresher.adapters.pytest_plugin.repeating import RepeatedOutcome
from thresher.adapters.pytest_plugin.reports import ReportedTest
from thresher.adapters.pytest_plugin.scheduling import HELLO, LEAST, Scheduler
from thresher.adapters.pytest_plugin.session_options import Options, SessionBar
from thresher.adapters.pytest_plugin.studies import SessionStudies

PASSED, FAILED = RepeatedOutcome(reward=1.0), RepeatedOutcome(reward=0.0, traceback="E", message="E")


class Node:
    """A worker, as xdist's controller sees it."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name, spec=SimpleNamespace(popen=True))
        self.shutting_down = self.stopped = self.dead = False
        self.runs = deque[list[Any]]()
        self.left = 0.0

    def sendcommand(self, name: str, **arguments: Any) -> None:
        if self.dead:
            raise OSError("cannot send (already closed?)")
        self.stopped |= name == "stop"
        if name == "thresher":
            self.runs.extend(arguments["runs"])
            self.left = arguments["left"]


class Config:
    """The options of xdist that a scheduler reads, and a record of its reports."""

    def __init__(self, **options: object) -> None:
        self.options = {"tx": ["2*popen"], "dist": "load", "maxschedchunk": None, **options}
        self.reports: list[pytest.CollectReport] = []
        self.hook = SimpleNamespace(pytest_collectreport=lambda report: self.reports.append(report))

    def getvalue(self, name: str) -> object:
        return self.options[name]

    getoption = getvalue

    def issue_config_time_warning(self, warning: Warning, stacklevel: int) -> None:
        self.options["warned"] = str(warning)


class Play:
    """Two workers and their scheduler."""

    def __init__(self, tests: list[str], options: Options, *, ordinary: int = 0, **config: object) -> None:
        parts = [test.partition("@") for test in tests]
        names = [name for name, _, _ in parts]
        self.studies = SessionStudies(dict.fromkeys(names[ordinary:], options.bar), options)
        self.scheduler = Scheduler(Config(**config), None, start=lambda _: self.studies)  # type: ignore[arg-type]
        self.tests: list[str] = names
        self.made = 0
        arms = [
            ReportedTest(name, position, SessionBar(0.9), group or None, "", 0, "", "", [])
            for position, (name, _, group) in enumerate(parts)
        ]
        self.hello: dict[str, Any] = {
            "tests": arms[ordinary:],
            "ordinary": [(arm.nodeid, arm.position) for arm in arms[:ordinary]],
        }
        self.collection = tests
        self.nodes = [self.join(), self.join()]

    def join(self) -> Node:
        self.made += 1
        node = Node(f"gw{self.made}")
        self.scheduler.add_node(node)
        self.scheduler.add_node_collection(node, self.collection)
        if self.scheduler.collection_is_completed:
            self.scheduler.schedule()
        self.answer(node, HELLO, self.hello)
        return node

    def answer(self, node: Node, serial: int, answer: object) -> None:
        self.scheduler.mark_test_complete(node, serial, json.dumps(answer))

    def run_next(self, node: Node, outcome: object = PASSED) -> str:
        """Let a worker make its next run."""
        serial, position, *_ = node.runs.popleft()
        self.answer(node, serial, outcome)
        return self.tests[int(position)]

    def crash(self, node: Node) -> str | None:
        self.nodes.remove(node)
        crashed: str | None = self.scheduler.remove_node(node)
        self.nodes.append(self.join())
        return crashed

    def events(self, kind: str) -> list[Any]:
        return [event for study in self.studies.by_bar.values() for event in study.events() if event.kind == kind]

    @property
    def pending(self) -> int:
        return sum(len(study.pending()) for study in self.studies.by_bar.values())


TESTS = [f"t.py::test_{number}" for number in range(4)]


def test_every_worker_always_has_two_runs_before_it_until_all_is_settled() -> None:
    play = Play(TESTS, Options(SessionBar(0.5)))
    while not play.scheduler.tests_finished:
        assert play.studies.done or all(len(node.runs) >= LEAST for node in play.nodes)
        for node in play.nodes:
            if node.runs:
                play.run_next(node)
    assert (play.pending, play.studies.counts()["reaches"]) == (0, 4)


def test_quick_tests_are_sent_in_larger_batches_in_the_order_of_the_collection() -> None:
    play = Play([f"t.py::test_{number:03}" for number in range(200)], Options(SessionBar(0.5)))
    for _ in range(8):
        play.run_next(play.nodes[0], RepeatedOutcome(reward=1.0, seconds=0.001))
    runs = list(play.nodes[0].runs)
    assert len(runs) > 8
    assert len(play.nodes[1].runs) == LEAST, "it has answered nothing yet"
    slow = Play([f"t.py::test_{number:03}" for number in range(200)], Options(SessionBar(0.5)))
    for _ in range(8):
        slow.run_next(slow.nodes[0], RepeatedOutcome(reward=1.0, seconds=0.5))
    assert len(slow.nodes[0].runs) == LEAST


def test_the_run_of_a_worker_that_dies_failed_and_the_others_go_to_another_worker_as_they_are() -> None:
    play = Play(TESTS, Options(SessionBar(0.9)))
    first, second = play.nodes[0].runs
    assert play.crash(play.nodes[0]) is None, "xdist has nothing to report"
    assert [event.cause for event in play.events("dropped")] == ["failed"]
    while not any(run[1:] == second[1:] for node in play.nodes for run in node.runs):
        play.run_next(play.nodes[0])
    assert first[1:] not in [run[1:] for node in play.nodes for run in node.runs]


def test_a_worker_that_died_unnoticed_is_blamed_for_no_run_that_did_not_reach_it() -> None:
    play = Play(TESTS, Options(SessionBar(0.9)))
    dead, other = play.nodes
    dead.dead = True
    while dead.runs:
        play.run_next(dead)
    play.crash(dead)
    assert not play.events("dropped")
    while not play.scheduler.tests_finished:
        for node in play.nodes:
            if node.runs:
                play.run_next(node)
    assert (play.studies.counts()["reaches"], play.pending) == (4, 0)
    assert other in play.nodes


@pytest.mark.parametrize("spec", [{"popen": False}, {"popen": True, "via": "proxy"}])
def test_runs_on_another_machine_may_have_begun_when_the_connection_breaks(spec: dict[str, object]) -> None:
    play = Play(TESTS, Options(SessionBar(0.9)))
    play.nodes[0].gateway.spec = SimpleNamespace(**spec)
    play.crash(play.nodes[0])
    assert [event.cause for event in play.events("dropped")] == ["lost", "failed"]


def test_a_test_that_kills_workers_again_and_again_is_retired() -> None:
    play = Play(TESTS, Options(SessionBar(0.6)))
    crashes = 0
    while not play.scheduler.tests_finished:
        for node in list(play.nodes):
            if node.runs and play.tests[node.runs[0][1]] == TESTS[2]:
                play.crash(node)
                crashes += 1
            elif node.runs:
                play.run_next(node)
    assert (play.studies.counts()["reaches"], play.studies.counts()["retired"], play.pending) == (3, 1, 0)
    assert crashes < 8


def test_an_ordinary_test_that_kills_its_worker_is_reported_by_xdist() -> None:
    play = Play(TESTS, Options(SessionBar(0.5)), ordinary=1)
    node = next(node for node in play.nodes if node.runs and node.runs[0][1] == 0)
    assert node.runs[0][2] is None, "it has no seed"
    assert play.crash(node) == TESTS[0]
    assert not play.events("dropped")


def test_an_answer_that_comes_twice_counts_once() -> None:
    play = Play(TESTS, Options(SessionBar(0.5)))
    serial = play.nodes[0].runs[0][0]
    play.run_next(play.nodes[0], FAILED)
    play.answer(play.nodes[0], serial, PASSED)
    assert [event.reward for event in play.events("told")] == [0.0]


def test_runs_that_a_worker_gives_back_are_not_charged_and_it_gets_no_more() -> None:
    play = Play(TESTS, Options(SessionBar(0.5)))
    play.run_next(play.nodes[0], "interrupted by Exit")
    while play.nodes[0].runs:
        play.run_next(play.nodes[0], None)
    assert Counter(event.cause for event in play.events("dropped")) == {"lost": 1, "cancelled": 2}
    assert play.nodes[1].runs


def test_with_maxfail_no_run_begins_after_a_test_is_certified_to_miss_the_bar() -> None:
    play = Play(TESTS, Options(SessionBar(0.9), maxfail=1))
    while not play.nodes[0].stopped:
        node = play.nodes[0]
        play.run_next(node, FAILED if play.tests[node.runs[0][1]] == TESTS[0] else PASSED)
    while play.nodes[1].runs:
        play.run_next(play.nodes[1], None)
    assert play.studies.counts()["misses"] == 1
    assert play.nodes[1].stopped


def test_no_run_begins_when_the_time_is_over() -> None:
    play = Play(TESTS, Options(SessionBar(0.9), seconds=60.0))
    assert 0 < play.nodes[0].left <= 60
    play.studies.until = 0.0
    for node in play.nodes:
        while node.runs:
            play.run_next(node, None)
    assert play.scheduler.tests_finished
    assert play.pending == 0


def test_what_a_worker_never_answers_is_charged_at_the_end() -> None:
    play = Play(TESTS, Options(SessionBar(0.9)))
    play.scheduler.stop()
    assert play.nodes[0].stopped
    play.run_next(play.nodes[0], None)
    play.scheduler.finish()
    assert Counter(event.cause for event in play.events("dropped")) == {"cancelled": 1, "lost": 3}
    assert play.pending == 0


@pytest.mark.parametrize(
    ("dist", "tests", "together"),
    [
        ("loadfile", ["a.py::x", "a.py::y", "b.py::x", "b.py::y"], "file"),
        ("loadgroup", ["a.py::x@one", "a.py::y@one", "b.py::x", "b.py::y"], "group"),
    ],
)
def test_tests_of_a_scope_never_run_on_two_workers_at_once(dist: str, tests: list[str], together: str) -> None:
    play, draw = Play(tests, Options(SessionBar(0.7)), dist=dist), random.Random(1)
    seen = set[str]()
    while not play.scheduler.tests_finished:
        at = [{play.tests[run[1]].split("::")[0] for run in node.runs} for node in play.nodes]
        seen |= at[0] & at[1]
        node = draw.choice([node for node in play.nodes if node.runs])
        play.run_next(node)
    assert seen == (set() if together == "file" else {"b.py"})
    assert play.studies.counts()["reaches"] == 4


def test_a_test_that_kills_its_worker_instead_of_failing_is_not_certified_to_reach_the_bar() -> None:
    """Failures kill the worker, and a crash is charged."""
    wrong, simulations = 0, 40
    for seed in range(simulations):
        draw, play = random.Random(seed), Play(TESTS[:2], Options(SessionBar(0.8), budget=300, seed=seed))
        while not play.scheduler.tests_finished:
            node = draw.choice([node for node in play.nodes if node.runs])
            if draw.random() < 0.25 and play.tests[node.runs[0][1]] == TESTS[0]:
                play.crash(node)
            else:
                play.run_next(node)
        wrong += play.studies.results()[0].status == "reaches"
    assert wrong <= most(simulations, 0.05)


def test_new_workers_that_collected_other_tests_get_no_runs_and_are_not_waited_for() -> None:
    play = Play(TESTS, Options(SessionBar(0.5)))
    play.collection = TESTS[::-1]
    play.crash(play.nodes[0])
    assert not play.nodes[1].runs
    assert not play.scheduler.tests_finished
    assert not play.scheduler.config.reports
    play.crash(play.nodes[0])
    assert play.scheduler.tests_finished
    assert (play.pending, len(play.events("told"))) == (0, 0)
    assert [report.outcome for report in play.scheduler.config.reports] == ["failed"], "which is exit code 1"
    assert "collected other tests" in str(play.scheduler.config.getvalue("warned"))
