"""A bad specification, name or policy is refused in one clear line; policies by name."""

import asyncio
import inspect
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from studying import make

import thresher

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
    ({"at_least": math.nan}, r"at_least nan: must be a finite number"),
    ({"at_least": "0.5"}, r"at_least '0.5': must be a finite number"),
    ({"at_least": "90%"}, r"at_least '90%': must be a finite number; write 0.9$"),
    ({"confidence": "99%"}, r"confidence '99%': must lie strictly between 0 and 1; write 0.99$"),
    ({"at_least": "x%"}, r"at_least 'x%': must be a finite number$"),
    ({"at_least": True}, r"at_least True: must be a finite number"),
    ({"at_least": 0.0}, r"strictly inside the bounds \(0, 1\)"),
    ({"at_least": 1.0}, r"strictly inside"),
    ({"at_least": 1.5}, r"1.5: must lie strictly inside"),
    ({"bounds": (1, 0)}, r"did you mean bounds=\(0, 1\)"),
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
    ({"confidence": 1.0}, r"strictly between 0 and 1"),
    ({"confidence": 95}, r"strictly between 0 and 1; write 0.95"),
    ({"tolerance": -0.1}, r"tolerance -0.1"),
    ({"failure": "bad"}, r"'worst', 'ignore'"),
    ({"failure": 2.0}, r"2.0: must be"),
    ({"seed": -1}, r"seed -1"),
    ({"seed": 1.5}, r"seed 1.5"),
    ({"max_failures": 0}, r"max_failures 0"),
    ({"if_exists": "replace"}, r"must be 'error', 'join', 'revise' or 'fresh'"),
    ({"depends": "nowhere.txt"}, r"depends 'nowhere.txt': cannot be read \(No such file or directory\)"),
    ({"depends": ["{arm}/{case}.txt"]}, "name the folder above {case}"),
    ({"depends": [len]}, "has no file with its source; say version="),
    ({"depends": [1]}, "must be a path, a function or a module"),
    ({"version": " "}, "must be a printable text"),
    ({"version": 1}, "must be a printable text"),
]


@pytest.mark.parametrize(("given", "words"), BAD_STUDIES, ids=lambda value: str(value)[:40])
def test_a_bad_specification_gets_one_clear_line(given: dict[str, Any], words: str) -> None:
    with pytest.raises(thresher.InvalidInput, match=words) as caught:
        make(**given)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


MISSPELT: dict[str, Callable[[], object]] = {
    "create_study has no such argument; did you mean 'budget'": lambda: make(budgett=3),
    "create_study has no such argument; did you mean 'storage'": lambda: make(storag=None),
    "create_study has no such argument; help\\(create_study\\) lists them": lambda: make(rule=1),
    "open_study has no such argument; did you mean 'lease'": lambda: thresher.open_study("s", leas=3),  # type: ignore[call-arg]
    "Spec has no such argument; did you mean 'tries'": lambda: thresher.Spec(arms=["a"], trys=3),  # type: ignore[call-arg]
    "run has no such argument; did you mean 'workers'": lambda: thresher.run(make(), bool, worker=3),  # type: ignore[call-arg]
    "arun has no such argument; did you mean 'workers'": lambda: asyncio.run(
        thresher.arun(make(), bool, worker=3)  # type: ignore[call-arg, arg-type]
    ),
}


@pytest.mark.parametrize("words", MISSPELT)
def test_a_misspelt_argument_gets_one_clear_line(words: str) -> None:
    with pytest.raises(thresher.InvalidInput, match=f"argument '[a-z]+': {words}") as caught:
        MISSPELT[words]()
    assert isinstance(caught.value, TypeError), "as Python has it"


UNNAMED: dict[str, Callable[..., object]] = {  # called with three arguments, and what each of them takes
    "create_study takes name": thresher.create_study,
    "open_study takes name": thresher.open_study,
    "Spec takes nothing": thresher.Spec,
    "run takes study and evaluate": thresher.run,
}


