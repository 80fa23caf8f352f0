"""Compares policies, family by family: all of them meet the same arms and the same rewards."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.policies import Policy
from ..core.policies import policy as make_policy
from ..errors import UNSAID, InvalidInput
from .families import Reals
from .parallel_compile import compile_in_parallel
from .result import Measure, Result, number_in_result, standard_error_of_result
from .setup import Setup
from .simulator import checked_simulation, simulate, simulated_kind

FAMILIES = ("uniform", "bernoulli", "beta", "normal", "clipped")
BOUNDED = ("bernoulli", "beta", "clipped")  # families that can have certificates, whatever the means


@dataclass(frozen=True)
class Difference:
    """A measure of one policy minus that of the first, at each checkpoint, with its standard error."""

    mean: Reals
    error: Reals


@dataclass(frozen=True)
class Comparison:
    """Several policies on the same family of arms. All are compared with the first."""

    family: str
    results: dict[str, Result]  # by policy

    @property
    def first(self) -> Result:
        return next(iter(self.results.values()))

    @property
    def pulls(self) -> Sequence[int]:
        return self.first.setup.checkpoints

    @property
    def measures(self) -> list[Measure]:
        """What is compared."""
        setup = self.first.setup
        measures: list[Measure] = ["accuracy", "success"]
        measures += ["accuracy_within", "success_within"] if setup.within else []
        return [*measures, *(["settled"] if setup.certifies else [])]  # type: ignore[list-item]

    def difference(self, policy: str, measure: Measure) -> Difference:
        """How much better a policy is than the first; the error is that of paired repetitions."""
        apart = self.results[policy].by_repetition(measure) - self.first.by_repetition(measure)
        return Difference(apart.mean(axis=0), standard_error_of_result(apart))

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row for each policy and checkpoint."""
        measures = self.measures
        for policy, result in self.results.items():
            apart = {measure: self.difference(policy, measure) for measure in measures}
            for index, pulls in enumerate(self.pulls):
                row: dict[str, Any] = {"family": self.family, "policy": policy, "pulls": pulls}
                own_row = result.rows()[index]
                for measure in measures:
                    row |= {measure: own_row[measure], f"{measure}_se": own_row[f"{measure}_se"]}
                    row[f"{measure}_difference"] = number_in_result(apart[measure].mean[index])
                    row[f"{measure}_difference_se"] = number_in_result(apart[measure].error[index])
                yield row


def compare(
    policies: Sequence[Policy | str],
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

    >>> [comparison] = compare(["evt", "uniform"], kinds=["uniform"], arms=4, means=0.9, budget=40, repetitions=3)
    >>> [float(value) for value in comparison.difference("uniform", "accuracy").mean][-1]
    0.0
    """
    setups = prepared_comparison(policies, kinds=kinds, repetitions=repetitions, seed=seed, threads=threads, **settings)
    played: dict[str, Any] = {"repetitions": repetitions, "seed": seed, "threads": threads, "progress": progress}
    return [
        Comparison(family, {name: simulate(setup, **played) for name, setup in by_policy.items()})
        for family, by_policy in setups.items()
    ]


def prepared_comparison(
    policies: Sequence[Policy | str],
    *,
    kinds: Sequence[str] | None,
    repetitions: int,
    seed: int,
    threads: int | None = None,
    shows: bool = False,
    **settings: Any,
) -> dict[str, dict[str, Setup]]:
    """The setups by family and policy, checked and compiled; ``shows`` draws a progress bar on a terminal."""
    checked_simulation(repetitions, seed, threads)  # before anything is compiled
    certifies = settings.get("confidence") is not None
    chosen = compared_policies(policies, certificates=certifies)
    if not certifies and "within" not in settings:  # the same for all
        least, most = settings.get("bounds") or (0.0, 1.0)
        settings["within"] = (most - least) * max(policy.slack for policy in chosen.values())
    setups = {
        family: {name: Setup(**settings, policy=policy, family=family, common=True) for name, policy in chosen.items()}
        for family in dict.fromkeys(kinds or compared_families(settings.get("confidence")))
    }
    compile_in_parallel(
        [simulated_kind(setup) for by_policy in setups.values() for setup in by_policy.values()], shows=shows
    )
    return setups


def compared_families(confidence: float | None) -> Sequence[str]:
    """The families to compare on by default."""
    return FAMILIES if confidence is None else BOUNDED


def compared_policies(policies: Sequence[Policy | str], *, certificates: bool = False) -> dict[str, Policy]:
    """The policies by their names, at least two.

    >>> list(compared_policies(["evt", "uniform"]))
    ['evt', 'uniform']
    """
    by_name = labelled(policies, certificates=certificates)
    if len(by_name) < 2:
        only = next(iter(by_name), UNSAID)
        remedy = "give one more" if by_name else "give two, for example evt and uniform"
        raise InvalidInput("policy", only, "there must be at least two to compare", remedy)
    return by_name


def labelled(policies: Sequence[Policy | str], *, certificates: bool = False) -> dict[str, Policy]:
    """The policies by their names in tables and figures."""
    by_name: dict[str, Policy] = {}
    for name in policies:
        policy = make_policy(name, certificates=certificates)
        if policy.label in by_name:
            raise InvalidInput("policy", policy.label, "is given twice", "give different policies")
        by_name[policy.label] = policy
    return by_name
