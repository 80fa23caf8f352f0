"""Rewards in and pulls out, in one write: all of it or nothing, on every store."""

import math
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stores import CountingStore

import thresher
from thresher.errors import Interrupted, OutsideBounds
from thresher.log.store import MemoryStore, Store, open_store
from thresher.study import peek_study

QUESTIONS: list[dict[str, Any]] = [
    {"arms": ["a", "b", "c"], "at_least": 0.5, "budget": 60},
    {"arms": ["a", "b", "c"], "at_least": 0.5, "budget": 90, "confidence": None},
    {"arms": ["a", "b"], "at_least": 0.5, "cases": 20},
    {"arms": ["old", "new"], "baseline": "old", "at_least": None, "budget": 60},
    {"arms": ["a", "b", "c"], "at_least": 0.5, "budget": 60, "guarantee": "rate"},
]


def make(store: Store | None = None, **given: Any) -> thresher.Study:
    settings: dict[str, Any] = {**QUESTIONS[0], "seed": 7, "storage": store or MemoryStore()}
    return thresher.create_study("s", **settings | given)


def meaning(study: thresher.Study) -> list[tuple[Any, ...]]:
    """What the log says, without when, by whom and in which call it was written."""
    return [event[1:9] for event in study.events()[1:]]


def reward_of(pull: thresher.Pull) -> Any:
    reward = random.Random(pull.seed).random()
    return (reward, reward / 2) if pull.baseline else reward


# -- what it means ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_an_exchange_means_the_same_as_its_tells_and_asks_one_by_one(question: dict[str, Any]) -> None:
    together, alone, chance = make(**question), make(**question), random.Random(3)
    pending = together.ask_many(8)
    for _ in range(8):
        alone.ask()
    while pending:
        told = [pending.pop(chance.randrange(len(pending))) for _ in range(chance.randint(1, len(pending)))]
        n = chance.randint(1, 8)
        pending += together.exchange([(pull, reward_of(pull)) for pull in told], n)
        for pull in told:
            alone.tell(pull.id, reward_of(pull))
        for _ in range(n):
            alone.ask()
        assert meaning(together) == meaning(alone)
    states = [peek_study(study, lambda ledger: ledger.state()) for study in (together, alone)]
    assert states[0] == states[1]
    assert thresher.verify(together.events()).sound


def test_an_exchange_is_one_write() -> None:
    class Counting(CountingStore):
        def append(self, *args: Any, **options: Any) -> None:
            self.reads.append("append")
            super().append(*args, **options)

        def flush(self, *_: Any) -> None:
            self.reads.append("flush")

    store = Counting()
    study = make(store)
    pulls = study.ask_many(5)
    store.reads.clear()
    study.exchange([(pull, 0.5) for pull in pulls], 5)
    assert [word for word in store.reads if word in ("append", "flush")] == ["append", "flush"]


def test_asks_are_decided_on_the_rewards_of_the_same_exchange(store: Store) -> None:
    study = make(store, arms=["a", "b"], budget=None)
    pulls = study.ask_many(200)
    handed_out = study.exchange([(pull, pull.arm == "a") for pull in pulls], 3)
    assert (handed_out, study.done, study.verdict().reached) == ([], True, ["a"]), "these rewards settled both arms"


def test_rewards_are_recorded_although_nothing_is_left_to_ask_for(store: Store) -> None:
    study = make(store, budget=6)
    pulls = study.ask_many(9)
    assert study.exchange([(pull, 0.5) for pull in pulls], 9) == []
    assert (study.verdict().told, study.done) == (6, True)


def test_many_rewards_are_told_in_one_call_with_what_else_there_is_to_say(store: Store) -> None:
    study = make(store)
    first, second, third, _ = study.ask_many(4)
    study.drop(third, cause="lost")
    study.tell_many([(first, 1), thresher.Telling(second.ticket, 0, note="cut off", cost=0.5), (third.id, True)])
    rows = [(row.state, row.reward, row.note, row.cost) for row in study.pulls()]
    pending = ("pending", None, None, None)
    assert rows == [("told", 1.0, None, None), ("told", 0.0, "cut off", 0.5), ("late", 1.0, None, None), pending]


def test_the_caller_may_choose_the_arm_of_an_exchange() -> None:
    study = make()
    (pull,) = study.ask_many(1, arm="b")
    assert [pull.arm for pull in study.exchange([(pull, 1)], 2, arm="c")] == ["c", "c"]


