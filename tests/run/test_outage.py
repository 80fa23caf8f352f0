"""An outage is distinguished from failing arms, and costs few pulls."""

import itertools
import sys
import threading
from collections import Counter
from collections.abc import Iterator

import pytest
from engines import causes, make

import thresher
from thresher.run.failures import Failure, FailureWatch, StartFailures


def a_watch(study: thresher.Study, window: int = 4) -> FailureWatch:
    watch = FailureWatch(study, lambda: float("inf"), window)
    watch.success(thresher.Pull(0, "c", 0, {}, 0))  # the start is over: the evaluator works
    return watch


def failures(study: thresher.Study, arms: str) -> Iterator[Failure]:
    """Failures of pulls of these arms, in this order."""
    pulls = study.ask_many(40)
    for arm in arms:
        pull = next(pull for pull in pulls if pull.arm == arm)
        pulls.remove(pull)
        yield Failure(pull, f"{pull.arm} broke", kind="broken")


def test_failures_of_one_arm_are_its_own_however_many() -> None:
    study = make("a", "b", budget=80, max_failures=None)
    watch = a_watch(study)
    for failure in failures(study, "aaaaaaaa"):
        watch.failure(failure, 10.0)
        assert not watch.out
    assert causes(study) == ["failed"] * 8


def test_failures_of_two_arms_in_a_row_are_an_outage_and_blame_no_arm() -> None:
    study = make("a", "b", budget=80, max_failures=1)
    watch = a_watch(study)
    for number, failure in enumerate(failures(study, "aaab"), 1):
        assert causes(study) == [], "held back until it is clear"
        watch.failure(failure, 10.0)
        assert watch.out == (number == 4)
    assert causes(study) == ["outage"] * 4
    assert study.verdict().retired == []


def test_an_outage_says_how_long_it_is_borne_and_whether_all_timed_out(caplog: pytest.LogCaptureFixture) -> None:
    for timeouts, said in ((4, True), (3, False)):
        study = make("a", "b", budget=80, max_failures=1)
        watch = a_watch(study)
        watch.give_up = 600.0
        for number, failure in enumerate(failures(study, "abab")):
            assert not watch.paused
            watch.failure(failure._replace(timed_out=number < timeouts), 10.0)
        assert watch.paused
        assert "for at most 10 min (give_up)" in caplog.messages[-1]
        assert ("may need a larger timeout" in caplog.messages[-1]) == said
        with pytest.raises(thresher.CannotGoOn) as caught:
            watch.tries(610.0, idle=True)
        assert ("larger timeout" in str(caught.value)) == said


def test_a_success_ends_the_row_and_the_failures_before_it_count() -> None:
    study = make("a", "b", budget=80, max_failures=None)
    watch = a_watch(study)
    failed = failures(study, "abaaba")
    for _ in range(3):
        watch.failure(next(failed), 10.0)
    watch.success(thresher.Pull(0, "c", 0, {}, 0))
    assert causes(study) == ["failed"] * 3
    for failure in failed:
        watch.failure(failure, 10.0)
    assert not watch.out


def test_tries_in_an_outage_become_rarer_up_to_a_limit() -> None:
    study = make("a", "b", budget=80, max_failures=1)
    watch = a_watch(study)
    failed = failures(study, "abab" + "ab" * 8)
    for _ in range(4):
        watch.failure(next(failed), 100.0)
    assert (watch.out, watch.since, watch.next_try) == (True, 100.0, 101.0)
    watch.failure(next(failed), 100.5)
    assert watch.next_try == 101.0, "a pull from before the outage is no try"
    pauses = []
    for failure in failed:
        now = watch.next_try
        watch.failure(failure, now)
        pauses.append(watch.next_try - now)
    assert pauses[:6] == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0]
    assert set(pauses[6:]) == {60.0}
    assert set(causes(study)) == {"outage"}
    watch.success(thresher.Pull(0, "c", 0, {}, 0))
    assert (watch.out, watch.pause) == (False, 1.0)


