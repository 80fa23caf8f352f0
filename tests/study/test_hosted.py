"""A host that shuffled the cases names them one by one: each takes the arm's next place, and the log verifies."""

import random

import pytest
from chances import most

import thresher
from thresher import InvalidInput
from thresher.core.ledger import fold_ledger
from thresher.study import ask_study_for_cases, peek_study


def study_of(cases: int = 20, /, **question: object) -> thresher.Study:
    given = {"at_least": 0.5, "cases": cases, "seed": 3, **question}
    return thresher.create_study("hosted", arms=["a", "b"], **given)  # type: ignore[arg-type]


def test_the_named_cases_are_asked_in_the_hosts_order_and_the_log_verifies() -> None:
    study = study_of()
    pulls = ask_study_for_cases(study, "a", [7, 3, 19])
    assert [pull.case for pull in pulls] == [7, 3, 19]
    assert [(event.cause, event.reason) for event in study.events()[1:]] == [
        ("chosen", each) for each in ("7", "3", "19")
    ]
    assert [row.case for row in study.pulls()] == [7, 3, 19]
    assert thresher.verify(study.events()).sound
    assert "the host which chose the order of the cases had shuffled them" in study.verdict().guarantee


def test_cases_that_are_known_or_pending_are_left_out() -> None:
    study = study_of()
    first, _ = ask_study_for_cases(study, "a", [7, 3])
    study.tell(first, 1.0)
    assert [pull.case for pull in ask_study_for_cases(study, "a", [3, 7, 5])] == [5]
    assert [pull.case for pull in ask_study_for_cases(study, "b", [7])] == [7]


def test_a_dropped_case_keeps_its_place() -> None:
    study = study_of()
    first, _ = ask_study_for_cases(study, "a", [7, 3])
    study.drop(first, cause="lost")
    ask_study_for_cases(study, "a", [5])
    (again,) = ask_study_for_cases(study, "a", [7])
    places = peek_study(study, lambda ledger: [ledger.sheet.place[pull] for pull in (1, 2, 3, again.id)])
    assert places == [0, 1, 2, 0]
    assert thresher.verify(study.events()).sound


def test_named_and_unnamed_pulls_of_an_arm_never_meet_a_case_twice() -> None:
    study, draws = study_of(at_least=0.6, confidence=0.999), random.Random(1)
    met = []
    while not study.done:
        free = peek_study(
            study, lambda ledger: [case for case in range(20) if ledger.cases and ledger.cases.is_free(0, case)]
        )
        if draws.random() < 0.5 and free and (named := ask_study_for_cases(study, "a", [draws.choice(free)])):
            pull = named[0]
        else:
            pull = study.ask(arm="a") or study.ask()  # type: ignore[assignment]
            assert pull is not None
        if draws.random() < 0.2:
            study.drop(pull, cause="lost")
            continue
        met.append((pull.arm, pull.case))
        study.tell(pull, draws.random() < 0.6)
    assert len(met) == len(set(met))
    assert thresher.verify(study.events()).sound
    assert peek_study(study, lambda ledger: fold_ledger(study.events()).state() == ledger.state())


def test_upcoming_is_the_order_in_which_ask_hands_out_cases() -> None:
    study = study_of(confidence=None)
    first = study.ask_many(4, arm="a")
    ask_study_for_cases(study, "a", [peek_study(study, lambda ledger: ledger.cases.upcoming(0)[3])])  # type: ignore[union-attr]
    study.drop(first[1], cause="lost")
    upcoming = peek_study(study, lambda ledger: ledger.cases.upcoming(0))  # type: ignore[union-attr]
    assert upcoming[0] == first[1].case
    assert [pull.case for pull in study.ask_many(20, arm="a")] == upcoming


@pytest.mark.parametrize("case", ["20", "x", "-1", "07", "²"])
def test_a_log_that_names_no_case_of_the_study_is_wrong(case: str) -> None:
    study = study_of()
    ask_study_for_cases(study, "a", [7])
    log = study.events()
    assert not thresher.verify([log[0], log[1]._replace(reason=case)]).sound


def test_a_log_that_names_a_pending_case_is_wrong() -> None:
    study = study_of()
    ask_study_for_cases(study, "a", [7, 3])
    log = study.events()
    assert not thresher.verify([*log[:2], log[2]._replace(reason="7")]).sound


@pytest.mark.parametrize("question", [{"guarantee": "rate"}, {"at_least": None, "baseline": "b"}])
def test_a_host_names_no_case_where_the_certificate_needs_the_studys_own_order(question: dict[str, object]) -> None:
    study = study_of(**question)
    arm = "b" if "baseline" in question else "a"
    with pytest.raises(InvalidInput, match="guarantee 'all'"):
        ask_study_for_cases(study, arm, [7])
    assert len(study.events()) == 1


def test_certificates_hold_when_a_shuffling_host_drops_pulls_by_their_outcome() -> None:
    """Each bad outcome is dropped at first, half of them for good; the set's mean is just below the bar."""
    wrong, studies = 0, 60
    for seed in range(studies):
        draws = random.Random(seed)
        order, study = list(range(60)), study_of(60, seed=seed, at_least=0.5)
        draws.shuffle(order)
        good = set(draws.sample(range(60), 29))
        again = []
        for case in order:
            for pull in ask_study_for_cases(study, "a", [case]):
                if case in good:
                    study.tell(pull, 1.0)
                else:
                    study.drop(pull, cause="lost")
                    again += [case] if draws.random() < 0.5 else []
        for case in again:
            for pull in ask_study_for_cases(study, "a", [case]):
                study.tell(pull, 0.0)
        row = study.verdict()["a"]
        wrong += row.certified and row.reached is True
    assert wrong <= most(studies, 0.05)
