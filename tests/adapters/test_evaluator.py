"""`thresher.evaluator`: the other end of the protocol, in Python; and the examples in other languages."""

import json
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from program import thresher as command

import thresher
from thresher.run.command.persistent import PersistentEvaluator

EXAMPLES = Path(__file__).parents[2] / "examples"
LINE = {"pull": 7, "arm": "a", "params": {"depth": 2}, "seed": 5, "number": 3, "case": "q", "case_params": {"x": 1}}


def answers(code: str, *lines: dict[str, Any], arguments: str = "") -> tuple[list[dict[str, Any]], str]:
    """The answers of an evaluator to these lines, without its greeting, and its standard error."""
    program = f"import thresher\n{textwrap.dedent(code)}\nthresher.evaluator(evaluate{arguments})"
    data = "".join(f"{json.dumps(line)}\n" for line in lines)
    done = subprocess.run([sys.executable, "-c", program], input=data, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    greeting, *answered = [json.loads(line) for line in done.stdout.splitlines()]
    assert greeting["protocol"] == 1
    return answered, done.stderr


def test_a_function_gets_the_whole_pull_and_what_it_prints_goes_to_standard_error() -> None:
    answered, said = answers(
        """
        import os
        def evaluate(pull):
            print("hello", pull.params["depth"])
            os.system("echo from a child; cat")  # which must not read the pulls
            return pull.seed + pull.number + pull.case_params["x"] + (pull.case == "q")
        """,
        LINE,
        {**LINE, "pull": 8},
    )
    assert answered == [{"pull": 7, "reward": 10.0}, {"pull": 8, "reward": 10.0}]
    assert said.count("hello 2") == said.count("from a child") == 2


def test_what_a_function_raises_in_a_thread_is_answered_whatever_it_is() -> None:
    """Otherwise the pull would be pending forever."""
    answered, _ = answers(
        """
        def evaluate(pull):
            raise [KeyboardInterrupt, GeneratorExit, SystemExit][pull.id]("odd")
        """,
        *({**LINE, "pull": number} for number in range(3)),
        arguments=", workers=3",
    )
    assert {answer["pull"] for answer in answered if "odd" in answer["error"]} == {0, 1, 2}


def test_a_function_may_fail_be_busy_or_say_more_than_a_reward() -> None:
    answered, said = answers(
        """
        def evaluate(pull):
            if pull.id == 1: raise KeyError("depth")
            if pull.id == 2: raise thresher.Busy(after=2.5)
            if pull.id == 3: return {"reward": True, "note": "cut off", "cost": 2}
            if pull.id == 4: return "high"
            if pull.id == 5: raise SystemExit("no licence")
            return {"reward": 1, "price": 3}
        """,
        *({**LINE, "pull": number} for number in range(1, 7)),
    )
    assert answered[:3] == [
        {"pull": 1, "error": "KeyError: 'depth'"},
        {"pull": 2, "busy": 2.5},
        {"pull": 3, "reward": 1.0, "note": "cut off", "cost": 2.0},
    ]
    assert "has no number as its reward" in answered[3]["error"]
    assert answered[4] == {"pull": 5, "error": "SystemExit: no licence"}
    assert "has 'price'" in answered[5]["error"]
    assert "Traceback" in said


@pytest.mark.parametrize(("kind", "arguments"), [("async def", ""), ("def", ", workers=4")])
def test_several_pulls_are_answered_at_once(kind: str, arguments: str) -> None:
    waits = "await asyncio.sleep(0)" if kind == "async def" else "time.sleep(0.001)"
    answered, _ = answers(
        f"""
        import asyncio, time
        begun = []
        {kind} evaluate(pull):
            begun.append(pull.id)
            while len(begun) < 4:  # until all have begun
                {waits}
            return pull.id / 10
        """,
        *({**LINE, "pull": number} for number in range(1, 5)),
        arguments=arguments,
    )
    assert sorted((answer["pull"], answer["reward"]) for answer in answered) == [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4)]


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(thresher.InvalidInput, match="function 3: must be a function"):
        thresher.evaluator(3)  # type: ignore[arg-type]
    with pytest.raises(thresher.InvalidInput, match="workers 0"):
        thresher.evaluator(print, workers=0)
    with pytest.raises(thresher.InvalidInput, match="version ''"):
        thresher.evaluator(print, version="")


def test_a_new_version_of_an_evaluator_takes_nothing_over(tmp_path: Path) -> None:
    script = tmp_path / "evaluate.py"

    def run(version: str) -> str:
        text = f'thresher.evaluator(lambda pull: 1, arms=["a"], version="{version}")'
        script.write_text(f"import thresher\n{text}\n")
        options = ["--at-least=0.5", "--workers=1", f"--storage=sqlite:///{tmp_path}/s.db", "--study=s"]
        options += ["--ignore", str(script)]
        result = command("run", "--stay", *options, "--", sys.executable, str(script))
        assert result.status == 0, result
        return f"{result.out}{result.err}"

    run("v1")
    assert "revision 2: version changed" in run("v2")
    assert "nothing changed" in run("v2")


def test_the_example_in_python_runs() -> None:
    argv = [sys.executable, str(EXAMPLES / "stay.py")]
    result = command("run", "--stay", "--at-least=0.8", "--workers=2", "--seed=0", "--format=json", "--", *argv)
    assert result.status == 0, result
    verdict = json.loads(result.out)
    assert verdict["reached"] == ["d20"] or "d20" in verdict["reached"]
    assert verdict["cost"] > 0


@pytest.mark.skipif(not shutil.which("node"), reason="Node.js is not here")
def test_the_example_in_node_runs_with_several_pulls_in_each_process() -> None:
    options = ["--at-least=0.5", "--workers=2", "--per-process=8", "--seed=0", "--format=json"]
    result = command("run", "--stay", *options, "--", "node", str(EXAMPLES / "stay.mjs"))
    assert result.status == 0, result
    verdict = json.loads(result.out)
    assert (verdict["reached"], verdict["missed"]) == (["large"], ["small"])


def test_the_example_in_plain_sh_runs() -> None:
    evaluate = PersistentEvaluator(("sh", str(EXAMPLES / "stay.sh")))
    study = thresher.create_study("sh", arms=["odd", "even"], at_least=0.3, seed=0)
    verdict = thresher.run(study, evaluate, workers=2)
    assert (verdict.reached, verdict.missed) == (["odd"], ["even"])
    with pytest.raises(thresher.ThresherError, match="there is no arm what"):
        evaluate(thresher.Pull(1, "what", 1, {}, 3))
    evaluate.stop()
