"""A reward belongs to one draw of one pull of one study: no other study, log or draw may take it for its own."""

import pickle
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest
from engines import until

import thresher
from thresher.core.events import Event
from thresher.core.ledger import apply_to_ledger, fold_ledger
from thresher.core.replay import verify
from thresher.errors import Interrupted, InvalidInput
from thresher.log.store import MemoryStore
from thresher.study import exchange_in_study, peek_study

CAVEAT = "Some evaluations were, or may have been, repeated"


def make(**given: Any) -> thresher.Study:
    return thresher.create_study("s", **{"arms": ["good", "bad"], "at_least": 0.5, **given})


def tickets(study: thresher.Study) -> list[str]:
    return [pull.ticket for pull in study.pending()]


# -- which study, which log ------------------------------------------------------------------------------------------


def test_a_ticket_names_a_pull_of_one_study_and_no_other_of_the_same_name() -> None:
    store = MemoryStore()
    old = make(storage=store)
    pulls = old.ask_many(20, arm="bad")
    stale = tickets(old)
    store.delete("s")
    new = make(storage=store)
    new.ask_many(20, arm="bad")
    fresh = tickets(new)
    assert [ticket.split("-")[0] for ticket in stale] == [ticket.split("-")[0] for ticket in fresh]
    before = new.events()
    for ticket in stale:
        for call in (lambda t: new.tell(t, 1), new.drop, lambda t: new.renew([t], 60)):
            with pytest.raises(thresher.UnknownPull, match=f"{ticket}': was not issued by this study as it is now"):
                call(ticket)
    for pull in pickle.loads(pickle.dumps(pulls)):
        with pytest.raises(thresher.UnknownPull, match="was not issued by this study as it is now"):
            new.tell(pull, 1)
    assert new.events() == before
    new.tell(fresh[0], 0)
    new.drop(fresh[1], cause="lost")
    assert (new.verdict().told, new.verdict()["bad"].certified) == (1, False)


def test_a_ticket_is_the_same_in_every_process() -> None:
    store = MemoryStore()
    study = make(storage=store)
    pulls = study.ask_many(3)
    assert tickets(thresher.open_study("s", storage=store)) == tickets(study) == [pull.ticket for pull in pulls]
    assert len({pull.tag for pull in pulls}) == 3


@pytest.mark.parametrize("change", [{"tag": 1}, {"tag": None, "number": 2}, {"tag": None, "arm": "good"}])
def test_a_pull_that_this_study_did_not_issue_is_refused(change: dict[str, Any]) -> None:
    study = make()
    (pull,) = study.ask_many(1, arm="bad")
    other = pull._replace(**change)
    calls: list[Callable[[], object]]
    calls = [lambda: study.tell(other, 1), lambda: study.drop(other, cause="lost"), lambda: study.renew(other, 60)]
    for call in calls:
        with pytest.raises(thresher.UnknownPull, match="was not issued by this study as it is now"):
            call()
    study.tell(pull._replace(tag=None), 1)
    study.tell(pull, 1)
    assert study.verdict()["bad"].seen == 1


def test_an_agent_of_a_store_that_was_set_back_stops_and_tells_nothing(tmp_path: Path) -> None:
    """A copy is restored under a live agent: what was acknowledged is gone, and its pulls are other ones now."""
    url, file = f"sqlite:///{tmp_path}/s.db", str(tmp_path / "s.db")
    live = make(storage=url)
    live.tell(live.ask() or 0, 1)
    copy = apsw.Connection(":memory:")
    with copy.backup("main", apsw.Connection(file), "main") as backup:
        backup.step()
    mine = live.ask_many(20, arm="good")
    for _ in range(5):
        live.tell(live.ask(arm="good") or 0, 1)
    target = apsw.Connection(file)
    with target.backup("main", copy, "main") as backup:
        backup.step()
    target.close()
    other = thresher.open_study("s", storage=url)
    other.ask_many(30, arm="bad")
    gone = r"was set back while this agent worked on it: event 33, which was acknowledged, is gone; open it again"
    for pull in mine:
        with pytest.raises(thresher.StudyDeleted, match=gone):
            live.tell(pull, 1)
    with pytest.raises(thresher.StudyDeleted, match=gone):
        live.verdict()
    again = thresher.open_study("s", storage=url)
    with pytest.raises(thresher.UnknownPull, match="was not issued by this study as it is now"):
        again.tell(mine[0], 1)
    assert again.verdict()["bad"].seen == 0
    assert verify(again.events()).sound


def test_events_that_another_agent_never_had_acknowledged_may_be_lost() -> None:
    """A server that crashes loses what it had not flushed: those who only read that go on."""
    store = MemoryStore()
    study, other = make(storage=store), thresher.open_study("s", storage=store)
    study.tell(study.ask() or 0, 1)
    other.ask()
    assert study.verdict().issued == 2
    del store.logs["s"][-1:]
    assert study.verdict().issued == 1
    assert (study.ask() or pytest.fail("no pull")).id == 2


def test_a_call_that_writes_nothing_does_not_forget_what_was_acknowledged() -> None:
    store = MemoryStore()
    study = make(storage=store)
    pull = study.ask() or pytest.fail("no pull")
    study.tell(pull, 1)
    study.tell(pull, 1)
    del store.logs["s"][-1:]
    with pytest.raises(thresher.StudyDeleted, match="event 3, which was acknowledged, is gone"):
        study.verdict()


