"""A live study that gets the simulator's rewards, in the same order, asks for the same arms and has the same bits."""

import pytest

import thresher
from thresher.core import policies
from thresher.core.ledger import fold
from thresher.lab import Setup, trace

POLICIES = {
    "uniform": policies.uniform(),
    "apt": policies.apt(),
    "evt": policies.evt(),
    "evt supplement": policies.evt(variant="supplement"),
    "ap-evt": policies.ap_evt(),
    "evt-pf": policies.evt_pf(),
    "lsa": policies.lsa(),
    "anytime-evt": policies.anytime_evt(),
    "balanced": policies.balanced(),
}


DELAYED = [(name, delay) for name in POLICIES for delay in ("fifo:7", "workers:6:exponential")]
AT_ONCE = [(name, "none") for name in POLICIES]
INTERPRETED = ("evt supplement", "lsa")  # at once; `test_interpreted.py` compares that with compiled loops


@pytest.mark.parametrize(("name", "delay"), DELAYED + AT_ONCE)
def test_a_live_study_and_the_simulator_agree(name: str, delay: str, request: pytest.FixtureRequest) -> None:
    if delay == "none" and name in INTERPRETED:
        request.getfixturevalue("interpreted")
    setup = Setup(policy=POLICIES[name], arms=11, budget=300, delay=delay, means=(0.6, 0.8), spreads=(0.05, 0.2))
    played = trace(setup, seed=4)
    study = thresher.create_study(
        "mirror",
        arms=[f"arm {number}" for number in range(11)],
        at_least=0.7,
        budget=300,
        policy=POLICIES[name],
        confidence=None,
    )
    pulls = {}
    for pull, arm, reward in zip(played.pull, played.arm, played.reward, strict=True):
        if pull > 0:
            asked = study.ask()
            assert asked is not None
            assert (asked.id, asked.arm) == (pull, f"arm {arm}")
            pulls[pull] = asked
        else:
            study.tell(pulls[-pull], reward)
    ledger = fold(study.events())
    ledger.score_stale()
    for column in ("seen", "pending", "mean", "scatter", "total", "residue", "best", "winner"):
        assert list(getattr(played.board, column)) == list(getattr(ledger.board, column)), column
