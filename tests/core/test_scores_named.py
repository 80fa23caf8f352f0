"""A policy that names a user's function: data, a digest of its file, and where its decisions can be repeated."""

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import rewritten
from test_decisions import study_of

import thresher
from thresher.core import custom_scores, policies
from thresher.core.policies import Policy, custom
from thresher.core.spec import spec_differences
from thresher.errors import InvalidInput


def test_a_policy_is_data_equal_to_what_its_json_says() -> None:
    policy = custom(rewritten.thirds, exploration=3.0, pending_weight=0.5, warmup=4, slack=0.1)
    assert policies.policy_from_json(policy.to_json()) == policy
    assert hash(policies.policy_from_json(policy.to_json())) == hash(policy)
    assert policy.to_json()["formula"] == "rewritten:thirds"
    assert len(policy.to_json()["digest"]) == 32
    assert policy != custom(rewritten.thirds)


def test_a_policy_is_written_as_its_call() -> None:
    assert str(custom(rewritten.thirds)) == "custom(rewritten:thirds)"
    text = "custom(rewritten:thirds, exploration='doubling', warmup=3)"
    assert str(custom(rewritten.thirds, exploration="doubling", warmup=3)) == text
    assert custom(rewritten.thirds).label == "rewritten:thirds"
    assert custom(rewritten.thirds, warmup=3).label == "custom(rewritten:thirds, warmup=3)"


def module(folder: Path, text: str) -> ModuleType:
    """The module `mine` of that source, imported in what counts as a new process."""
    (folder / "mine.py").write_text(text)
    sys.modules.pop("mine", None)
    importlib.invalidate_caches()
    return importlib.import_module("mine")


SCORE = "def score(gap, scatter, seen, weight, exploration):\n    return {}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (SCORE.format("gap"), SCORE.format("gap + 1")),
        ("A = 1.0\n" + SCORE.format("gap * A"), "A = 2.0\n" + SCORE.format("gap * A")),
        (
            "def half(x):\n    return x / 2\n" + SCORE.format("half(gap)"),
            "def half(x):\n    return x / 3\n" + SCORE.format("half(gap)"),
        ),
    ],
    ids=["function", "constant", "function that it calls"],
)
def test_a_study_asks_only_with_the_file_it_was_created_with(
    before: str, after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(custom_scores, "KNOWN", {})
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "mine", ModuleType("mine"))
    first, second = custom(module(tmp_path, before).score), custom(module(tmp_path, after).score)
    assert first != second
    assert str(first) == str(second)
    text = "the file that defines mine:score has changed"
    assert spec_differences(*(study_of(policy, 2, 4).spec for policy in (first, second))) == [text]
    monkeypatch.setattr(custom_scores, "KNOWN", {})
    custom(module(tmp_path, after).score)
    study = study_of(first, 2, 4)
    with pytest.raises(thresher.NoScore, match="has changed since the study was created; restore it"):
        study.ask()
    custom(module(tmp_path, before).score)
    assert study.ask() is not None


def test_verify_says_where_decisions_can_be_derived_again() -> None:
    for policy, anywhere in ((policies.evt(), True), (policies.lsa(), False), (custom(rewritten.evt_again), False)):
        study = study_of(policy, 3, 9)
        study.ask_many(9)
        report = thresher.verify(study.events())
        assert report.sound
        assert report.anywhere == anywhere


@pytest.mark.parametrize("formula", ["os:system", "os:", ":f", "a b:c", "nothing"])
def test_a_name_alone_makes_no_policy(formula: str) -> None:
    with pytest.raises(InvalidInput, match=r"pass a function to thresher\.custom"):
        Policy(formula)
    with pytest.raises(InvalidInput, match="is not a policy that thresher knows"):
        policies.policy(formula)


def test_a_function_passed_before_is_found_by_its_name() -> None:
    mine = custom(rewritten.thirds)
    assert policies.policy("rewritten:thirds") == mine
    assert replace(mine, warmup=3) != mine
