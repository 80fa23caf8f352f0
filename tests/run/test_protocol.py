"""The lines of persistent evaluators: what an answer may say, and what is wrong with others."""

import pytest

from thresher.errors import Busy, EvaluationFailed, NoReward
from thresher.run.command.protocol import (
    Answer,
    Greeting,
    NotAnAnswer,
    Noted,
    protocol_remarks,
    protocol_reward,
    read_protocol_line,
)


def answered(said: str) -> float:
    """What becomes of an answer that says this."""
    answer = read_protocol_line(f'{{"pull": 1, {said}}}'.encode())
    assert isinstance(answer, Answer)
    return protocol_reward(answer)


REMARKS = {"": (None, None), ', "cost": 0.5': (None, 0.5), ', "note": "cut off"': ("cut off", None)}


@pytest.mark.parametrize("said", REMARKS)
def test_a_reward_may_have_a_note_or_a_cost_or_neither(said: str) -> None:
    reward = answered(f'"reward": 0.25{said}')
    assert (reward, protocol_remarks(reward)) == (0.25, REMARKS[said])


WRONG = {
    "reward": ["null", '"0.5"', "[1]"],
    "busy": ["true", "-1", "null", '"1"', "1e999", "1e15"],
    "error": ["5", "null", "true"],
    "note": ["5", "true", "[]"],
    "cost": ["-0.1", "true", '"1"', "1e999", "NaN", "[1]"],
}
WORDS = {
    "reward": "has a reward that is not a number",
    "busy": 'must say for how many seconds it is "busy"',
    "error": 'has an "error" that is not text',
    "note": 'has a "note" that is not text',
    "cost": 'has a "cost" that is not a number of at least 0',
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in WRONG.items() for value in values])
def test_each_part_of_an_answer_is_checked(key: str, value: str) -> None:
    said = f'"{key}": {value}' if key in ("reward", "busy", "error") else f'"reward": 0.5, "{key}": {value}'
    with pytest.raises(NoReward, match=f"its answer {WORDS[key]}: ") as caught:
        answered(said)
    assert caught.value.kind == f"its answer {WORDS[key]}"


@pytest.mark.parametrize("said", ["", '"note": "x"', '"reward": 1, "busy": 1', '"error": "x", "reward": 0'])
def test_an_answer_says_one_thing(said: str) -> None:
    with pytest.raises(NoReward, match='must have one of "reward", "error" and "busy"'):
        answered(said or '"cost": 1')


@pytest.mark.parametrize(("said", "reward"), [("true", 1.0), ("0", 0.0), ("-2.5", -2.5), ("1e999", float("inf"))])
def test_a_reward_is_any_number(said: str, reward: float) -> None:
    assert answered(f'"reward": {said}') == reward


def test_empty_remarks_are_none_and_no_cost_is_a_cost() -> None:
    assert protocol_remarks(answered('"reward": 1, "note": "", "cost": 0')) == (None, 0.0)
    assert protocol_remarks(answered('"reward": 1, "note": null, "cost": null')) == (None, None)
    assert protocol_remarks((Noted(1.0, "mine", 0.5), Noted(0.0, "other", 0.25))) == ("mine; other", 0.75)
    assert protocol_remarks((Noted(1.0, None, 0.5), 0.0)) == (None, 0.5)


@pytest.mark.parametrize(("seconds", "after"), [("0", 0.0), ("1.5", 1.5)])
def test_a_busy_evaluator_says_for_how_long(seconds: str, after: float) -> None:
    with pytest.raises(Busy) as caught:
        answered(f'"busy": {seconds}')
    assert caught.value.after == after


def test_an_error_is_told_in_one_line_with_its_remarks() -> None:
    with pytest.raises(EvaluationFailed) as caught:
        answered(r'"error": " no\n such  model ", "note": "cut off", "cost": 0.5')
    assert (str(caught.value), caught.value.kind) == ("no such model; note: cut off; cost: 0.5", "error: no such model")
    with pytest.raises(EvaluationFailed, match=r"^it said that it failed, but not why$"):
        answered('"error": "  "')
    with pytest.raises(EvaluationFailed) as caught:
        answered(f'"error": "{"x" * 1001}"')
    assert str(caught.value) == "x" * 1000


@pytest.mark.parametrize(
    "line",
    [b"[1]", b"{}", b'{"pull": "1"}', b'{"pull": true}', b'{"pull": 1.0}', b'{"pull": "1", "protocol": 1}', b"5"],
)
def test_json_that_is_no_answer_is_quoted(line: bytes) -> None:
    with pytest.raises(NotAnAnswer, match='printed JSON that does not answer a "pull": '):
        read_protocol_line(line)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"loading", "a line that is not JSON: 'loading'"),
        (b"\xff", "a line that is not JSON"),
        (b"[" * 9999, "too deeply"),
    ],
)
def test_a_line_that_is_not_json_is_quoted(line: bytes, words: str) -> None:
    with pytest.raises(NotAnAnswer, match=words):
        read_protocol_line(line)


def test_a_greeting_may_name_the_protocol_or_the_arms_or_both() -> None:
    assert read_protocol_line(b'{"protocol": 2}') == Greeting(2, None)
    assert read_protocol_line(b'{"arms": ["a"]}') == Greeting(1, ["a"])
    assert read_protocol_line(b'{"pull": null, "protocol": 1, "arms": []}') == Greeting(1, [])


@pytest.mark.parametrize(("text", "is_temporary"), [("ReadTimeout: 30 s", True), ("no model: Timeout", False)])
def test_an_error_that_is_named_as_temporary_errors_are_is_temporary(text: str, is_temporary: bool) -> None:
    with pytest.raises(EvaluationFailed) as caught:
        answered(f'"error": "{text}"')
    assert caught.value.transient == is_temporary
