"""Scores of one's own: as fast as EVT with the same arithmetic, and the same arms live and compiled."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from thresher.core import policies
from thresher.core.policies import Policy, custom, evt
from thresher.lab import Setup, simulate, trace

from .engine import ask_and_tell
from .report import Figure, fastest

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import rewritten
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lab_replay import decides_alike, live
from scores_of_chance import FAMILIES, expressions, scored

FUNCTIONS = 40  # drawn at random; the tests take two


def compiled(policy: Policy, delay: str) -> Callable[[], float]:
    """Seconds per pull, inside the compiled loops only."""
    setup = Setup(policy=policy, budget=20_000, checkpoints=(20_000,), delay=delay)
    simulate(setup, repetitions=1, threads=1)  # compiles
    return lambda: 1.0 / simulate(setup, repetitions=100, threads=1).pulls_per_second


def differing() -> int:
    """How many of FUNCTIONS choose another arm live than compiled."""
    wrong = []

    @settings(max_examples=FUNCTIONS, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(expressions(), st.sampled_from(FAMILIES), st.integers(0, 999))
    def compare(text: str, family: str, seed: int) -> None:
        setup = Setup(policy=custom(scored(text)), family=family, arms=7, budget=200, spreads=0.15)
        try:
            live(setup, trace(setup, seed=seed))
        except AssertionError:
            wrong.append(text)

    compare()
    return len(wrong)


def rewritten_otherwise() -> int:
    """How many of thresher's own policies choose otherwise when they are written again as a score and compiled."""
    wrong = 0
    for name in ("evt-supplement", *policies.CONSTRUCTORS):
        for delay in ("none", "random:12"):
            try:
                decides_alike(name, delay)
            except AssertionError:
                wrong += 1
    return wrong


def figures() -> Iterator[Figure]:
    again = custom(rewritten.evt_again, pending_weight=0.0)
    for delay, words in (("none", "rewards at once"), ("fifo:100", "100 pulls pending")):
        own, mine = fastest(compiled(evt(), delay), compiled(again, delay), turns=9)
        yield Figure(f"scores: compiled EVT, {words}", 1e9 * own, "ns a pull")
        yield Figure(f"scores: the same as a score of one's own, {words}", mine / own, "× EVT", 1.1, at_most=True)
    own, mine = fastest(ask_and_tell(100, 5000, policy=evt()), ask_and_tell(100, 5000, policy=again))
    yield Figure("scores: ask and tell of a live study with EVT", 1e6 * own, "µs")
    yield Figure("scores: the same with a score of one's own", mine / own, "× EVT", 1.5, at_most=True)
    title = f"scores: of {FUNCTIONS} functions, those that choose otherwise compiled"
    yield Figure(title, float(differing()), "functions", 0.0, at_most=True)
    title = "scores: policies written again, at once and delayed, that choose otherwise"
    yield Figure(title, float(rewritten_otherwise()), "of 22", 0.0, at_most=True)
