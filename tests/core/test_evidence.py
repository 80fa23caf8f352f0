"""Certificates: the exact rule, and how a study uses it. tests/paper measures how often they are wrong."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher
from thresher.core import evidence
from thresher.core.events import Cause
from thresher.core.evidence import STAKE
from thresher.study import give_up_in_study, peek_study


def make(**given: Any) -> thresher.Study:
    plain: dict[str, Any] = {"arms": ["a", "b", "c"], "at_least": 0.5, "confidence": 0.9}
    return thresher.create_study("s", **plain | given)


def bets(edge: float, tolerance: float = 0.0) -> list[tuple[float, float]]:
    """λ and stake of each bet, as the rule is written."""
    least = 1.5 * tolerance / (edge * (1 - edge))
    w = 13.6 / (7 + sum(0.7**k for k in range(1, 9)))
    middle = [(0.8 / edge * 0.6**g, w) for g in range(7)]
    small = [(middle[-1][0] * 0.465**k, w * 0.7**k) for k in range(1, 9)]
    return [(max(bet, least), stake) for bet, stake in [(1 / edge, 2.4), *middle, *small]]


class Transcription:
    """One arm's certificate as the rule is written, computed from scratch each time."""

    def __init__(self, arms: int, bar: float, risk: float, tolerance: float) -> None:
        self.bar, self.level, self.tolerance = bar, arms / risk, tolerance

    def capital(self, rewards: list[float], edge: float) -> float:
        """The mean of 16 products; ``rewards`` are gains x − b or b − x."""
        sides = bets(edge, self.tolerance)
        return sum(stake * math.prod(1 + bet * gain for gain in rewards) for bet, stake in sides) / 16

    def reached(self, rewards: list[float]) -> bool | None:
        """The answer that is settled first within these rewards."""
        low, high = self.bar - self.tolerance, self.bar + self.tolerance
        for n in range(1, len(rewards) + 1):
            reaches = self.capital([x - low for x in rewards[:n]], low) >= self.level
            misses = self.capital([high - x for x in rewards[:n]], 1 - high) >= self.level
            if reaches and misses:
                return sum(rewards[:n]) / n >= self.bar
            if reaches or misses:
                return reaches
        return None


@settings(max_examples=120, deadline=None)
@given(
    rewards=st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), min_size=1, max_size=40),
    bar=st.sampled_from([0.2, 0.5, 0.9]),
    tolerance=st.sampled_from([0.0, 0.03, 0.09]),
    confidence=st.sampled_from([0.5, 0.9]),
)
def test_an_arm_is_settled_when_the_rule_says_so(
    rewards: list[float], bar: float, tolerance: float, confidence: float
) -> None:
    study = make(arms=["a"], at_least=bar, tolerance=tolerance, confidence=confidence, budget=1000)
    rule = Transcription(1, bar, 1 - confidence, tolerance)
    for n, reward in enumerate(rewards, start=1):
        pull = study.ask()
        expected = rule.reached(rewards[:n])
        if pull is None:
            assert study.verdict()["a"].certified
            break
        study.tell(pull, reward)
        row = study.verdict()["a"]
        assert row.certified == (expected is not None)
        assert row.certified is False or row.reached is expected


def test_the_bets_are_those_of_the_rule() -> None:
    study = make(arms=["a"], at_least=0.4, confidence=0.999999)
    rewards = [0.3, 0.9, 0.1, 0.8, 0.55]
    for reward in rewards:
        study.tell(study.ask() or 0, reward)
    capital = peek_study(study, lambda ledger: ledger.capitals[0])
    up, down = bets(0.4), bets(0.6)
    for g in range(16):
        assert capital[g] == pytest.approx(up[g][1] * math.prod(1 + up[g][0] * (x - 0.4) for x in rewards))
        assert capital[16 + g] == pytest.approx(down[g][1] * math.prod(1 + down[g][0] * (0.4 - x) for x in rewards))


@pytest.mark.parametrize(("worst", "entry"), [(0.0, 0), (1.0, 16)])
def test_the_worst_possible_reward_makes_the_all_in_bet_exactly_zero(worst: float, entry: int) -> None:
    for bar in (0.1, 0.3, 0.7, 0.9, 0.99):
        study = make(arms=["a"], at_least=bar, confidence=1 - 1e-12)
        study.tell(study.ask() or 0, worst)
        assert peek_study(study, lambda ledger: ledger.capitals[0][entry]) == 0.0


