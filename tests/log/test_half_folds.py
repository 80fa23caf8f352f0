"""A ledger that an interrupt left half changed is discarded: the next call reads the log again."""

import functools
import itertools
import sys
from collections.abc import Callable
from typing import Any

import pytest

import thresher
from thresher.core import board, evidence
from thresher.core.ledger import fold_ledger
from thresher.core.replay import verify
from thresher.log.store import MemoryStore, Store
from thresher.study import peek_study

STEPS = [
    (evidence, "enqueue_evidence"),
    (board, "observe_on_board"),
    (evidence, "tell_evidence"),
    (evidence, "commit_first_evidence"),
]
ERRORS = [KeyboardInterrupt, SystemExit, MemoryError]


class Trap:
    """Raises once, when a function is called for the nth time: after it has done its work, or before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, error: type[BaseException]) -> None:
        self.real, self.left, self.after, self.error = getattr(module, name), 0, False, error
        monkeypatch.setattr(module, name, self)

    def set(self, nth: int, *, after: bool) -> None:
        self.left, self.after = nth, after

    def __call__(self, *args: Any) -> Any:
        if self.left:
            self.left -= 1
            if not self.left:
                if self.after:
                    self.real(*args)
                raise self.error
        return self.real(*args)


def make(store: Store) -> thresher.Study:
    return thresher.create_study("s", arms=["a", "b", "c"], at_least=0.5, budget=300, storage=store)


def goes_on(study: thresher.Study) -> None:
    """The state equals a fresh fold, and so does the next decision."""
    live, fresh = peek_study(study, lambda ledger: ledger.state()), fold_ledger(study.events()).state()
    assert live == fresh
    for pull in study.ask_many(4):
        study.tell(pull, pull.id % 2)
    assert verify(study.events()).sound
    assert peek_study(study, lambda ledger: ledger.state()) == fold_ledger(study.events()).state()


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("step", [*STEPS, (board, "climb_board")], ids=lambda step: step[1])
def test_an_interrupt_while_an_event_is_written(
    monkeypatch: pytest.MonkeyPatch, step: tuple[Any, str], nth: int, after: bool, error: type[BaseException]
) -> None:
    study = make(MemoryStore())
    pulls = study.ask_many(6)
    for pull in pulls[:4]:
        study.tell(pull, 1)
    trap, before = Trap(monkeypatch, *step, error), len(study.events())
    calls: list[Callable[[], object]] = [
        lambda: study.ask_many(3),
        lambda: study.tell(pulls[4], 0),
        lambda: study.drop(pulls[5], cause="lost"),
    ]
    for call in calls:
        trap.set(nth, after=after)
        try:
            call()
        except error:
            assert len(study.events()) == before, "what was interrupted is not written"
        trap.set(0, after=False)
        before = len(study.events())
        assert peek_study(study, lambda ledger: ledger.state()) == fold_ledger(study.events()).state()
    goes_on(study)


def by_mean(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    return weight * gap


@pytest.mark.parametrize("node", range(1, 16))
def test_an_interrupt_while_a_users_score_is_put_into_the_tree(monkeypatch: pytest.MonkeyPatch, node: int) -> None:
    """Before anything is written, but the tree may be half changed: its next decision could be wrong."""
    arms = [f"arm {number}" for number in range(8)]
    policy = thresher.custom(by_mean)
    study = thresher.create_study("s", arms=arms, at_least=0.5, budget=300, policy=policy)
    for pull in study.ask_many(24):
        study.tell(pull, pull.arm[-1] in "0246")
    ledger, best = peek_study(study, lambda ledger: ledger), peek_study(study, lambda ledger: ledger.board.best)

    class Fragile(list[float]):
        def __setitem__(self, at: Any, value: Any) -> None:
            if at == node:
                raise KeyboardInterrupt
            super().__setitem__(at, value)

    ledger.board = ledger.board._replace(best=Fragile(best))
    try:
        study.ask()
    except KeyboardInterrupt:
        goes_on(study)


def test_an_interrupt_at_the_first_event_of_an_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    study = make(MemoryStore())
    trap = Trap(monkeypatch, evidence, "enqueue_evidence", KeyboardInterrupt)
    trap.set(1, after=True)
    with pytest.raises(KeyboardInterrupt):
        study.ask()
    assert peek_study(study, lambda ledger: (ledger.issued, ledger.pending)) == (0, 0)
    goes_on(study)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step[1])
def test_an_interrupt_while_new_events_are_read(
    monkeypatch: pytest.MonkeyPatch, step: tuple[Any, str], nth: int, after: bool
) -> None:
    store = MemoryStore()
    writer = make(store)
    reader = thresher.open_study("s", storage=store)
    pulls = writer.ask_many(3)
    for pull in pulls[:2]:
        writer.tell(pull, 1)
    writer.drop(pulls[2], cause="lost")
    trap = Trap(monkeypatch, *step, KeyboardInterrupt)
    trap.set(nth, after=after)
    with pytest.raises(KeyboardInterrupt):
        peek_study(reader, lambda ledger: ledger.issued)
    goes_on(reader)
    goes_on(writer)


@pytest.mark.parametrize("call", ["tell", "extend", "told"])
def test_an_event_that_the_grammar_refuses_causes_no_new_fold(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make(MemoryStore())
    study.tell(study.ask() or 0, 1)
    monkeypatch.setattr("thresher.core.ledger.ledger_after_created", None)  # folding the log again would fail
    calls: dict[str, Callable[[], None]]
    calls = {
        "tell": lambda: study.tell(99, 1),
        "extend": lambda: study.extend(budget=10),
        "told": lambda: study.tell(1, 0),
    }
    for _ in range(2):
        with pytest.raises(thresher.ThresherError):
            calls[call]()
    assert peek_study(study, lambda ledger: ledger.issued) == 1
    assert study.ask()


def test_a_store_that_fails_while_new_events_are_read_causes_no_new_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away(MemoryStore):
        away = False

        def read(self, study: str, after: int = 0, limit: int | None = None) -> Any:
            if self.away:
                raise thresher.errors.StoreFailed("storage", rule="the server is away")
            return super().read(study, after, limit)

    store = Away()
    study = make(store)
    thresher.open_study("s", storage=store).ask()
    monkeypatch.setattr("thresher.core.ledger.ledger_after_created", None)
    store.away = True
    with pytest.raises(thresher.errors.StoreFailed):
        study.ask()
    store.away = False
    assert (study.ask() or pytest.fail("no pull")).id == 2


class Interrupting:
    """Raises KeyboardInterrupt where Python runs signal handlers: as a function begins, and after one of C's ends."""

    def __init__(self, nth: int) -> None:
        self.left = nth

    def __call__(self, frame: object, what: str, argument: object) -> None:
        self.left -= what in ("call", "c_return")
        if self.left == 0:
            sys.setprofile(None)
            raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["ask", "tell", "drop"])
def test_a_study_goes_on_after_an_interrupt_at_any_moment_of_a_call(kind: str) -> None:
    study = thresher.create_study("s", arms=["a", "b", "c"], at_least=0.5, budget=2000, max_failures=None)
    for nth in itertools.count(1):
        pull = study.ask() or pytest.fail("no pull")
        calls: dict[str, Callable[[], object]]
        calls = {
            "ask": study.ask,
            "tell": functools.partial(study.tell, pull, 1),
            "drop": functools.partial(study.drop, pull),
        }
        sys.setprofile(trap := Interrupting(nth))
        try:
            calls[kind]()
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
        study.tell(study.ask() or 0, nth % 2)
        if trap.left > 0:  # the call has fewer moments
            break
    assert nth > 40
    assert peek_study(study, lambda ledger: ledger.state()) == fold_ledger(study.events()).state()
    assert verify(study.events()).sound
