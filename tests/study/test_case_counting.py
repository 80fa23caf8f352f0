"""Eval sets: labels and intervals that follow from counting alone, and results that were paid for before."""

import itertools
import math
import random
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logs import append
from studying import make

import thresher
from thresher.core.events import Event
from thresher.core.evidence import ABOVE, BELOW, OPEN, Ends, settle_evidence_by_count
from thresher.core.replay import verify
from thresher.errors import ThresherError
from thresher.log.store import MemoryStore
from thresher.study import Study


def eval_set(**given: Any) -> Study:
    return make(**{"arms": ["a"], "budget": None, "cases": 10, "max_failures": None, "seed": 0} | given)


def tell_next(study: Study, rewards: "list[float]") -> None:
    for reward in rewards:
        study.tell(study.ask() or pytest.fail("no pull"), reward)


def reached(study: Study) -> bool | None:
    """The certified answer."""
    row = study.verdict()["a"]
    return row.reached if row.certified else None


# -- certainty by counting ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bar", "passes"), [(0.9, 9), (0.3, 3), (0.7, 7), (0.1, 1), (0.5, 5), (0.6, 6)])
def test_a_mean_on_the_bar_reaches_it_as_soon_as_it_is_certain(bar: float, passes: int) -> None:
    study = eval_set(at_least=bar, confidence=1 - 1e-9)
    tell_next(study, [0.0] * (10 - passes))
    assert reached(study) is None  # it can still be reached exactly
    tell_next(study, [1.0] * (passes - 1))
    assert reached(study) is None
    tell_next(study, [1.0])
    assert reached(study) is True


@pytest.mark.parametrize(
    ("before", "total", "after"),
    [
        (ABOVE, 1.0, ABOVE),  # exactly on the lower edge
        (ABOVE, 0.999, BELOW),
        (BELOW, 3.0, ABOVE),  # exactly on the upper edge, which a mean on it reaches
        (BELOW, 2.999, BELOW),
        (BELOW, 2.0, BELOW),
        (OPEN, 0.999, BELOW),
        (OPEN, 1.0, BELOW),  # within the tolerance, the side of the bar
        (OPEN, 1.999, BELOW),
        (OPEN, 2.0, ABOVE),
        (OPEN, 3.0, ABOVE),
    ],
)
def test_counting_corrects_an_answer_only_beyond_its_edge_and_gives_open_arms_their_true_side(
    before: int, total: float, after: int
) -> None:
    docket: Any = SimpleNamespace(settled=[before])
    board: Any = SimpleNamespace(total=[total], residue=[0.0], seen=[4])
    sheet: Any = SimpleNamespace(cases=4)
    ends = Ends(low=0.0, high=1.0, bar=0.5, low_edge=0.25, high_edge=0.75)
    assert settle_evidence_by_count(docket, board, sheet, 0, ends) == (before == OPEN)
    assert docket.settled == [after]


@pytest.mark.parametrize(("bar", "passes"), [(0.9, 9), (0.3, 3), (0.7, 7)])
def test_an_arm_misses_the_bar_with_the_first_case_too_many(bar: float, passes: int) -> None:
    study = eval_set(at_least=bar, confidence=1 - 1e-9)
    tell_next(study, [0.0] * (10 - passes))
    assert reached(study) is None
    tell_next(study, [0.0])
    assert reached(study) is False
    assert study.done
    assert study.ask() is None


@pytest.mark.parametrize(
    ("bounds", "bar"), [((-10.0, 10.0), 0.0), ((100.0, 300.0), 200.0), ((-3.0, -1.0), -2.0), ((0.25, 0.75), 0.5)]
)
def test_counting_uses_the_users_units(bounds: tuple[float, float], bar: float) -> None:
    low, high = bounds
    study = eval_set(at_least=bar, bounds=bounds, confidence=1 - 1e-9, cases=4)
    tell_next(study, [low, high, low])
    assert reached(study) is None
    tell_next(study, [high])
    assert reached(study) is True
    assert study.verdict()["a"].exact


