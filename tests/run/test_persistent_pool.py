"""Which process a thread gives its pulls to, and when processes begin and end, without any process."""

import itertools
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
from engines import make

from thresher.errors import CannotGoOn, InvalidInput
from thresher.run.command import persistent
from thresher.run.command.guard import GRACE
from thresher.run.command.persistent import Gone, PersistentEvaluator
from thresher.run.command.protocol import Greeting
from thresher.run.command.reward import CommandFailed, TimedOut
from thresher.run.failures import EvaluatorRefused
from thresher.study import Pull


def pull(number: int, arm: str = "a") -> Pull:
    return Pull(number, arm, number, {}, 7)


class Fake:
    """In place of a process: notes what it is asked."""

    made: list["Fake"]
    greets: Greeting | BaseException | None

    def __init__(self, argv: tuple[str, ...], greeted: Callable[[Greeting], None]) -> None:
        self.argv, self.greeted = argv, greeted
        self.gone = self.busy = False
        self.asked: list[tuple[int, int, float | None]] = []
        self.ended: list[object] = []
        self.leaves = 0  # this many evaluations find that it is gone
        self.meanwhile: Callable[[], object] = lambda: None  # what happens while it evaluates
        Fake.made.append(self)

    def evaluate(self, pull: Pull, key: int, timeout: float | None) -> float:
        if self.leaves:
            self.leaves -= 1
            self.gone = True
            raise Gone
        self.asked.append((pull.id, key, timeout))
        self.meanwhile()
        return 0.5

    def wait_for_greeting(self, seconds: float) -> None:
        self.ended.append(("asked to greet", seconds))
        if isinstance(Fake.greets, BaseException):
            raise Fake.greets
        if Fake.greets is not None:
            self.greeted(Fake.greets)

    def hang_up(self) -> bool:
        self.ended.append("hung up")
        return not self.busy

    def end(self, seconds: float) -> None:
        self.ended.append(seconds)
        self.gone = True


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[Fake]:
    Fake.made, Fake.greets = [], None
    monkeypatch.setattr(persistent, "PersistentProcess", Fake)
    return Fake.made


NUMBERS = itertools.count()


def an_evaluator(**options: Any) -> PersistentEvaluator:
    """With a command that no other has: those with the same command share processes."""
    return PersistentEvaluator((f"x{next(NUMBERS)}",), **options)


def in_thread(job: Callable[[], object]) -> None:
    thread = threading.Thread(target=job)
    thread.start()
    thread.join(20)


# -- which process ---------------------------------------------------------------------------------------------------


def test_a_thread_keeps_its_process_and_the_place_of_one_that_ended_is_used_again(made: list[Fake]) -> None:
    evaluate = an_evaluator(timeout=3.0)
    for number in (1, 2):
        assert evaluate(pull(number)) == 0.5
    assert [process.asked for process in made] == [[(1, 1, 3.0), (2, 2, 3.0)]]
    in_thread(lambda: evaluate(pull(3)))
    assert [len(process.asked) for process in made] == [2, 1]
    in_thread(lambda: evaluate(pull(4)))
    assert [len(process.asked) for process in made] == [2, 2]
    assert made[0].argv == evaluate.argv


@pytest.mark.parametrize(("per_process", "processes"), [(1, 5), (2, 3), (5, 1)])
def test_as_many_threads_share_a_process_as_may(per_process: int, processes: int, made: list[Fake]) -> None:
    evaluate, all_here = an_evaluator(per_process=per_process), threading.Barrier(5)

    def work(number: int) -> None:
        all_here.wait(20)
        evaluate(pull(number))
        all_here.wait(20)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(made) == processes
    assert max(len(process.asked) for process in made) == per_process


def test_a_process_that_is_gone_is_replaced_and_the_pull_is_given_to_the_other(made: list[Fake]) -> None:
    evaluate = an_evaluator()
    evaluate(pull(1))
    made[0].leaves = 1
    assert evaluate(pull(2)) == 0.5
    assert [process.asked for process in made] == [[(1, 1, None)], [(2, 2, None)]]
    made[1].gone = True
    evaluate(pull(3))
    assert len(made) == 3


def test_a_program_that_cannot_start_is_a_failure_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(persistent, "PersistentProcess", missing)
    with pytest.raises(CommandFailed, match="cannot start 'no-such': No such file or directory"):
        PersistentEvaluator(("no-such",))(pull(1))


# -- for a study -----------------------------------------------------------------------------------------------------


def test_the_processes_are_kept_when_the_study_is_known(made: list[Fake]) -> None:
    unasked = an_evaluator()
    unasked(pull(1))
    evaluate = unasked.for_study(make("a", "b").spec)
    evaluate(pull(2))
    assert [len(process.asked) for process in made] == [2]
    unasked.stop()
    assert made[0].ended == []
    made[0].gone = True
    evaluate(pull(3))
    with pytest.raises(EvaluatorRefused, match="COMMAND names other arms than the study has: they differ in 'b', 'c'"):
        made[1].greeted(Greeting(1, ["a", "c"]))


