"""Compiled loops and the same functions run by Python give the same numbers, to the bit."""

import interpreted
import numpy as np
import pytest

from thresher.lab import Setup, compiler, simulate
from thresher.lab.simulator import instances

CERTAIN = Setup(family="bernoulli", arms=6, means=(0.5, 1.0), at_least=0.8, budget=500, confidence=0.95)
ROUGH = {"delay": "workers:9:failures:5", "lost": (0.2, 0.1), "hung": 0.01}
SETUPS = {  # of loops that other tests use too
    "evt": Setup(policy="evt", arms=9, budget=500),
    "evt, delayed": Setup(policy="evt", arms=9, budget=500, delay="random:12"),
    "common draws": Setup(policy="anytime-evt", arms=9, budget=500, common=True, delay="workers:5:exponential"),
    "certificates": CERTAIN,
    "certificates, delayed": CERTAIN.but(**ROUGH),
    "cases": CERTAIN.but(cases=60, budget=360),
    "cases, delayed": CERTAIN.but(cases=60, **ROUGH),
    "rate, delayed": CERTAIN.but(guarantee="rate", **ROUGH),
    "at most, delayed": CERTAIN.but(family="uniform", means=(0.3, 0.7), spreads=0.2, at_most=0.5, **ROUGH),
    "search": CERTAIN.but(policy=None, find=2, **ROUGH),
}


@pytest.mark.parametrize("name", SETUPS)
def test_a_compiled_loop_is_the_interpreted_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = simulate(SETUPS[name], repetitions=4, seed=6).measures
    monkeypatch.setattr(compiler, "compiled_loop", interpreted.loop)
    plain = simulate(SETUPS[name], repetitions=4, seed=6).measures
    for column, own, expected in zip(compiled._fields, plain, compiled, strict=True):
        assert np.array_equal(own, expected), column


@pytest.mark.parametrize("family", ["uniform", "bernoulli"])
def test_instances_are_the_same(family: str) -> None:
    drawn = []
    for drawer in (compiler.compiled_instance_drawer(), interpreted.drawer()):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compiler, "compiled_instance_drawer", lambda drawer=drawer: drawer)
            drawn.append(instances(Setup(family=family, arms=7, budget=20), repetitions=3))
    assert np.array_equal(drawn[0], drawn[1])