def test_each_try_in_an_outage_is_of_another_arm() -> None:
    study = make("a", "b", "c", "d", budget=80)
    watch = a_watch(study)

    def fails(arm: str) -> None:
        pull = study.ask(arm=arm)
        assert pull is not None
        watch.failure(Failure(pull, "broken", kind="broken"), 10.0)

    worked = study.ask(arm="d")
    assert worked is not None
    study.tell(worked, 1)
    for arm in "aabb":
        fails(arm)
    assert watch.arm_to_try() == "d", "it worked before, and decides"
    watch.tried([pull := ask(study, "d")])
    watch.failure(Failure(pull, "broken"), 10.0)
    tried = []
    for _ in range(12):
        tried.append(watch.arm_to_try() or "")
        fails(tried[-1])
    assert Counter("aabbd" + "".join(tried)).most_common()[-1][1] >= 4, "all arms in turn"
    study.retire("c")
    assert watch.arm_to_try() != "c"


def ask(study: thresher.Study, arm: str) -> thresher.Pull:
    return study.ask(arm=arm) or pytest.fail("no pull")


@pytest.mark.parametrize("works", [True, False])
def test_where_an_arm_has_worked_one_pull_of_it_decides_who_is_to_blame(works: bool) -> None:
    study = make("a", "b", "c", budget=400, max_failures=None)
    study.tell(ask(study, "c"), 1)
    watch, earlier = a_watch(study), ask(study, "c")
    for arm in "abab":
        watch.failure(Failure(ask(study, arm), "broken", kind="broken"), 10.0)
    assert (watch.out, watch.next_try, watch.arm_to_try(), causes(study)) == (True, 10.0, "c", [])
    (control,) = watch.tried([ask(study, "c")])
    watch.success(earlier)
    assert causes(study) == [], "what began before says nothing"
    if works:
        watch.success(control)
        assert (watch.out, causes(study)) == (False, ["failed"] * 4)
    else:
        watch.failure(Failure(control, "down", kind="down"), 11.0)
        assert (watch.out, watch.next_try, causes(study)) == (True, 12.0, ["outage"] * 5)


@pytest.mark.parametrize(("arms", "cause"), [("abab", "outage"), ("aaaa", "failed")])
def test_what_is_not_decided_at_the_end_is_an_outage_if_several_arms_failed(arms: str, cause: str) -> None:
    study = make("a", "b", "c", budget=400, max_failures=None)
    study.tell(ask(study, "c"), 1)
    watch = a_watch(study)
    for arm in arms:
        watch.failure(Failure(ask(study, arm), "broken", kind="broken"), 10.0)
    assert (watch.out, watch.arm_to_try()) == (True, "c")
    watch.release()
    assert causes(study) == [cause] * 4
    assert watch.out == (cause == "outage")


def test_an_outage_that_flickers_retires_no_arm() -> None:
    """Everything fails but a few evaluations, one after the other, which end it each time."""
    study, calls = make(*(f"{number:02}" for number in range(12)), budget=300, max_failures=3), itertools.count(1)

    def evaluate(pull: thresher.Pull) -> float:
        number = next(calls)
        if number > 20 and number % 30 and number < 200:
            raise ConnectionError("down")
        return 1.0

    with pytest.MonkeyPatch.context() as patch:
        for name in ("FIRST_PAUSE", "LONGEST_PAUSE"):
            patch.setattr(sys.modules[FailureWatch.__module__], name, 0.01)
        verdict = thresher.run(study, evaluate, workers=1)
    assert verdict.retired == []
    assert "outage" in causes(study)


def test_arms_that_are_broken_in_different_ways_do_not_stop_a_study() -> None:
    """The first eight that are asked fail, and so does each of them whenever it is asked again."""
    errors = [ValueError, KeyError, TypeError, OSError, IndexError, ArithmeticError, RuntimeError, LookupError]
    study = make(*(f"{number:02}" for number in range(12)), budget=600)

    def evaluate(pull: thresher.Pull) -> float:
        if int(pull.arm) < len(errors):
            raise errors[int(pull.arm)](pull.arm)
        return 1.0

    verdict = thresher.run(study, evaluate, workers=2, give_up=60)
    assert verdict.retired == [f"{number:02}" for number in range(8)]
    assert verdict.reached == ["08", "09", "10", "11"]
    assert sum(pull.state == "dropped" for pull in study.pulls()) <= 8 * 4 + 2


