"""`ask(arm=…)`: a host chooses the arm. The choice is recorded, the log verifies, and the certificate holds."""

import random

import pytest
from chances import most

import thresher
from thresher import InvalidInput, UnknownArm


def study_of(arms: int = 3, **question: object) -> thresher.Study:
    given = {"at_least": 0.5, "confidence": 0.95, **question}
    return thresher.create_study("hosted", arms=[f"a{arm}" for arm in range(arms)], **given)  # type: ignore[arg-type]


def test_the_chosen_arm_is_pulled_and_the_log_says_who_chose() -> None:
    study = study_of()
    mine, rules = study.ask(arm="a2"), study.ask()
    assert mine is not None
    assert rules is not None
    assert mine.arm == "a2"
    assert [event.cause for event in study.events()] == [None, "chosen", None]
    assert thresher.verify(study.events()).sound


def test_several_at_once_are_all_of_the_chosen_arm() -> None:
    assert [pull.arm for pull in study_of().ask_many(3, arm="a1")] == ["a1"] * 3


def test_a_repeated_call_with_the_same_key_returns_the_same_pulls() -> None:
    study = study_of()
    assert study.ask_many(2, arm="a1", key="k") == study.ask_many(2, arm="a1", key="k")


def test_without_the_record_of_the_choice_the_log_is_wrong() -> None:
    study = study_of()
    study.ask(arm="a2")
    log = study.events()
    assert not thresher.verify([log[0], log[1]._replace(cause=None)]).sound


def test_an_ask_has_no_other_cause() -> None:
    study = study_of()
    study.ask(arm="a2")
    log = study.events()
    report = thresher.verify([log[0], log[1]._replace(cause="lost")])
    assert report.wrong == 2


def test_an_arm_that_takes_no_more_pulls_gives_none_while_others_go_on() -> None:
    study = study_of()
    while pull := study.ask(arm="a0"):
        study.tell(pull, 1.0)
    assert study.verdict()["a0"].certified
    assert not study.done
    assert study.ask(arm="a1") is not None
    study.retire("a1")
    assert study.ask(arm="a1") is None


def test_a_study_that_is_done_gives_none_for_every_arm() -> None:
    study = study_of(budget=6)
    study.ask_many(6)
    assert study.ask(arm="a0") is None


def test_an_unknown_arm_is_refused_and_nothing_is_written() -> None:
    study = study_of()
    with pytest.raises(UnknownArm, match="a9"):
        study.ask(arm="a9")
    assert len(study.events()) == 1


def test_with_cases_the_study_chooses_the_case_of_the_chosen_arm() -> None:
    study = study_of(2, cases=5)
    told = []
    while pull := study.ask(arm="a1"):
        told.append(pull.case)
        study.tell(pull, 1.0)
    assert set(told) <= set(range(5))
    assert len(told) == len(set(told))
    assert study.verdict()["a1"].certified
    assert thresher.verify(study.events()).sound


def test_the_host_may_choose_by_everything_it_has_seen_and_certificates_hold() -> None:
    """A host that always pulls the arm with the luckiest start, each with a mean just on the wrong side of the bar."""
    wrong = 0
    for seed in range(40):
        draws = random.Random(seed)
        study = study_of(4, at_least=0.5, budget=600, seed=seed)
        means = {f"a{arm}": 0.49 for arm in range(4)}
        totals = dict.fromkeys(means, 0.0)
        while not study.done:
            arm = max(totals, key=lambda name: totals[name])
            pull = study.ask(arm=arm) or study.ask()
            assert pull is not None
            reward = draws.random() < means[pull.arm]
            totals[pull.arm] += reward - 0.5
            study.tell(pull, reward)
        wrong += any(row.certified and row.reached is True for row in study.verdict())
    assert wrong <= most(40, 0.05)


def test_an_import_is_weighed_before_the_first_chosen_pull() -> None:
    study = study_of()
    study.add_many([("a0", 1.0)] * 5)
    study.ask(arm="a0")
    assert [event.kind for event in study.events()][-2:] == ["weighed", "asked"]
    with pytest.raises(InvalidInput):
        study.add("a0", 1.0)


def test_an_unknown_arm_is_an_error_even_if_the_key_is_known() -> None:
    study = thresher.create_study("s", arms=["a", "b"], at_least=0.5)
    assert len(study.ask_many(2, arm="a", key="k")) == 2
    with pytest.raises(thresher.UnknownArm, match="arm 'c'"):
        study.ask_many(2, arm="c", key="k")
