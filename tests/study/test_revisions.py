"""A study asked again: what still holds is taken over, what changed is evaluated, and nothing else is.

Rewards are a fixed function of the arm, the draw or case, and a text that stands for a file's content.
"""

import hashlib
import importlib
import random
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import thresher
from thresher.core.ledger import fold_ledger
from thresher.core.replay import verify
from thresher.core.state import State
from thresher.log.store import MemoryStore, Store
from thresher.study import peek_study

CASES = [f"q{number}" for number in range(60)]
RATES = {"good": 0.95, "fair": 0.7, "bad": 0.2, "base": 0.5, "new": 0.9}
Counts = dict[str, int]


def share(*parts: object) -> float:
    """A number in [0, 1) that only depends on these."""
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return int.from_bytes(digest[:6]) / 2**48


def right(pull: thresher.Pull, *, draw: int, content: str = "") -> bool:
    return share(pull.arm, draw, content) < RATES[pull.arm]


class Asked:
    """A study that is asked again and again in one store; the pulls of each time, by arm."""

    def __init__(self, store: Store, **question: Any) -> None:
        self.store, self.question = store, {"arms": ["good", "bad"], "at_least": 0.5, **question}
        self.pulls: list[thresher.Pull] = []

    def again(self, content: str = "", *, if_exists: str = "revise", **changes: Any) -> Counts:
        self.question |= changes
        self.study = thresher.create_study("s", **self.question, storage=self.store, if_exists=if_exists)  # type: ignore[arg-type]
        counts: Counts = {}
        self.pulls = []
        while pull := self.study.ask():
            draw = hash(pull.case) if pull.case is None else CASES.index(str(pull.case))
            draw = pull.seed if pull.case is None else draw
            reward = right(pull, draw=draw, content=content)
            other = share("base", draw) < RATES["base"] if pull.baseline is not None else None
            self.study.tell(pull, reward if other is None else (reward, other))
            counts[pull.arm] = counts.get(pull.arm, 0) + 1
            self.pulls.append(pull)
        self.check()
        return counts

    def check(self) -> None:
        """Reopening equals the live state bit for bit, and the log is sound."""
        events = self.study.events()
        live = peek_study(self.study, State.state)
        assert fold_ledger(events).state() == live
        assert peek_study(thresher.open_study("s", storage=self.store), State.state) == live
        assert verify(events).sound

    @property
    def answers(self) -> dict[str, str]:
        return {row.arm: row.standing for row in self.study.verdict()}


