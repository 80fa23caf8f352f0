"""What a study promises to those who ask and tell."""

import dataclasses
import decimal
import fractions
import json
import math
import pickle
import random
import threading
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thresher
from thresher.core import spec as specs
from thresher.core.events import Cause
from thresher.core.ledger import fold
from thresher.errors import Conflict
from thresher.log.memory import MemoryStore
from thresher.study import look


def make(**given: Any) -> thresher.Study:
    settings: dict[str, Any] = {"arms": ["a", "b", "c"], "threshold": 0.5, "budget": 60}
    return thresher.create_study("s", **settings | given)


def finish(study: thresher.Study, seed: int = 0) -> thresher.Verdict:
    rng = random.Random(seed)
    while pull := study.ask():
        study.tell(pull, rng.random())
    return study.verdict()


# -- asking and telling -------------------------------------------------------------------------------------------


def test_ask_gives_nothing_exactly_when_the_study_is_done() -> None:
    study = make(budget=6)
    for _ in range(6):
        assert not study.done
        assert study.ask()
    assert study.done
    assert study.ask() is None
    assert study.ask_many(5) == []


def test_one_arm_is_fine() -> None:
    assert finish(make(arms=["only"], budget=10))["only"].seen == 10


def test_a_pull_says_what_to_do() -> None:
    study = make(arms={"a": {"depth": 3}, "b": {"depth": 5}})
    first, second, third = study.ask_many(3)
    assert (first.id, first.arm, first.number, dict(first.params)) == (1, "a", 1, {"depth": 3})
    assert (second.arm, second.number) == ("b", 1)
    assert (third.id, third.arm, third.number) == (3, "a", 2)
    assert pickle.loads(pickle.dumps(first)) == first


@given(st.integers(0, 2**80), st.integers(1, 2**32 - 500))
def test_no_two_pulls_share_a_seed(study_seed: int, first: int) -> None:
    seeds = [thresher.core.seeds.pull_seed(pull, study_seed) for pull in range(first, first + 500)]
    assert len(set(seeds)) == 500
    assert all(0 <= seed < 2**32 for seed in seeds)


def test_the_seeds_of_a_study_follow_from_its_seed_alone() -> None:
    one, again, other = make(seed=7), make(seed=7), make(seed=8)
    assert [p.seed for p in one.ask_many(20)] == [p.seed for p in again.ask_many(20)]
    assert not {p.seed for p in make(seed=7).ask_many(20)} & {p.seed for p in other.ask_many(20)}


@pytest.mark.parametrize(
    "reward",
    [
        *(1, 0.25, True, False, fractions.Fraction(1, 3), decimal.Decimal("0.1")),
        *(numpy.float32(0.5), numpy.int64(1), numpy.bool_(True), numpy.array(0.5)),
    ],
    ids=repr,
)
def test_numbers_and_bools_are_rewards(reward: object) -> None:
    study = make()
    study.tell(study.ask() or 0, reward)
    assert study.verdict()["a"].mean == float(reward)  # type: ignore[arg-type]


BAD_REWARDS = [math.nan, "0.5", None, 1j, [0.5], numpy.array([0.5]), object]


@pytest.mark.parametrize("reward", BAD_REWARDS, ids=lambda value: repr(value)[:20])
def test_anything_else_is_refused_and_changes_nothing(reward: object) -> None:
    study = make()
    pull = study.ask()
    before = study.events()
    with pytest.raises(thresher.InvalidInput, match=r"^reward .*must be a finite number"):
        study.tell(pull or 0, reward)
    assert study.events() == before
    study.tell(pull or 0, 0.5)


@pytest.mark.parametrize("reward", [math.inf, -(10**400)], ids=["inf", "huge"])
def test_without_bounds_rewards_must_be_finite(reward: object) -> None:
    study = make(bounds=None, confidence=None)
    with pytest.raises(thresher.InvalidInput, match=r"^reward .*must be a finite number"):
        study.tell(study.ask() or 0, reward)


def test_the_same_reward_twice_is_recorded_once() -> None:
    study = make()
    pull = study.ask() or pytest.fail("no pull")
    study.tell(pull, 0.5)
    study.tell(pull.id, 0.5)
    assert [event.kind for event in study.events()] == ["created", "asked", "told"]


def test_another_reward_for_the_same_pull_is_an_error_that_names_both() -> None:
    study = make()
    study.ask()
    study.tell(1, 0.5)
    with pytest.raises(thresher.AlreadyTold, match=r"0\.75.*0\.5"):
        study.tell(1, 0.75)
    assert study.verdict()["a"].mean == 0.5


