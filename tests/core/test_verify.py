"""verify finds the first wrong event in a log, and says what is wrong."""

from collections.abc import Callable
from typing import Any

import pytest

import thresher
from thresher.core import policies, state
from thresher.core.events import Event
from thresher.core.ledger import fold_ledger
from thresher.core.replay import replayed_state_digest, verify
from thresher.study import give_up_in_study


def history(**given: Any) -> list[Event]:
    """A log with every kind of event."""
    settings: dict[str, Any] = {"arms": [*"abcd"], "at_least": 0.5, "budget": 80, "max_failures": 2, "seed": 0}
    study = thresher.create_study("s", **settings | given)
    study.add_many([("a", 0.25), ("d", 0.5)])
    while pulls := study.ask_many(3):
        for pull in reversed(pulls):
            if pull.arm == "c":
                study.drop(pull, cause="failed", reason="broken")
            elif pull.id % 7 == 0:
                study.drop(pull, cause="lost")
                study.tell(pull, 0.125)
            elif pull.id % 11 == 0:
                give_up_in_study(study, pull, cause="cancelled", reason="never began")
            else:
                study.tell(pull, pull.seed / 2**32)
        if pulls[-1].id == 41:
            study.extend(budget=100)
            study.restore("c")
    return list(study.events())


@pytest.mark.parametrize("policy", sorted(policies.CONSTRUCTORS))
def test_what_a_study_writes_is_sound(policy: str) -> None:
    log = history(policy=policy)
    report = verify(log)
    assert report.sound, report
    assert report.events == len(log)
    assert {event.kind for event in log} >= {"asked", "told", "dropped", "retired", "extended", "restored"}
    assert report.anywhere == (policy != "lsa")


def test_a_study_of_many_arms_has_the_state_that_one_of_few_would_have(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [history(), history(guarantee="rate")]
    digests = [replayed_state_digest(fold_ledger(log)) for log in logs]
    monkeypatch.setattr(state, "FEW", 0)
    assert [verify(log).digest for log in logs] == digests


def changed(log: list[Event], kind: str, nth: int, /, **fields: Any) -> tuple[list[Event], int]:
    event = [event for event in log if event.kind == kind][nth]
    return [each._replace(**fields) if each is event else each for each in log], event.seq


WRONG: dict[str, tuple[Callable[[list[Event]], tuple[list[Event], int]], str]] = {
    "another arm": (
        lambda log: changed(log, "asked", 20, arm=1 - ([e for e in log if e.kind == "asked"][20].arm or 0) % 2),
        "where the rule says",
    ),
    "an arm that is not there": (lambda log: changed(log, "asked", 20, arm=9), "where the rule says"),
    "a reward out of bounds": (lambda log: changed(log, "told", 9, reward=1.5), "within the bounds"),
    "a reward that is none": (lambda log: changed(log, "told", 9, reward=None), "finite number"),
    "a reward for another arm": (lambda log: changed(log, "told", 9, arm=2), "is of arm"),
    "a reward for no pull": (lambda log: changed(log, "told", 9, pull=4000), "has issued pulls"),
    "a kind from the future": (lambda log: changed(log, "told", 9, kind="sung"), "update thresher"),
    "late without a drop": (lambda log: changed(log, "told", 9, late=True), "marks rewards of dropped pulls"),
    "asked before imports are weighed": (
        lambda log: (
            [e._replace(seq=i) for i, e in enumerate((e for e in log if e.kind != "weighed"), start=1)],
            next(e.seq for e in log if e.kind == "weighed"),
        ),
        "weighed first",
    ),
    "weighed twice": (lambda log: changed(log, "told", 9, kind="weighed"), "no imported results"),
    "a good reward called outside": (
        lambda log: changed(log, "told", 9, kind="retired", cause="bounds"),
        "lies within the bounds",
    ),
    "a smaller budget": (lambda log: changed(log, "extended", 0, budget=50), "must be larger"),
    "a second beginning": (lambda log: changed(log, "told", 9, kind="created"), "update thresher"),
    "nothing": (lambda log: ([], 1), "must begin with event 1"),
    "no beginning": (lambda log: (log[1:], 1), "must begin with event 1"),
    "a gap": (lambda log: (log[:30] + log[31:], 31), "gap"),
    "an event twice": (lambda log: (log[:30] + log[29:], 31), "gap"),
    "a retirement left out": (
        lambda log: (
            [e._replace(seq=i) for i, e in enumerate((e for e in log if e.kind != "retired"), start=1)],
            next(e.seq for e in log if e.kind == "retired"),
        ),
        "retirement",
    ),
    "a retirement too early": (
        lambda log: changed(log, "told", 9, kind="retired", cause="failures", pull=None, reward=None),
        "not failed often enough",
    ),
    "more than the budget": (
        lambda log: ([*log, Event(len(log) + 1, "asked", 101, 0)], len(log) + 1),
        "the study was done",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_the_first_wrong_event_is_named(what: str) -> None:
    tamper, words = WRONG[what]
    log, seq = tamper(history())
    report = verify(log)
    assert not report.sound
    assert report.digest is None
    assert (report.wrong, report.events) == (seq, seq - 1)
    assert words in (report.reason or ""), report


def test_a_log_that_ends_before_a_required_retirement_is_incomplete() -> None:
    log = history()
    seq = next(event.seq for event in log if event.kind == "retired")
    report = verify(log[: seq - 1])
    assert (report.wrong, "missing" in (report.reason or "")) == (seq, True)


def test_the_digest_is_of_the_state_and_not_of_time_agent_or_key() -> None:
    log = history()
    elsewhere = [event._replace(time=None, agent="other:1", key=f"k{event.seq}") for event in log]
    assert verify(elsewhere).digest == verify(log).digest


def test_the_digest_sees_the_last_bit() -> None:
    log = history()
    last = max(event.seq for event in log if event.kind == "told")
    other = [e._replace(reward=(e.reward or 0) + 2**-53) if e.seq == last else e for e in log]
    assert verify(other).sound
    assert verify(other).digest != verify(log).digest


def test_the_digest_is_this_one_on_every_machine() -> None:
    """If this fails only on your machine, decisions differ there. If the state has new columns, update the digest."""
    assert replayed_state_digest(fold_ledger(history())) == DIGEST


DIGEST = "2dc371827c1c1e9dc216c501ac92fbda154e8138b83603977a02d8235f20dba6"