@pytest.fixture(autouse=True)
def _drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seeds that revisions draw: the tests have the same luck each time."""
    monkeypatch.setattr("os.urandom", random.Random(1).randbytes)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    from thresher.log.store import open_store

    return MemoryStore() if request.param == "memory" else open_store(tmp_path / "s.db")


KINDS: dict[str, dict[str, Any]] = {
    "draws": {},
    "cases": {"cases": CASES},
    "share": {"share": 0.5, "at_least": 0.5},
    "rate": {"guarantee": "rate"},
    "baseline with cases": {"arms": ["base", "good", "bad"], "baseline": "base", "at_least": None, "cases": CASES},
    "baseline with pairs": {"arms": ["base", "good", "bad"], "baseline": "base", "at_least": None},
    "tolerance": {"tolerance": 0.05},
}


def kinds(*names: str) -> Callable[[Any], Any]:
    return pytest.mark.parametrize("kind", names or list(KINDS))


# -- arms --------------------------------------------------------------------------------------------------------------


@kinds()
def test_nothing_changed_so_nothing_is_asked_and_there_is_no_revision(kind: str, store: Store) -> None:
    asked = Asked(store, **KINDS[kind])
    first = asked.again()
    answers = asked.answers
    assert sum(first.values()) > 0
    assert asked.again() == {}
    assert (asked.study.revision, asked.answers) == (1, answers)


@kinds()
def test_an_arm_that_is_added_is_evaluated_and_the_others_hardly(kind: str, store: Store) -> None:
    asked = Asked(store, **KINDS[kind])
    first = asked.again()
    answers = asked.answers
    more = asked.again(arms=[*asked.question["arms"], "new"])
    assert asked.study.revision == 2
    assert more.pop("new") > 0
    assert sum(more.values()) < sum(first.values())
    assert answers.items() <= asked.answers.items()
    assert asked.study.verdict().issued == sum(first.values()) + len(asked.pulls)


@kinds()
def test_removing_an_arm_evaluates_nothing_and_its_return_neither(kind: str, store: Store) -> None:
    asked = Asked(store, **KINDS[kind])
    asked.again()
    arms, answers = asked.question["arms"], asked.answers
    assert asked.again(arms=[arm for arm in arms if arm != "bad"]) == {}
    assert "bad" not in asked.answers
    assert asked.again(arms=arms) == {}
    assert (asked.study.revision, asked.answers) == (3, answers)


@kinds()
def test_another_order_of_the_arms_is_no_change(kind: str, store: Store) -> None:
    asked = Asked(store, **KINDS[kind])
    asked.again()
    assert asked.again(arms=asked.question["arms"][::-1]) == {}


@kinds("draws", "cases", "share", "rate", "tolerance")
def test_an_arm_with_other_parameters_begins_anew_and_the_others_go_on(kind: str, store: Store) -> None:
    asked = Asked(store, **{"arms": {"good": {"depth": 1}, "bad": {"depth": 1}}, **KINDS[kind]})
    asked.again()
    seeds = {pull.seed for pull in asked.pulls if pull.arm == "good"}
    again = asked.again("deeper", arms={"good": {"depth": 2}, "bad": {"depth": 1}})
    assert again.keys() == {"good"}
    assert not seeds & {pull.seed for pull in asked.pulls}, "nothing is drawn twice"
    assert asked.study.verdict()["good"].seen == again["good"]


@kinds("draws", "cases")
def test_an_arm_that_comes_back_with_its_old_parameters_has_its_old_evidence(kind: str, store: Store) -> None:
    asked = Asked(store, **{**KINDS[kind], "arms": {"good": {"depth": 1}}})
    asked.again()
    row = asked.study.verdict()["good"]
    asked.again("deeper", arms={"good": {"depth": 2}})
    assert asked.again(arms={"good": {"depth": 1}}) == {}
    assert asked.study.verdict()["good"].mean == row.mean


# -- the question ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change", [{"at_least": 0.45}, {"tolerance": 0.1}, {}, {"policy": "uniform"}, {"max_failures": 9}]
)
@kinds("draws", "cases", "rate")
def test_a_question_that_is_settled_by_what_is_known_evaluates_nothing(
    kind: str, change: dict[str, Any], store: Store
) -> None:
    asked = Asked(store, **KINDS[kind], confidence=1 - 1e-6)
    asked.again()
    assert asked.again(**change, confidence=0.8) == {}
    assert asked.study.revision == 2
    assert all(row.certified for row in asked.study.verdict())


@kinds("draws", "cases", "tolerance")
def test_a_harder_question_goes_on_from_what_is_known(kind: str, store: Store) -> None:
    asked = Asked(store, **KINDS[kind])
    first = asked.again()
    more = asked.again(confidence=0.999)
    assert sum(more.values()) > 0
    assert asked.study.verdict().told == sum(first.values()) + sum(more.values())


def test_a_moved_bar_and_a_revised_arm_are_in_the_guarantee(store: Store) -> None:
    asked = Asked(store)
    asked.again()
    plain = asked.study.verdict().guarantee
    asked.again(at_least=0.45)
    assert asked.study.verdict().guarantee != plain


def test_a_study_that_found_its_arms_goes_on_if_more_are_to_be_found(store: Store) -> None:
    asked = Asked(store, arms=["good", "new", "fair", "bad"], find=1, cases=CASES)
    asked.again()
    assert list(asked.answers.values()).count("reaches") == 1
    held = asked.study.verdict().told
    asked.again(find=2)
    assert list(asked.answers.values()).count("reaches") == 2
    assert asked.study.verdict().told == held + len(asked.pulls)


def test_a_larger_budget_is_no_revision(store: Store) -> None:
    asked = Asked(store, budget=4)
    assert sum(asked.again().values()) == 4
    assert sum(asked.again(budget=6).values()) == 2
    assert asked.study.revision == 1


# -- cases -------------------------------------------------------------------------------------------------------------


@kinds("cases", "baseline with cases")
def test_a_case_that_changed_is_evaluated_again_and_no_result_that_holds_is(kind: str, store: Store) -> None:
    asked = Asked(store, **KINDS[kind])
    cases = {name: {"text": name} for name in CASES}
    asked.again(cases=cases)
    known = {(pull.arm, pull.case) for pull in asked.pulls}
    changed = min(str(case) for arm, case in known)
    asked.again(cases=cases | {changed: {"text": "corrected"}})
    assert not {(pull.arm, pull.case) for pull in asked.pulls if pull.case != changed} & known
    assert asked.study.revision == 2


def test_another_order_of_the_cases_is_no_change(store: Store) -> None:
    asked = Asked(store, cases=CASES)
    asked.again()
    assert asked.again(cases=CASES[::-1]) == {}
    assert asked.study.revision == 1


def test_a_case_that_failed_for_good_stays_failed_until_it_changes(store: Store) -> None:
    cases = {f"q{number}": {"text": "a"} for number in range(4)}
    question: dict[str, Any] = {"arms": ["good"], "at_least": 0.9, "confidence": None, "storage": store}

    def evaluated(cases: Any) -> set[Any]:
        study = thresher.create_study("s", cases=cases, if_exists="revise", **question)
        evaluated = set()
        while pull := study.ask():
            study.tell(pull, 1)
            evaluated.add(pull.case)
        return evaluated

    study = thresher.create_study("s", cases=cases, **question)
    failed = study.ask() or pytest.fail("no pull")
    study.drop(failed, reason="it crashed")
    cases["q9"] = {"text": "a"}
    assert evaluated(cases) == cases.keys() - {failed.case}
    cases[str(failed.case)] = {"text": "b"}
    assert evaluated(cases) == {failed.case}


# -- what results depend on --------------------------------------------------------------------------------------------


@kinds("draws", "cases", "baseline with pairs")
def test_another_version_takes_nothing_over(kind: str, store: Store) -> None:
    asked = Asked(store, **KINDS[kind])
    first = asked.again(version="1")
    again = asked.again("second", version="2")
    assert again.keys() == first.keys()
    assert asked.study.verdict().told == sum(again.values())
    assert asked.again(version="1") == {}, "what was measured with version 1 holds for it"


@kinds("draws", "cases")
def test_a_fresh_revision_takes_nothing_over(kind: str, store: Store) -> None:
    asked = Asked(store, **KINDS[kind])
    asked.again()
    seeds = {pull.seed for pull in asked.pulls}
    again = asked.again(if_exists="fresh")
    assert asked.study.verdict().told == sum(again.values()) > 0
    assert not seeds & {pull.seed for pull in asked.pulls}
    assert asked.again() == {}, "afterwards, nothing changed"


@kinds("draws", "cases")
def test_the_file_of_an_arm_is_its_own_and_a_shared_one_is_everyones(kind: str, store: Store, tmp_path: Path) -> None:
    for name in ("good", "bad"):
        (tmp_path / f"{name}.txt").write_text("1")
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "rules.txt").write_text("1")
    asked = Asked(store, **KINDS[kind], depends=[tmp_path / "{arm}.txt", shared])
    first = asked.again()
    assert asked.again() == {}
    (tmp_path / "good.txt").write_text("2")
    assert asked.again("edited").keys() == {"good"}
    (tmp_path / "good.txt").write_text("1")
    assert asked.again() == {}, "the edit was taken back"
    (shared / "more.txt").write_text("1")
    assert asked.again("more").keys() == first.keys()


def test_the_file_of_a_case_is_its_own(store: Store, tmp_path: Path) -> None:
    for name in CASES:
        (tmp_path / f"{name}.txt").write_text("1")
    asked = Asked(store, cases=CASES, depends=tmp_path / "{case}.txt")
    asked.again()
    known = {(pull.arm, pull.case) for pull in asked.pulls}
    changed = str(asked.pulls[0].case)
    (tmp_path / f"{changed}.txt").write_text("2")
    asked.again("edited")
    assert not {(pull.arm, pull.case) for pull in asked.pulls if pull.case != changed} & known


def test_a_function_stands_for_the_file_that_defines_it(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "judged.py").write_text("def evaluate(pull):\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "judged", raising=False)
    judged = importlib.import_module("judged")

    asked = Asked(store, depends=judged.evaluate)
    first = asked.again()
    for same in (judged, [judged], partial(judged.evaluate), judged.evaluate):
        assert asked.again(depends=same) == {}
    (tmp_path / "judged.py").write_text("def evaluate(pull):\n    return 0\n")
    assert asked.again("edited").keys() == first.keys()


def test_an_agent_with_other_files_asks_for_no_pull_of_a_revision(store: Store) -> None:
    asked: dict[str, Any] = {"at_least": 0.5, "storage": store, "if_exists": "revise"}
    study = thresher.create_study("s", arms=["good"], **asked, version="1")
    pull = study.ask() or pytest.fail("no pull")
    thresher.create_study("s", arms=["good", "bad"], **asked, version="1")
    assert study.ask() is not None, "an arm was added, and nothing else changed"
    other = thresher.create_study("s", arms=["good", "bad"], **asked, version="2")
    with pytest.raises(thresher.errors.CannotGoOn, match="was revised by another agent: version changed"):
        study.ask()
    study.tell(pull, 1)
    assert (other.verdict().told, other.verdict().issued) == (0, 0), "it was measured by the old version"
    other.ask()


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_run_goes_on_with_an_arm_that_is_added_and_stops_when_the_code_changes(store: Store, version: str) -> None:
    asked: dict[str, Any] = {"at_least": 0.5, "storage": store, "if_exists": "revise"}
    calls = count()

    def evaluate(pull: thresher.Pull) -> bool:
        if next(calls) == 3:
            thresher.create_study("s", arms=["good", "new"], **asked, version=version)
        return True

    study = thresher.create_study("s", arms=["good"], **asked, version="1")
    if version == "1":
        assert thresher.run(study, evaluate, workers=1).reached == ["good", "new"]
    else:
        with pytest.raises(thresher.errors.CannotGoOn, match="was revised by another agent: version changed"):
            thresher.run(study, evaluate, workers=1)
        assert study.verdict().told == 0
    assert fold_ledger(study.events()).state() == peek_study(study, State.state)


# -- results that come late --------------------------------------------------------------------------------------------


@kinds("draws", "cases", "rate")
def test_results_of_a_history_that_ended_count_nowhere(kind: str, store: Store) -> None:
    asked: dict[str, Any] = {"at_least": 0.5, "storage": store, "if_exists": "revise", **KINDS[kind]}
    study = thresher.create_study("s", arms={"good": {"depth": 1}, "bad": {}}, **asked)
    good, bad = (study.ask(arm=arm) or pytest.fail("no pull") for arm in ("good", "bad"))
    again = thresher.create_study("s", arms={"good": {"depth": 2}, "bad": {}}, **asked)
    study.tell(good, 1)
    study.tell(bad, 0)
    study.tell(good, 1)  # the same again is accepted
    with pytest.raises(thresher.errors.AlreadyTold):
        study.tell(good, 0)
    verdict = again.verdict()
    assert (verdict["good"].seen, verdict["bad"].seen, verdict.told) == (0, 1, 1)
    first, second = (pull.number for pull in again.ask_many(4) if pull.arm == "good"), again.events()
    assert 1 in first
    assert fold_ledger(second).state() == peek_study(again, State.state)
    assert verify(again.events()).sound
