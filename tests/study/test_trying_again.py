"""A case is tried again only if what went wrong says nothing about its outcome.

Otherwise the cases that succeed are chosen by their outcomes: an evaluator that raises on every bad one would pass.
"""

import random
from collections import Counter
from typing import Any

import pytest
from studying import make

import thresher
from thresher import Pull
from thresher.core.replay import verify
from thresher.study import give_up_in_study


def eval_set(**given: Any) -> thresher.Study:
    return make(**{"budget": None, "cases": 60, "confidence": 0.95, "max_failures": None, "seed": 0} | given)


def cannot_parse(pull: Pull) -> float:
    """65 % of its outputs are good, and it raises on all others; every call draws a new one."""
    if CHANCE.random() < 0.35:
        raise ValueError("cannot parse")
    return 1.0


CHANCE = random.Random(29)


def test_an_evaluator_that_raises_on_bad_outputs_is_never_certified_for_the_good_ones() -> None:
    for seed in range(10):
        study = eval_set(arms=["a", "b"], at_least=0.9, seed=seed)
        verdict = thresher.run(study, cannot_parse, workers=4)
        assert [row.certified for row in verdict.rows] == [False, False]
        assert max(Counter((row.arm, row.case) for row in study.pulls()).values()) == 1
        assert verdict.hints[0].endswith("failure=0 counts a failure as 0; or repair what fails.")
        assert verify(study.events()).sound


def test_the_hint_is_also_given_for_an_arm_that_was_retired_for_its_failures() -> None:
    study = eval_set(arms=["a", "b", "c"], at_least=0.9, max_failures=3)
    for pull in study.ask_many(60):
        if pull.arm == "a":
            study.drop(pull, cause="failed")
        elif pull.arm == "b":
            study.tell(pull, 1)
    study.retire("c")
    while after := study.ask():
        study.tell(after, 1)
    verdict = study.verdict()
    assert (verdict.retired, verdict.reached) == (["a", "c"], ["b"])
    remedy = "in a new study, failure=0 counts a failure as 0; or repair what fails."
    assert verdict.hints == (f"'a' cannot be settled without the cases that failed: {remedy}",)


def test_with_a_reward_for_failures_it_is_certified_to_miss_the_bar() -> None:
    study = eval_set(arms=["a", "b"], at_least=0.9, failure=0.0)
    assert thresher.run(study, cannot_parse, workers=4).missed == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"at_least": 0.9}, "failure=0 counts a failure as 0;"),
        ({"at_most": 5, "bounds": (1, 9)}, "failure=9 counts a failure as 9;"),
        ({"at_most": 5, "share": 0.5, "bounds": None}, "failure= says what a failure counts as;"),
    ],
)
def test_the_hint_names_the_reward_that_a_failure_may_count_as(given: dict[str, Any], hint: str) -> None:
    plain: dict[str, Any] = {"arms": ["a"], "cases": 4, "max_failures": None}
    study = thresher.create_study("s", **plain | given)
    while pull := study.ask():
        study.drop(pull, cause="failed")
    assert hint in study.verdict().hints[0]


class APIConnectionError(Exception):
    """What clients raise for a request that failed, whatever the cause."""


class RateLimitError(Exception):
    pass


class StatusError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status_code = status


def from_cause(cause: BaseException) -> Exception:
    error = APIConnectionError("connection error")
    error.__cause__ = cause
    return error


def while_handling(cause: BaseException) -> Exception:
    error = ValueError("cannot parse")
    error.__context__ = cause
    return error


NOT_BEGUN = [
    ConnectionRefusedError(), from_cause(ConnectionRefusedError()), RateLimitError(), StatusError(429), StatusError(503)
]  # fmt: skip
FAILED = [
    ValueError("no"), TimeoutError("read"), ConnectionResetError(), from_cause(ConnectionResetError()),
    while_handling(ConnectionRefusedError()), StatusError(500), StatusError(504), MemoryError(), SystemExit(429),
]  # fmt: skip


@pytest.mark.parametrize("executor", ["threads", "processes"])
@pytest.mark.parametrize(("errors", "tries"), [(NOT_BEGUN, 2), (FAILED, 1)], ids=["not begun", "failed"])
def test_only_an_evaluation_that_could_not_begin_is_tried_again(
    errors: list[BaseException], tries: int, executor: Any, tmp_path: Any
) -> None:
    if executor == "processes":
        errors = errors[:3]
    study = eval_set(arms=["a"], cases=len(errors) + 20, confidence=None)
    thresher.run(study, OnceEach(errors, tmp_path), workers=1, executor=executor)
    row = study.verdict()["a"]
    assert row.missing == (len(errors) if tries == 1 else 0)
    assert Counter(pull.case for pull in study.pulls()).total() == 20 + tries * len(errors)
    assert "failed try" not in study.verdict().guarantee


