"""Which arm comes next: against a direct transcription of the paper, against golden traces, and in batches."""

import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher
from thresher.core import policies
from thresher.core.policies import Policy
from thresher.study import peek_study

GOLDEN = Path(__file__).parent / "golden"


class Transcription:
    """Algorithms 1 to 3 of the paper: lists of rewards, and a loop over all arms.

    As printed, but for Step 1: an arm is scored from its first reward on, while others still wait for theirs.
    """

    def __init__(self, policy: Policy, arms: int, bar: float, budget: int) -> None:
        self.policy, self.bar, self.budget, self.K = policy, bar, budget, arms
        self.rewards: list[list[float]] = [[] for _ in range(arms)]
        self.pending = [0] * arms
        self.t = 0

    def next(self) -> int:
        tau, issued = self.pending, [len(x) + p for x, p in zip(self.rewards, self.pending, strict=True)]
        cold = [k for k in range(self.K) if issued[k] < self.policy.warmup]
        if cold:
            arm = min(cold, key=lambda k: (issued[k], k))
        else:
            eta = self.policy.pending_ratio or math.inf
            known = [k for k in range(self.K) if self.rewards[k] and tau[k] <= eta * len(self.rewards[k])]
            if known:
                even = (self.t + 1) % 2 == 0
                score = self.cheapest if even and self.policy.second else self.score
                arm = min(known, key=lambda k: (score(k), k))
            else:
                arm = min(range(self.K), key=lambda k: (tau[k], k))
        self.t += 1
        self.pending[arm] += 1
        return arm

    def see(self, arm: int, reward: float) -> None:
        self.pending[arm] -= 1
        self.rewards[arm].append(reward)

    def moments(self, k: int) -> tuple[float, float, float]:
        x = self.rewards[k]
        mu = math.fsum(x) / len(x)
        variance = math.fsum((y - mu) ** 2 for y in x) / len(x)
        return abs(mu - self.bar) + self.policy.slack, variance, len(x) + self.policy.pending_weight * self.pending[k]

    def score(self, k: int) -> float:
        gap, variance, e = self.moments(k)
        sigma = math.sqrt(variance)
        if self.policy.formula == "uniform":
            return e
        if self.policy.formula == "cheapest":
            return self.cheapest(k)
        if self.policy.formula == "apt":
            return math.sqrt(e) * gap
        if self.policy.formula == "lsa":
            return 1.35 * e * gap**2 + math.log(e) / 2
        if self.policy.formula == "evt_pf":
            return math.sqrt(e) * gap / (math.sqrt(variance + gap) + sigma)
        a = self.a()
        if self.policy.variant == "supplement":
            return gap / (math.sqrt(2 * variance * a / e) + 3 * a / e)
        return gap / (a / e + math.sqrt(a / e) * sigma)

    def a(self) -> float:
        if self.policy.exploration == "doubling":
            return 2.0 ** math.floor(math.log2(max(1.0, self.t / self.K)))
        return self.policy.exploration or self.budget / self.K

    def cheapest(self, k: int) -> float:
        gap, _, e = self.moments(k)
        x = self.rewards[k]
        mu = math.fsum(x) / len(x)
        s2 = (math.fsum((y - mu) ** 2 for y in x) + 0.25) / (len(x) + 1)
        return max(2 * math.log(16 * self.K / 0.05) * (s2 / gap**2 + 1 / gap), e)


ALL: dict[str, Policy] = {name: make() for name, make in policies.CONSTRUCTORS.items()} | {
    "evt-supplement": policies.evt(variant="supplement"),
    "ap-evt-half": policies.ap_evt(pending_weight=0.5),
    "evt-a-7": policies.evt(7.0),
    "apt-slack": policies.apt(slack=0.05),
    "anytime-warmup-4": policies.anytime_evt(warmup=4),
    "balanced-unbounded": policies.balanced(pending_ratio=None),
}


def study_of(policy: Policy, arms: int, budget: int, **more: Any) -> thresher.Study:
    names = [f"arm {k}" for k in range(arms)]
    question: dict[str, Any] = {"at_least": 0.6, "policy": policy, "confidence": None, "seed": 0, **more}
    return thresher.create_study("s", arms=names, budget=budget, **question)