@pytest.mark.parametrize("pull", [0, 2, -1, "1", None, 1.0, True])
def test_a_pull_that_was_never_issued_is_unknown(pull: Any) -> None:
    study = make()
    study.ask()
    with pytest.raises(thresher.UnknownPull, match="issued"):
        study.tell(pull, 0.5)
    with pytest.raises(thresher.UnknownPull, match="issued"):
        study.drop(pull)


# -- dropping -----------------------------------------------------------------------------------------------------


def test_a_dropped_pull_is_pending_no_more_and_its_late_reward_is_welcome_once() -> None:
    study = make()
    study.ask()
    study.drop(1, reason="worker lost")
    study.drop(1)  # again: nothing happens
    assert study.verdict().pending == 0
    study.tell(1, 0.75)
    study.tell(1, 0.75)
    assert [(event.kind, event.late) for event in study.events()][2:] == [("dropped", None), ("told", True)]
    assert study.verdict()["a"].mean == 0.75
    with pytest.raises(thresher.AlreadyTold, match=r"0\.25"):
        study.tell(1, 0.25)


def test_a_told_pull_cannot_be_dropped() -> None:
    study = make()
    study.ask()
    study.tell(1, 0.5)
    with pytest.raises(thresher.AlreadyTold, match=r"0\.5"):
        study.drop(1)


def test_a_drop_needs_a_cause_that_exists() -> None:
    study = make()
    study.ask()
    with pytest.raises(thresher.InvalidInput, match=r"'tired'.*failed"):
        study.drop(1, cause="tired")  # type: ignore[arg-type]


def test_failures_in_a_row_retire_an_arm_and_the_verdict_says_so() -> None:
    study = make(arms=["only", "other"], max_failures=2)
    by_arm: dict[str, list[thresher.Pull]] = {"only": [], "other": []}
    for pull in study.ask_many(4):
        by_arm[pull.arm].append(pull)
    for pull in by_arm["only"]:
        study.drop(pull, cause="failed", reason="no route to host")
    verdict = study.verdict()
    assert verdict.retired == ["only"]
    assert verdict["only"].reason == "2 failures in a row, the last: no route to host"
    assert verdict["only"].failures == 2
    assert {pull.arm for pull in study.ask_many(10)} == {"other"}
    study.restore("only")
    study.restore("only")
    assert study.verdict().retired == []


def test_a_success_in_between_forgives_failures_and_other_causes_are_none() -> None:
    study = make(arms=["a"], max_failures=2)
    pulls = study.ask_many(6)
    study.drop(pulls[0], cause="failed")
    study.tell(pulls[1], 1)
    causes: list[Cause] = ["failed", "lost", "broken-pool", "outage"]
    for pull, cause in zip(pulls[2:], causes, strict=True):
        study.drop(pull, cause=cause)
    assert study.verdict().retired == []
    study.drop(study.ask() or 0, cause="failed")
    assert study.verdict().retired == ["a"]
    assert study.done


def test_a_failure_may_have_a_reward_and_then_retires_nobody() -> None:
    study = make(arms=["a"], failure=0.0, max_failures=1)
    study.ask_many(2)
    study.drop(1, cause="failed", reason="timed out")
    study.drop(2, cause="lost")
    verdict = study.verdict()
    assert (verdict["a"].mean, verdict["a"].failures, verdict["a"].label) == (0.0, 1, "below")
    assert verdict["a"].reason == "timed out"


def test_dropped_pulls_count_towards_the_budget() -> None:
    study = make(budget=6)
    for pull in study.ask_many(6):
        study.drop(pull)
    assert study.done


# -- steering -----------------------------------------------------------------------------------------------------


def test_a_budget_can_be_extended_but_not_shrunk() -> None:
    study = make(budget=6)
    study.ask_many(6)
    study.extend(budget=8)
    study.extend(budget=8)
    assert not study.done
    assert len(study.ask_many(9)) == 2
    with pytest.raises(thresher.InvalidInput, match=r"7.*8"):
        study.extend(budget=7)
    with pytest.raises(thresher.InvalidInput, match="whole number"):
        study.extend(budget=9.5)  # type: ignore[arg-type]


def test_arms_can_be_retired_by_hand_until_none_is_left() -> None:
    study = make()
    for arm in "abc":
        study.retire(arm, reason="too dear")
    study.retire("a")
    assert study.done
    assert study.ask() is None
    assert study.verdict()["a"].reason == "too dear"
    study.restore("b")
    assert (study.ask() or pytest.fail("no pull")).arm == "b"


