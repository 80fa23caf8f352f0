"""The error rate: the ranked lists agree with e-BH by brute force after every event."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher
from thresher.core import columns, error_rate, evidence
from thresher.core.board import SKIPPED
from thresher.core.events import Event
from thresher.core.evidence import ABOVE, BELOW, BETS, OPEN, bet_capital, fresh_capital, mean_capital
from thresher.core.ledger import apply_to_ledger, ledger_after_created
from thresher.core.state import State
from thresher.study import Study, give_up_in_study, peek_study

STEPS = ("ask",) * 10 + ("tell",) * 20 + ("fail", "lose", "cancel", "late", "late", "retire", "restore")


class ByHand:
    """e-BH as the paper writes it: e-values replayed from the events, sorted, the largest k that holds."""

    def __init__(self, spec: Any) -> None:
        self.spec = spec
        self.arms = len(spec.arms)
        self.level = self.arms / (1.0 - spec.confidence)
        self.kept: dict[int, tuple[int, float]] = {}  # settled arms: label and e

    def e_values(self, ledger: State, arm: int) -> list[float]:
        """Over the arm's places in order: told as told, everything else as the worst. Committed charges stay."""
        if arm not in ledger.capitals:
            return [0.0, 0.0]
        capital, docket = fresh_capital(), ledger.docket
        low_sum = high_sum = ledger.imported_sum(arm)
        left = ledger.sheet.places[arm] if ledger.cases else 0
        pull = ledger.first_pull[arm]
        while pull:
            if docket.outcome[pull] != evidence.LEFT_OUT:
                told = docket.outcome[pull] == evidence.TOLD
                low, high = (docket.reward[pull],) * 2 if told else (0.0, 1.0)
                low_bar, high_bar = ledger.stakes.low_edge, ledger.stakes.high_edge
                if ledger.cases:
                    low_bar = (ledger.cases.count * low_bar - low_sum) / left
                    high_bar = (ledger.cases.count * high_bar - high_sum) / left
                bet_capital(capital, ledger.stakes, low, high, low_bar, high_bar)
                low_sum, high_sum, left = low_sum + low, high_sum + high, left - 1
            pull = docket.following[pull]
        return [mean_capital(capital, start) for start in (0, BETS)]

    def follow(self, ledger: State) -> None:
        """Settle what is reached, list by list, until nothing more is."""
        for arm in range(self.arms):
            if arm not in self.kept and ledger.cases and ledger.board.seen[arm] and arm not in ledger.outside:
                known, missing = ledger.board.total[arm], ledger.cases.count - ledger.board.seen[arm]
                count, edges = ledger.cases.count, (self.spec.low_edge, self.spec.high_edge)
                reaches, misses = known >= edges[0] * count, known + missing < edges[1] * count
                if reaches or misses:
                    mean_reaches = known >= self.spec.bar * ledger.board.seen[arm]
                    label = ABOVE if reaches and (not misses or mean_reaches) else BELOW
                    self.kept[arm] = label, error_rate.CERTAIN
        for which in (ABOVE, BELOW):
            values = {arm: e for arm, (label, e) in self.kept.items() if label == which}
            for arm in range(self.arms):
                if arm not in self.kept and arm not in ledger.outside:
                    values[arm] = self.e_values(ledger, arm)[which - 1]
            ranked = sorted(values.values(), reverse=True)
            reached = max((k for k in range(1, len(ranked) + 1) if ranked[k - 1] * k >= self.level), default=0)
            for arm, e in values.items():
                if reached and e * reached >= self.level:
                    self.kept.setdefault(arm, (which, e))


