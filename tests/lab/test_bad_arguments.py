"""What the laboratory refuses, in one line, before it compiles anything; and labels that rounding must not change."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from draws import drawn

from thresher.errors import InvalidInput
from thresher.lab import Delay, Setup, compiler, simulate, trace
from thresher.lab.planning import plan
from thresher.lab.recorded import Recorded
from thresher.lab.simulator import instances

SMALL = Setup(policy="uniform", arms=2, budget=8)
pytestmark = pytest.mark.usefixtures("interpreted")
BAD: dict[str, Callable[[], Any]] = {
    "repetition -1": lambda: trace(SMALL, repetition=-1),
    "seed -1": lambda: trace(SMALL, seed=-1),
    "seed 'x'": lambda: instances(SMALL, repetitions=1, seed="x"),  # type: ignore[arg-type]
    "repetitions 0": lambda: instances(SMALL, repetitions=0),
    "setup None": lambda: simulate(None),  # type: ignore[arg-type]
    "budget 1000000000000": lambda: trace(SMALL.but(budget=10**12)),
    "threads 0": lambda: plan(SMALL, threads=0),
    "at_least 'high'": lambda: Setup(at_least="high"),  # type: ignore[arg-type]
    "at_least nan": lambda: Setup(at_least=math.nan),
    "bounds (0,)": lambda: Setup(bounds=(0,)),  # type: ignore[arg-type]
    "means 'many'": lambda: Setup(means="many"),  # type: ignore[arg-type]
    "mean -0.1": lambda: Setup(means=(-0.1, 0.5)),
    "checkpoint 1.5": lambda: Setup(checkpoints=(1.5,)),  # type: ignore[arg-type]
    "checkpoints 5": lambda: Setup(checkpoints=5),  # type: ignore[arg-type]
    "delay 5": lambda: Setup(delay=5),  # type: ignore[arg-type]
    "delay 'Delay(model=9": lambda: Setup(delay=Delay(model=9)),
    "recorded 3": lambda: Setup(family="recorded", recorded=3),  # type: ignore[arg-type]
    "recorded arm 'a'": lambda: Recorded(("a",), ((),)),
    "arm 'a', reward nan": lambda: Recorded(("a",), ((math.nan,),)),
}


@pytest.mark.parametrize("begins", BAD)
def test_a_bad_argument_is_named_and_nothing_is_compiled(begins: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "compiled_loop", None)
    with pytest.raises(InvalidInput) as caught:
        BAD[begins]()
    assert str(caught.value).startswith(begins)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("means", "spread", "says"),
    [
        ((0.1, 0.9), 0.35, "spread 0.35: a Beta arm of mean 0.1 has a standard deviation above 0 and below 0.3;"),
        ([0.5, 0.01], 0.2, "spread 0.2: a Beta arm of mean 0.01 has"),
        (0.5, 0.5, "spread 0.5: a Beta arm of mean 0.5 has a standard deviation above 0 and below 0.5;"),
        (0.5, 0.0, "the family constant"),
        ((0.0, 0.5), 0.1, "a Beta arm of mean 0 has"),
    ],
)
def test_an_impossible_beta_arm_is_refused(means: Any, spread: float, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Setup(family="beta", arms=2, means=means, spreads=spread, at_least=0.5)
    assert says in str(caught.value)


@pytest.mark.parametrize("spread", [0.2, 0.45, 0.4575, 0.4582])  # the widest possible: √.21 = .45826
def test_wide_beta_arms_have_the_mean_and_spread_that_they_should(spread: float) -> None:
    pulls = 40_000
    setup = Setup(policy="uniform", family="beta", arms=1, means=0.7, spreads=spread, at_least=0.5, budget=pulls)
    rewards, _, _ = drawn(setup, pulls)
    assert rewards.mean() == pytest.approx(0.7, abs=6.0 * spread / math.sqrt(pulls))
    assert rewards.std() == pytest.approx(spread, abs=0.01)
    assert ((rewards >= 0.0) & (rewards <= 1.0)).all()


@pytest.mark.parametrize(("reward", "count"), [(0.7, 10), (0.1, 3), (1 / 49, 49)])
def test_a_recorded_arm_whose_rewards_are_all_on_the_bar_is_above(reward: float, count: int) -> None:
    data = Recorded(("on", "under"), ((reward,) * count, (reward,) * (count - 1) + (reward / 2,)))
    setup = Setup(policy="uniform", family="recorded", recorded=data, at_least=reward, budget=4 * count)
    [(means, spreads)] = instances(setup, repetitions=1)
    assert means[0] == reward
    assert means[1] < reward
    assert spreads[0] == 0.0
    assert simulate(setup, repetitions=5).measures.wrong[:, -1].max() <= 1  # only the second can be missed


def test_a_mean_on_the_bar_is_above_whatever_the_spread() -> None:
    spreads = [0.01 * index for index in range(1, 21)]
    for family in ("uniform", "beta", "normal", "bernoulli"):
        setup = Setup("uniform", family, arms=20, means=0.7, spreads=spreads, at_least=0.7, budget=40)
        assert set(instances(setup, repetitions=1)[0][0]) == {0.7}
