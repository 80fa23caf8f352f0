"""Within the tolerance of the bar, either answer is right: the edges, exact ties on them, intervals and bad input."""

import random
from typing import Any

import pytest

import thresher
from thresher.core import policies
from thresher.study import peek_study

AGAINST: dict[str, Any] = {"arms": ["a", "old"], "baseline": "old"}
CERTAIN = 1 - 1e-9  # only counting settles an arm of ten cases


def make(**given: Any) -> thresher.Study:
    plain: dict[str, Any] = {"arms": ["a"], "seed": 0}
    return thresher.create_study("s", **plain | given)


def answer(study: thresher.Study) -> bool | None:
    row = study.verdict()["a"]
    return row.reached if row.certified else None


# -- the edges -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "low", "high"),
    [
        ({"at_least": 0.95, "tolerance": 0.02}, 0.93, 0.97),  # in floats, 0.95 - 0.02 is 0.9299999999999999
        ({"at_most": 0.95, "tolerance": 0.02}, 0.93, 0.97),
        ({"at_least": 0.3, "tolerance": 0.1}, 0.2, 0.4),
        ({"at_least": 90, "tolerance": 0.1, "bounds": (0, 100)}, 89.9, 90.1),
        ({"at_most": 3.0, "share": 0.95, "tolerance": 0.02}, 0.93, 0.97),
        ({**AGAINST, "margin": -0.05, "tolerance": 0.02}, -0.07, -0.03),
        ({**AGAINST, "margin": 0.3, "tolerance": 0.1, "lower_is_better": True}, -0.4, -0.2),
        ({**AGAINST, "ratio": 1.1, "share": 0.6, "tolerance": 0.1}, 0.5, 0.7),
    ],
)  # fmt: skip
def test_edges_are_computed_in_decimal_as_people_write_them(asked: dict[str, Any], low: float, high: float) -> None:
    study = make(**asked)
    assert study.verdict().edges == (low, high)
    assert sorted(abs(edge) for edge in (study.spec.low_edge, study.spec.high_edge)) == sorted([abs(low), abs(high)])


def test_without_a_tolerance_both_edges_are_the_bar_and_the_bets_are_the_same() -> None:
    spec = make(at_least=0.3, tolerance=0).spec
    assert spec.low_edge == spec.high_edge == spec.bar
    assert spec.to_json() == make(at_least=0.3).spec.to_json()


COUNTED = [
    {"at_least": 0.5},
    {"at_most": 0.5},
    {"at_least": 0.7, "share": 0.5},
    {**AGAINST, "ratio": 1.0, "share": 0.5},
    {"at_least": 50, "bounds": (0, 100)},
    {"at_least": 0.0, "bounds": (-1, 1)},
]


def counts(asked: dict[str, Any], good: "list[bool]", **given: Any) -> bool | None:
    """The answer about ten cases with an edge at 3 and one at 7, after these."""
    low, high = asked.get("bounds", (0, 1))
    study = make(**asked, tolerance=0.2 * (high - low), cases=10, confidence=CERTAIN, **given)
    if "baseline" in asked:
        study.add_many(("old", 0.5, case) for case in range(10))
    for is_good in good:
        study.tell(study.ask() or pytest.fail("no pull"), high if is_good != ("at_most" in asked) else low)
    return answer(study)


@pytest.mark.parametrize("asked", COUNTED, ids=str)
@pytest.mark.parametrize("guarantee", ["all", "rate"])
def test_an_arm_is_settled_by_count_as_soon_as_an_edge_is_certain_and_a_mean_on_an_edge_reaches_it(
    asked: dict[str, Any], guarantee: str
) -> None:
    assert counts(asked, [True] * 2, guarantee=guarantee) is None
    assert counts(asked, [True] * 3, guarantee=guarantee) is True, "at least 3 of 10: exactly on the lower edge"
    assert counts(asked, [False] * 3, guarantee=guarantee) is None, "7 of 10 are possible: exactly on the upper edge"
    assert counts(asked, [False] * 4, guarantee=guarantee) is False
    assert counts(asked, [False] * 3 + [True] * 2, guarantee=guarantee) is None
    assert counts(asked, [False] * 3 + [True] * 3, guarantee=guarantee) is True


@pytest.mark.parametrize(
    ("difference", "reached"), [(0.05, False), (0.0999, False), (0.1, True), (0.15, True), (0.049, False)]
)
def test_an_arm_whose_cases_are_all_known_at_once_gets_its_true_side_of_the_bar(
    difference: float, reached: bool
) -> None:
    """Differences of 0.55 and 0.5 round; the edges at 0.05 and 0.15 are exact all the same."""
    study = make(arms=["a", "old"], baseline="old", margin=0.1, tolerance=0.05, cases=4, confidence=CERTAIN)
    study.add_many(("old", 0.5, case) for case in range(4))
    study.add_many(("a", 0.5 + difference, case) for case in range(4))
    assert answer(study) is reached


@pytest.mark.parametrize("mean", [0.45, 0.55])
def test_draws_that_lie_exactly_on_an_edge_are_settled_by_the_other_capital(mean: float) -> None:
    study = make(at_least=0.5, tolerance=0.05)
    while pull := study.ask():
        study.tell(pull, mean)
    assert answer(study) is (mean >= 0.5)


