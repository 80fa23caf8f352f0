"""Pulls that end together, and pulls that a run leaves behind."""

import threading
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path

import pytest
from engines import causes, make

import thresher
from thresher.errors import StoreFailed
from thresher.run.engines import Engine
from thresher.run.lost import Suspects, WorkerLost
from thresher.run.runner import Limits, run_on
from thresher.study import Pull, give_up


class DyingTogether(Engine):
    """Loses the first pulls together, as a broken pool does; then every pull succeeds."""

    def __init__(self, group: int) -> None:
        super().__init__(group)
        self._first: list[tuple[Pull, Future[object]]] = []

    def submit(self, pull: Pull) -> "Future[object]":
        future: Future[object] = Future()
        if len(self._first) < self.workers:
            self._first.append((pull, future))
            if len(self._first) == self.workers:
                together = [lost for lost, _ in self._first]
                for _, lost in self._first:
                    lost.set_exception(WorkerLost("the pool broke", together))
        else:
            future.set_result(0.5)
        return future

    def stop(self, future: "Future[object]") -> None:
        raise AssertionError("nothing takes long")

    def take_back(self, futures: Iterable["Future[object]"]) -> set["Future[object]"]:
        return set()

    def close(self, *, wait: bool) -> None:
        return


def test_no_arm_is_blamed_for_a_group_of_several_arms_that_died_together() -> None:
    study = make("a", "b", "c", budget=30, max_failures=1)
    run_on(DyingTogether(3), study, Limits(), None)
    assert causes(study) == ["broken-pool"] * 3
    assert [row.failures for row in study.verdict().rows] == [0, 0, 0]


def test_one_pull_is_blamed_when_a_group_of_one_arm_died_together() -> None:
    study = make("a", budget=30, max_failures=3)
    study.tell(study.ask() or 0, 0.5)  # the evaluator is known to work
    run_on(DyingTogether(4), study, Limits(), None)
    assert sorted(map(str, causes(study))) == ["broken-pool"] * 3 + ["failed"]


def test_a_suspected_arm_is_to_blame_the_next_time_and_for_one_pull() -> None:
    a, b, again, c = (Pull(number, arm, 1, {}, 0) for number, arm in enumerate("abac", 1))
    suspects = Suspects()
    assert [suspects.judge(pull, [a, b]) for pull in (a, b)] == ["broken-pool"] * 2
    suspects.arms.discard("b")
    assert [suspects.judge(pull, [a, again, c]) for pull in (c, a, again)] == ["broken-pool", "failed", "broken-pool"]
    assert suspects.judge(c, [c]) == "failed", "it died alone"


def test_a_run_that_ends_early_leaves_no_pull_pending_and_none_leased(tmp_path: Path) -> None:
    over, began = threading.Event(), []

    def evaluate(pull: Pull) -> float:
        began.append(pull)
        over.wait(60)
        return 0.5

    def fail(progress: thresher.Progress) -> None:
        if len(began) == 4:
            raise RuntimeError("stop here")

    with make(storage=tmp_path / "s.db", budget=10**6) as study:
        with pytest.raises(RuntimeError, match="stop here"):
            thresher.run(study, evaluate, workers=4, on_progress=fail)
        over.set()
        assert study._keeper.held == []
        assert study.verdict().pending == 0
        assert causes(study) == ["lost"] * 4


@pytest.mark.parametrize("how", ["written", "not written"])
def test_a_dropped_pull_is_no_longer_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    with make(storage=tmp_path / "s.db") as study:
        pull = study.ask() or pytest.fail("no pull")
        assert study._keeper.held == [1]
        if how == "written":
            give_up(study, pull, cause="lost", reason="the run was stopped")
        else:
            monkeypatch.setattr(study.store, "append", fails)
            with pytest.raises(StoreFailed):
                give_up(study, pull, cause="lost", reason="the run was stopped")
        assert study._keeper.held == []


def test_pulls_whose_rewards_a_run_cannot_write_are_no_longer_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def evaluate(pull: Pull) -> float:
        monkeypatch.setattr(study.store, "append", fails)
        return 0.5

    with make(storage=tmp_path / "s.db") as study:
        with pytest.raises(StoreFailed, match="the disk is full"):
            thresher.run(study, evaluate, workers=1)
        assert study._keeper.held == []
        assert study.verdict().pending == 1, "its lease runs out, and then it counts as lost"


def fails(*_: object, **__: object) -> None:
    raise StoreFailed("storage", rule="the disk is full")