def test_a_lost_worker_keeps_its_cause_in_an_outage() -> None:
    study = make("a", "b", budget=80, max_failures=1)
    watch = a_watch(study)
    for failure in failures(study, "aabb"):
        watch.failure(failure._replace(cause="broken-pool"), 10.0)
    assert watch.out
    assert causes(study) == ["broken-pool"] * 4


def test_the_end_of_an_outage_names_the_last_error_and_no_older_one() -> None:
    study = make("a", "b", budget=80, max_failures=1)
    watch, error = a_watch(study), ValueError("why")
    failed = failures(study, "aba")
    watch.failure(next(failed), 1.0)
    watch.failure(next(failed)._replace(error=error), 2.0)
    end = watch.end("it lasted", "repair it")
    assert str(end) == "run: it lasted, the last with: b broke; repair it; no arm was retired for it"
    assert end.__cause__ is error
    watch.success(thresher.Pull(0, "c", 0, {}, 0))
    assert str(watch.end("it lasted", "repair it")) == "run: it lasted; repair it; no arm was retired for it"


def test_one_pull_is_tried_at_a_time_in_an_outage() -> None:
    """The try takes many rounds of the loop, in none of which another pull may begin."""
    lock, trying, enough = threading.Lock(), threading.Event(), threading.Event()
    state = {"calls": 0, "now": 0, "most": 0, "rounds": 0}
    study = make("a", "b", "c", budget=200, max_failures=1)

    def is_out() -> bool:
        return "outage" in causes(study) and not enough.is_set()

    def evaluate(pull: thresher.Pull) -> float:
        out = is_out()
        with lock:
            state["calls"] += 1
            state["now"] += out
            state["most"] = max(state["most"], state["now"])
        if out:
            trying.set()
            assert enough.wait(60)
            with lock:
                state["now"] -= 1
        elif 10 < state["calls"] <= 30 and not enough.is_set():
            raise ConnectionError("no route to host")
        return 0.5

    def watch(progress: thresher.Progress) -> None:
        state["rounds"] += trying.is_set()
        if state["rounds"] >= 4:
            enough.set()

    verdict = thresher.run(study, evaluate, workers=4, on_progress=watch)
    assert verdict.retired == []
    assert state["most"] == 1


def test_an_outage_costs_few_pulls_and_retires_no_arm() -> None:
    workers = 4
    study = make("a", "b", "c", budget=1000, max_failures=1)

    def evaluate(pull: thresher.Pull) -> float:
        raise ConnectionError("no route to host")

    with pytest.raises(thresher.CannotGoOn, match=r"failed for 1\.5 s.*no route to host.*no arm was retired"):
        thresher.run(study, evaluate, workers=workers, give_up=1.5)
    most = 8 + workers - 1 + 1  # the window, what was pending then, and the one try within 1.5 s
    verdict = study.verdict()
    assert 8 <= verdict.issued <= most
    assert (verdict.pending, verdict.retired) == (0, [])


@pytest.mark.parametrize(("cases", "who"), [(1, "the only case"), (2, "both cases"), (5, "3 cases")])
def test_cases_that_all_fail_end_the_run_unless_one_had_a_reward(cases: int, who: str) -> None:
    study = make("a", "b", cases=cases)
    *pulls, last = study.ask_many(2 * cases)
    start = StartFailures(study, lambda: float("inf"))
    for pull in pulls:
        start.failure(Failure(pull, "broke", kind="broken"))
    assert f"{who} failed" in str(start.end())
    study.tell(last, 1)
    assert start.end() is None, "the evaluator is not entirely wrong"