def step(study: Study, chance: random.Random, gone: "list[int]", means: "list[float]") -> None:
    kind = chance.choice(STEPS)
    pending = [pull.id for pull in study.pending()]
    if kind == "ask" or (not pending and kind not in ("late", "retire", "restore")):
        study.ask_many(chance.choice([1, 1, 2, 3]))
    elif kind == "late" and gone:
        study.tell(gone.pop(chance.randrange(len(gone))), float(chance.random() < 0.5))
    elif kind in ("retire", "restore"):
        if chance.random() < 0.1:
            getattr(study, kind)(chance.choice(study.spec.arms))
    elif pending:
        pull = chance.choice(pending)
        if kind == "tell":
            arm = peek_study(study, lambda ledger: ledger.pull_arm[pull - 1])
            study.tell(pull, float(chance.random() < means[arm]))
        else:
            cause: Any = {"fail": "failed", "cancel": "cancelled"}.get(kind, "lost")
            give_up_in_study(study, pull, cause=cause, reason=kind)
            gone.append(pull)


def check(events: "list[Event]") -> int:
    """After every event, the settled labels are those of e-BH. Returns how many are settled at the end."""
    ledger = ledger_after_created(events[0])
    model, before = ByHand(ledger.spec), [OPEN] * len(ledger.spec.arms)
    for event in events[1:]:
        apply_to_ledger(ledger, event)
        model.follow(ledger)
        settled = list(ledger.docket.settled)
        assert settled == [model.kept.get(arm, (OPEN, 0.0))[0] for arm in range(len(settled))], event
        assert all(old in (OPEN, new) for old, new in zip(before, settled, strict=True)), "a settled arm left its list"
        before = settled
    return sum(label != OPEN for label in before)


@pytest.mark.parametrize("cases", [None, 12])
@pytest.mark.parametrize("tolerance", [0.0, 0.2])
def test_the_lists_are_those_of_brute_force(cases: int | None, tolerance: float) -> None:
    settled = 0
    for seed in range(6):
        chance = random.Random(seed)
        arms, budget = chance.choice([1, 2, 5, 9]), chance.choice([60, 250])
        means = [chance.choice([0.05, 0.3, 0.5, 0.7, 0.95]) for _ in range(arms)]
        study = thresher.create_study(
            "s", arms=[f"arm {arm}" for arm in range(arms)], at_least=0.5, budget=max(budget, 2 * arms), cases=cases,
            tolerance=tolerance, guarantee="rate", confidence=0.5, seed=seed, max_failures=5,
        )  # fmt: skip
        if cases and seed % 2:
            study.add_many((f"arm {arm}", float(chance.random() < means[arm]), case) for arm in range(arms) for case in
                           chance.sample(range(cases), 3))  # fmt: skip
        elif seed % 2:
            study.add_many((f"arm {arm}", float(chance.random() < means[arm])) for arm in range(arms) for _ in range(4))
        gone: list[int] = []
        for _ in range(150):
            step(study, chance, gone, means)
        settled += check(list(study.events()))
    assert settled > 5


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 11), st.floats(0, 1e4)), max_size=60), st.sampled_from([12, 40]))
def test_ranks_and_the_largest_list(changes: "list[tuple[int, float]]", level: int) -> None:
    """Any capitals that go up and down: the tree finds the same k as sorting."""
    ranking, values = columns.blank_ranking_columns(12, float(level)), [0.0] * 12
    for arm, value in changes:
        values[arm] = value
        rank = error_rate.error_rank_of(ranking, value)
        assert rank == next((k for k in range(1, 13) if value * k >= level), 0)
        error_rate.enter_error_rate_list(ranking, 1, arm, rank)
        ranked = sorted(values, reverse=True)
        expected = max((k for k in range(1, 13) if ranked[k - 1] * k >= level), default=0)
        assert error_rate.largest_error_rank(ranking, 1) == expected
        assert error_rate.largest_error_rank(ranking, 0) == 0
    error_rate.leave_error_rate_lists(ranking, 3)
    values[3] = 0.0
    ranked = sorted(values, reverse=True)
    assert error_rate.largest_error_rank(ranking, 1) == max(
        (k for k in range(1, 13) if ranked[k - 1] * k >= level), default=0
    )


