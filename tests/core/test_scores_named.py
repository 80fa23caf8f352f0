"""A policy that names a user's function: data, a digest of the source, and where its decisions can be repeated."""

import linecache
import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import rewritten
from test_decisions import study_of

import thresher
from thresher.core import policies, scores
from thresher.core.differences import differences
from thresher.core.policies import Policy, custom
from thresher.errors import InvalidInput


def test_a_policy_is_data_equal_to_what_its_json_says() -> None:
    policy = custom(rewritten.thirds, exploration=3.0, pending_weight=0.5, warmup=4, slack=0.1)
    assert policies.from_json(policy.to_json()) == policy
    assert hash(policies.from_json(policy.to_json())) == hash(policy)
    assert policy.to_json()["formula"] == "rewritten:thirds"
    assert len(policy.to_json()["digest"]) == 32
    assert policy != custom(rewritten.thirds)
    assert "digest" not in policies.evt().to_json()


def test_a_policy_is_written_as_its_call() -> None:
    assert str(custom(rewritten.thirds)) == "custom(rewritten:thirds)"
    text = "custom(rewritten:thirds, exploration='doubling', warmup=3)"
    assert str(custom(rewritten.thirds, exploration="doubling", warmup=3)) == text
    assert custom(rewritten.thirds).label == "rewritten:thirds"
    assert custom(rewritten.thirds, warmup=3).label == "custom(rewritten:thirds, warmup=3)"


def module(text: str, name: str = "mine") -> ModuleType:
    """A module of that source, as if it had been imported anew."""
    found, file = ModuleType(name), f"<{name} {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    sys.modules[name] = found
    exec(compile(text, file, "exec"), vars(found))
    return found


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
def test_a_study_asks_only_with_the_source_it_was_created_with(
    before: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scores, "_KNOWN", {})
    monkeypatch.setitem(sys.modules, "mine", ModuleType("mine"))
    first, second = custom(module(before).score), custom(module(after).score)
    assert first != second
    assert str(first) == str(second)
    text = "the source of mine:score, or of something it refers to, has changed"
    assert differences(*(study_of(policy, 2, 4).spec for policy in (first, second))) == [text]
    monkeypatch.setattr(scores, "_KNOWN", {})
    custom(module(after).score)
    study = study_of(first, 2, 4)
    with pytest.raises(thresher.NoScore, match="has changed since the study was created; restore it"):
        study.ask()
    custom(module(before).score)
    assert study.ask() is not None


def test_another_comment_elsewhere_in_the_module_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mine", ModuleType("mine"))
    before = custom(module("X = 1\n" + SCORE.format("gap")).score)
    assert custom(module("# more\nX = 2\n\n\n" + SCORE.format("gap")).score) == before


# -- exact operations ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        ("gap * weight - seen / 2 + abs(scatter)", True),
        ("math.sqrt(weight) if gap < 0.5 else math.inf", True),
        ("max(gap, min(weight, 3.0))", True),
        ("math.log(weight)", False),
        ("gap ** 2", False),
        ("gap // 1", False),
        ("gap % 1.0", False),
        ("math.exp(gap)", False),
        ("pow(gap, 0.5)", False),
    ],
)
def test_only_exactly_rounded_operations_decide_alike_everywhere(
    value: str, exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mine", ModuleType("mine"))
    assert custom(module("import math\n" + SCORE.format(value)).score).is_exact == exact


def test_a_function_that_is_called_counts_too() -> None:
    assert custom(rewritten.evt_again).is_exact
    assert not custom(rewritten.lsa_again).is_exact


def test_verify_says_where_decisions_can_be_derived_again() -> None:
    for policy, anywhere in ((custom(rewritten.evt_again), True), (custom(rewritten.lsa_again), False)):
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


@pytest.mark.parametrize(
    ("spec", "file", "name"),
    [
        (None, "/somewhere/my_scores.py", "my_scores:score"),  # python my_scores.py
        (SimpleNamespace(name="package.scores"), "/somewhere/package/scores.py", "package.scores:score"),  # python -m
        (None, "/somewhere/my scores.py", None),
    ],
)
def test_a_score_of_a_script_has_the_name_under_which_it_can_be_imported(
    spec: object, file: str, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    script: Any = ModuleType("__main__")
    exec("def score(gap, scatter, seen, weight, exploration): return weight", script.__dict__)
    script.__spec__, script.__file__ = spec, file
    monkeypatch.setitem(sys.modules, "__main__", script)
    assert scores._importable(script.score) == name