@given(st.permutations(range(20)), st.lists(st.booleans(), min_size=20, max_size=20))
def test_the_order_of_arrival_does_not_matter(order: list[int], rewards: list[bool]) -> None:
    studies = [make(arms=["a"], confidence=0.9999999, at_least=0.6) for _ in range(2)]
    for study, arrival in zip(studies, [range(20), order], strict=True):
        issued = study.ask_many(20)
        for at in arrival:
            study.tell(issued[at], rewards[at])
    one, two = (peek_study(study, lambda ledger: ledger.capitals[0]) for study in studies)
    assert one == two  # to the bit


def test_a_reward_waits_until_all_earlier_pulls_of_its_arm_are_known() -> None:
    study = make(arms=["a"], confidence=0.999)
    first, second, third = study.ask_many(3)
    study.tell(second, 1)
    study.tell(third, 1)
    assert peek_study(study, lambda ledger: (ledger.docket.committed[0], ledger.docket.waiting[0])) == (0, 2)
    assert study.verdict()["a"].seen == 2  # the statistics have them
    study.tell(first, 0)
    assert peek_study(study, lambda ledger: (ledger.docket.committed[0], ledger.docket.waiting[0])) == (3, 0)


def products(study: thresher.Study) -> tuple[float, float]:
    """The second bet of each side, as a multiple of its stake; at a bar of .5 its λ is 1.6."""
    capital = peek_study(study, lambda ledger: ledger.capitals[0])
    return capital[1] / STAKE, capital[17] / STAKE


@pytest.mark.parametrize("cause", ["failed", "lost", "broken-pool", "outage", "cancelled"])
def test_a_dropped_pull_is_charged_the_worst_reward_even_if_it_is_told_late(cause: Cause) -> None:
    study = make(arms=["a"], confidence=0.999, max_failures=None)
    pull = study.ask_many(2)[0]
    give_up_in_study(study, pull, cause=cause, reason="gone")
    study.tell(1, 1)  # late: it counts in the statistics, not in the certificate
    study.tell(2, 1)
    above, below = products(study)
    assert above == pytest.approx((1 + 1.6 * -0.5) * (1 + 1.6 * 0.5))
    assert below == pytest.approx((1 + 1.6 * -0.5) * (1 + 1.6 * -0.5))
    row = study.verdict()["a"]
    assert (row.charged, row.seen, row.mean) == (1, 2, 1.0)


@pytest.mark.parametrize("told_first", [True, False])
def test_a_cancelled_pull_is_charged_once_a_later_pull_of_its_arm_is_told(told_first: bool) -> None:
    study = make(arms=["a", "b"], confidence=0.999)
    pulls = [pull for pull in study.ask_many(8) if pull.arm == "a"]
    if told_first:
        study.tell(pulls[1], 1)
    give_up_in_study(study, pulls[0], cause="cancelled", reason="never began")
    if not told_first:
        assert study.verdict()["a"].charged == 0
        study.tell(pulls[1], 1)
    assert study.verdict()["a"].charged == 1
    assert study.verdict()["b"].charged == 0


def test_a_cancelled_pull_at_the_end_costs_nothing() -> None:
    study = make(arms=["a"], confidence=0.999)
    pulls = study.ask_many(2)
    study.tell(pulls[0], 1)
    give_up_in_study(study, pulls[1], cause="cancelled", reason="never began")
    assert products(study)[0] == pytest.approx(1 + 1.6 * 0.5)
    assert study.verdict()["a"].charged == 0


def test_failures_may_be_ignored_and_the_guarantee_says_what_that_assumes() -> None:
    study = make(arms=["a"], confidence=0.999, failure="ignore")
    study.ask_many(2)
    study.drop(1, cause="lost")
    study.tell(1, 0)
    study.tell(2, 1)
    assert products(study)[0] == pytest.approx(1 + 1.6 * 0.5)
    assert "whether a pull is lost does not depend on its reward" in study.verdict().guarantee