# -- all or nothing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        ((2, math.nan), thresher.InvalidInput, r"pull 2, reward nan: must be a finite number"),
        ((2, "0.5"), thresher.InvalidInput, r"pull 2, reward '0.5': must be a finite number"),
        ((99, 0.5), thresher.UnknownPull, r"pull 99: this study has issued pulls 1 to 4"),
        ((4, 0.25), thresher.AlreadyTold, r"pull 4, reward 0.25: it was told 0.5 before"),
        ((1, 0.25), thresher.AlreadyTold, r"pull 1, reward 0.25: it was told 1 before"),
        (thresher.Telling(2, 0.5, cost=-1), thresher.InvalidInput, "cost -1"),
        ((2,), thresher.InvalidInput, r"rewards \(2,\): must be pairs of a pull and its reward"),
        (3, thresher.InvalidInput, r"rewards 3: must be pairs of a pull and its reward"),
    ],
    ids=str,
)
def test_one_wrong_reward_and_nothing_happens(store: Store, wrong: Any, kind: Any, words: str) -> None:
    study = make(store)
    pulls = study.ask_many(4)
    study.tell(pulls[3], 0.5)
    before = study.events()
    with pytest.raises(kind, match=words):
        study.exchange([(pulls[0], 1), wrong, (pulls[2], 0)], 3)
    assert study.events() == before
    assert len(study.exchange([(pulls[0], 1), (pulls[2], 0)], 3)) == 3


@pytest.mark.parametrize(("n", "more"), [(-1, {}), (1.5, {}), (1, {"lease": -3}), (1, {"key": 5}), (1, {"arm": "z"})])
def test_a_wrong_argument_and_nothing_happens(n: Any, more: dict[str, Any]) -> None:
    study = make()
    (pull,) = study.ask_many(1)
    with pytest.raises(thresher.InvalidInput):
        study.exchange([(pull, 1)], n, **more)
    assert study.verdict().told == 0


def test_a_refused_exchange_does_not_read_the_log_again() -> None:
    """Else a few wrong requests would keep the server of a long log busy."""
    store = CountingStore()
    study = make(store)
    first, second = study.ask_many(2)
    store.reads.clear()
    for wrong in ((second, math.nan), (first, 0)):
        with pytest.raises((thresher.InvalidInput, thresher.AlreadyTold)):
            study.exchange([(first, 1), wrong], 2)
    assert "read" not in store.reads


def test_the_same_reward_twice_is_told_once(store: Store) -> None:
    study = make(store)
    first, second = study.ask_many(2)
    study.tell(first, 1)
    study.exchange([(first, 1), (second, 0.5), (second, 0.5)], 0)
    assert study.verdict().told == 2


# -- rewards outside the bounds --------------------------------------------------------------------------------------


def test_rewards_outside_the_bounds_are_an_error_after_all_are_recorded_and_no_pull_is_handed_out(store: Store) -> None:
    study = make(store)
    pulls = study.ask_many(3)
    with pytest.raises(OutsideBounds, match="the bounds are wrong, so arms 'a', 'c' are retired") as error:
        study.exchange(zip(pulls, (7, 0.5, -1), strict=True), 3)
    assert error.value.arms == ("a", "c")
    assert [row.state for row in study.pulls()] == ["outside", "told", "outside"]
    assert {pull.arm for pull in study.ask_many(3)} == {"b"}
    events = study.events()
    with pytest.raises(OutsideBounds):
        study.tell_many(list(zip(pulls, (7, 0.5, -1), strict=True)))
    assert study.events() == events, "each is recorded once"


# -- keys and lost answers -------------------------------------------------------------------------------------------


def test_a_repeated_key_returns_the_same_pulls_and_records_the_rewards_once(store: Store) -> None:
    study = make(store)
    rewards = [(pull.ticket, 0.5) for pull in study.ask_many(3, lease=60, key="one")]
    first = study.exchange(rewards, 2, lease=60, key="two")
    seq = len(study.events())
    other = thresher.open_study("s", storage=store)
    assert other.exchange(rewards, 2, lease=60, key="two") == first == study.exchange(rewards, 2, lease=60, key="two")
    assert [event.kind for event in study.events(seq)] == ["repeated", "repeated"], "their rewards may be repeated ones"
    assert (study.verdict().issued, study.verdict().told) == (5, 3)
    assert study.exchange(rewards, 2, lease=60, key="three") != first


