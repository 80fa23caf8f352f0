"""Measured rewards: the time that a command takes."""

import math
import pickle
import statistics
import sys
import threading
from typing import Any

import pytest

import thresher
from thresher.core.question import Measure
from thresher.core.spec import Spec
from thresher.run.command.process import Command
from thresher.run.command.reward import CommandFailed, TimedOut, reward_timeout_failure
from thresher.run.evaluators import WrappedEvaluator

PULL = thresher.Pull(1, "a", 1, {}, 7)
SPIN = "import time\nwhile time.process_time() < {}: pass"  # uses this many CPU seconds


def timed(script: str, how: str = "seconds", timeout: float | None = 20.0, **asked: Any) -> Command:
    command = Command(("sh", "-c", script), how, timeout)
    return command.for_study(Spec(arms=["a", "b"], **asked)) if asked else command


def limit(seconds: float, **options: Any) -> dict[str, Any]:
    return {"at_most": seconds, "share": 0.95, **options}


# -- what is measured --------------------------------------------------------------------------------------------


@pytest.mark.alone
def test_the_seconds_are_those_of_the_program_and_little_more() -> None:
    command = Command(("sleep", "0.02"), "seconds")
    times = [command(PULL) for _ in range(40)]
    assert min(times) >= 0.02
    assert min(times) < 0.03
    assert statistics.median(times) < 0.1


def test_what_a_program_prints_does_not_matter_and_neither_does_what_it_leaves_behind() -> None:
    assert timed("echo 0.5; sleep 30 & sleep 0.02")(PULL) >= 0.02
    assert timed("yes | head -c 400000")(PULL) < 20


def test_cpu_seconds_are_those_of_the_program_and_of_its_children() -> None:
    assert timed("sleep 0.3", "cpu-seconds")(PULL) < 0.2
    spin = SPIN.format(0.3)
    own = Command((sys.executable, "-S", "-c", spin), "cpu-seconds")(PULL)
    child = timed(f"'{sys.executable}' -S -c '{spin}'; true", "cpu-seconds")(PULL)
    assert own >= 0.3
    assert child >= 0.3
    assert max(own, child) < 1.5


def test_cpu_seconds_do_not_include_other_programs_that_run_at_the_same_time() -> None:
    busy = threading.Thread(target=Command((sys.executable, "-S", "-c", SPIN.format(0.6)), "cpu-seconds"), args=(PULL,))
    busy.start()
    assert timed("sleep 0.2", "cpu-seconds")(PULL) < 0.2
    busy.join()
    assert timed("true", "cpu-seconds")(PULL) < 0.2


@pytest.mark.parametrize("how", ["seconds", "cpu-seconds"])
@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("sh", "-c", "sleep 0.01; exit 3"), "exited with 3"),
        (("sh", "-c", "kill -9 $$"), "was ended by SIGKILL"),
        (("no-such-program",), "cannot start"),
        (("sh", "-c", "no-such-program"), "exited with 127"),
    ],
)
def test_a_failing_command_is_a_failure_and_no_time(how: str, argv: tuple[str, ...], why: str) -> None:
    with pytest.raises(CommandFailed, match=why):
        Command(argv, how, 20.0).for_study(Spec(arms=["a"], **limit(1e-9)))(PULL)


def test_a_failing_command_keeps_what_it_printed() -> None:
    with pytest.raises(CommandFailed) as caught:
        timed("echo no such model >&2; exit 1")(PULL)
    assert caught.value.output == "no such model"


def test_a_copy_in_another_process_asks_the_same() -> None:
    command = timed("sleep 9", timeout=0.1, **limit(0.05))
    assert pickle.loads(pickle.dumps(command)) == command
    assert pickle.loads(pickle.dumps(command))(PULL) > 0.1


# -- timeouts ----------------------------------------------------------------------------------------------------


def test_a_timeout_at_or_beyond_the_limit_is_a_miss() -> None:
    for seconds in (0.05, 0.1):
        question = limit(seconds)
        took = timed("sleep 9", timeout=0.1, **question)(PULL)
        assert 0.1 < took < 9
        assert Spec(arms=["a"], **question).counted(took) == 0.0


def test_where_longer_is_better_a_timeout_at_or_beyond_the_limit_is_a_hit() -> None:
    question: dict[str, Any] = {"at_least": 0.1, "share": 0.9}
    took = timed("sleep 9", timeout=0.1, **question)(PULL)
    assert Spec(arms=["a"], **question).counted(took) == 1.0


@pytest.mark.parametrize(
    "question",
    [limit(0.2), {"at_least": 0.2, "share": 0.5}, {"at_most": 0.05, "bounds": (0, 1)}, {"at_most": 0.05}],
)
def test_any_other_timeout_is_a_failure(question: dict[str, Any]) -> None:
    with pytest.raises(CommandFailed, match=r"timed out after 0\.1 s and was killed"):
        timed("sleep 9", timeout=0.1, **question)(PULL)


