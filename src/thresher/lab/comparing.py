"""Comparing policies: the same instances and the same rewards for all of them, family by family."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..core import policies
from ..core.policies import Policy
from ..errors import UNSAID, InvalidInput
from .families import Reals
from .parallel_compile import compile_together
from .result import Measure, Result, known, standard_error
from .setup import Setup
from .simulator import checked, kind, simulate

FAMILIES = ("uniform", "bernoulli", "beta", "normal", "clipped")
BOUNDED = ("bernoulli", "beta", "clipped")  # those that certificates can be made for, whatever the means


@dataclass(frozen=True)
class Difference:
    """A measure of one policy minus that of the first, at each checkpoint, with its standard error."""

    mean: Reals
    error: Reals


@dataclass(frozen=True)
class Comparison:
    """Several policies on one family. The first is the one that the others are compared with."""

    family: str
    results: dict[str, Result]  # by policy

    @property
    def first(self) -> Result:
        return next(iter(self.results.values()))

    @property
    def pulls(self) -> Sequence[int]:
        return self.first.setup.checkpoints

    def difference(self, policy: str, measure: Measure) -> Difference:
        """How much better a policy is than the first; the error is that of paired repetitions."""
        apart = self.results[policy].each(measure) - self.first.each(measure)
        return Difference(apart.mean(axis=0), standard_error(apart))

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row for each policy and checkpoint."""
        measures: list[Measure] = ["accuracy", "success"]
        if self.first.setup.certifies:
            measures.append("settled")
        for policy, result in self.results.items():
            apart = {measure: self.difference(policy, measure) for measure in measures}
            for index, pulls in enumerate(self.pulls):
                row: dict[str, Any] = {"family": self.family, "policy": policy, "pulls": pulls}
                found = result.rows()[index]
                for measure in measures:
                    row |= {measure: found[measure], f"{measure}_se": found[f"{measure}_se"]}
                    row[f"{measure}_difference"] = known(apart[measure].mean[index])
                    row[f"{measure}_difference_se"] = known(apart[measure].error[index])
                yield row


def compare(
    given: Sequence[Policy | str],
    *,
    kinds: Sequence[str] | None = None,
    repetitions: int = 1000,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
    **settings: Any,
) -> list[Comparison]:
    """Play every policy on every family of arms, with common random numbers.

    In each repetition all policies meet the same arms, and the n-th pull of an arm gives the same reward: differences
    between policies are then known far better than the policies' own figures. ``settings`` are those of `Setup`. The
    default families are all FAMILIES; with a confidence, the BOUNDED ones.

    >>> found = compare(["evt", "uniform"], kinds=["uniform"], arms=4, means=0.9, budget=40, repetitions=3)
    >>> [float(value) for value in found[0].difference("uniform", "accuracy").mean][-1]
    0.0
    """
    setups = prepared(given, kinds=kinds, repetitions=repetitions, seed=seed, threads=threads, **settings)
    return [
        Comparison(
            kind,
            {
                name: simulate(setup, repetitions=repetitions, seed=seed, threads=threads, progress=progress)
                for name, setup in one.items()
            },
        )
        for kind, one in setups.items()
    ]


def prepared(
    given: Sequence[Policy | str],
    *,
    kinds: Sequence[str] | None,
    repetitions: int,
    seed: int,
    threads: int | None = None,
    shows: bool = False,
    **settings: Any,
) -> dict[str, dict[str, Setup]]:
    """The setups by family and policy, checked and compiled; ``shows`` draws a progress bar on a terminal."""
    checked(repetitions, seed, threads)  # before anything is compiled
    chosen = named(given, certificates=settings.get("confidence") is not None)
    setups = {
        family: {name: Setup(**settings, policy=policy, family=family, common=True) for name, policy in chosen.items()}
        for family in dict.fromkeys(kinds or families(settings.get("confidence")))
    }
    compile_together([kind(setup) for one in setups.values() for setup in one.values()], shows=shows)
    return setups


def families(confidence: float | None) -> Sequence[str]:
    """The families to compare on, unless others are asked for."""
    return FAMILIES if confidence is None else BOUNDED


def named(given: Sequence[Policy | str], *, certificates: bool = False) -> dict[str, Policy]:
    """The policies by their names, at least two.

    >>> list(named(["evt", "uniform"]))
    ['evt', 'uniform']
    """
    found = labelled(given, certificates=certificates)
    if len(found) < 2:
        only = next(iter(found), UNSAID)
        remedy = "give one more" if found else "give two, for example evt and uniform"
        raise InvalidInput("policy", only, "there must be at least two to compare", remedy)
    return found


def labelled(given: Sequence[Policy | str], *, certificates: bool = False) -> dict[str, Policy]:
    """The policies by their names in tables and figures."""
    found: dict[str, Policy] = {}
    for each in given:
        policy = policies.policy(each, certificates=certificates)
        if policy.label in found:
            raise InvalidInput("policy", policy.label, "is given twice", "give different policies")
        found[policy.label] = policy
    return found