@pytest.mark.parametrize("is_written", [True, False])
def test_an_exchange_whose_answer_was_lost_happens_once(is_written: bool) -> None:
    class Flaky(MemoryStore):
        is_down = False

        def append(self, *args: Any, **options: Any) -> None:
            was_down, self.is_down = self.is_down, False
            if is_written or not was_down:
                super().append(*args, **options)
            if was_down:
                raise Interrupted("storage", rule="the connection was lost")

    store = Flaky()
    study = make(store)
    pulls = study.ask_many(3)
    store.is_down = True
    assert [pull.id for pull in study.exchange([(pull, 0.5) for pull in pulls], 2)] == [4, 5]
    assert [event.kind for event in study.events()] == ["created", *["asked"] * 3, *["told"] * 3, *["asked"] * 2]


# -- several agents --------------------------------------------------------------------------------------------------


def test_agents_that_exchange_at_once_share_the_pulls(store: Store) -> None:
    make(store, budget=240, confidence=None)
    told: list[int] = []

    def work() -> None:
        study = thresher.open_study("s", storage=store)
        pulls = study.ask_many(5)
        while pulls:
            told.extend(pull.id for pull in pulls)
            pulls = study.exchange([(pull, reward_of(pull)) for pull in pulls], 5)

    agents = [threading.Thread(target=work) for _ in range(3)]
    for agent in agents:
        agent.start()
    for agent in agents:
        agent.join()
    study = thresher.open_study("s", storage=store)
    assert sorted(told) == list(range(1, 241))
    assert (study.verdict().told, study.verdict().pending) == (240, 0)
    assert thresher.verify(study.events()).sound


def test_an_exchange_that_loses_a_race_is_decided_again() -> None:
    class Contested(MemoryStore):
        rival: thresher.Study | None = None

        def append(self, *args: Any, **options: Any) -> None:
            rival, self.rival = self.rival, None
            if rival is not None:
                rival.tell_many([(1, 0.75)])
                rival.ask()
            super().append(*args, **options)

    store = Contested()
    study = make(store)
    first, second = study.ask_many(2)
    store.rival = thresher.open_study("s", storage=store)
    with pytest.raises(thresher.AlreadyTold, match=r"it was told 0\.75 before"):
        study.exchange([(second, 0.5), (first, 0.25)], 2)
    store.rival = thresher.open_study("s", storage=store)
    assert [pull.id for pull in study.exchange([(second, 0.5), (first, 0.75)], 2)] == [5, 6]
    assert thresher.verify(study.events()).sound


# -- leases ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def durable(url: str) -> Iterator[Store]:
    store = open_store(url)
    yield store
    store.close()


def leased(store: Store) -> list[int]:
    """The pulls that have a lease, found by letting all of them run out."""
    store.renew("s", range(1, 50), -60)
    return store.expired("s")


def test_told_pulls_lose_their_leases_and_handed_out_ones_get_one(durable: Store) -> None:
    study = make(durable)
    pulls = study.ask_many(3, lease=60)
    study.exchange([(pull, 0.5) for pull in pulls[:2]], 2, lease=60)
    assert leased(durable) == [3, 4, 5]


def test_a_reward_that_comes_with_an_ask_is_not_late_because_its_lease_has_run_out(durable: Store) -> None:
    """Until somebody looks for lost pulls a reward is in time, and this call brings it."""
    study = make(durable)
    pulls = study.ask_many(3, lease=60)
    assert leased(durable) == [1, 2, 3]
    study = thresher.open_study("s", storage=durable)
    study.exchange([(pulls[0], 0.5)], 1)
    assert [row.state for row in study.pulls()] == ["told", "dropped", "dropped", "pending"]


def test_pulls_of_a_refused_exchange_stay_with_their_agent(tmp_path: Path) -> None:
    study = make(open_store(f"sqlite:///{tmp_path}/s.db"))
    first, second = study.ask_many(2)
    with pytest.raises(thresher.InvalidInput):
        study.exchange([(first, 1), (second, math.nan)], 2)
    leased(study.store)
    assert study.sweep() == 0, "this process still holds both"
    study.close()