class OnceEach:
    """Raises each error at one case, the first time; the cases before succeed, so that nothing else ends the run."""

    def __init__(self, errors: list[BaseException], folder: Any) -> None:
        self.errors, self.folder = errors, folder

    def __call__(self, pull: Pull) -> float:
        tried = self.folder / str(pull.case)
        if isinstance(pull.case, int) and pull.case < len(self.errors) and not tried.exists():
            tried.touch()
            raise self.errors[pull.case]
        return 0.5


def test_a_server_that_is_never_there_ends_its_cases_in_the_end() -> None:
    study, tried = eval_set(arms=["a"], cases=3, at_least=0.5), 0
    while pull := study.ask():
        tried += 1
        give_up_in_study(study, pull, cause="refused", reason="connection refused")
    assert (tried, study.verdict()["a"].missing) == (60, 3)


def test_an_arm_whose_server_is_never_there_is_retired() -> None:
    study = eval_set(arms=["a"], max_failures=3)
    for _ in range(3):
        give_up_in_study(study, study.ask() or pytest.fail("no pull"), cause="refused", reason="connection refused")
    assert study.verdict().retired == ["a"]
    assert verify(study.events()).sound


def test_failures_that_look_like_an_outage_are_failures_of_their_cases() -> None:
    """Eight bad outcomes in a row are no outage, and nobody can tell; no arm is retired for them."""
    study = eval_set(arms=["a", "b"], max_failures=1, at_least=0.5)
    pull = study.ask() or pytest.fail("no pull")
    give_up_in_study(study, pull, cause="outage", reason="it failed")
    assert (study.verdict()[pull.arm].missing, study.verdict().retired) == (1, [])
    assert all(again.case != pull.case for again in study.ask_many(1000) if again.arm == pull.arm)


def test_an_outage_of_the_network_costs_no_case() -> None:
    calls: list[int] = []

    def evaluate(pull: Pull) -> float:
        calls.append(pull.id)
        if 20 < len(calls) <= 32:
            raise ConnectionRefusedError
        return 0.5

    study = eval_set(arms=["a", "b"], cases=100, at_least=0.5, confidence=None, max_failures=3)
    verdict = thresher.run(study, evaluate, workers=4)
    assert (verdict.retired, [row.exact for row in verdict.rows]) == ([], [True, True])


def test_correcting_an_evaluator_that_never_worked_costs_no_case() -> None:
    """Somebody must correct it before anything can be measured. The guarantee says which rewards came after that."""
    study = eval_set(arms=["a", "b"], cases=10, at_least=0.5)
    with pytest.raises(thresher.CannotGoOn):
        thresher.run(study, lambda pull: pull.params["depht"], workers=2)
    verdict = thresher.run(study, lambda pull: 0.5, workers=2)
    assert [(row.certified, row.missing) for row in verdict.rows] == [(True, 0)] * 2
    assert "came after a failed try" in verdict.guarantee


def test_an_evaluator_is_not_run_again_until_its_first_cases_succeed() -> None:
    study, outputs = eval_set(arms=["a"], cases=3, at_least=0.9), iter([False] * 6 + [True] * 3)

    def passes_in_the_end(pull: Pull) -> float:
        if not next(outputs):
            raise ValueError("cannot parse")
        return 1.0

    for _ in range(2):
        with pytest.raises(thresher.CannotGoOn, match="3 cases failed with the same error"):
            thresher.run(study, passes_in_the_end, workers=1)
    row = thresher.run(study, passes_in_the_end, workers=1)["a"]
    assert (row.missing, row.certified) == (3, False)


@pytest.mark.parametrize("engine", ["threads", "processes", "coroutines"])
def test_an_evaluator_that_interrupts_itself_has_failed(engine: str) -> None:
    """No Ctrl-C came, so this may be an outcome like any other exception."""
    study = eval_set(arms=["a"], cases=5, at_least=0.5)
    options: dict[str, Any] = {"executor": engine} if engine != "coroutines" else {}
    evaluate: Any = interrupts_itself_in_a_loop if engine == "coroutines" else interrupts_itself
    for _ in range(3):
        thresher.run(study, evaluate, workers=2, **options)
    tries = Counter(pull.case for pull in study.pulls())
    assert set(tries.values()) == {1}


def interrupts_itself(pull: Pull) -> float:
    if pull.number % 2:
        raise KeyboardInterrupt
    return 1.0


async def interrupts_itself_in_a_loop(pull: Pull) -> float:
    return interrupts_itself(pull)


# -- an explicit choice: tries -----------------------------------------------------------------------------------


def rewards_of(study: thresher.Study, arm: str) -> list[Any]:
    """The cases of an arm that have a reward."""
    return [pull.case for pull in study.pulls() if pull.arm == arm and pull.reward is not None]