# -- scores, intervals, logs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("slack", "tolerance", "used"), [(0.05, 0.02, 0.05), (0.02, 0.05, 0.05), (0.0, 0.05, 0.05)])
def test_the_larger_of_slack_and_tolerance_is_added_to_gaps(slack: float, tolerance: float, used: float) -> None:
    study = make(at_least=0.5, tolerance=tolerance, policy=policies.apt(slack=slack), budget=100)
    assert peek_study(study, lambda ledger: ledger.rule.slack) == pytest.approx(used, abs=1e-12)


def test_where_arms_are_to_be_found_gaps_are_measured_to_the_lower_edge() -> None:
    study = make(arms=["a", "b"], at_least=50, bounds=(0, 100), tolerance=10, find=1)
    assert peek_study(study, lambda ledger: (ledger.rule.bar, ledger.rule.slack)) == (0.4, 0.0)


@pytest.mark.parametrize("asked", [{"at_least": 0.5}, {"at_most": 0.5}])
@pytest.mark.parametrize("guarantee", ["all", "rate"])
def test_intervals_are_cut_at_the_edge_that_was_proven_unless_answers_may_be_wrong(
    asked: dict[str, Any], guarantee: str
) -> None:
    """Rewards that change while they are drawn: the interval is certain of the first ones, the answer of the others."""
    good = "at_least" in asked
    study = make(
        arms=list("abcdefghij"),
        **asked,
        tolerance=0.02,
        confidence=0.5,
        guarantee=guarantee,
        policy="uniform",
        budget=500,
    )
    for pull in study.ask_many(500):
        study.tell(pull, good if pull.number > 16 else not good)
    certified = [row for row in study.verdict() if row.certified]
    assert certified
    for row in certified:
        assert row.low is not None
        assert row.high is not None
        if guarantee == "all":
            assert not row.interval_disagrees
            assert row.low >= 0.48 if good == row.reached else row.high <= 0.52
    if guarantee == "rate":
        assert all(row.reached and row.interval_disagrees for row in certified)
        assert all(row.high < 0.48 if good else row.low > 0.52 for row in certified)  # type: ignore[operator]
        assert str(study.verdict()).count("interval disagrees") == len(certified)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"cases": 30},
        {"guarantee": "rate"},
        {"find": 2},
        {"cases": 30, "find": 1},
        {"cases": 30, "guarantee": "rate"},
    ],
    ids=str,
)
def test_every_decision_and_answer_can_be_derived_again(asked: dict[str, Any]) -> None:
    study, chance = make(arms=list("abcd"), at_least=0.5, tolerance=0.1, budget=600, **asked), random.Random(str(asked))
    while pulls := study.ask_many(5):
        for pull in chance.sample(pulls, len(pulls)):
            if chance.random() < 0.1:
                study.drop(pull, cause="lost")
            else:
                study.tell(pull, chance.random() < {"a": 0.4, "b": 0.5, "c": 0.6, "d": 0.95}[pull.arm])
    assert any(row.certified for row in study.verdict())
    assert thresher.verify(study.events()).sound


def test_a_finished_study_estimates_the_tolerance_that_would_have_settled_its_open_cases() -> None:
    chance = random.Random(3)
    rewards = [float(chance.random() < 0.9) for _ in range(3000)]

    def played(tolerance: float) -> thresher.Verdict:
        study = make(arms=["a", "b"], at_least=0.9, unit="%", cases=3000, tolerance=tolerance, budget=3000)
        while pull := study.ask():
            study.tell(pull, rewards[int(pull.case or 0)])
        return study.verdict()

    (hint,) = played(0.0).hints
    words = "'a', 'b' are still open; a larger budget would continue with them, and a tolerance of about "
    assert hint.startswith(words)
    assert " would have settled them (an estimate)." in hint
    assert played(float(hint.removeprefix(words).split()[0]) / 100).open == []


# -- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        ({"at_least": 0.95, "tolerance": 0.05}, r"tolerance 0\.05: 0\.95 ± 0\.05 must lie strictly inside \(0, 1\)"),
        ({"at_least": 0.95, "tolerance": 0.2}, r"must lie strictly inside \(0, 1\); give less than 0\.05$"),
        ({"at_most": 0.05, "tolerance": 0.05}, r"must lie strictly inside \(0, 1\)"),
        ({"at_least": 5, "share": 0.99, "tolerance": 0.01}, r"0\.99 ± 0\.01 must lie strictly inside \(0, 1\)"),
        ({"at_least": 0.5, "tolerance": -0.1}, "tolerance -0.1"),
        ({"at_least": 0.5, "tolerance": float("nan")}, "tolerance nan"),
        ({"at_least": 0.5, "tolerance": "2 %"}, "tolerance '2 %'"),
        ({"at_least": 0.5, "tolerance": 0.1, "confidence": None, "budget": 9}, "belongs to certificates; .*slack"),
    ],
)
def test_a_tolerance_that_cannot_be_is_refused_in_one_line(asked: dict[str, Any], rule: str) -> None:
    with pytest.raises(thresher.InvalidInput, match=rule) as raised:
        make(**asked)
    assert "\n" not in str(raised.value)
