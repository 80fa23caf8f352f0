"""Notes and costs: kept for people, with no effect on anything else."""

import json
import sys
from typing import Any

import pytest

import thresher
from thresher.core.events import Event, EventRemarks, event_remarks
from thresher.core.ledger import apply_to_ledger, new_ledger
from thresher.core.validity import check_event_validity
from thresher.run.command.protocol import Noted
from thresher.run.command.protocol import protocol_remarks as spoken
from thresher.study import peek_study


def study(**given: Any) -> thresher.Study:
    return thresher.create_study("s", arms=["a", "b"], budget=40, **{"at_least": 0.5} | given)


def filled(*, remarks: bool, **given: Any) -> thresher.Study:
    """A study of 20 rewards, with or without remarks."""
    found = study(**given)
    for number in range(20):
        pull = found.ask()
        assert pull
        reward = (number % 3 / 2, 0.5) if pull.baseline else number % 3 / 2
        more: dict[str, Any] = {"note": f"number {number}", "cost": 0.5} if remarks else {}
        found.tell(pull, reward, **more)
    return found


@pytest.mark.parametrize("given", [{}, {"at_least": None, "baseline": "a", "bounds": (0, 1)}])
def test_notes_and_costs_are_kept_and_change_nothing_else(given: dict[str, Any]) -> None:
    plain, noted = filled(remarks=False, **given), filled(remarks=True, **given)
    assert [(row.note, row.cost) for row in noted.pulls()][:2] == [("number 0", 0.5), ("number 1", 0.5)]
    assert {(row.note, row.cost) for row in plain.pulls()} == {(None, None)}
    assert (noted.verdict().cost, plain.verdict().cost) == (10.0, None)
    assert noted.verdict().rows == plain.verdict().rows
    assert [(event.kind, event.arm) for event in noted.events()] == [
        (event.kind, event.arm) for event in plain.events()
    ]
    assert [row.baseline for row in noted.pulls()] == [row.baseline for row in plain.pulls()]
    assert thresher.verify(noted.events()).sound
    again = new_ledger(noted.spec)
    for event in noted.events()[1:]:
        apply_to_ledger(again, event)
    assert (again.cost, again.remarks) == peek_study(noted, lambda ledger: (ledger.cost, ledger.remarks))


def test_the_same_reward_again_is_accepted_and_the_first_note_stays() -> None:
    found = study()
    pull = found.ask()
    assert pull
    found.tell(pull, 1, note="first")
    found.tell(pull, 1, note="second", cost=3)
    assert [(row.note, row.cost) for row in found.pulls()] == [("first", None)]


def test_the_note_and_the_cost_of_a_reward_outside_the_bounds_are_in_the_reason() -> None:
    found = study()
    pull = found.ask()
    assert pull
    with pytest.raises(thresher.OutsideBounds):
        found.tell(pull, 7, note="7 of 10", cost=0.25)
    assert (found.verdict()[pull.arm].reason or "").endswith("; cost 0.25; note: 7 of 10")
    assert (found.verdict().cost, thresher.verify(found.events()).sound) == (None, True)


def reason_of_a_failure(text: str) -> str:
    found = study()
    pull = found.ask()
    assert pull
    found.drop(pull, cause="failed", reason=text)
    return found.verdict()[pull.arm].reason or ""


def test_a_note_is_kept_without_secrets_and_not_too_long() -> None:
    found = study()
    pull = found.ask()
    assert pull
    found.tell(pull, 1, note="password=hunter2 \0 \ud800 " + "x" * 20_000)
    (row,) = [row for row in found.pulls() if row.note]
    assert row.note
    assert row.note.startswith("password=*** ")
    assert len(row.note) == 10_000 == len(reason_of_a_failure("x" * 20_000)), "one limit for both"


@pytest.mark.parametrize("cost", [-1, float("nan"), float("inf"), "0.1", True])
def test_a_wrong_cost_is_refused(cost: Any) -> None:
    found = study()
    pull = found.ask()
    assert pull
    with pytest.raises(thresher.InvalidInput, match="cost"):
        found.tell(pull, 1, cost=cost)
    assert found.verdict().pending == 1


FORGED = (
    "a text",
    "0.5",  # a baseline's reward, where there are no pairs
    "{}",
    '{"cost": -1.0}',
    '{"cost": 1}',
    '{"cost": NaN}',
    '{"cost":0.5}',  # not as it is written
    '{"note": ""}',
    '{"note": 3}',
    '{"cost": 0.5, "cost": 0.5}',
    '{"note": "x", "cost": 0.5}',  # not sorted
    '{"cost": 0.5, "more": 1}',
    '{"baseline": 0.5, "cost": 0.5}',
    "[" * 100_000,
    '{"note": ' + "[" * 100_000,
)


@pytest.mark.parametrize("reason", FORGED, ids=lambda reason: str(reason)[:30])
def test_a_forged_remark_is_refused(reason: str) -> None:
    found = study()
    pull = found.ask()
    assert pull
    event = Event(3, "told", 1, 0, 1.0, reason=reason)
    with pytest.raises(thresher.InvalidInput):
        peek_study(found, lambda ledger: check_event_validity(ledger, event))
    peek_study(
        found, lambda ledger: check_event_validity(ledger, event._replace(reason='{"cost": 0.5, "note": "fine"}'))
    )


def test_a_pair_keeps_the_baselines_reward_with_its_remarks() -> None:
    remarks = EventRemarks(0.25, "cut off", 0.5)
    assert json.loads(remarks.text() or "") == {"baseline": 0.25, "cost": 0.5, "note": "cut off"}
    assert event_remarks(Event(3, "told", 1, 0, 1.0, reason=remarks.text())) == remarks
    found = study(at_least=None, baseline="a", bounds=(0, 1))
    pull = found.ask()
    assert pull
    for reason in ('{"cost": 0.5}', "0.250", '{"baseline": 7.0, "cost": 0.5}'):
        event = Event(3, "told", 1, 1, 1.0, reason=reason)
        with pytest.raises(thresher.InvalidInput):
            peek_study(found, lambda ledger, event=event: check_event_validity(ledger, event))  # type: ignore[misc]


def test_costs_beyond_all_numbers_are_counted_as_the_largest() -> None:
    """So that a cost ends no run, and every verdict can be written as JSON."""
    sides = (Noted(1.0, cost=1e308), Noted(0.5, cost=1e308))
    assert spoken(sides) == (None, sys.float_info.max)
    found = study()
    for _ in range(3):
        pull = found.ask()
        assert pull
        found.tell(pull, 1, cost=1e308)
    assert json.loads(json.dumps(found.verdict().to_dict(), allow_nan=False))["cost"] == sys.float_info.max
