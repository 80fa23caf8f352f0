"""Lost workers: who is to blame, and what is said while there is none."""

import pytest

from thresher.errors import CannotGoOn
from thresher.run.lost import NoWorkers, Suspects
from thresher.study import Pull


def pulls(*arms: str, first: int = 1) -> list[Pull]:
    return [Pull(first + number, arm, 1, {}, 7) for number, arm in enumerate(arms)]


def judged(suspects: Suspects, together: list[Pull]) -> list[str]:
    return [suspects.judge(pull, together) for pull in together]


def test_a_pull_that_died_alone_is_to_blame_and_one_that_was_told_to_leave_is_not() -> None:
    suspects = Suspects()
    (one,) = pulls("a")
    assert suspects.judge(one, [one]) == "failed"
    assert suspects.judge(one, []) == "broken-pool"
    assert suspects.arms == set()


def test_of_pulls_that_died_together_the_suspected_arm_is_to_blame_the_second_time() -> None:
    suspects = Suspects()
    assert judged(suspects, pulls("a", "b")) == ["broken-pool"] * 2
    assert suspects.arms == {"a", "b"}
    suspects.arms.discard("b")
    assert judged(suspects, pulls("a", "c", first=3)) == ["failed", "broken-pool"]
    assert suspects.arms == {"a", "c"}
    assert judged(suspects, pulls("a", "c", first=5)) == ["broken-pool"] * 2, "both are suspected"


def test_of_one_arm_one_pull_fails_for_all_that_died_with_it() -> None:
    suspects = Suspects()
    together = pulls("a", "a", "a")
    assert judged(suspects, together) == ["failed", "broken-pool", "broken-pool"]
    assert suspects.judge(together[0], together) == "broken-pool"


def test_of_a_pair_the_side_that_died_is_judged() -> None:
    suspects = Suspects({"old"})
    together = pulls("old", "b")
    mine = together[0]._replace(arm="new")  # the run knows the pair by its arm
    assert suspects.judge(mine, together) == "failed"


def test_a_time_without_workers_is_mentioned_once_each_time(caplog: pytest.LogCaptureFixture) -> None:
    missing = NoWorkers("worker with GPU 1", 100.0)
    for now in (50.0, 59.9):
        assert not missing.is_over(0, now)
    assert caplog.text == ""
    for now in (60.0, 61.0, 80.0):
        assert not missing.is_over(0, now)
    words = "there is no worker with GPU 1: waiting for one"
    assert caplog.text.count(words) == 1
    assert missing.is_over(1, 90.0)
    assert missing.since is None
    for now in (91.0, 100.9):
        assert not missing.is_over(0, now)
    assert caplog.text.count(words) == 1
    assert not missing.is_over(0, 101.0)
    assert caplog.text.count(words) == 2
    with pytest.raises(CannotGoOn, match="there was no worker with GPU 1 for 100 s; start some and run again"):
        missing.is_over(0, 191.0)
