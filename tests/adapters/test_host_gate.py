"""A gate: a host runs an arm's cases when it likes, and the certificate holds whatever happens to them."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from chances import most

import thresher
from thresher.adapters.host_gate import HostGate
from thresher.errors import CannotGoOn
from thresher.log.store import MemoryStore


def study_of(cases: int = 30, /, **question: object) -> thresher.Study:
    arguments = {"at_least": 0.5, "cases": cases, "seed": 3, "tries": 1, "max_failures": None, **question}
    return thresher.create_study("gated", arms=["a", "b"], **arguments)  # type: ignore[arg-type]


def drops(study: thresher.Study) -> list[tuple[int | None, str | None]]:
    return [(event.pull, event.cause) for event in study.events() if event.kind == "dropped"]


def test_cases_in_the_studys_order_begin_one_by_one() -> None:
    study = study_of()
    gate = HostGate(study, "a")
    order = gate.upcoming()
    for case in order[:3]:
        assert gate.begin(case) is None
        gate.tell(case, 1.0)
    assert [row.case for row in study.pulls()] == order[:3]
    assert not gate.held


def test_a_case_that_has_its_turn_early_leaves_the_places_before_it_to_the_others() -> None:
    study = study_of()
    gate = HostGate(study, "a")
    order = gate.upcoming()
    assert gate.begin(order[2]) is None
    assert set(gate.held) == set(order[:2])
    assert gate.begin(order[0]) is None
    assert [row.case for row in study.pulls()] == order[:3]


def test_what_never_began_is_taken_back_and_what_began_is_lost_or_failed() -> None:
    for finished, cause in ((False, "lost"), (True, "failed")):
        study = study_of()
        gate = HostGate(study, "a")
        order = gate.upcoming()
        gate.begin(order[2])
        gate.end(finished=finished)
        assert sorted(drops(study)) == [(1, "cancelled"), (2, "cancelled"), (3, cause)]
        assert not study.pending()


def test_an_arm_that_is_settled_begins_no_case_and_takes_back_what_is_held() -> None:
    study = study_of()
    gate, told = HostGate(study, "a"), 0
    order = gate.upcoming()
    gate.begin(order[29])
    for case in order[:29]:
        if gate.begin(case) is None:
            gate.tell(case, 1.0)
            told += 1
    assert study.verdict()["a"].certified
    assert told < 25
    assert gate.begin(order[28]) == "settled: it reaches the bar"
    gate.end(finished=True)
    assert not study.pending()
    assert thresher.verify(study.events()).sound


def test_one_arm_goes_on_when_another_has_no_samples_left() -> None:
    study = study_of(6, confidence=0.999)
    first, second = HostGate(study, "a"), HostGate(study, "b")
    for case in first.upcoming():
        if first.begin(case) is None:
            first.tell(case, 1.0)
    first.end(finished=True)
    for case in second.upcoming():
        assert second.begin(case) is None or second.over()
        second.tell(case, 0.0)
    assert study.verdict().open == []


def test_the_budget_ends_what_begins() -> None:
    study = study_of(budget=4)
    gate = HostGate(study, "a")
    answers = [gate.begin(case) for case in gate.upcoming()[:6]]
    assert answers == [None] * 4 + ["the budget is issued"] * 2


def test_a_case_that_is_tried_again_was_a_failure_first() -> None:
    study = study_of(tries=2)
    gate = HostGate(study, "a")
    (case, *_) = gate.upcoming()
    assert gate.begin(case) is None
    assert gate.begin(case) is None
    gate.tell(case, 1.0)
    assert drops(study) == [(1, "failed")]
    assert [(row.case, row.state) for row in study.pulls()] == [(case, "dropped"), (case, "told")]


def test_a_case_that_ended_without_a_reward_has_failed_only_if_the_host_goes_on() -> None:
    for goes_on, cause in ((True, "failed"), (False, "lost")):
        study = study_of()
        gate = HostGate(study, "a")
        first, second, *_ = gate.upcoming()
        gate.begin(first)
        gate.ended(first)
        if goes_on:
            gate.begin(second)
        assert len(study.pending()) == 1
        gate.end(finished=False)
        assert drops(study)[0] == (1, cause)


def test_a_case_that_failed_too_often_does_not_begin_again() -> None:
    study = study_of(tries=1)
    gate = HostGate(study, "a")
    (case, *_) = gate.upcoming()
    gate.begin(case)
    assert gate.begin(case) == "the case is known, given up, or pending elsewhere"


def test_a_result_that_was_known_before_takes_its_place_and_a_known_case_is_left_alone() -> None:
    study = study_of()
    gate = HostGate(study, "a")
    order = gate.upcoming()
    gate.tell(order[1], 1.0)
    gate.tell(order[1], 0.0)
    assert [(row.case, row.reward) for row in study.pulls()] == [(order[0], None), (order[1], 1.0)]


def test_a_reward_outside_the_bounds_retires_the_arm_and_ends_it() -> None:
    study = study_of()
    gate = HostGate(study, "a")
    first, second, *_ = gate.upcoming()
    gate.begin(first)
    gate.tell(first, 7.0)
    assert (gate.begin(second) or "").startswith("retired: ")


def test_a_reward_that_is_no_number_is_an_error_and_leaves_nothing_pending() -> None:
    study = study_of()
    gate = HostGate(study, "a")
    (case, *_) = gate.upcoming()
    gate.begin(case)
    with pytest.raises(thresher.InvalidInput):
        gate.tell(case, "good")
    assert drops(study) == [(1, "failed")]


def test_the_next_run_begins_with_what_was_lost_and_skips_what_is_known(tmp_path: Path) -> None:
    study = study_of(storage=f"sqlite:///{tmp_path / 'evals.db'}")
    gate = HostGate(study, "a")
    order = gate.upcoming()
    for case in order[:4]:
        gate.begin(case)
    gate.tell(order[2], 1.0)
    gate.end(finished=False)
    assert HostGate(study, "a").upcoming() == [*order[:2], *order[3:]]
    study.close()


def test_a_host_that_reshuffles_before_each_run_meets_every_case_once() -> None:
    study, draws = study_of(at_least=0.6, confidence=0.999), random.Random(5)
    for _ in range(40):
        order = list(range(30))
        draws.shuffle(order)
        gate = HostGate(study, "a")
        gate.follow(order[:8])
        for case in order[:8]:
            if gate.begin(case) is None and draws.random() < 0.8:
                gate.tell(case, case % 5 != 0)
        gate.end(finished=False)
    told = [row.case for row in study.pulls() if row.state == "told"]
    assert len(told) == len(set(told))
    assert thresher.verify(study.events()).sound


def play(seed: int, *, hosted: bool, tolerance: float) -> thresher.Row:
    """An evaluator with a mean just below the lower edge, whose outcomes decide what happens to their samples.

    Good ones end at once. Bad ones sleep until the end, fail, or are cancelled with the whole eval. Every case may have
    its turn up to 25 places too early, the good ones more so. After that, the same call resumes, with another shuffle.
    """
    draws = random.Random(seed)
    study = study_of(60, seed=seed, tries=2, at_least=0.5 + tolerance, tolerance=tolerance)
    good = set(draws.sample(range(60), 29))
    for _ in range(4):
        gate = HostGate(study, "a")
        order = list(range(60))
        draws.shuffle(order)
        if hosted:
            gate.follow(order)
        else:
            order = gate.upcoming()
        turns = order[: draws.choice([10, 60])]
        waiting: list[int] = []
        while turns:
            near = sorted(turns[:25], key=lambda case: (case not in good, draws.random()))
            case = near[0] if draws.random() < 0.9 else turns[0]
            turns.remove(case)
            if gate.begin(case) is not None:
                continue
            if case in good:
                gate.tell(case, 1.0)
            elif draws.random() < 0.4:
                waiting.append(case)
            elif draws.random() < 0.5:
                gate.fail(case, "error")
        for case in waiting if draws.random() < 0.3 else []:
            gate.tell(case, 0.0)
        gate.end(finished=draws.random() < 0.3)
    assert not study.pending()
    return study.verdict()["a"]


@pytest.mark.parametrize("tolerance", [0.0, 0.1])
@pytest.mark.parametrize("hosted", [False, True])
def test_answers_are_right_whatever_outcomes_decide(hosted: bool, tolerance: float) -> None:
    studies = 60
    rows = [play(seed, hosted=hosted, tolerance=tolerance) for seed in range(studies)]
    assert sum(row.certified and row.reached is True for row in rows) <= most(studies, 0.05)


def test_the_adapter_loads_inspect_ai_only_when_it_is_used() -> None:
    program = "import sys, thresher.adapters.inspect; sys.exit('inspect_ai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_gate_of_a_study_that_was_revised_begins_no_case_and_tells_nothing() -> None:
    """In the next revision, cases may have other numbers, and the arm may be another task."""
    store = MemoryStore()
    asked = {"arms": ["a"], "at_least": 0.5, "storage": store, "if_exists": "revise"}
    study = thresher.create_study("gated", cases=["x", "y", "z"], **asked)  # type: ignore[arg-type]
    gate = HostGate(study, "a")
    first, second, _ = gate.upcoming()
    gate.begin(first)
    revised = thresher.create_study("gated", cases=["z", "y"], **asked)  # type: ignore[arg-type]
    with pytest.raises(CannotGoOn, match="was revised by another process"):
        gate.begin(second)
    with pytest.raises(CannotGoOn, match="was revised by another process"):
        gate.tell(first, 1)
    gate.end(finished=False)
    assert (revised.verdict().told, revised.pending()) == (0, [])
