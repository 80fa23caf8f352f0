"""Errors at the start are not outages: the run ends at once, says what was wrong, and retires no arm."""

import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any
from urllib.error import URLError

import pytest
from engines import causes, make
from failing import ARMS, ended, wrong_key
from program import until

import thresher
from thresher.run.command.process import Command


async def wrong_key_later(pull: thresher.Pull) -> object:
    return wrong_key(pull)


def wrong_signature() -> float:
    return 0.5


def kills_itself(pull: thresher.Pull) -> None:
    import os

    os.kill(os.getpid(), 9)


def test_three_arms_that_fail_with_the_same_error_end_the_run() -> None:
    study = make(*ARMS, budget=1000, max_failures=1)
    error = ended(study, wrong_key, workers=1)
    assert str(error) == (
        "run: 3 arms failed with the same error before anything succeeded: KeyError: 'depth'; "
        "correct the evaluator, or take out 'a', 'b', 'c' if only they are wrong, and run again; no arm was retired"
    )
    assert isinstance(error.__cause__, KeyError)
    assert causes(study) == ["outage"] * 3


@pytest.mark.parametrize(
    ("evaluate", "options", "words"),
    [
        (wrong_signature, {}, "TypeError: wrong_signature"),
        (wrong_key_later, {}, "KeyError: 'depth'"),
        (wrong_key, {"executor": "processes"}, "KeyError: 'depth'"),
        (wrong_key, {"executor": lambda: ProcessPoolExecutor(2)}, "KeyError: 'depth'"),
        (kills_itself, {"executor": "processes"}, "its process was ended by SIGKILL"),
        (lambda pull: "fine", {}, "'fine': must be a finite number"),
        (Command(("sh", "-c", "echo $THRESHER_ARM >&2; exit 9")), {}, "exited with 9"),
        (Command(("sh", "-c", "kill -SEGV $$")), {"executor": "processes"}, "was ended by SIGSEGV"),
        (Command(("./no-such-program",)), {}, "cannot start './no-such-program'"),
        (Command(("true",)), {}, "printed nothing on standard output"),
        (Command(("echo", "{arm}")), {}, "printed no number on its last line"),
    ],
)
def test_whatever_is_wrong_with_the_evaluator_ends_the_run(evaluate: Any, options: dict[str, Any], words: str) -> None:
    error = ended(make(*ARMS, budget=1000, max_failures=1), evaluate, workers=2, **options)
    assert "3 arms failed with the same error before anything succeeded" in str(error)
    assert words in str(error)


@pytest.mark.parametrize(
    ("arms", "who"), [("a", "the only arm failed before"), ("ab", "both arms failed with the same")]
)
def test_a_smaller_study_ends_when_all_of_its_arms_have_failed(arms: str, who: str) -> None:
    study = make(*arms, budget=1000, max_failures=1)
    assert who in str(ended(study, wrong_key, workers=1))
    assert causes(study) == ["outage"] * len(arms)


def test_the_only_arm_is_not_retired_while_an_earlier_pull_may_succeed() -> None:
    third = threading.Event()

    def evaluate(pull: thresher.Pull) -> object:
        if pull.id == 1:
            third.wait(60)
        elif pull.id == 3:  # the second has failed
            third.set()
            time.sleep(0.5)
        return wrong_key(pull)

    assert "the only arm" in str(ended(make("a", budget=1000, max_failures=1), evaluate, workers=2))


def test_errors_at_different_places_are_not_the_same_error() -> None:
    def evaluate(pull: thresher.Pull) -> float:
        if pull.arm == "a":
            raise ValueError("no such arm")
        if pull.arm == "b":
            raise ValueError("no such arm")
        raise KeyError("no such arm") if pull.number < 3 else thresher.Busy(after=0)

    study = make("a", "b", "c", budget=6)
    thresher.run(study, evaluate, workers=1, seconds=60.0)
    assert study.verdict().issued == 6


def test_imported_pulls_without_a_reward_do_not_hide_that_there_are_earlier_rewards() -> None:
    study = make("a", budget=100)
    study.add_many([("a", None)] * 5)
    assert "the only arm" in str(ended(study, wrong_key, workers=1))
    study.tell(study.ask() or 0, 1)
    assert thresher.run(study, wrong_key, workers=1).retired == ["a"], "it has worked: it is no longer hopeless"


def test_three_arms_are_needed_if_there_are_earlier_rewards() -> None:
    study = make("a", "b", budget=60)
    study.tell(study.ask() or pytest.fail("no pull"), 0.5)
    with pytest.raises(thresher.CannotGoOn, match=r"every evaluation failed for 1 s.*KeyError: 'depth'"):
        thresher.run(study, wrong_key, workers=1, give_up=1.0)
    study = make("a", "b", "c", budget=60)
    study.tell(study.ask() or pytest.fail("no pull"), 0.5)
    assert "3 arms failed with the same error" in str(ended(study, wrong_key, workers=1, give_up=60.0))


