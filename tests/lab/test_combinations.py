"""Every combination of what a study can ask: it works, live and simulated, or is refused in one line."""

import random
from itertools import product
from typing import Any, NamedTuple

import pytest
from lab_replay import compare, live

import thresher
from thresher.core.question import Measure, reward_for_question
from thresher.errors import InvalidInput
from thresher.lab import Setup, trace
from thresher.study import peek_study

# the first arm is the baseline, where there is one; the last one is noisy, by this much, and the others are not
MEANS = (0.5, 0.9, 0.1, 0.55, 0.5)
NOISE = 0.3
PULLS, CASES = 160, 24
pytestmark = pytest.mark.usefixtures("interpreted")


class Combination(NamedTuple):
    """What is asked."""

    lower: bool
    share: float | None
    cases: int
    against: str | None  # a baseline, with a margin or a ratio
    guarantee: Any
    find: int | None
    tolerance: float
    bounds: tuple[float, float] | None

    @property
    def refused(self) -> bool:
        """Whether a study refuses it."""
        counts = self.share is not None or self.against == "ratio"  # rewards count as 0 or 1
        return (counts and self.bounds == (0.0, 2.0)) or (not counts and self.bounds is None) or self.never_found

    @property
    def never_found(self) -> bool:
        """Whether the guarantee and the search contradict each other."""
        return self.find is not None and self.guarantee == "rate"

    @property
    def not_simulated(self) -> bool:
        """Whether the laboratory refuses it too: it needs the true share of pairs."""
        paired_share = self.against == "ratio" or (self.against is not None and self.share is not None)
        return self.refused or (paired_share and not self.cases)

    @property
    def asks(self) -> dict[str, Any]:
        """The arguments that a study and a setup have in common."""
        asks: dict[str, Any] = {"share": self.share, "tolerance": self.tolerance, "find": self.find}
        asks |= {"guarantee": self.guarantee, "bounds": self.bounds, "budget": PULLS, "policy": "uniform"}
        if self.against is None:
            return asks
        return {**asks, self.against: 0.1 if self.against == "margin" else 1.0}


COMBINATIONS = [
    Combination(*chosen)
    for chosen in product(
        (False, True),
        (None, 0.7),
        (0, CASES),
        (None, "margin", "ratio"),
        ("all", "rate"),
        (None, 2),
        (0.0, 0.05),
        ((0.0, 1.0), (0.0, 2.0), None),
    )
]


def bar_of(asked: Combination, baseline: object) -> dict[str, Any]:
    """What arms are compared with."""
    if asked.against is None:
        return {"at_most" if asked.lower else "at_least": 0.52}
    return {"baseline": baseline, "lower_is_better": asked.lower}


def study_of(asked: Combination) -> thresher.Study:
    """A study that asks this."""
    names = [f"arm {number}" for number in range(len(MEANS))]
    bar = bar_of(asked, "arm 0")
    return thresher.create_study("any", arms=names, cases=asked.cases or None, seed=3, **bar, **asked.asks)


def setup_of(asked: Combination) -> Setup:
    """A setup of the laboratory that asks this."""
    return Setup(
        arms=len(MEANS),
        means=list(MEANS),
        spreads=[0.0] * (len(MEANS) - 1) + [NOISE],
        cases=asked.cases,
        confidence=0.95,
        **bar_of(asked, 0),
        **asked.asks,
    )


def check_one_line(error: InvalidInput) -> None:
    """A refusal names a value, a rule and a remedy, in one line."""
    text = str(error)
    assert "\n" not in text
    assert len(text) < 240
    named, _, rest = text.partition(": ")
    assert named
    rule, _, remedy = rest.partition("; ")
    assert rule, text
    assert remedy, text


def told(study: thresher.Study, asked: Combination) -> None:
    """Ask and tell until the study is done."""
    draw = random.Random(1)

    def reward(arm: str) -> float:
        number = int(arm.removeprefix("arm "))
        return MEANS[number] + (NOISE * (2.0 * draw.random() - 1.0) if number == len(MEANS) - 1 else 0.0)

    while (pull := study.ask()) is not None:
        mine = reward(pull.arm)
        study.tell(pull, (mine, reward(pull.baseline)) if pull.baseline is not None else mine)


def check_labels(study: thresher.Study, asked: Combination) -> None:
    """Rows agree with their numbers, and certified labels with the truth about the arms without noise."""
    verdict, bar = study.verdict(), study.verdict().wording.bar
    measure: Measure = peek_study(study, lambda ledger: ledger.spec.measure)
    counted_bar: float = peek_study(study, lambda ledger: ledger.spec.bar)
    for row in verdict:
        if row.reached is None:
            continue
        assert row.estimate is not None
        if not row.certified:
            upward = not asked.lower or row.share is not None
            assert row.reached == (row.estimate >= bar if upward else row.estimate <= bar), row
    for row in verdict:
        number = int(row.arm.removeprefix("arm "))
        if row.certified and number != len(MEANS) - 1:
            truth = reward_for_question(measure, MEANS[number], MEANS[0])
            if abs(truth - counted_bar) > asked.tolerance or not asked.tolerance:
                assert row.reached == (truth >= counted_bar), row
    if asked.against is not None:
        assert verdict["arm 0"].standing == "baseline"
    if asked.find is not None and peek_study(study, lambda ledger: ledger.issued) < PULLS:
        reached = sum(bool(row.reached and row.certified) for row in verdict)
        left = sum(not row.certified and row.standing != "baseline" for row in verdict)
        assert reached >= asked.find or reached + left < asked.find


def test_every_combination_works_in_memory_or_is_refused_in_one_line() -> None:
    refused = 0
    for asked in COMBINATIONS:
        if asked.refused:
            with pytest.raises(InvalidInput) as refusal:
                study_of(asked)
            check_one_line(refusal.value)
            refused += 1
        else:
            study = study_of(asked)
            told(study, asked)
            check_labels(study, asked)
    assert 0 < refused < len(COMBINATIONS)


def test_every_combination_works_in_the_simulator_or_is_refused_in_one_line() -> None:
    """Simulated as live, to the bit. Plain questions are left to other tests: they are other machine code."""
    played = 0
    for asked in COMBINATIONS:
        if asked.not_simulated:
            with pytest.raises(InvalidInput) as refusal:
                setup_of(asked)
            check_one_line(refusal.value)
        elif (setup := setup_of(asked)).counts:
            run = trace(setup, seed=5)
            study = live(setup, run)
            peek_study(study, lambda ledger, run=run: compare(ledger, run))  # type: ignore[misc]
            check_labels(study, asked)
            played += 1
    assert played > 100