def rated(**given: Any) -> Study:
    settings: dict[str, Any] = {"arms": ["a", "b"], "at_least": 0.5, "budget": 400, "guarantee": "rate"}
    return thresher.create_study("s", **settings | given)


def test_pending_pulls_count_as_lost() -> None:
    """Forty passes settle an arm, but not while forty others are pending: those may be the failures."""
    study = rated(arms=["a"], budget=None)
    pulls = study.ask_many(40)
    for pull in pulls[:20]:
        study.tell(pull, 1)
    assert not study.verdict()["a"].certified
    assert study.verdict().open == ["a"]
    for pull in pulls[20:]:
        study.tell(pull, 1)
    assert study.verdict()["a"].certified


def test_an_arm_that_only_waits_for_its_pending_pulls_is_skipped_while_another_can_be_pulled() -> None:
    study = rated(policy="uniform")
    pulls = [pull for pull in study.ask_many(60) if pull.arm == "a"]
    for pull in pulls[:20]:
        study.tell(pull, 1)
    assert peek_study(study, lambda ledger: list(ledger.board.shut)) == [SKIPPED, 0]
    assert {pull.arm for pull in study.ask_many(20)} == {"b"}
    study.retire("b")
    assert not study.done
    assert [pull.arm for pull in study.ask_many(3)] == ["a"] * 3  # no worker idles
    assert "a" in study.verdict().open


def test_an_open_arm_outside_the_bounds_counts_for_no_other() -> None:
    """Two arms on their way: as soon as one proves the bounds wrong, it no longer helps the other."""
    counts = {}
    for outside in (False, True):
        study = rated(policy="uniform", confidence=0.9, max_failures=None)
        used = 0
        while not study.verdict()["b"].certified:
            pull = study.ask() or pytest.fail("done")
            if pull.arm == "a" and outside and pull.number == 3:
                with pytest.raises(thresher.OutsideBounds):
                    study.tell(pull, 2)
            else:
                study.tell(pull, 1)
            used += pull.arm == "b"
        counts[outside] = used
        assert study.verdict()["a"].certified is not outside
    assert counts[True] > counts[False]


def listed(ranking: error_rate.Ranking, which: int, rank: int) -> list[int]:
    """The arms of a rank, as the list links them; each must know the one before it."""
    found, arm = list[int](), ranking.head[which * ranking.arms - 1 + rank]
    while arm:
        assert ranking.before[which * ranking.arms + arm - 1] == (found[-1] + 1 if found else 0)
        found.append(arm - 1)
        arm = ranking.after[which * ranking.arms + arm - 1]
    return found


@pytest.mark.parametrize("gone", [0, 1, 2, 3])
@pytest.mark.parametrize("which", [0, 1])
def test_an_arm_that_leaves_its_rank_leaves_the_others_there(which: int, gone: int) -> None:
    ranking = columns.blank_ranking_columns(5, 20.0)
    for arm in range(4):
        assert error_rate.enter_error_rate_list(ranking, which, arm, 3)
    assert listed(ranking, which, 3) == [3, 2, 1, 0]
    assert error_rate.enter_error_rate_list(ranking, which, gone, 2), "it rose"
    assert listed(ranking, which, 2) == [gone]
    assert listed(ranking, which, 3) == [arm for arm in (3, 2, 1, 0) if arm != gone]
    assert not error_rate.enter_error_rate_list(ranking, which, gone, 2), "nothing changed"
    assert not error_rate.enter_error_rate_list(ranking, which, gone, 3), "it fell"
    assert listed(ranking, which, 3)[0] == gone
    assert error_rate.has_error_rank(ranking, gone)
    error_rate.leave_error_rate_lists(ranking, gone)
    assert not error_rate.has_error_rank(ranking, gone)
    assert listed(ranking, which, 3) == [arm for arm in (3, 2, 1, 0) if arm != gone]