def test_an_arm_nobody_knows_is_refused_by_name() -> None:
    study = make()
    for call in (study.retire, study.restore, lambda arm: study.add(arm, 1)):
        with pytest.raises(thresher.InvalidInput, match=r"'zebra'.*a, b, c"):
            call("zebra")


def test_results_already_paid_for_are_added_before_the_first_ask() -> None:
    study = make(budget=6)
    for reward in (1, 1, 0):
        study.add("b", reward)
    assert study.verdict()["b"].mean == pytest.approx(2 / 3)
    assert [event.cause for event in study.events()] == [None, *["imported"] * 6]
    assert [pull.arm for pull in study.ask_many(9)] == ["a", "c", "a"]
    with pytest.raises(thresher.InvalidInput, match="before the first ask"):
        study.add("b", 1)


# -- bad input ----------------------------------------------------------------------------------------------------

BAD_STUDIES: list[tuple[dict[str, Any], str]] = [
    ({"arms": []}, r"at least one"),
    ({"arms": ["a", "a"]}, r"'a': is given twice"),
    ({"arms": ["a", ""]}, r"'': must not be empty"),
    ({"arms": ["  "]}, r"must not be empty"),
    ({"arms": ["a\nb"]}, r"'a\\nb': must be printable"),
    ({"arms": ["a\x00"]}, r"must be printable"),
    ({"arms": ["x" * 10**6]}, r"longer than 1000"),
    ({"arms": "abc"}, r"'abc': must be a list"),
    ({"arms": [1, 2]}, r"1: must be a string"),
    ({"arms": 7}, r"7: must be a list"),
    ({"arms": {"a": {"x": {1, 2}}}}, r"plain JSON"),
    ({"arms": {"a": {"x": math.nan}}}, r"plain JSON"),
    ({"arms": {"a": 3}}, r"dict with string keys"),
    ({"threshold": math.nan}, r"threshold nan: must be a finite number"),
    ({"threshold": "0.5"}, r"threshold '0.5': must be a finite number"),
    ({"threshold": True}, r"threshold True: must be a finite number"),
    ({"threshold": 0.0}, r"strictly inside the bounds \(0, 1\)"),
    ({"threshold": 1.0}, r"strictly inside"),
    ({"threshold": 1.5}, r"1.5: must lie strictly inside"),
    ({"bounds": (1, 0)}, r"did you mean \(0, 1\)"),
    ({"bounds": (0.5, 0.5)}, r"must come first and be smaller"),
    ({"bounds": (0, math.inf)}, r"finite"),
    ({"bounds": 1}, r"must be a pair"),
    ({"bounds": None}, r"certificates need bounded rewards"),
    ({"budget": 5}, r"at least 6: 2 warm-up pulls for each of 3 arms"),
    ({"budget": 0}, r"at least 1"),
    ({"budget": 60.0}, r"whole number"),
    ({"budget": None, "confidence": None}, r"without certificates a study ends with its budget"),
    ({"budget": None, "policy": "ap-evt"}, r"takes its exploration from the budget"),
    ({"policy": "best"}, r"'best': is not a policy.*uniform, apt, evt"),
    ({"policy": 3}, r"policy 3: must be a name, such as 'evt', or a policy, such as thresher.evt\(\)"),
    ({"policy": thresher.evt}, r"must be a name, such as 'evt', or a policy, such as thresher.evt\(\)"),
    ({"confidence": 1.0}, r"strictly between 0 and 1"),
    ({"confidence": 95}, r"strictly between 0 and 1; write 0.95"),
    ({"threshold": 90}, r"inside the bounds \(0, 1\); if it is a percentage, write 0.9; else give the bounds"),
    ({"tolerance": -0.1}, r"tolerance -0.1"),
    ({"failure": "bad"}, r"'worst', 'ignore'"),
    ({"failure": 2.0}, r"2.0: must be"),
    ({"seed": -1}, r"seed -1"),
    ({"seed": 1.5}, r"seed 1.5"),
    ({"max_failures": 0}, r"max_failures 0"),
    ({"if_exists": "replace"}, r"'error' or 'join'"),
]


@pytest.mark.parametrize(("given", "words"), BAD_STUDIES, ids=lambda value: str(value)[:25])
def test_a_bad_specification_gets_one_clear_line(given: dict[str, Any], words: str) -> None:
    with pytest.raises(thresher.InvalidInput, match=words) as caught:
        make(**given)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("name", ["", " ", "a\x00b", "x" * 2000, None, 3])
