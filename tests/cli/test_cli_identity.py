"""Agents that are not Python programs: their rewards reach the study that they asked."""

import random
from pathlib import Path
from typing import Any

import pytest
from program import complaint
from workdir import Workdir, a_workdir  # noqa: F401 - the fixture

import thresher as library

CAVEAT = "Some evaluations were, or may have been, repeated"


def test_the_agents_of_a_deleted_study_tell_nothing_to_its_successor(workdir: Workdir) -> None:
    stale = [line.split("\t")[0] for line in workdir.good("ask", "s", "-n", "14").splitlines()]
    workdir.good("delete", "s", "--yes")
    workdir.good("create", "s", "--at-least=0.5", "--arm=a")
    fresh = [line.split("\t")[0] for line in workdir.good("ask", "s", "-n", "14").splitlines()]
    for ticket in stale[:3]:
        assert "was not issued by this study as it is now" in complaint(workdir("tell", "s", ticket, "1"))
    assert "was not issued by this study as it is now" in complaint(workdir("renew", "s", stale[0]))
    assert "was not issued by this study as it is now" in complaint(workdir("drop", "s", stale[0]))
    workdir.good("tell", "s", fresh[0], "0")
    verdict = workdir.json("verdict", "s")
    assert (verdict["told"], verdict["pending"], verdict["rows"][0]["certified"]) == (1, 13, False)


@pytest.mark.parametrize("ticket", ["1-xyz", "1-", "1-00000000000", "x-00c0ffee"])
def test_what_is_no_ticket_is_refused_in_one_line(workdir: Workdir, ticket: str) -> None:
    line = complaint(workdir("tell", "s", ticket, "1"))
    assert f"'{ticket}' is not a pull; write it as ask printed it, such as 17-3f9c2a41" in line


def test_an_agent_can_say_that_it_evaluated_more_than_once(workdir: Workdir) -> None:
    workdir.good("tell", "s", workdir.good("ask", "s").split("\t")[0], "1", "--repeatable")
    assert CAVEAT in workdir.json("verdict", "s")["guarantee"]


def moved(workdir: Workdir, evaluate: Any, *, then: dict[str, Any] | None = None, **given: Any) -> library.Verdict:
    """The verdict on the results of a study that were exported as CSV and imported into another."""
    plain: dict[str, Any] = {"arms": ["a"], "at_least": 0.5, "max_failures": None, "storage": workdir.url}
    first = library.create_study("one", **plain | {"budget": 300} | given)
    library.run(first, evaluate, workers=1)
    assert first.verdict()["a"].certified
    (workdir.folder / "one.csv").write_text(workdir.good("export", "one", "csv"))
    second = library.create_study("two", **plain | (then or {}))
    workdir.good("import", "one.csv", "--study", "two")
    second.ask()
    return second.verdict()


def test_results_that_were_repeated_say_so_after_an_export_and_an_import(workdir: Workdir) -> None:
    rng = random.Random(3)

    def evaluate(_: library.Pull) -> bool:
        good = rng.random() < 0.45
        if not good and rng.random() < 0.6:
            raise library.Busy(after=0.0)
        return good

    verdict = moved(workdir, evaluate)
    assert CAVEAT in verdict.guarantee
    header, *rows = (workdir.folder / "one.csv").read_text().splitlines()
    assert header == "pull,arm,number,seed,state,reward,cause"
    assert {row.split(",")[-1] for row in rows} == {"", "repeatable"}


def failing(seed: int) -> Any:
    rng = random.Random(seed)

    def evaluate(_: library.Pull) -> bool:
        good = rng.random() < 0.45
        if not good and rng.random() < 0.6:
            raise ValueError("bad")
        return good

    return evaluate


def test_failures_that_counted_as_a_reward_are_charged_where_they_do_not(workdir: Workdir) -> None:
    verdict = moved(workdir, failing(3), failure=1.0)
    assert not verdict["a"].certified
    assert verdict["a"].charged > 5
    assert verdict.told < verdict.issued - 1
    assert "imported" in workdir.good("log", "two").splitlines()[3]


def test_failures_that_count_as_the_same_reward_are_imported_as_such(workdir: Workdir) -> None:
    verdict = moved(workdir, failing(3), failure=1.0, then={"failure": 1.0})
    assert verdict["a"].certified
    assert "a failed evaluation counting as 1" in verdict.guarantee
    assert verdict["a"].failures > 5


def test_a_column_of_causes_that_are_not_ours_is_for_people(workdir: Workdir, tmp_path: Path) -> None:
    for name, header in (("s", "arm,reward,cause"), ("t", "arm,reward,cause,state")):
        if name == "t":
            workdir.good("create", "t", "--at-least=0.5", "--arm=a", "--arm=b")
        word = "repeatable" if name == "s" else "rain"
        rows = [f"a,1,{word}", "a,0,failed" if name == "s" else "a,0,", "b,1,imported"]
        end = "" if name == "s" else ",told"
        (tmp_path / "r.csv").write_text("\n".join([header, *(row + end for row in rows)]))
        workdir.good("import", str(tmp_path / "r.csv"), "--study", name)
        verdict = workdir.study(name).verdict()
        assert (verdict.told, CAVEAT in verdict.guarantee) == (3, False)


def test_a_failure_that_was_repeated_stays_both(workdir: Workdir) -> None:
    question: dict[str, Any] = {"arms": ["a"], "at_least": 0.5, "failure": 1.0, "storage": workdir.url}
    first, second = library.create_study("one", **question), library.create_study("two", **question)
    for number in range(6):
        (pull,) = first.ask_many(1, key=str(number))
        first.ask_many(1, key=str(number))
        first.drop(pull, cause="failed")
    (workdir.folder / "one.csv").write_text(workdir.good("export", "one", "csv"))
    assert (workdir.folder / "one.csv").read_text().splitlines()[1].endswith(",told,1.0,failed repeatable")
    assert "imported 6 rewards" in workdir("import", "one.csv", "--study", "two").err
    second.ask()
    for verdict in (first.verdict(), second.verdict()):
        assert CAVEAT in verdict.guarantee
        assert verdict["a"].failures == 6