def test_after_a_success_the_same_error_is_an_outage() -> None:
    def evaluate(pull: thresher.Pull) -> object:
        return 0.5 if pull.id == 1 else wrong_key(pull)

    study = make(*ARMS, budget=1000, max_failures=1)
    with pytest.raises(thresher.CannotGoOn, match=r"every evaluation failed for 1 s.*KeyError: 'depth'") as caught:
        thresher.run(study, evaluate, workers=1, give_up=1.0)
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_earlier_pull_that_is_pending_may_still_succeed() -> None:
    enough = threading.Event()

    def evaluate(pull: thresher.Pull) -> object:
        if pull.id == 1:
            enough.wait(60)
            return 0.5
        if pull.id > 4:
            enough.set()
            return 0.5
        return wrong_key(pull)

    verdict = thresher.run(make(*ARMS, budget=20), evaluate, workers=2)
    assert verdict.done
    assert verdict.retired == []


def test_an_earlier_pull_that_takes_long_costs_no_more_pulls_than_an_outage() -> None:
    """It may still succeed, so the others go on; eight of them make an outage, in which no more are issued."""
    study = make(*ARMS, budget=1000, max_failures=1)

    def evaluate(pull: thresher.Pull) -> object:
        if pull.id == 1:
            until(lambda: len(causes(study)) == 8, "the outage")
        return wrong_key(pull)

    error = ended(study, evaluate, workers=2)
    assert "3 arms failed with the same error" in str(error)
    assert study.verdict().issued == 9


def test_a_later_pull_that_is_pending_is_not_waited_for() -> None:
    release = threading.Event()

    def evaluate(pull: thresher.Pull) -> object:
        if pull.id == 4:
            release.wait(60)
        return wrong_key(pull)

    error = ended(make(*ARMS, budget=1000), evaluate, workers=4)
    release.set()
    assert "3 arms failed" in str(error)


class APIConnectionError(Exception):
    """As libraries name theirs."""


class RateLimitReached(Exception):
    """As libraries name theirs."""


def raising(error: BaseException, cause: BaseException | None = None) -> Callable[[thresher.Pull], float]:
    def evaluate(pull: thresher.Pull) -> float:
        raise error from cause

    return evaluate


@pytest.mark.parametrize(
    "evaluate",
    [
        raising(TimeoutError()),
        raising(ConnectionRefusedError()),
        raising(OSError(113, "No route to host")),
        raising(URLError("refused"), ConnectionRefusedError()),
        raising(URLError(ConnectionRefusedError())),
        raising(APIConnectionError()),
        raising(RateLimitReached()),
        raising(RuntimeError("gave up"), APIConnectionError()),
        raising(ExceptionGroup("both", [ValueError(), TimeoutError()])),
        raising(subprocess.TimeoutExpired("x", 1)),
        Command(("sleep", "9"), timeout=0.01),
    ],
)
def test_temporary_errors_at_the_start_are_an_outage(evaluate: Any) -> None:
    study = make(*ARMS, budget=1000, max_failures=1)
    with pytest.raises(thresher.CannotGoOn, match=r"every evaluation failed for 0\.2 s"):
        thresher.run(study, evaluate, workers=2, give_up=0.2)
    assert study.verdict().retired == []


@pytest.mark.parametrize(
    "error", [FileNotFoundError(2, "no such file"), PermissionError(13, "no"), OSError(28, "full")]
)
def test_file_errors_are_not_network_errors(error: OSError) -> None:
    assert "failed with the same error" in str(ended(make(*ARMS, budget=1000), raising(error), workers=2))


def test_timeouts_of_pulls_do_not_end_the_run_at_the_start() -> None:
    sixth = threading.Event()

    def evaluate(pull: thresher.Pull) -> float:
        if pull.id <= 5:
            sixth.wait(60)
        sixth.set()
        return 0.5

    study = make(*ARMS, budget=20, max_failures=None)
    assert thresher.run(study, evaluate, workers=1, timeout=0.1).done
    timed_out = {event.pull for event in study.events() if event.reason and "timed out" in event.reason}
    assert timed_out >= {1, 2, 3, 4, 5}


def test_a_reward_that_comes_late_is_a_success_too() -> None:
    study = make(*ARMS, budget=20, max_failures=None)
    second = threading.Event()  # with one worker, the second pull begins when the first has timed out

    def evaluate(pull: thresher.Pull) -> object:
        if pull.id == 1:
            second.wait(60)
        elif study.verdict().told == 0:
            second.set()
            raise thresher.Busy(after=0.05)
        return wrong_key(pull) if 1 < pull.id < 6 else 0.5

    assert thresher.run(study, evaluate, workers=1, timeout=0.1).done
    assert [event.pull for event in study.events() if event.late and event.pull == 1] == [1]


def test_busy_evaluations_do_not_end_the_run_at_the_start() -> None:
    tried: set[int] = set()

    def evaluate(pull: thresher.Pull) -> float:
        if pull.id in tried:
            return 0.5
        tried.add(pull.id)
        raise thresher.Busy(after=0.01)

    assert thresher.run(make(*ARMS, budget=20), evaluate, workers=2).told == 20


def test_a_failure_with_a_reward_is_not_told_when_the_evaluator_is_wrong() -> None:
    study = make(*ARMS, budget=1000, failure=0.0)
    ended(study, wrong_key, workers=1)
    assert study.verdict().told == 0


def test_three_arms_with_rewards_outside_the_bounds_end_the_run() -> None:
    study = make(*ARMS, budget=1000)
    words = r"3 arms returned a reward outside the bounds before anything succeeded: reward 7\.0.*bounds \(0, 1\)"
    with pytest.raises(thresher.CannotGoOn, match=words):
        thresher.run(study, lambda pull: 7.0, workers=1)
    assert len(study.verdict().retired) == study.verdict().issued == 3
