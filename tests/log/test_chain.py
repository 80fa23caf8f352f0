"""The chain of a log: what a digest covers, that no two events share one, and that it is the same everywhere."""

import itertools
from typing import Any

import pytest

import thresher
from thresher.core.events import Event
from thresher.log.reader import read_log_pages
from thresher.log.store import SIZE, START, MemoryStore, chained_in_store, store_chain_digest
from thresher.study import peek_study

FULL = Event(
    7, "told", 3, 2, 0.1, "why ✓", "failed", True, 90, {"b": [1, 2.5, None], "a": "ü"}, "k-1", 1.75e9, "host:1"
)
VALUES: dict[str, list[Any]] = {
    "seq": [1, 2, 10, 256, 2**62],
    "kind": ["told", "", "tol", "asked", "=", "told=", "1"],
    "pull": [None, 0, 1, 2, 256, 2**62],
    "arm": [None, 0, 1, 2, 256],
    "reward": [None, 0.0, 1.0, 0.1, 5e-324, 1e308, 0.1 + 2**-56],
    "reason": [None, "", "x", "=", "=x", "None", "x=", "ü", "u\N{COMBINING DIAERESIS}"],
    "cause": [None, "", "x", "=", "failed"],
    "late": [None, False, True],
    "budget": [None, 0, 1, 2, 2**62],
    "spec": [None, {}, {"a": 1}, {"a": 1.0}, {"a": "1"}, {"a": None}, {"b": 1}, {"a": [1]}, [], ""],
    "key": [None, "", "x", "=", "None", "k"],
    "time": [None, 0.0, 1.0, 1.5],
    "agent": [None, "", "x", "=", "host:1"],
}


def test_the_digest_is_this_one_on_every_machine_and_in_every_version() -> None:
    """Stores and exports contain these digests: if this fails, they can no longer be read."""
    events = [
        Event(1, "created", spec={"arms": ["a"], "x": 0.1}, key="b", time=1.5),
        FULL,
        Event(3, "asked", 2, 0, time=2.0),
    ]
    assert [event.digest.hex() for event in chained_in_store(events) if event.digest] == GOLDEN
    usual = [
        Event(4, "asked", 1, 0, key="k", time=2.5, agent="h:1"),
        Event(5, "told", 1, 0, 0.5, key="k", time=3.0, agent="h:1"),
    ]
    assert [event.digest.hex() for event in chained_in_store(usual) if event.digest] == USUAL


def test_a_digest_covers_every_field_but_itself() -> None:
    assert set(VALUES) == set(Event._fields) - {"digest"}
    for base in (FULL, Event(7, "asked", 3, 2, key="k", time=1.0, agent="a"), Event(7, "weighed")):
        for field, values in VALUES.items():
            variants = [base._replace(**{field: value}) for value in values]
            assert len({store_chain_digest(START, event) for event in variants}) == len(values), field
    assert store_chain_digest(START, FULL._replace(digest=bytes(SIZE))) == store_chain_digest(START, FULL)


def test_a_text_in_another_field_is_another_event() -> None:
    some = ["", "x", "=", None]
    seen = {
        store_chain_digest(START, Event(1, kind, key=key, agent=agent, reason=reason, cause=cause))  # type: ignore[arg-type]
        for kind, (key, agent, reason, cause) in itertools.product(["", "x", "="], itertools.product(some, repeat=4))
    }
    assert len(seen) == 3 * 4**4


def test_a_digest_follows_from_all_events_before() -> None:
    events = [Event(seq, "asked", seq, 0) for seq in range(1, 6)]
    other = [events[0]._replace(arm=1), *events[1:]]
    assert all(
        one.digest != two.digest for one, two in zip(chained_in_store(events), chained_in_store(other), strict=True)
    )


@pytest.mark.parametrize("wrong", [{"pull": "3"}, {"arm": 1.5}, {"reward": "high"}, {"key": b"k"}, {"seq": 2**70}])
def test_something_that_is_not_an_event_has_no_digest(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a field is of the wrong type"):
        store_chain_digest(START, FULL._replace(**wrong))


def test_a_specification_has_one_digest_however_it_is_written() -> None:
    one, two = (
        FULL._replace(spec={"a": (1, 2), "b": {"c": 1, "d": 2}}),
        FULL._replace(spec={"b": {"d": 2, "c": 1}, "a": [1, 2]}),
    )
    assert store_chain_digest(START, one) == store_chain_digest(START, two)


def test_every_event_of_a_study_is_chained_and_the_verdict_names_the_head() -> None:
    store = MemoryStore()
    study = thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=20, storage=store)
    while pull := study.ask():
        study.tell(pull, 1)
    events = study.events()
    assert list(events) == chained_in_store([event._replace(digest=None) for event in events])
    assert events[-1].digest is not None
    verdict = study.verdict()
    assert (verdict.events, verdict.head) == (len(events), events[-1].digest.hex())
    assert verdict.to_dict()["head"] == verdict.head
    assert [event for page in read_log_pages(store, "s") for event in page] == events


def test_reasons_and_keys_are_chained_as_they_are_stored() -> None:
    study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=9, max_failures=None)
    for number, reason in enumerate(["", "a\0b", "\ud800", "✓" * 20_000, "="]):
        (pull,) = study.ask_many(1, lease=60, key=f"\0{number}")
        study.drop(pull, reason=reason, cause="lost")
    assert peek_study(thresher.open_study("s", storage=study.store), lambda ledger: ledger.issued) == 5


GOLDEN = [
    "43d92fefc6e76d0136715c14e76229d9",
    "29ef048f8829c01858856663458e2052",
    "d6dd2233d234e684c1a11575c76b75e0",
]
USUAL = [
    "e931d989722d84bee6b8daf0a24ecffa",
    "48907d2e269da32724c02f1266912edb",
]