@pytest.mark.parametrize("name", ALL)
def test_the_sequence_is_that_of_the_paper(name: str) -> None:
    rng, arms, budget = random.Random(f"sequential {name}"), 12, 400
    study, paper = study_of(ALL[name], arms, budget), Transcription(ALL[name], arms, 0.6, budget)
    means = [rng.uniform(0.45, 0.75) for _ in range(arms)]
    while pull := study.ask():
        arm = paper.next()
        assert pull.arm == f"arm {arm}"
        reward = means[arm] + rng.uniform(-0.25, 0.25)
        study.tell(pull, reward)
        paper.see(arm, reward)
    assert paper.t == budget  # exactly n pulls: the paper's loop makes n + 1


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("workers", [5, 40])
def test_the_sequence_is_that_of_the_paper_while_rewards_are_pending(name: str, workers: int) -> None:
    rng, arms, budget = random.Random(f"{workers} {name}"), 9, 350
    study, paper = study_of(ALL[name], arms, budget), Transcription(ALL[name], arms, 0.6, budget)
    under_way: list[thresher.Pull] = []
    while True:
        pull = study.ask() if len(under_way) < workers else None
        if pull:
            assert pull.arm == f"arm {paper.next()}"
            under_way.append(pull)
        elif under_way:
            back = under_way.pop(rng.randrange(len(under_way)))
            reward = rng.random()
            study.tell(back, reward)
            paper.see(int(back.arm[4:]), reward)
        else:
            break
    assert paper.t == budget


@pytest.mark.parametrize("name", sorted(set(ALL) - {"balanced"}))  # it also pulls that arm where all others wait
def test_an_arm_that_hangs_takes_no_more_than_its_warm_up(name: str) -> None:
    study, hung = study_of(ALL[name], 8, 200), 0
    while pull := study.ask():
        if pull.arm == "arm 3":
            hung += 1
        else:
            study.tell(pull, 0.5)
    assert hung == ALL[name].warmup


# -- golden traces ------------------------------------------------------------------------------------------------


def trace(policy: Policy) -> list[int]:
    """A few hundred decisions with our own random rewards, up to eight pending, back in a scrambled order."""
    word = 12345

    def draw() -> int:
        nonlocal word
        word = (word * 1103515245 + 12345) % 2**31
        return word >> 8

    study = study_of(policy, 10, 400)
    under_way: list[thresher.Pull] = []
    arms: list[int] = []
    while len(arms) < 400 or under_way:
        if len(under_way) < 8 and (pull := study.ask()):
            arms.append(int(pull.arm[4:]))
            under_way.append(pull)
        else:
            back = under_way.pop(draw() % len(under_way))
            study.tell(back, (draw() % 1000 + 50 * int(back.arm[4:])) / 1500)
    return arms


@pytest.mark.parametrize("name", ALL)
def test_decisions_are_what_they_always_were(name: str) -> None:
    """The traces are in the repository; tests/core/golden/README.md says how and when to write a new one."""
    assert trace(ALL[name]) == [int(word) for word in (GOLDEN / f"{name}.txt").read_text().split()]


# -- batches ------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(ALL)), st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(0, 2**32))
def test_asking_for_many_is_asking_often(name: str, sizes: list[int], seed: int) -> None:
    one, many = (study_of(ALL[name], 5, 90) for _ in range(2))  # 90 pulls of 5 arms cross four doublings
    rng = random.Random(seed)
    for size in sizes:
        single = [pull for _ in range(size) if (pull := one.ask())]
        assert [pull[:-1] for pull in many.ask_many(size)] == [pull[:-1] for pull in single]  # all but the tags
        for pull in rng.sample(single, len(single) * 2 // 3):
            reward = rng.random()
            one.tell(pull, reward)
            many.tell(pull.id, reward)
    assert peek_study(one, lambda ledger: ledger.state()) == peek_study(many, lambda ledger: ledger.state())


def test_scaling_the_rewards_changes_no_decision() -> None:
    plain = study_of(policies.anytime_evt(), 6, 300)
    names = [f"arm {k}" for k in range(6)]
    question: dict[str, Any] = {"budget": 300, "policy": "anytime-evt", "confidence": None, "seed": 0}
    scaled = thresher.create_study("s", arms=names, at_least=4 * 0.6 - 2, bounds=(-2, 2), **question)
    rng = random.Random(3)
    while pull := plain.ask():
        assert (scaled.ask() or ())[:-1] == pull[:-1], "all but the tag"
        reward = rng.randrange(0, 2**20) / 2**20  # scaled without rounding
        plain.tell(pull, reward)
        scaled.tell(pull.id, 4 * reward - 2)
    assert plain.verdict().reached == scaled.verdict().reached


def test_a_larger_budget_changes_the_exploration_of_evt_at_once() -> None:
    study = study_of(policies.evt(), 4, 100)
    assert peek_study(study, lambda ledger: ledger.rule.exploration) == 25
    study.extend(budget=400)
    assert peek_study(study, lambda ledger: ledger.rule.exploration) == 100


def test_many_arms_are_taken_in_turn() -> None:
    study = thresher.create_study("big", arms=map(str, range(50_000)), at_least=0.5, budget=100_000, confidence=None)
    assert [pull.arm for pull in study.ask_many(3)] == ["0", "1", "2"]