def lucky(study: thresher.Study, *, failing: int) -> thresher.Verdict:
    """Every case succeeds in the end, so many of an arm after one failed try."""
    tried: Counter[Any] = Counter()
    while pull := study.ask():
        tried[pull.arm, pull.case] += 1
        fails = pull.arm == "a" and isinstance(pull.case, int) and pull.case < failing
        if fails and tried[pull.arm, pull.case] == 1:
            study.drop(pull, cause="failed")
        else:
            study.tell(pull, 1)
    return study.verdict()


@pytest.mark.parametrize("guarantee", ["all", "rate"])
def test_with_more_tries_the_guarantee_says_which_labels_rest_on_them(guarantee: str) -> None:
    """With the error rate bounded, an arm that does not stand may have carried others of its list."""
    study = eval_set(arms=["a", "b"], at_least=0.9, tries=2, guarantee=guarantee)
    verdict = lucky(study, failing=40)
    assert [row.certified for row in verdict.rows] == [True, True]
    again = sum(case < 40 for case in rewards_of(study, "a"))
    came = f" {again} rewards came after a failed try: answers are about what the evaluator finally returns."
    weak = "answer would not stand of 'a'" if guarantee == "all" else "answers would not stand of 'a', 'b'"
    assert verdict.guarantee.endswith(f"{came} With these at their worst, the {weak}.")


def test_labels_that_stand_without_the_retried_rewards_are_said_to_stand() -> None:
    """The arm is settled long before its last case."""
    study = eval_set(arms=["a"], cases=200, at_least=0.1, tries=2)
    first = study.ask() or pytest.fail("no pull")
    study.drop(first, cause="failed")
    others = study.ask_many(30)  # settled by the first few of them, and not only just
    for pull in others:
        study.tell(pull, 1)
    assert others[0].case == first.case
    assert study.verdict()["a"].certified
    assert study.verdict().guarantee.endswith("Every certified answer stands also with it at its worst.")


@pytest.mark.parametrize(("failing", "stands"), [(6, True), (7, False)])
def test_labels_by_counting_are_checked_by_counting(failing: int, stands: bool) -> None:
    """Of 60 cases, 54 must pass; the confidence is so high that bets settle nothing."""
    study = eval_set(arms=["a"], at_least=0.9, tries=2, confidence=1 - 1e-15)
    pulls = study.ask_many(60)
    for pull in pulls[:failing]:
        study.drop(pull, cause="failed")
    for pull in [*study.ask_many(failing), *pulls[failing:]]:
        study.tell(pull, 1)
    assert study.verdict()["a"].exact
    assert ("stands also" in study.verdict().guarantee) == stands


def test_without_a_failed_try_that_is_said_too() -> None:
    verdict = lucky(eval_set(arms=["a", "b"], at_least=0.5, tries=2), failing=0)
    assert verdict.guarantee.endswith("No reward came after a failed try.")


def test_rewards_of_the_baseline_that_came_after_a_failed_try_count_for_every_arm() -> None:
    study = eval_set(
        arms=["now", "a"], at_least=None, baseline="now", margin=-0.2, cases=30, tries=2, bounds=(0, 1)
    )  # fmt: skip
    tried: Counter[Any] = Counter()
    while pull := study.ask():
        tried[pull.arm, pull.case] += 1
        if pull.arm == "now" and tried[pull.arm, pull.case] == 1:
            study.drop(pull, cause="failed")
        else:
            study.tell(pull, 0.5)
    verdict = study.verdict()
    assert verdict.reached == ["a"]
    assert "30 rewards came after a failed try" in verdict.guarantee
    assert verdict.guarantee.endswith("the answer would not stand of 'a'.")


def test_what_was_tried_once_more_after_a_shared_worker_died_is_counted_too() -> None:
    study = eval_set(arms=["a"], cases=20, at_least=0.9)
    lost = study.ask() or pytest.fail("no pull")
    give_up_in_study(study, lost, cause="broken-pool", reason="the pool broke")
    while pull := study.ask():
        study.tell(pull, 1)
    assert study.verdict().reached == ["a"]
    assert " 1 reward came after a failed try: answers are" in study.verdict().guarantee


def test_a_late_reward_of_the_only_try_came_after_no_failed_one() -> None:
    study = eval_set(arms=["a"], cases=2, at_least=0.9, tries=1)
    first, second = study.ask_many(2)
    study.drop(first, cause="failed")
    study.tell(second, 1)
    study.tell(first, 1)
    assert (study.verdict().reached, "failed try" in study.verdict().guarantee) == (["a"], False)


def test_a_case_that_is_dropped_without_a_word_is_not_tried_again() -> None:
    """A script that gives up on its own errors would otherwise choose the outcomes that count."""
    study = thresher.create_study("s", arms=["a"], at_least=0.5, cases=2)
    first = study.ask()
    assert first is not None
    study.drop(first)
    second = study.ask()
    assert second is not None
    assert second.case != first.case
    study.tell(second, 1)
    assert study.ask() is None
    assert study.verdict()["a"].missing == 1