def test_with_clip_a_reward_counts_as_the_bound() -> None:
    study = eval_set(cases=4, clip=True, confidence=1 - 1e-9)
    tell_next(study, [100.0, -7.0])
    assert reached(study) is None
    tell_next(study, [3.0])
    assert reached(study) is True


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]), min_size=1, max_size=12),
    st.sampled_from([0.2, 0.3, 0.4, 0.5, 0.6]),
    st.integers(0, 99),
)
def test_counting_never_says_what_the_full_set_does_not(rewards: "list[float]", bar: float, seed: int) -> None:
    """Decimals whose sums round, bounds that are no powers of two: labels are those of exact decimals, and stay."""
    random.Random(seed).shuffle(rewards)
    study = eval_set(at_least=bar, bounds=(0.1, 0.7), cases=len(rewards), confidence=1 - 1e-9, arms=["a"], seed=seed)
    pulls, known = study.ask_many(len(rewards)), None
    for pull, reward in zip(pulls, rewards, strict=True):
        study.tell(pull, reward)
        assert known is None or reached(study) == known
        known = reached(study)
    mean = sum(Fraction(str(reward)) for reward in rewards) / len(rewards)
    assert known is (mean >= Fraction(str(bar)))


@pytest.mark.parametrize("seed", range(6))
def test_intervals_are_no_wider_than_counting_and_hold_the_truth(seed: int) -> None:
    chance, cases = random.Random(seed), 60
    truth = [float(chance.random() < 0.6) for _ in range(cases)]
    mean, low, high = sum(truth) / cases, -2.0, 4.0
    study = eval_set(at_least=1.0, bounds=(low, high), cases=cases, confidence=1 - 1e-7, seed=seed)
    told: list[float] = []
    for pull in chance.sample(study.ask_many(cases), cases):
        told.append(low + 6.0 * truth[int(pull.case or 0)])
        study.tell(pull, told[-1])
        row = study.verdict()["a"]
        assert row.low is not None
        assert row.high is not None
        left = cases - len(told)
        assert row.low >= (math.fsum(told) + left * low) / cases - 1e-12
        assert row.high <= (math.fsum(told) + left * high) / cases + 1e-12
        assert row.low - 1e-12 <= low + 6.0 * mean <= row.high + 1e-12
    assert row.exact
    assert row.low == row.high == pytest.approx(low + 6.0 * mean)


# -- results that were paid for before ---------------------------------------------------------------------------


def test_imported_cases_are_known_and_are_not_pulled() -> None:
    study = eval_set(at_least=0.65, confidence=1 - 1e-9)
    study.add_many([("a", 1, case) for case in (0, 3, 5)])
    study.add("a", 0, case=9)
    row = study.verdict()["a"]
    assert (row.cases, row.seen, row.mean) == (4, 4, 0.75)
    pulls = study.ask_many(99)
    assert {pull.case for pull in pulls} == {1, 2, 4, 6, 7, 8}
    for pull in pulls[:3]:
        study.tell(pull, 1)
    assert reached(study) is None
    study.tell(pulls[3], 1)  # 7 of 10
    assert reached(study) is True


@pytest.mark.parametrize("guarantee", ["all", "rate"])
def test_a_study_that_is_wholly_imported_is_exact_and_done(guarantee: Any) -> None:
    study = eval_set(arms=["a", "b"], guarantee=guarantee)
    study.add_many((arm, case % 2 if arm == "a" else 0.4, case) for arm in "ab" for case in range(10))
    assert study.done
    assert study.ask() is None
    verdict = study.verdict()
    assert (verdict.reached, verdict.missed, verdict.pending) == (["a"], ["b"], 0)
    assert all(row.certified and row.exact for row in verdict.rows)
    assert verify(study.events()).sound


def test_an_import_of_good_results_alone_certifies_nothing_about_the_others() -> None:
    """The known half passes. What is left fails, and that is what the bets are about."""
    for seed in range(20):
        study = eval_set(cases=200, at_least=0.55, seed=seed)
        study.add_many(("a", 1, case) for case in range(100))
        assert reached(study) is None
        while pull := study.ask():
            study.tell(pull, 0)
        assert reached(study) is False


