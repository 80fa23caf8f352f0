"""Whole numbers of thousands of digits, which Python does not parse, are refused in one line everywhere."""

import json
from pathlib import Path

import pytest
from program import complaint, run, thresher

import thresher as library

LONG = "9" * 5000
TOO_LONG = "a whole number in it has 5,000 digits, more than the 4,300 that can be read"


@pytest.mark.parametrize("text", [f'[{{"name": "a", "depth": {LONG}}}]', f'{{"a": {{"depth": -{LONG}}}}}', f"[{LONG}]"])
def test_in_an_arms_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "arms.json").write_text(text)
    error = complaint(run("--arms", str(tmp_path / "arms.json"), "--", "echo", "1"))
    assert TOO_LONG in error
    assert "arms.json" in error


@pytest.mark.parametrize(
    "text", [f'[{{"arm": "a", "reward": {LONG}}}]', f'{{"format": 1, "study": "s", "events": [{{"seq": {LONG}}}]}}']
)
def test_in_results_and_in_a_log(tmp_path: Path, text: str) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    library.create_study("s", arms=["a"], at_least=0.5, storage=url).store.close()
    (tmp_path / "results.json").write_text(text)
    for command in (["import", "--study=s", f"--storage={url}"], ["plan", "--at-least=0.5", "--pilot"]):
        assert TOO_LONG in complaint(thresher(*command, str(tmp_path / "results.json")))


def test_in_results_as_csv(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    library.create_study("s", arms=["a"], at_least=0.5, storage=url).store.close()
    (tmp_path / "results.csv").write_text(f"arm,reward\na,{LONG}\n")
    error = complaint(thresher("import", str(tmp_path / "results.csv"), "--study=s", f"--storage={url}"))
    assert "line 2 of" in error
    assert "reward inf: must lie within the bounds" in error


@pytest.mark.parametrize("reward", ["json:score", "last-float"])
def test_in_what_a_command_prints(reward: str) -> None:
    script = f"print('{{\"score\": {LONG}}}')"
    done = run("--arm=a", "--budget=4", f"--reward={reward}", "--", "python3", "-c", script)
    assert done.status == 3
    assert "please report" not in done.err
    if reward == "json:score":
        assert TOO_LONG in done.err


@pytest.mark.parametrize(
    "args",
    [
        ["run", "--at-least=0.5", "--arm=a", f"--budget={LONG}", "--", "echo", "1"],
        ["run", "--at-least=0.5", "--arm=a", f"--seed={LONG[:4000]}", "--", "echo", "1"],
        ["run", "--at-least=0.5", "--arm=a", "--reward=exit-code", f"--fail={LONG}", "--", "echo", "1"],
        ["run", "--at-least=0.5", f"--arm={LONG}", "--", "echo", "1"],
        ["run", "--at-least=0.5", "--arm=a", f"--timeout={LONG}", "--", "echo", "1"],
        ["run", "--at-least=0.5", "--arm=a", f"--workers={LONG}", "--", "echo", "1"],
        ["ask", "s", "-n", LONG],
        ["tell", "s", LONG, "1"],
        ["tell", "s", "1", LONG],
        ["extend", "s", f"--budget={LONG[:4000]}"],
        ["log", "s", f"--after={LONG}"],
        ["simulate", f"--delay=workers:{LONG}"],
        ["simulate", f"--delay=fifo:{LONG}"],
        ["simulate", f"--checkpoints={LONG}"],
    ],
    ids=lambda args: " ".join(args)[:40],
)
def test_on_the_command_line(args: list[str]) -> None:
    error = complaint(thresher(*args))
    assert "unexpected" not in error
    assert len(error) < 2100


def test_in_the_library() -> None:
    huge = 10**5000
    with pytest.raises(library.InvalidInput, match="an int that is too long to be shown"):
        library.create_study("s", arms=["a"], at_least=0.5, budget=huge)
    with pytest.raises(library.InvalidInput, match="must be plain JSON data"):
        library.create_study("s", arms={"a": {"depth": huge}}, at_least=0.5)
    study = library.create_study("s", arms=["a"], at_least=0.5)
    with pytest.raises(library.InvalidInput):
        study.tell(study.ask_many(1)[0], huge)
    json.dumps(study.verdict().to_dict())
