"""The example of the prompts: a coroutine evaluator against a real HTTP server."""

import asyncio
import json
import re
from collections.abc import Iterable
from pathlib import Path

import chances
import endpoint
import prompts
import pytest
from showing import show

import thresher

ARMS, CASES = prompts.prompts(), prompts.questions()


def score(name: str, cases: Iterable[str]) -> int:
    """How many of the cases the arm of that name gets right."""
    return sum(endpoint.answer(ARMS[name]["prompt"], case) == CASES[case]["answer"] for case in cases)


def complete(stub: endpoint.Stub, *, patience: float = 60.0) -> str:
    """One completion, on a loop that lives no longer."""

    async def ask() -> str:
        client = prompts.Client("127.0.0.1", stub.port)
        try:
            return await asyncio.wait_for(client.complete(ARMS["plain check 0-shot"]["prompt"], "3 times 5?"), patience)
        finally:
            await client.close()

    return asyncio.run(ask())


def test_the_arms_are_48_prompts() -> None:
    assert len({arm["prompt"] for arm in ARMS.values()}) == len(ARMS) == 48


def test_the_cases_are_500_questions_with_their_answers() -> None:
    assert len(CASES) == 500
    assert CASES["What is 964 times 494?"] == {"answer": str(964 * 494)}


@pytest.mark.parametrize("name", ["pirate number 0-shot", "plain steps 1-shot", "expert check 3-shot"])
def test_a_prompt_is_right_as_often_as_its_skill_says(name: str) -> None:
    skill, count = endpoint.skill(ARMS[name]["prompt"]), len(CASES)
    wrong = count - score(name, CASES)
    assert count - chances.most(count, skill) <= wrong <= chances.most(count, 1 - skill)


def test_the_endpoint_answers() -> None:
    with endpoint.Stub(failing=0, hanging=0) as stub:
        assert complete(stub) == endpoint.answer(ARMS["plain check 0-shot"]["prompt"], "3 times 5?")


def test_the_rate_limit_sends_a_pull_away_for_a_second() -> None:
    with endpoint.Stub(rate=0) as stub, pytest.raises(thresher.Busy) as busy:
        complete(stub)
    assert busy.value.after == 1
    assert stub.counts == {429: 1}


def test_a_failure_of_the_endpoint_is_a_failure_of_the_pull() -> None:
    with endpoint.Stub(failing=1, hanging=0) as stub, pytest.raises(RuntimeError, match="status 500"):
        complete(stub)


def test_a_request_that_is_never_answered_can_be_given_up() -> None:
    with endpoint.Stub(hanging=1) as stub, pytest.raises(TimeoutError):
        complete(stub, patience=0.5)
    assert 200 not in stub.counts


def test_the_example_runs_for_real_and_resumes_where_it_ended(tmp_path: Path) -> None:
    command = ["prompts", "--quick", "--format=json", f"--storage=sqlite:///{tmp_path}/s.db?durability=normal"]
    first = show(*command)
    assert first.status == 0, first.err
    verdict = json.loads(first.out)
    assert (len(verdict["rows"]), verdict["open"], verdict["retired"]) == (7, [], [])
    assert "pirate explain 0-shot" in verdict["missed"]  # right in 69 of 100
    for row in verdict["rows"]:
        if row["exact"]:
            assert round(row["mean"] * 100) == score(row["arm"], list(CASES)[::5])
    answers = re.search(r"the endpoint: ([\d,]+) answers", first.err)
    assert answers
    assert int(answers[1].replace(",", "")) >= verdict["told"]  # an answer may come when its time is over
    assert verdict["full_run"] == 700
    again = show(*command)
    assert again.status == 0
    assert json.loads(again.out) == {**verdict, "earlier": verdict["told"], "since": json.loads(again.out)["since"]}
    assert "the endpoint: 0 answers" in again.err


def test_arms_that_a_budget_left_open_are_mentioned() -> None:
    shown = show("prompts", "--quick", "--budget=28")
    assert shown.status == 0, shown.err
    assert "7 open. It took 28 of 700 pulls (4 %)" in shown.out