def test_a_hung_pull_is_charged_when_too_many_rewards_wait_behind_it() -> None:
    study = make(arms=["a"], confidence=1 - 1e-9, at_least=0.9)
    pulls = study.ask_many(30)
    for pull in pulls[1:21]:  # 16 + 4 · pending(10) + 0/4 = 56 is far
        study.tell(pull, 0.9)
    assert study.verdict()["a"].charged == 0
    for pull in pulls[21:]:
        study.tell(pull, 0.9)
    # now one is pending and 29 wait: more than 16 + 4
    row = study.verdict()["a"]
    assert (row.charged, row.pending) == (1, 1)
    assert peek_study(study, lambda ledger: ledger.docket.committed[0]) == 29
    study.tell(pulls[0], 0.0)  # it comes back after all, and counts in the statistics
    assert study.verdict()["a"].seen == 30
    assert peek_study(study, lambda ledger: ledger.docket.committed[0]) == 29


def test_twenty_rewards_may_wait_behind_one_pending_pull() -> None:
    study = make(arms=["a"], confidence=1 - 1e-9, at_least=0.9)
    pulls = study.ask_many(22)
    for pull in pulls[1:21]:
        study.tell(pull, 0.9)
    give_up_in_study(study, pulls[21], cause="cancelled", reason="never began")
    assert study.verdict()["a"].charged == 0  # 20 = 16 + 4 · 1 wait, no more than allowed
    study.tell(study.ask() or 0, 0.9)
    assert study.verdict()["a"].charged == 2  # the pending one and, as a later one was told, the cancelled one


def test_settled_arms_are_not_pulled_again_and_a_study_ends_when_all_are() -> None:
    study = make(arms=["good", "bad"], budget=None)
    while pull := study.ask():
        study.tell(pull, pull.arm == "good")
    verdict = study.verdict()
    assert study.done
    assert (verdict.reached, verdict.missed, verdict.open) == (["good"], ["bad"], [])
    assert all(row.certified and row.left == 0 for row in verdict.rows)
    assert verdict.issued < 60
    assert verdict.guarantee.startswith("With a probability of at least 90 %, both certified answers are right")


def test_a_settled_answer_never_changes() -> None:
    study = make(arms=["a", "b"], budget=400)
    extra = [pull for pull in study.ask_many(60) if pull.arm == "a"]
    for pull in extra[:15]:
        study.tell(pull, 1)
    assert study.verdict()["a"].certified
    for pull in extra[15:]:
        study.tell(pull, 0)
    row = study.verdict()["a"]
    assert (row.reached, row.certified) == (True, True)
    assert row.mean is not None
    assert row.mean <= 0.5
    assert row.low is not None
    assert row.low >= 0.5
    study.retire("a")
    study.restore("a")
    assert study.verdict()["a"].reached
    assert {pull.arm for pull in study.ask_many(20)} == {"b"}


def test_with_a_tolerance_an_arm_on_the_bar_is_settled_either_way() -> None:
    study = make(arms=["a"], tolerance=0.2, budget=None)
    while pull := study.ask():
        study.tell(pull, pull.number % 2)
    assert study.verdict().open == []
    assert study.verdict()["a"].certified
    assert study.verdict().issued < 150


@pytest.mark.parametrize("mean", [0.4, 0.5, 0.6])
def test_capitals_that_reach_the_level_together_give_the_side_of_the_mean(mean: float) -> None:
    """A hung pull holds back many rewards, which are then committed at once."""
    study = make(arms=["a"], tolerance=0.3, confidence=0.5, max_failures=None)
    pulls = study.ask_many(400)
    for pull in pulls[1:]:
        study.tell(pull, mean)
    assert study.verdict()["a"].certified
    assert study.verdict()["a"].reached is (mean >= 0.5)


def test_tolerance_is_in_the_units_of_the_rewards() -> None:
    plain = make(arms=["a"], tolerance=0.1, budget=None)
    scaled = make(arms=["a"], tolerance=10.0, bounds=(0, 100), at_least=50.0, budget=None)
    for study, unit in ((plain, 1), (scaled, 100)):
        while pull := study.ask():
            study.tell(pull, unit * (pull.number % 2))
    assert plain.verdict().issued == scaled.verdict().issued


def test_capitals_are_created_at_the_first_commit() -> None:
    study = make(arms=map(str, range(10_000)), budget=None)
    assert peek_study(study, lambda ledger: len(ledger.capitals)) == 0
    study.tell(study.ask() or 0, 1)
    assert peek_study(study, lambda ledger: len(ledger.capitals)) == 1


def test_evidence_uses_only_exact_arithmetic() -> None:
    """No power, no logarithm: a capital is the same on every machine."""
    source = Path(evidence.__file__).read_text()
    assert "import math" not in source
    assert "**" not in source.split('"""', 2)[2]