def test_a_bad_name_of_a_study_is_refused(name: Any) -> None:
    with pytest.raises(thresher.InvalidInput, match="study"):
        thresher.create_study(name, arms=["a"], threshold=0.5, budget=9)


@pytest.mark.parametrize(
    ("make_policy", "words"),
    [
        (lambda: thresher.evt(0), "exploration 0"),
        (lambda: thresher.evt(math.nan), "exploration nan"),
        (lambda: thresher.apt(slack=-1), "slack -1"),
        (lambda: thresher.uniform(warmup=0), "warmup 0"),
        (lambda: thresher.ap_evt(pending_weight=1.5), "pending_weight 1.5"),
        (lambda: thresher.evt(variant="other"), "'main' or 'supplement'"),  # type: ignore[arg-type]
        (lambda: thresher.Policy("thompson"), "'thompson'"),
        (lambda: thresher.Policy("apt", variant="supplement"), "only EVT"),
    ],
)
def test_a_bad_policy_is_refused(make_policy: Any, words: str) -> None:
    with pytest.raises(thresher.InvalidInput, match=words):
        make_policy()


# -- the default policy, and policies by name ---------------------------------------------------------------------


def test_the_default_policy_depends_on_certificates() -> None:
    assert make().spec.policy == thresher.balanced()
    assert make(confidence=None).spec.policy == thresher.anytime_evt()


@pytest.mark.parametrize("name", thresher.core.policies.CONSTRUCTORS)
def test_a_policy_may_be_a_string_and_survives_json(name: str) -> None:
    policy = make(policy=name).spec.policy
    assert policy == thresher.core.policies.CONSTRUCTORS[name]()
    assert make(policy=name.replace("-", "_").upper()).spec.policy == policy
    assert thresher.core.policies.from_json(json.loads(json.dumps(policy.to_json()))) == policy
    assert str(policy) == name


# -- the log ------------------------------------------------------------------------------------------------------


def test_a_restored_study_equals_the_live_one_to_the_bit() -> None:
    study = make(bounds=(-3, 7), threshold=1.1, max_failures=2, confidence=None)
    rng = random.Random(5)
    under_way: list[thresher.Pull] = []
    for _ in range(200):
        under_way += study.ask_many(rng.randrange(3))
        if under_way:
            pull = under_way.pop(rng.randrange(len(under_way)))
            if rng.random() < 0.2:
                study.drop(pull, cause=rng.choice(["failed", "lost"]))
            else:
                study.tell(pull, rng.uniform(-3, 7))
    restored = fold(study.events())
    live = look(study, lambda ledger: ledger.state())
    assert restored.state() == live
    assert restored.choose() == look(study, lambda ledger: ledger.choose())


def test_a_specification_survives_json() -> None:
    study = make(arms={"a": {"x": [1, {"y": None}]}, "ü": {}}, bounds=(0, 3), failure=0.1, tolerance=0.02, seed=2**70)
    assert specs.from_json(json.loads(json.dumps(study.spec.to_json()))) == study.spec


def test_two_agents_on_one_store_share_the_study() -> None:
    store = MemoryStore()
    one = make(storage=store)
    two = thresher.open_study("s", storage=store)
    first, second = one.ask(), two.ask()
    assert first
    assert second
    assert (first.id, second.id) == (1, 2)
    two.tell(first, 1)
    assert one.verdict()["a"].seen == 1
    assert one.verdict() == two.verdict()


def test_threads_never_exceed_the_budget() -> None:
    study = make(budget=300)
    pulls: list[int] = []

    def work() -> None:
        while pull := study.ask():
            pulls.append(pull.id)
            study.tell(pull, 0.5)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(pulls) == list(range(1, 301))


class Rival(MemoryStore):
    """A store whose turn holds nobody back: another agent writes between our reading and our appending."""

    interfere = False

    def append(self, study: str, events: Any, *, lease: float | None = None) -> None:
        if self.interfere:
            self.interfere = False
            thresher.open_study(study, storage=self).ask()
        super().append(study, events, lease=lease)


def test_the_loser_of_a_race_decides_again() -> None:
    store = Rival()
    study = make(storage=store)
    store.interfere = True
    pull = study.ask() or pytest.fail("no pull")
    assert (pull.id, pull.arm) == (2, "b")
    assert look(study, lambda ledger: ledger.issued) == 2


