"""What is refused, in the words of the command line: the option that was given, and what to write instead."""

from pathlib import Path

import pytest
from inside import inside, refused
from program import complaint, thresher

PLAN = ["plan", "--at-least=0.5", "--arms=4", "--means=0.2:0.8"]
ONE = ["run", "--at-least=0.5", "--arm=a"]
ECHO = ["--", "echo", "1"]
COMPARE = ["compare", "--policy=evt", "--policy=uniform"]

LINES = {
    "a service time": ([*PLAN, "--service=foo"], "--service 'foo': is not a service time that thresher knows; write "),
    "a service time's number": ([*PLAN, "--service=lognormal"], "--service 'lognormal': is not a service time"),
    "a rate without confidence": (
        [*PLAN, "--guarantee=rate", "--confidence=off"],
        "--guarantee 'rate': nothing is certified without a confidence; give a --confidence",
    ),
    "a file of cases": ([*PLAN, "--cases=questions.txt"], "give the number of cases here, not a file"),
    "a small budget": ([*COMPARE, "--budget=5"], "; give a larger --budget or fewer arms"),
    "an unknown family": (
        [*COMPARE, "--family=foo"],
        "choose one of uniform, bernoulli, beta, normal, clipped, constant",
    ),
    "nothing to compare": (
        ["compare"],
        "--policy: there must be at least two to compare; give two, for example evt and uniform",
    ),
    "an unknown policy": ([*ONE, "--policy=evtt", *ECHO], ", or module:function, a score of your own"),
    "a policy without a budget": ([*ONE, "--policy=evt", *ECHO], "; give a --budget, or --policy anytime-evt"),
    "a resource here": (
        [*ONE, "--resource=GPU=1", *ECHO],
        "--resource 'GPU=1': only Dask and Ray count them; leave it out, or name a cluster as --engine",
    ),
    "an endless resource": ([*ONE, "--resource=GPU=nan", *ECHO], "must be a name and a number; write it like GPU=1"),
    "no pulls to drop": (["drop", "s"], "pulls: none is named; name them as ask printed them, or give --older-than 2h"),
    "pulls and an age": (["drop", "s", "1", "--older-than=2h"], "name pulls or give --older-than, not both"),
    "a tab in a name": (["create", "x\ty", "--at-least=0.5", "--arm=a"], "leave out tabs, line breaks and the like"),
    "a long name": (["create", "x" * 1001, "--at-least=0.5", "--arm=a"], "characters; give it a shorter name"),
    "no pulls to ask for": (["ask", "s", "-n", "0"], "0 is too small; give at least 1"),
    "too many pulls": (["ask", "s", "-n", "100001"], "100001 is too large; give at most 100000"),
    "a port of letters": (["serve", "--port=abc"], "'abc' is not a whole number; write one such as 100"),
    "a word for a number": (["tell", "s", "1", "abc"], "'abc' is not a number; write one such as 0.9"),
}


@pytest.mark.parametrize("what", LINES)
def test_a_refusal_names_the_option_and_what_to_write(what: str) -> None:
    args, line = LINES[what]
    assert line in refused(*args)


def test_a_family_that_needs_a_file_is_not_offered() -> None:
    assert "recorded" not in refused(*COMPARE, "--family=foo")


def test_results_need_a_study(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text("arm,reward\na,1\n")
    line = refused("import", str(tmp_path / "results.csv"))
    assert line == "--study: is missing: results belong to a study; name it with --study NAME"


def test_a_missing_argument_says_where_an_example_is() -> None:
    assert complaint(thresher("verdict")).endswith("Missing argument 'NAME'; thresher verdict --help has an example")


@pytest.mark.parametrize("command", ["verdict", "status", "tell", "report --out=r.html", "delete", "verify"])
def test_a_missing_name_gets_the_names_of_the_studies(tmp_path: Path, command: str) -> None:
    storage = f"sqlite:///{tmp_path}/s.db"
    for name in ("one", "two"):
        inside("create", name, "--at-least=0.5", "--arm=a", "--storage", storage)
    there = f"Missing argument 'NAME'; there are 'one', 'two' in {tmp_path}/s.db; thresher {command.split()[0]} --help"
    assert there in complaint(thresher(*command.split(), "--storage", storage))
    assert "there are" not in complaint(thresher("create", "--storage", storage))
    assert "there are" not in complaint(thresher(*command.split(), "--storage", f"sqlite:///{tmp_path}/no.db"))
    assert not (tmp_path / "no.db").exists()


def test_bounds_may_begin_with_a_minus() -> None:
    args = ["simulate", "--arms=2", "--means=0.3", "--budget=20", "--repetitions=2", "--format=csv"]
    assert inside(*args, "--bounds=-1:1").output == inside(*args, "--bounds", "-1:1").output