@pytest.mark.parametrize(
    ("results", "rule"),
    [
        ([("a", 1, 10)], "is not a case of this study"),
        ([("a", 1, "first")], "is not a case of this study"),
        ([("a", 1, True)], "is not a case of this study"),
        ([("a", 1, 1.0)], "is not a case of this study"),
        ([("a", 1)], "every result of this study needs its case"),
        ([("a", 1, 3), ("a", 0, 3)], "was imported before"),
        ([("a", 1, 3), ("a", 1, 3)], "was imported before"),
        ([("a", 1, 3), ("a", 7, 4)], "must lie within the bounds"),
    ],
)
def test_an_import_is_refused_in_one_line_and_as_a_whole(results: "list[Any]", rule: str) -> None:
    study = eval_set()
    with pytest.raises(ThresherError, match=rule) as raised:
        study.add_many(results)
    assert "\n" not in str(raised.value)
    assert len(study.events()) == 1


def test_cases_cannot_be_imported_after_the_first_ask() -> None:
    study = eval_set()
    study.add("a", 1, case=0)
    study.ask()
    with pytest.raises(thresher.InvalidInput, match="before the first ask"):
        study.add("a", 1, case=1)


def test_a_result_without_a_reward_uses_up_no_case() -> None:
    study = eval_set(cases=2, at_least=0.9)
    study.add_many([("a", None, 0), ("a", 1, 1)])
    assert [pull.case for pull in study.ask_many(5)] == [0]


def test_a_case_without_cases_is_refused() -> None:
    with pytest.raises(thresher.InvalidInput, match="has no cases"):
        make(arms=["a"]).add("a", 1, case=0)


def test_an_imported_pull_can_prove_the_bounds_wrong() -> None:
    study = eval_set(cases=2)
    study.add("a", 1, case=0)
    with pytest.raises(thresher.OutsideBounds):
        study.tell(1, 5.0)
    assert study.verdict().outside == ("a",)
    assert verify(study.events()).sound


# -- logs made by hand -------------------------------------------------------------------------------------------


def refused(events: "list[Event]") -> None:
    """A log that no study writes is not sound, and cannot be opened."""
    report = verify(events)
    assert not report.sound
    store = MemoryStore()
    append(store, "s", [event._replace(key=f"{event.seq}") for event in events])
    with pytest.raises(ThresherError) as raised:
        thresher.open_study("s", storage=store).verdict()
    assert "\n" not in str(raised.value)


def test_damaged_logs_are_refused() -> None:
    study = eval_set(cases=3, arms=["a", "b"])
    study.add("a", 1, case=2)
    study.ask()
    created, asked, told, _ = study.events()
    assert verify([created, asked, told]).sound
    for case in ("3", "-1", "x", None, "1.0", ""):
        refused([created, asked._replace(reason=case), told])
    twice = [created, asked, told, asked._replace(seq=4, pull=2), told._replace(seq=5, pull=2)]
    refused(twice)
    refused([created, asked, Event(3, "asked", 2, 0)])  # no reward
    refused([created, asked, Event(3, "dropped", 1, 0, cause="lost", reason="gone")])
    refused([created, asked, Event(3, "asked", 2, 1, cause="imported", reason="0")])
    assert not verify([created, asked]).sound


def test_another_order_of_cases_is_another_log(tmp_path: Path) -> None:
    """The seed and the names decide which case a pull has: they are in the first event, which the digests cover."""
    import apsw

    path = tmp_path / "s.db"
    with eval_set(storage=f"sqlite:///{path}", cases=["x", "y", "z"], arms=["a", "b"]) as study:
        for pull in study.ask_many(2):
            study.tell(pull, 0.5)
    connection = apsw.Connection(str(path))
    tables = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
    changed = 0
    for table, (old, new) in itertools.product(tables, [('"x", "y"', '"y", "x"'), ('"x","y"', '"y","x"')]):
        for column in [row[1] for row in connection.execute(f"pragma table_info({table})")]:
            connection.execute(f"update {table} set {column} = replace({column}, ?, ?) where {column} like ?",
                               (old, new, f"%{old}%"))  # fmt: skip
            changed += connection.changes()
    connection.close()
    assert changed == 1
    with pytest.raises(ThresherError):
        thresher.open_study("s", storage=f"sqlite:///{path}").verdict()


def test_the_evidence_begins_with_the_first_case() -> None:
    study = thresher.create_study("s", arms=["a"], at_least=0.5, cases=1000)
    for _ in range(7):
        assert not study.verdict()["a"].certified
        study.tell(study.ask() or 0, 1)
    assert study.verdict()["a"].certified, "seven of 1,000 cases passed"
