"""Pulls that end together, and pulls that a run leaves behind."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path

import pytest
from engines import causes, make, until

import thresher
from thresher.errors import StoreFailed
from thresher.run import loop
from thresher.run.engines.local import Engine
from thresher.run.failures import WorkerLost
from thresher.run.loop import Limits, run_loop_on
from thresher.study import Pull


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
    run_loop_on(DyingTogether(3), study, Limits(), None)
    assert causes(study) == ["broken-pool"] * 3
    assert [row.failures for row in study.verdict().rows] == [0, 0, 0]


def test_one_pull_is_blamed_when_a_group_of_one_arm_died_together() -> None:
    study = make("a", budget=30, max_failures=3)
    study.tell(study.ask() or 0, 0.5)  # the evaluator is known to work
    run_loop_on(DyingTogether(4), study, Limits(), None)
    assert sorted(map(str, causes(study))) == ["broken-pool"] * 3 + ["failed"]


class OneProcess(Engine):
    """All workers share a process. In each round the pull that is due next ends: it returns 1, or all die together."""

    def __init__(self, workers: int, dies: Callable[[Pull], bool]) -> None:
        super().__init__(workers)
        self._dies, self._rounds = dies, 0
        self._pending: list[tuple[int, Pull, Future[object]]] = []
        self.pulls: list[Pull] = []

    def submit(self, pull: Pull) -> "Future[object]":
        self.pulls.append(pull)
        self._pending.append((self._rounds + (9 if pull.arm.startswith("slow") else 1), pull, Future()))
        return self._pending[-1][2]

    @property
    def room(self) -> int:  # the run looks at it in each round
        self._rounds += 1
        due = min(self._pending, key=lambda pending: pending[0], default=None)
        if due is not None and self._dies(due[1]):
            lost, self._pending = self._pending, []
            for _, _, future in lost:
                future.set_exception(WorkerLost("the pool broke", [pull for _, pull, _ in lost]))
        elif due is not None:
            self._pending.remove(due)
            due[2].set_result(1)
        return self.workers

    def stop(self, future: "Future[object]") -> None:
        raise AssertionError("nothing takes long")

    def close(self, *, wait: bool) -> None:
        return


@pytest.mark.parametrize("chance", [1.0, 0.35])
def test_an_arm_that_kills_what_others_share_is_found_and_no_other_arm_is_blamed(
    chance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow pulls are pending whenever something dies, and quick ones soon seem innocent."""
    monkeypatch.setattr(loop, "LONGEST_WAIT", 0.001)
    luck = random.Random(5)
    engine = OneProcess(4, lambda pull: pull.arm == "killer" and luck.random() < chance)
    study = make("slow", "killer", "slow too", "a", "b", budget=400)
    run_loop_on(engine, study, Limits(), None)
    verdict = study.verdict()
    assert verdict.retired == ["killer"] or (chance < 1 and verdict.retired == [])
    assert "broken-pool" in causes(study)
    assert [row.failures for row in verdict if row.arm != "killer"] == [0] * 4
    assert all(row.seen > 10 for row in verdict if row.arm != "killer")


def test_a_case_whose_bad_outcomes_kill_what_others_share_is_not_drawn_until_it_is_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "LONGEST_WAIT", 0.001)
    luck = random.Random(7)
    engine = OneProcess(4, lambda _: luck.random() < 0.4)  # each arm's true mean is 0.6
    study = make(*"abcd", cases=60, at_least=0.9, budget=None, confidence=0.95, tries=1, policy=None, max_failures=None)
    run_loop_on(engine, study, Limits(), None)
    assert causes(study).count("broken-pool") > 50
    pulls = {pull.id: (pull.arm, pull.case) for pull in engine.pulls}
    lost = Counter(pulls[event.pull or 0] for event in study.events() if event.cause in ("broken-pool", "failed"))
    assert max(lost.values()) == 2
    assert not [row.arm for row in study.verdict() if row.certified and row.reached]


def test_a_run_that_ends_early_leaves_no_pull_pending(tmp_path: Path) -> None:
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
        assert study.verdict().pending == 0
        assert causes(study) == ["lost"] * 4


@pytest.mark.parametrize("answer", [0.5, "nonsense"])
def test_pulls_whose_ends_a_run_cannot_write_count_as_lost_when_their_leases_run_out(
    answer: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise StoreFailed("storage", rule="the disk is full")

    def evaluate(pull: Pull) -> object:
        monkeypatch.setattr(study.store, "append", fails)
        return answer

    with make(storage=tmp_path / "s.db", lease=0.2) as study:
        with pytest.raises(StoreFailed, match="the disk is full"):
            thresher.run(study, evaluate, workers=1)
        monkeypatch.undo()
        assert study.verdict().pending == 1
        until(lambda: study.sweep() == 1, "the end of its lease")
        assert causes(study) == ["lost"]