class FullDisk(MemoryStore):
    full = False

    def append(self, study: str, events: Any, *, lease: float | None = None) -> None:
        if self.full:
            raise OSError("no space left on device")
        super().append(study, events, lease=lease)


def test_what_was_not_written_did_not_happen() -> None:
    store = FullDisk()
    study = make(storage=store)
    pull = study.ask() or pytest.fail("no pull")
    store.full = True
    with pytest.raises(OSError, match="no space"):
        study.tell(pull, 1)
    store.full = False
    assert study.verdict()["a"].seen == 0
    study.tell(pull, 0)
    assert study.verdict()["a"].mean == 0


def test_an_append_out_of_turn_writes_nothing() -> None:
    store = MemoryStore()
    with pytest.raises(Conflict):
        store.append("s", [thresher.Event(2, "asked")])
    assert store.studies() == []


# -- creating and joining -----------------------------------------------------------------------------------------


def test_a_study_is_created_once_and_joined_by_the_same_specification() -> None:
    store = MemoryStore()
    study = make(storage=store)
    with pytest.raises(thresher.StudyExists, match="open_study"):
        make(storage=store)
    assert make(storage=store, if_exists="join").verdict() == study.verdict()
    study.extend(budget=70)
    make(storage=store, if_exists="join", budget=70)
    make(storage=store, if_exists="join", budget=60)
    different: list[tuple[dict[str, Any], str]] = [
        ({"threshold": 0.6}, "threshold is 0.5, not 0.6"),
        ({"budget": 99}, "budget is 70, not 99"),
    ]
    for difference, words in different:
        with pytest.raises(thresher.StudyExists, match=words):
            make(storage=store, if_exists="join", **difference)


def test_a_study_that_is_not_there_is_not_made_up() -> None:
    with pytest.raises(thresher.UnknownStudy, match="'nobody'"):
        thresher.open_study("nobody", storage=MemoryStore())


def test_a_store_nobody_knows_is_refused() -> None:
    with pytest.raises(thresher.InvalidInput, match="storage 'mysql://x'"):
        make(storage="mysql://x")


# -- verdicts -----------------------------------------------------------------------------------------------------


def test_the_parts_of_a_verdict_part_the_arms() -> None:
    study = make(arms=list("abcdef"), budget=100)
    for pull in study.ask_many(5):
        study.tell(pull, pull.arm in "ab")
    study.retire("c")
    verdict = study.verdict()
    assert (verdict.above, verdict.below, verdict.retired, verdict.undecided) == (["a", "b"], ["d", "e"], ["c"], ["f"])
    assert verdict.close == []
    assert verdict.open == list("abdef")
    assert not any(row.certified for row in verdict.rows)
    assert "Nothing is certified" in verdict.guarantee


def test_nine_passes_of_ten_are_above_nine_tenths_in_the_verdict() -> None:
    for failing in range(10):
        study = make(arms=["a"], threshold=0.9)
        for number in range(10):
            study.tell(study.ask() or 0, number != failing)
        assert study.verdict().above == ["a"]
        assert study.verdict()["a"].mean == 0.9


def test_a_verdict_in_json_and_csv_has_the_same_names() -> None:
    verdict = finish(make())
    data = json.loads(verdict.to_json())
    assert data["format"] == 2
    names = [field.name for field in dataclasses.fields(thresher.Row)]
    assert names[:4] == ["arm", "label", "certified", "mean"]
    assert names[4:] == ["low", "high", "seen", "pending", "charged", "failures", "progress", "reason"]
    assert list(data["rows"][0]) == names
    head, *rows = verdict.to_csv().splitlines()
    assert head.split(",") == names
    assert len(rows) == 3
    assert {*data["above"], *data["below"]} == {"a", "b", "c"}


def test_hostile_names_stay_text_in_markdown() -> None:
    text = finish(make(arms=["a|b", "<script>", "c"])).to_markdown()
    assert "| a\\|b |" in text
    assert "<script>" not in text


def test_rewards_without_bounds_are_taken_as_they_are() -> None:
    study = make(bounds=None, confidence=None, threshold=-40.0)
    rng = random.Random(1)
    while pull := study.ask():
        study.tell(pull, rng.gauss({"a": -50, "b": -30, "c": -20}[pull.arm], 5))
    assert (study.verdict().above, study.verdict().below) == (["b", "c"], ["a"])
    with pytest.raises(thresher.InvalidInput, match="scale the rewards"):
        make(bounds=None, confidence=None, threshold=1e200)
