"""A live study that is told what the laboratory drew, and the comparison of the two, bit for bit."""

import math

import rewritten

import thresher
from thresher.core import policies
from thresher.core.state import State
from thresher.lab import Setup, trace
from thresher.lab.simulator import Played


def create(setup: Setup, *, seed: int = 0) -> thresher.Study:
    """A study with the question of a setup."""
    names = [f"arm {number}" for number in range(setup.arms)]
    return thresher.create_study(
        f"{setup.cases} cases" if setup.cases else "no cases",
        arms=names,
        at_least=setup.at_least,
        at_most=setup.at_most,
        lower_is_better=setup.lower_is_better,
        share=setup.share,
        baseline=None if setup.baseline is None else names[setup.baseline],
        margin=setup.margin,
        ratio=setup.ratio,
        bounds=setup.bounds,
        budget=setup.budget,
        policy=setup.policy,
        confidence=setup.confidence,
        tolerance=setup.tolerance,
        failure=setup.failure,
        cases=setup.cases or None,
        guarantee=setup.guarantee,
        find=setup.find,
        seed=seed,
    )


def live(setup: Setup, played: Played) -> thresher.Study:
    """A study that asked for the same arms and was told the same, in the same order."""
    study = create(setup, seed=played.order)
    pulls: dict[int, thresher.Pull] = {}
    pairs = setup.baseline is not None and not setup.cases
    for pull, arm, reward, other in zip(played.pull, played.arm, played.reward, played.other, strict=True):
        if pull > 0:
            asked = study.ask()
            assert asked is not None, f"pull {pull}"
            assert (asked.id, asked.arm) == (pull, f"arm {arm}")
            pulls[pull] = asked
        elif math.isnan(reward):
            study.drop(pulls[-pull], cause="lost")
        else:
            study.tell(pulls[-pull], (reward, other) if pairs else reward)
    assert not study.done or study.ask() is None  # it goes on only where every worker hangs
    return study


def compare(ledger: State, played: Played) -> None:
    """Both hold the same bits."""
    ledger.score_stale()
    board, proof = played.board, played.proof
    for name in ("seen", "pending", "mean", "scatter", "total", "residue", "shut", "best", "winner"):
        assert list(getattr(board, name)) == list(getattr(ledger.board, name)), name
    for name in ("waiting", "committed", "charged", "settled"):
        assert list(getattr(proof.docket, name)) == list(getattr(ledger.docket, name)), name
    for arm, capital in ledger.capitals.items():
        assert list(proof.capitals[arm]) == list(capital)
    for name in ("least", "most", "lowest"):
        assert list(getattr(proof.sheet, name)) == list(getattr(ledger.sheet, name)), name
    for name in ("rank", "reached"):
        assert list(getattr(proof.ranking, name)) == list(getattr(ledger.ranking, name)), name


def decides_alike(name: str, delay: str) -> None:
    """Replay a policy that was written again, compiled, in a live study with thresher's own."""
    own = policies.evt(variant="supplement") if name == "evt-supplement" else policies.CONSTRUCTORS[name]()
    setup = Setup(policy=own, arms=13, budget=400, spreads=0.15, delay=delay)
    live(setup, trace(setup.but(policy=rewritten.rewritten(13)[name]), seed=5))