class Slow(MemoryStore):
    """The connection breaks during an append, which arrives all the same, just before the next one."""

    held: list[Event] | None = None
    options: Any = None
    breaks = False

    def append(self, study: str, events: Sequence[Event], **options: Any) -> None:
        if self.breaks and self.held is None:
            self.held, self.options = list(events), options
            raise Interrupted("storage", rule="the connection was lost")
        if self.breaks and self.held is not None:
            self.breaks = False
            super().append(study, self.held, **self.options)
        super().append(study, events, **options)


def test_the_reply_to_an_ask_has_the_ticket_that_is_in_the_log() -> None:
    store = Slow()
    study = make(storage=store)
    store.breaks = True
    asked = exchange_in_study(study, (), 1, lease=60)
    assert [pull.ticket for pull in asked.pulls] == tickets(study)
    study.tell(asked.pulls[0].ticket, 1)


# -- which draw ------------------------------------------------------------------------------------------------------


def test_a_pull_that_a_repeated_ask_hands_out_again_is_told_as_repeatable() -> None:
    """Whoever got it first may have evaluated it, and died of what it saw."""
    rng = random.Random(1)
    study = make(arms=["a"], budget=400)
    step = 0
    while not study.done:
        step += 1
        while pulls := study.ask_many(1, key=f"step {step}"):
            good = rng.random() < 0.45
            if good or rng.random() < 0.5:  # otherwise the agent dies, and its successor repeats the ask
                break
        for pull in pulls:
            study.tell(pull, good)
    assert study.verdict()["a"].certified, "of the mean of what the agents finally told"
    assert CAVEAT in study.verdict().guarantee
    again = [event.pull for event in study.events() if event.kind == "repeated"]
    assert len(again) == len(set(again)) > 20, "each once"
    assert verify(study.events()).sound
    assert peek_study(study, lambda ledger: ledger.state()) == fold_ledger(study.events()).state()


def test_asking_again_for_what_has_a_reward_repeats_nothing() -> None:
    study = make()
    (pull,) = study.ask_many(1, key="one")
    study.tell(pull, 1)
    assert study.ask_many(1, key="one") == [pull]
    assert [event.kind for event in study.events()] == ["created", "asked", "told"]
    assert CAVEAT not in study.verdict().guarantee


def test_a_pull_that_was_handed_out_again_keeps_its_lease_and_its_row(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = make(storage=url)
    (pull,) = study.ask_many(1, lease=3600, key="one")
    study.ask_many(1, lease=0.001, key="one")
    assert [(row.id, row.state) for row in study.pulls()] == [(pull.id, "pending")]
    other = thresher.open_study("s", storage=url)
    until(lambda: other.sweep() > 0, "the end of the lease", 10)
    assert [event.kind for event in study.events()] == ["created", "asked", "repeated", "dropped"]
    assert [(row.id, row.state) for row in study.pulls()] == [(pull.id, "dropped")]
    study.tell(pull, 1)
    assert CAVEAT in study.verdict().guarantee


@pytest.mark.parametrize("first", [False, True])
def test_an_agent_that_says_later_that_it_repeated_is_heard(first: bool) -> None:
    study = make()
    pull = study.ask() or pytest.fail("no pull")
    study.tell(pull, 1, repeatable=first)
    for _ in range(2):
        study.tell(pull, 1, repeatable=True)
    assert CAVEAT in study.verdict().guarantee
    kinds = [event.kind for event in study.events()]
    assert kinds == ["created", "asked", "told"] + ["repeated"] * (not first)
    assert study.pulls()[0].state == "told"


def test_what_is_handed_out_again_after_its_lease_has_ended_counts_as_repeated() -> None:
    study = make(cases=4)
    (pull,) = study.ask_many(1, key="one")
    study.drop(pull, cause="lost")
    assert study.ask_many(1, key="one") == [pull]
    study.tell(pull, 1)
    assert CAVEAT in study.verdict().guarantee


@pytest.mark.parametrize(
    "change", [{"arm": 1}, {"arm": None}, {"reward": 1.0}, {"late": True}, {"cause": "lost"}, {"pull": 9}, {"seq": 5}]
)
def test_a_repeated_event_has_a_pull_and_its_arm_and_comes_once(change: dict[str, Any]) -> None:
    ledger = fold_ledger([Event(1, "created", spec=make().spec.to_json()), Event(2, "asked", 1, 0)])
    event = Event(3, "repeated", 1, 0)
    with pytest.raises((InvalidInput, thresher.UnknownPull)):
        apply_to_ledger(ledger, event._replace(**change))
    apply_to_ledger(ledger, event)
    with pytest.raises(InvalidInput, match="is known to be repeated"):
        apply_to_ledger(ledger, event._replace(seq=4))


# -- whose rewards ---------------------------------------------------------------------------------------------------


def test_imported_charges_do_not_hide_that_another_version_measured(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = make(storage=url, version="v1")
    study.add_many([("good", None)] * 40)
    for _ in range(30):
        study.tell(study.ask() or 0, 1)
    with pytest.raises(thresher.StudyExists, match="version has changed"):
        make(storage=url, version="v2", if_exists="join")