def test_with_cases_the_limit_against_a_baseline_is_not_known() -> None:
    question: dict[str, Any] = {"baseline": "b", "ratio": 1.1, "lower_is_better": True, "cases": 10}
    assert timed("true", **question).measure is None
    assert timed("true", at_most=1.0, share=0.5, cases=10).measure is not None
    assert Command(("true",)).for_study(Spec(arms=["a"], **limit(1.0))).measure is None


def test_cpu_time_counts_at_a_timeout_only_if_it_exceeds_the_limit() -> None:
    spin = f"'{sys.executable}' -S -c '{SPIN.format(30)}'"
    assert timed(f"exec {spin}", "cpu-seconds", timeout=1.0, **limit(0.01))(PULL) > 0.01
    with pytest.raises(CommandFailed, match="timed out"):
        timed(f"exec {spin}", "cpu-seconds", timeout=0.2, **limit(5.0))(PULL)
    with pytest.raises(CommandFailed, match="timed out"):
        timed("sleep 9", "cpu-seconds", timeout=0.3, **limit(0.25))(PULL)


def pair(arm: str, base: str, *, timeout: float, first: bool, **question: Any) -> Any:
    asked: dict[str, Any] = {"baseline": "b", "lower_is_better": True, **question}
    command = Command(("sleep", "{time}"), "seconds", timeout).for_study(Spec(arms=["a", "b"], **asked))
    pull = PULL._replace(params={"time": arm}, baseline="b", baseline_params={"time": base}, baseline_first=first)
    return WrappedEvaluator(command)(pull)


@pytest.mark.parametrize("first", [False, True])
def test_in_a_pair_the_time_of_the_baseline_decides_what_a_timeout_counts_as(first: bool) -> None:
    took, base = pair("9", "0.01", timeout=1.0, first=first, ratio=1.5)
    assert 1.5 * base < 1.0 < took < 9
    with pytest.raises(TimedOut):  # had it taken 0.6 s, it would have been within thirty times
        pair("9", "0.05", timeout=0.5, first=first, ratio=30)
    with pytest.raises(TimedOut):  # the mean of the differences
        pair("9", "0.01", timeout=0.2, first=first, bounds=(0, 100))


def test_in_a_pair_that_is_compared_alone_a_timeout_beyond_the_baseline_counts() -> None:
    took, base = pair("9", "0.01", timeout=1.0, first=True, share=0.5)
    assert base < 1.0 < took


@pytest.mark.parametrize("first", [False, True])
def test_a_baseline_that_times_out_is_a_failure(first: bool) -> None:
    for arm in ("0.01", "9"):
        with pytest.raises(Exception, match=r"the baseline failed: timed out after 0\.2 s"):
            pair(arm, "9", timeout=0.2, first=first, ratio=1.5)


def test_a_time_stands_for_all_longer_ones_only_if_they_count_the_same() -> None:
    """Exactly on the limit, in both directions and against a baseline."""
    least = math.nextafter(0.25, math.inf)
    lower, higher = Measure(sign=-1.0, within=True, limit=-0.25), Measure(within=True, limit=0.25)
    ratio = Measure(sign=-1.0, within=True, paired=True, ratio=2.0)
    assert TimedOut(0.25, least=least, measure=lower).reward() == least, "how long it took is not known"
    assert TimedOut(0.25, least=least, took=0.3, measure=lower).reward() == 0.3
    assert TimedOut(0.25, least=least, measure=higher).reward() > 0.25
    assert TimedOut(0.25, least=least, measure=ratio).reward(0.1249) > 0.25
    for measure, other in ((lower._replace(limit=-0.26), 0.0), (higher._replace(limit=0.26), 0.0), (ratio, 0.13)):
        with pytest.raises(TimedOut):
            TimedOut(0.25, least=least, took=0.5, measure=measure).reward(other)
    with pytest.raises(TimedOut):
        TimedOut(0.25, least=least, measure=ratio).reward("0.1")


def test_of_a_run_that_was_cut_off_at_least_the_timeout_is_known() -> None:
    """Its time until it was gone is not, if another part of this process reaped it."""
    lower = Measure(sign=-1.0, within=True, limit=-0.25)
    assert reward_timeout_failure({}, 0.25, "seconds", lower).reward() == math.nextafter(0.25, math.inf)
    times = {"seconds": 0.5, "cpu-seconds": 0.375}
    assert reward_timeout_failure(times, 0.25, "seconds", lower).reward() == 0.5
    assert reward_timeout_failure(times, 1.0, "cpu-seconds", lower).reward() == 0.375
    for how in ("last-float", "exit-code"):
        with pytest.raises(TimedOut, match=r"timed out after 0\.25 s and was killed"):
            raise reward_timeout_failure(times, 0.25, how, lower)
        with pytest.raises(TimedOut):
            reward_timeout_failure(times, 0.25, how, lower).reward()
