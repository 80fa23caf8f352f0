"""Results as people write them: which rows are read, as what, and which are refused with their location."""

from typing import Any

import pytest

from thresher.core.results import ALL_STATES, WITH_REWARD, Row, read_json_results, read_results
from thresher.errors import InvalidInput


def rows(text: str, arm: str | None = None) -> list[Row]:
    return list(read_results(read_json_results(text, "f"), text, "f", arm=arm))


def refused(text: str, words: str, arm: str | None = None) -> None:
    with pytest.raises(InvalidInput, match=words):
        rows(text, arm)


def test_rows_name_their_arm_unless_all_are_of_one() -> None:
    assert rows("arm,reward\na,0.5\n") == [Row("line 2 of f", "a", "told", 0.5)]
    assert rows("case,reward\nx,1\n", arm="b") == [Row("line 2 of f", "b", "told", 1, "x")]
    assert rows("arm,reward\na,1\n", arm="b") == [Row("line 2 of f", "a", "told", 1)]
    refused("case,reward\nx,1\n", "line 1 of f: column 'arm': is missing among .*; give CSV with columns arm and rew")
    refused("case\nx\n", "column 'reward': is missing .*; give CSV with columns case and reward", arm="b")
    assert rows('[{"case": "x", "reward": 1}]', arm="b") == [Row("row 1 of f", "b", "told", 1, "x")]
    refused('[{"reward": 1}]', "row 1 of f: column 'arm': is missing; give CSV with columns arm and reward")


@pytest.mark.parametrize("name", ["arm", "reward", "state"])
def test_a_column_that_occurs_twice_is_refused(name: str) -> None:
    refused(f"arm,reward,state,{name.upper()}\na,1,told,x\n", f"line 1 of f: column '{name}': occurs twice among")


def test_a_row_without_a_state_was_told_if_it_has_a_reward() -> None:
    found = rows("arm,reward,state\na,1,\na,,\nb,,dropped\nc,0,late\n")
    assert [row.state for row in found] == ["told", "dropped", "dropped", "late"]
    refused("arm,reward\na,\n", "line 2 of f: column 'reward': is empty; give a reward, or add a column 'state'")
    refused('[{"arm": "a"}]', "row 1 of f: column 'reward': is missing; give a reward, or add a column 'state'")
    assert rows('[{"arm": "a", "state": "told", "reward": 1}, {"arm": "a"}]')[1].state == "dropped"


@pytest.mark.parametrize("state", ALL_STATES)
def test_only_some_states_have_a_reward(state: str) -> None:
    with_reward, without = f"arm,reward,state\na,1,{state}\n", f"arm,reward,state\na,,{state}\n"
    if state in WITH_REWARD:
        assert rows(with_reward)[0].reward == 1
        refused(without, f"line 2 of f: reward '': a pull whose state is {state} has one; write it, or dropped")
    else:
        assert rows(without)[0].reward is None
        refused(with_reward, f"line 2 of f: reward '1': a pull whose state is {state} has none; write told or late")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("arm,reward,state\na,1,lost\n", "line 2 of f: state 'lost': must be one of pending, told"),
        (
            "arm,reward,pull\na,1,7\na,0,7\n",
            "line 3 of f: pull '7': occurs twice; a pull has one reward: leave one row",
        ),
        ('{"rows": []}', "file 'f': holds an object without events; give CSV with columns arm and reward"),
        ("[1]", "row 1 of f 1: is not an object with arm and reward"),
        ("[1", r"file 'f': cannot be read as JSON \("),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(text: str, words: str) -> None:
    refused(text, words)


def test_pulls_without_a_number_may_be_many() -> None:
    assert len(rows("arm,reward,pull\na,1,\na,1,\na,1,3\n")) == 3
    assert read_json_results("  arm,reward", "f") is None


@pytest.mark.parametrize(
    ("written", "reward"), [("true", True), ("PASS", True), ("fail", False), ("false", False), ("0.5", 0.5), ("3", 3)]
)
def test_rewards_may_be_words(written: str, reward: Any) -> None:
    (row,) = rows(f"arm,reward\na, {written} \n")
    assert (row.reward, type(row.reward)) in ((reward, type(reward)), (float(reward), float))
