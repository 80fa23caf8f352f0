"""Questions that cannot be asked: one line with the names of the options, and nothing is created."""

import shlex
from pathlib import Path

import pytest
from inside import inside, refused

TWO = ["--arm=a", "--arm=b"]
NO_UNITS = (
    "only measured times have units; write the number in the unit that the command prints, "
    "or let --reward seconds measure the time"
)
PERCENT = "a percentage fits only shares, and rewards between 0 and 1; "

REFUSED = {  # options of create: the error. Without an arm, they get two
    "": "bar: there is none; give it with --at-least B or --at-most B, or compare with --baseline NAME",
    "--at-least=0.5 --at-most=0.7": (
        "--at-most 0.7: a study has one bar, and --at-least and --at-most are given; leave one out"
    ),
    "--at-least=0.5 --lower-is-better": "--lower-is-better: belongs to a baseline; give --at-most",
    "--ratio=1.05": "--ratio 1.05: belongs to a baseline; name one of the arms with --baseline",
    "--at-least=0.5 --margin=2%": "--margin 2%: belongs to a baseline; name one of the arms with --baseline",
    "--baseline=c": "--baseline 'c': is not one of the arms; the arms are 'a', 'b'",
    "--arm=a --baseline=a": "--baseline 'a': is the only arm; name what is to be compared with it",
    "--baseline=a --at-most=0.5": (
        "--at-most 0.5: with a baseline, the bar is what the baseline reaches; leave it out, or give a --margin"
    ),
    "--baseline=a --margin=1.5": "--margin 1.5: must lie strictly inside the range of differences (-1, 1)",
    "--baseline=a --margin=0.1 --ratio=2": "--ratio 2: a --margin is given too; give one of them",
    "--baseline=a --ratio=0": "--ratio 0: must be a number above 0",
    "--baseline=a --ratio=105%": "'105%' is not a number; did you mean 1.05?",
    "--at-most=5 --share=1": "--share 1: must lie strictly between 0 and 1",
    "--at-most=5 --share=95": "strictly between 0 and 1; write 0.95",
    "--at-most=5 --share=1.5": "between 0 and 1; write one such as 0.95",
    "--at-most=5 --share=100%": "--share 100%: must be less than 100%",
    "--at-most=5 --share=200ms": "--share 200ms: is a time, and must be a share; write 95%, for example",
    "--at-most=5 --share=0.9 --bounds=0:1": (
        "--bounds '0:1': --share asks about a share of pulls, which needs no bounds; leave one of them out"
    ),
    "--baseline=a --ratio=2 --bounds=0:9": (
        "--bounds '0:9': --ratio asks about a share of pulls, which needs no bounds; leave one of them out"
    ),
    "--at-most=5 --share=0.9 --clip": "--clip: there are no bounds",
    "--at-most=50ms": f"--at-most 50ms: {NO_UNITS}",
    "--baseline=a --margin=5ms": f"--margin 5ms: {NO_UNITS}",
    "--at-most=1 --bounds=0:2s": f"--bounds 2s: {NO_UNITS}",
    "--at-most=0.5 --confidence=1s": "--confidence 1s: is a time, and",
    "--reward=seconds --at-most=50ms --tolerance=5ms": (
        "--tolerance 5ms: is a time, and must be a share; write 1%, for example"
    ),
    "--at-least=90% --tolerance=2": "--tolerance 2: 0.9 ± 2 must lie strictly inside (0, 1); for 2 points write 0.02",
    "--at-least=90% --tolerance=10%": "--tolerance 10%: 0.9 ± 0.1 must lie strictly inside (0, 1); give less than 0.1",
    "--at-least=90% --tolerance=200%": "--tolerance 200%: must be less than 100%; write one such as 2%",
    "--at-least=90% --tolerance=-2%": "--tolerance -2%: must be a number of at least 0; write one such as 0.02",
    "--at-least=90% --tolerance=2points": "'2points' is not a number; did you mean 2%?",
    "--at-least=90% --tolerance=1e-300": "--tolerance 1e-300: is too small to change 0.9; give a larger one, or 0",
    "--at-least=0.9 --tolerance=0.02 --bounds=none": "belongs to certificates; leave it out, or give --bounds;",
    "--at-least=0.9 --tolerance=0.02 --confidence=off": "leave it out, or give a --confidence;",
    "--at-least=90% --bounds=0:10": f"--at-least 90%: {PERCENT}write the number in the unit that the command prints",
    "--at-most=5% --share=0.9": f"--at-most 5%: {PERCENT}write the number",
    "--reward=seconds --at-most=5%": f"--at-most 5%: {PERCENT}write a time, such as 200ms",
    "--at-least=105%": "--at-least 105%: must be less than 100%",
    "--at-least=0%": "--at-least 0%: must lie strictly inside the bounds (0, 1)",
    "--at-most=0.5 --bounds=0:50%": f"--bounds 50%: {PERCENT}",
    "--reward=seconds --at-most=-5ms": "--at-most -5ms: times are above 0, and so must the bar be",
    "--reward=seconds --at-most=0": "--at-most 0: times are above 0, and so must the bar be; write one",
    "'--at-most=5 hours'": "'5 hours' is not a number; units are %, us, ms, s, min, h and d",
    "--reward=seconds --at-most=1,5s": "'1,5s' is not a number; did you mean 1.5s?",
    "--reward=seconds --at-most=2s --bounds=0:1s": "--at-most 2s: must lie strictly inside the bounds (0, 1)",
    "--at-least=0.5 --cases=3 --baseline-results=x.csv": (
        "--baseline-results 'x.csv': there is no baseline; name one of the arms with --baseline"
    ),
    "--baseline=a --baseline-results=x.csv": (
        "--baseline-results 'x.csv': only results on the same cases can be compared; give the cases with --cases"
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_question_that_cannot_be_asked_is_refused_in_one_line(words: str, tmp_path: Path) -> None:
    arms = [] if "--arm" in words else TWO
    assert REFUSED[words] in refused("create", "s", *arms, *shlex.split(words), storage=tmp_path)
    assert inside("studies", storage=tmp_path).stdout == ""


RUN = ["run", *TWO, "--at-most=0.5", "--budget=4"]
RUNS = {
    "exit codes of a time": (["--reward=seconds", "--pass=0"], "--pass '0': has no effect with --reward seconds"),
    "exit codes of cpu time": (["--reward=cpu-seconds", "--fail=1"], "--fail '1': has no effect with --reward cpu-"),
    "slow runs left out": (
        ["--reward=seconds", "--failure=ignore", "--timeout=0.4s"],
        "--failure 'ignore': a run that",
    ),
    "slow runs left out of a mean": (
        ["--reward=seconds", "--failure=ignore", "--bounds=0:9"],
        "--failure 'ignore': a run that --timeout stops would be left out, because it took long; leave it out",
    ),
    "busy runs left out": (["--reward=cpu-seconds", "--failure=ignore"], "--failure 'ignore': a run that --timeout"),
    "another way to read": (["--reward=minutes"], "--reward 'minutes': must be last-float, exit-code, seconds, cpu-"),
    "a space before a unit": (["--timeout", "50", "ms"], "unit 'ms': is read as COMMAND, because a space separates"),
    "a requirement": (["--require=above=all"], "'above=all' must be reached or missed, =, and all, any or a number of"),
    "a requirement of none": (["--require=reached=0"], "'reached=0' must be reached or missed"),
    "a requirement of more": (["--require=missed=3"], "--require 'missed=3': there are only 2 arms; require fewer"),
}


@pytest.mark.parametrize("case", RUNS)
def test_a_run_that_makes_no_sense_is_refused_in_one_line(case: str) -> None:
    args, message = RUNS[case]
    assert message in refused(*RUN, *args, "--", "echo", "1")


def test_a_study_named_before_the_options_is_not_taken_for_the_command() -> None:
    message = refused("run", "mine", "--at-least=0.5", "--arm=a", "--", "echo", "1")
    assert "word 'mine': is read as COMMAND, and all options after it as COMMAND's; if it names a study" in message
    assert "write --study mine, and put -- before COMMAND" in message
    assert "there are none" in refused("run", "--at-least=0.5", "--", "{arm}", "--arm", "1"), "a program for each arm"
    assert "there are none" in refused("run", "--at-least=0.5", "--", "echo", "--arm", "1"), "a program that exists"