@pytest.mark.parametrize("words", UNNAMED)
def test_an_argument_that_needs_its_name_gets_one_clear_line(words: str) -> None:
    with pytest.raises(TypeError, match=rf"^argument .*: {words} by position, all other arguments by name; help\("):
        UNNAMED[words]("s", bool, 0.5)


def test_arun_is_a_coroutine_function_with_its_own_arguments() -> None:
    assert inspect.iscoroutinefunction(thresher.arun)
    assert not inspect.iscoroutinefunction(thresher.run)
    assert "workers" in inspect.signature(thresher.arun).parameters


def test_a_study_without_arms_says_so() -> None:
    with pytest.raises(thresher.InvalidInput, match="arms None: must be a list of names"):
        thresher.create_study("s", at_least=0.5)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["", " ", "a\x00b", "x" * 2000, None, 3])
def test_a_bad_name_of_a_study_is_refused(name: Any) -> None:
    with pytest.raises(thresher.InvalidInput, match="study"):
        thresher.create_study(name, arms=["a"], at_least=0.5, budget=9)


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


IGNORED: dict[str, Callable[[], thresher.Policy]] = {
    "second 'cheapest': has no effect on the formula cheapest": lambda: thresher.Policy("cheapest", second="cheapest"),
    "pending_ratio 0.5: has no effect on the formula cheapest": lambda: thresher.Policy("cheapest", pending_ratio=0.5),
    "exploration 3.0: has no effect on the formula cheapest": lambda: thresher.Policy("cheapest", 3.0),
    "exploration 'doubling': has no effect on the formula apt": lambda: thresher.Policy("apt", "doubling"),
    "slack 0.1: has no effect on the formula uniform": lambda: thresher.uniform(slack=0.1),
}


@pytest.mark.parametrize("line", IGNORED)
def test_a_setting_that_the_policy_ignores_is_refused(line: str) -> None:
    with pytest.raises(thresher.InvalidInput) as caught:
        IGNORED[line]()
    assert str(caught.value) == f"{line}; leave it out"


def test_the_default_policy_depends_on_certificates() -> None:
    assert make().spec.policy == thresher.balanced()
    assert make(confidence=None).spec.policy == thresher.anytime_evt()


@pytest.mark.parametrize("name", thresher.core.policies.CONSTRUCTORS)
def test_a_policy_may_be_a_string_and_survives_json(name: str) -> None:
    policy = make(policy=name).spec.policy
    assert policy == thresher.core.policies.CONSTRUCTORS[name]()
    assert make(policy=name.replace("-", "_").upper()).spec.policy == policy
    assert thresher.core.policies.policy_from_json(json.loads(json.dumps(policy.to_json()))) == policy
    assert str(policy) == name


def test_a_pair_told_to_a_study_of_single_rewards_is_refused_as_such() -> None:
    study = make()
    pull = study.ask() or pytest.fail("no pull")
    with pytest.raises(thresher.InvalidInput, match="must be one number: the pulls of this study are no pairs"):
        study.tell(pull, (0.5, 0.5))
    with pytest.raises(thresher.InvalidInput, match="must be a finite number or a bool"):
        study.tell(pull, (0.5, 0.5, 0.5))


@pytest.mark.parametrize(("bar", "meant"), [(90, "0.9"), (1.5, "0.015"), (99.9, "0.999")])
def test_a_bar_that_may_be_a_percentage_is_asked_about(bar: float, meant: str) -> None:
    with pytest.raises(thresher.InvalidInput, match=f"if it is a percentage, write {meant};"):
        make(at_least=bar)


def test_a_name_of_a_megabyte_is_refused(tmp_path: Path) -> None:
    with pytest.raises(thresher.InvalidInput, match="must not be longer than"):
        thresher.create_study("x" * 10**6, arms=["a"], at_least=0.5, storage=f"sqlite:///{tmp_path}/s.db")