def greet(evaluate: PersistentEvaluator, protocol: object, arms: object) -> None:
    """Let a process that was started for a pull say this first."""
    evaluate(pull(1))
    Fake.made[-1].greeted(Greeting(protocol, arms))


@pytest.mark.parametrize("arms", [["a", "b"], [{"name": "a"}, "b"], [{"arm": "b", "depth": 1}, "a"], None])
def test_the_same_arms_may_be_named_in_any_way(arms: object) -> None:
    greet(an_evaluator(arms=frozenset({"a", "b"})), 1, arms)
    greet(an_evaluator(), 1, arms)


@pytest.mark.parametrize("arms", [["a"], ["a", "b", "c"], "a", [1, "a"], [{"depth": 1}], []])
def test_other_arms_are_refused(arms: object) -> None:
    with pytest.raises(EvaluatorRefused, match=r"or name the same$|1 is neither a name nor parameters"):
        greet(an_evaluator(arms=frozenset({"a", "b"})), 1, arms)


@pytest.mark.parametrize("protocol", [2, 0, True, "1", None])
def test_another_version_of_the_protocol_is_refused(protocol: object) -> None:
    words = "COMMAND speaks another version, and this thresher speaks 1; update one"
    with pytest.raises(EvaluatorRefused, match=words):
        greet(an_evaluator(), protocol, None)


# -- naming the arms -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        (Greeting(1, None), InvalidInput, "there are none, and COMMAND names none; name them with --arms FILE"),
        (None, InvalidInput, "there are none, and COMMAND names none"),
        (Greeting(1, {"a": 1}), InvalidInput, r"COMMAND must name them in a list; print .\"arms\": ."),
        (Greeting(2, ["a"]), EvaluatorRefused, "speaks another version"),
        (TimedOut(60.0), InvalidInput, "there are none, and COMMAND printed nothing within 60 s; name them with"),
        (CommandFailed("exited with 3"), CannotGoOn, "there are none, and exited with 3; correct it, or name the arms"),
        (KeyboardInterrupt("now"), KeyboardInterrupt, "now"),
    ],
)
def test_a_process_that_does_not_name_the_arms_is_ended(
    said: Any, error: type[BaseException], words: str, made: list[Fake]
) -> None:
    Fake.greets = said
    with pytest.raises(error, match=words):
        an_evaluator().arms_named()
    assert made[0].ended[1:] == [0.0]


# -- the end ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kill", [True, False])
def test_idle_processes_have_time_to_end_and_busy_ones_are_killed_only_at_a_stop(kill: bool, made: list[Fake]) -> None:
    evaluate = an_evaluator()
    evaluate(pull(1))
    in_thread(lambda: evaluate(pull(2)))
    made[1].busy = True
    (evaluate.stop if kill else evaluate.rest)()
    assert made[0].ended == ["hung up", GRACE]
    assert made[1].ended == (["hung up", 0.0] if kill else ["hung up"])
    evaluate.stop()
    evaluate.rest()
    assert len(made[0].ended) == 2, "nothing is left"
    evaluate(pull(3))
    assert len(made) == 3, "another run starts others"


def test_what_is_busy_at_the_end_of_a_run_ends_when_it_is_idle(made: list[Fake]) -> None:
    def rest() -> None:
        made[0].busy = True
        evaluate.rest()
        made[0].busy = False

    evaluate = an_evaluator()
    evaluate(pull(1))
    made[0].meanwhile = rest
    evaluate(pull(2))
    assert made[0].ended == ["hung up", "hung up", GRACE]


def test_after_a_stop_no_pull_that_had_begun_starts_a_process(made: list[Fake]) -> None:
    def stop() -> None:
        evaluate.stop()
        raise Gone

    evaluate = an_evaluator()
    evaluate(pull(1))
    made[0].meanwhile = stop
    with pytest.raises(CommandFailed, match="the evaluator was stopped"):
        evaluate(pull(2))
    assert len(made) == 1
    assert evaluate(pull(3)) == 0.5, "another run starts others"


def test_a_stop_also_ends_a_process_that_is_being_started(made: list[Fake], monkeypatch: pytest.MonkeyPatch) -> None:
    starting, go_on = threading.Event(), threading.Event()

    def slow(argv: tuple[str, ...], greeted: Callable[[Greeting], None]) -> Fake:
        starting.set()
        go_on.wait(20)
        process = Fake(argv, greeted)
        process.busy = True
        return process

    monkeypatch.setattr(persistent, "PersistentProcess", slow)
    evaluate = an_evaluator()
    jobs: list[Callable[[], object]] = [lambda: evaluate(pull(1)), evaluate.stop]
    threads = [threading.Thread(target=job) for job in jobs]
    threads[0].start()
    starting.wait(20)
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(20)
    assert 0.0 in made[0].ended


def test_a_forked_child_starts_processes_of_its_own(made: list[Fake]) -> None:
    evaluate = an_evaluator()
    evaluate(pull(1))
    child = os.fork()
    if child == 0:
        evaluate(pull(2))
        os._exit(len(made))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    evaluate(pull(3))
    assert [len(process.asked) for process in made] == [2]
