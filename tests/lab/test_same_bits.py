"""The compiled engine is the plain one: fed the same rewards in the same order, both hold the same bits."""

import pytest

from thresher.core import kernel, policies
from thresher.lab import Setup, trace
from thresher.lab.simulator import rules

POLICIES = {
    "uniform": policies.uniform(),
    "apt": policies.apt(slack=0.01),
    "evt": policies.evt(),
    "evt supplement": policies.evt(variant="supplement"),
    "ap-evt": policies.ap_evt(warmup=3),
    "ap-evt half": policies.ap_evt(5.0, pending_weight=0.5),
    "evt-pf": policies.evt_pf(),
    "ap-evt-pf": policies.ap_evt_pf(),
    "lsa": policies.lsa(),
    "anytime-evt": policies.anytime_evt(),
    "balanced": policies.balanced(),
}
DELAYS = ("none", "fifo:7", "random:12", "batch:5", "workers:6:failures:5", "workers:4:lognormal:0.5")


def plain_board(arms: int) -> kernel.Board:
    leaves = 1 << (arms - 1).bit_length()
    zeros, nothing = [0.0] * arms, [0] * arms
    columns = (nothing[:], nothing[:], zeros[:], zeros[:], zeros[:], zeros[:], nothing[:])
    return kernel.Board(*columns, [0.0] * (2 * leaves), [0] * (2 * leaves))


class Plain:
    """The kernel driven by hand in plain Python, as a live study's fold drives it."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.issued = setup, 0
        self.board = plain_board(setup.arms)
        self.second = self.board._replace(best=self.board.best[:], winner=self.board.winner[:])
        self.rule, self.second_rule = rules(setup)
        self.rescore_all()

    def rescore_all(self) -> None:
        kernel.rescore_all(self.board, self.rule)
        kernel.rescore_all(self.second, self.second_rule)

    def rescore(self, arm: int) -> None:
        kernel.rescore_both(self.board, self.board, arm, self.rule._replace(alternates=False), self.rule)
        kernel.rescore_both(
            self.second, self.second, arm, self.second_rule._replace(alternates=False), self.second_rule
        )

    def choose(self) -> int:
        rule = self.rule._replace(alternates=self.setup.rules.second is not None)
        return kernel.choose_for(self.board, self.second, rule, self.issued + 1)

    def asked(self, arm: int) -> None:
        self.issued += 1
        self.board.pending[arm] += 1
        if self.setup.rules.exploration == "doubling":
            self.rule = self.rule._replace(
                exploration=kernel.doubled(self.rule.exploration, self.issued, self.setup.arms)
            )
            self.rescore_all()
        self.rescore(arm)

    def told(self, arm: int, reward: float) -> None:
        low, high = self.setup.bounds
        self.board.pending[arm] -= 1
        kernel.observe(self.board, arm, (reward - low) / (high - low), reward)
        self.rescore(arm)


def replay(setup: Setup, seed: int = 3) -> None:
    played, plain = trace(setup, repetition=2, seed=seed), Plain(setup)
    for pull, arm, reward in zip(played.pull, played.arm, played.reward, strict=True):
        if pull > 0:
            assert plain.choose() == arm, f"pull {pull}"
            plain.asked(arm)
        else:
            plain.told(arm, reward)
    for name in ("seen", "pending", "mean", "scatter", "total", "residue"):
        assert getattr(played.board, name).tolist() == getattr(plain.board, name), name  # equal to the bit
    assert list(played.board.best) == plain.board.best
    assert list(played.board.winner) == plain.board.winner


DELAYED = [(name, True) for name in POLICIES]
AT_ONCE = [(name, False) for name in POLICIES if name not in ("evt supplement", "lsa")]  # the other loop


@pytest.mark.parametrize(("name", "delayed"), DELAYED + AT_ONCE)
def test_compiled_and_plain_engine_hold_the_same_bits(name: str, delayed: bool) -> None:
    for delay in DELAYS[1:] if delayed else DELAYS[:1]:
        replay(Setup(policy=POLICIES[name], arms=13, budget=600, delay=delay))


def test_other_bounds_are_scaled_as_a_live_study_scales_them() -> None:
    setup = Setup(
        policy="anytime-evt",
        arms=9,
        budget=300,
        bounds=(-3.0, 11.0),
        at_least=2.5,
        means=(0.0, 6.0),
        spreads=(0.5, 2.0),
    )
    replay(setup)
    replay(setup.but(delay="fifo:3"))


def test_a_trace_has_every_pull_asked_and_told_once() -> None:
    played = trace(Setup(policy="evt", arms=5, budget=100, delay="random:9"))
    assert sorted(played.pull) == [*range(-100, 0), *range(1, 101)]
    waiting = [sum(1 if pull > 0 else -1 for pull in played.pull[: index + 1]) for index in range(200)]
    assert max(waiting) == 10
    assert min(waiting) == 0
