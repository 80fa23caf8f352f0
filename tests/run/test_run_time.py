"""The time of a run: its seconds, timeouts of pulls, and progress."""

import itertools
import threading
import time

import pytest
from engines import FOREVER, Clock, causes, make, slowly
from program import until

import thresher


def test_after_its_seconds_a_run_issues_no_more_pulls(clock: Clock) -> None:
    def evaluate(pull: thresher.Pull) -> float:
        if pull.id == 20:
            clock.end_the_run()
        return 0.5

    study = make(budget=10**6)
    verdict = thresher.run(study, evaluate, workers=4, seconds=FOREVER)
    assert verdict.pending == 0
    assert verdict.told >= 17, "all but three, which may not have begun"
    assert verdict.issued < 10**6
    assert causes(study) == ["cancelled"] * (verdict.issued - verdict.told), "what had begun was waited for"
    assert not verdict.done


def test_after_its_seconds_a_run_takes_waiting_pulls_back(clock: Clock) -> None:
    began = []

    def evaluate(pull: thresher.Pull) -> float:
        began.append(pull.id)
        clock.end_the_run()
        until(lambda: causes(study), "the end of the pulls that wait for this one")
        return 0.5

    study = make(budget=100)
    verdict = thresher.run(study, evaluate, workers=1, in_flight=10, seconds=FOREVER, on_progress=lambda _: None)
    assert began == [1]
    assert (verdict.issued, verdict.told) == (10, 1)
    assert causes(study) == ["cancelled"] * 9


def test_a_run_that_waits_takes_hardly_any_time_of_the_processor() -> None:
    study, began = make("a", budget=2), time.process_time()
    verdict = thresher.run(study, slowly(0.5), workers=1, timeout=60.0, on_progress=lambda _: None)
    assert verdict.told == 2
    assert time.process_time() - began < 0.5


@pytest.mark.alone
def test_progress_is_reported_at_most_ten_times_a_second_and_at_the_end() -> None:
    seen: list[tuple[float, thresher.Progress]] = []
    study = make(budget=60)
    thresher.run(study, slowly(0.02), workers=2, on_progress=lambda p: seen.append((time.monotonic(), p)))
    times = [when for when, _ in seen]
    assert len(seen) >= 3
    assert all(later - earlier > 0.09 for earlier, later in itertools.pairwise(times[:-1]))
    last = seen[-1][1]
    assert (last.issued, last.told, last.pending, last.settled) == (60, 60, 0, 0)
    assert any(p.rate > 0 and p.seconds_left is not None for _, p in seen)


def test_a_late_reward_of_a_thread_that_was_given_up_is_kept() -> None:
    released = threading.Event()

    def evaluate(pull: thresher.Pull) -> float:
        if pull.id == 1:
            released.wait(60)
        elif any(event.kind == "dropped" for event in study.events()):
            released.set()
        else:
            time.sleep(0.01)
        return 0.5

    study = make(budget=400)
    verdict = thresher.run(study, evaluate, workers=2, timeout=0.5)
    assert 1 in [event.pull for event in study.events() if event.late]
    assert verdict.told + len(causes(study)) - sum(bool(event.late) for event in study.events()) == 400


@pytest.mark.alone
def test_rewards_that_come_shortly_after_their_timeout_do_not_end_the_run() -> None:
    def evaluate(pull: thresher.Pull) -> float:
        time.sleep(0.3 if pull.id % 3 == 0 else 0.0)
        return 0.5

    study = make(budget=40, max_failures=None)
    verdict = thresher.run(study, evaluate, workers=4, timeout=0.15)
    assert verdict.pending == 0
    assert verdict.told >= 20
