"""The second run evaluates what changed, and nothing whose result holds; the script itself counts its evaluations."""

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from program import ENVIRONMENT, FORKED, PATIENCE, THRESHER, Result, complaint, finish, until

import thresher as library
from thresher.log.store import open_store

HERE = {key: value for key, value in ENVIRONMENT.items() if key != "THRESHER_STORAGE"}
CASES = 80
QUESTION = ["--at-least=80%", "--tolerance=3%", "--arms=prompts.txt", "--cases=cases.csv"]
COMMAND = ["--", "python", "ask.py"]
ASK = """
import hashlib, json, sys, time
from pathlib import Path
with open("calls.log", "a") as log:
    for line in sys.stdin:
        pull = json.loads(line)
        prompt, arm = Path("prompts", pull["arm"] + ".txt").read_text(), pull["arm"]
        log.write(f"{arm} {pull['case']}\\n")
        log.flush()
        while Path("hold").exists():
            time.sleep(0.01)
        share = 0.6 + 0.03 * int(arm[1:])
        digest = hashlib.sha256((prompt + pull["case_params"]["question"]).encode()).hexdigest()
        print(json.dumps({"pull": pull["pull"], "reward": int(digest, 16) % 1000 < 1000 * share}), flush=True)
"""


class Folder:
    """Twelve prompts in twelve files, cases in a CSV file, and a script that logs each evaluation."""

    def __init__(self, path: Path) -> None:
        self.path, self.before = path, 0
        (path / "ask.py").write_text(ASK)
        (path / "prompts").mkdir()
        for number in range(12):
            self.write_prompt(number, f"prompt {number}")
        self.name_arms(12)
        self.write_cases()

    def write_prompt(self, number: int, text: str) -> None:
        (self.path / "prompts" / f"p{number}.txt").write_text(text)

    def name_arms(self, count: int) -> None:
        (self.path / "prompts.txt").write_text("".join(f"p{number}\n" for number in range(count)))

    def write_cases(self, **questions: str) -> None:
        rows = [f"q{number},{questions.get(f'q{number}', f'question {number}')}\n" for number in range(CASES)]
        (self.path / "cases.csv").write_text("name,question\n" + "".join(rows))

    def arguments(self, *args: str, storage: str = "") -> list[str]:
        where = [f"--storage={storage}"] if storage else []
        depends = "--depends=prompts/{arm}.txt"
        return ["run", "--stay", depends, "--workers=2", *QUESTION, *where, *args, "--format=json", *COMMAND]

    def run(self, *args: str) -> "Ran":
        self.before = len(self.calls())
        argv = self.arguments(*args)
        result = Result(*FORKED.run(argv, stdin=b"", cwd=self.path, env=HERE, patience=PATIENCE))
        assert result.status == 0, result
        return Ran(result.err, json.loads(result.out), self.calls()[self.before :])

    def start(self, *args: str, storage: str = "") -> "subprocess.Popen[bytes]":
        argv = [*THRESHER, *self.arguments(*args, storage=storage)]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.path, env=HERE)

    def calls(self) -> list[str]:
        """Arm and case of each evaluation."""
        log = self.path / "calls.log"
        return log.read_text().splitlines() if log.exists() else []

    def study(self, name: str = "ask") -> library.Study:
        return library.open_study(name, storage=f"sqlite:///{self.path}/thresher.db")


class Ran:
    """What a run said, its verdict, and what it evaluated."""

    def __init__(self, said: str, verdict: Any, calls: list[str]) -> None:
        self.said, self.verdict, self.calls = said, verdict, calls

    def arms(self) -> Counter[str]:
        return Counter(call.split()[0] for call in self.calls)


@pytest.fixture(name="folder")
def a_folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_prompt_that_is_added_is_evaluated_and_no_result_is_evaluated_again(folder: Folder) -> None:
    folder.name_arms(11)
    first = folder.run()
    folder.name_arms(12)
    second = folder.run()
    told = first.verdict["told"]
    assert f"thresher: ask, revision 2: arm p11 is new · all {told} results hold · about " in second.said
    assert len(set(folder.calls())) == len(folder.calls()), "nothing is evaluated twice"
    assert second.arms()["p11"] > 0
    assert len(second.calls) - second.arms()["p11"] <= 30, "the others take a few more at the new level"
    assert second.verdict["study"] == "ask"


def test_only_a_prompt_whose_file_is_edited_is_evaluated_again(folder: Folder) -> None:
    first = folder.run()
    folder.write_prompt(5, "prompt five")
    second = folder.run()
    held = first.verdict["told"] - sum(call.startswith("p5 ") for call in folder.calls()[: folder.before])
    assert f"ask, revision 2: prompts/p5.txt changed · {held} of {first.verdict['told']} results hold" in second.said
    assert set(second.arms()) == {"p5"}


def test_of_a_case_that_is_edited_only_its_results_are_evaluated_again(folder: Folder) -> None:
    folder.run()
    folder.write_cases(q17="another question")
    second = folder.run()
    assert "ask, revision 2: case q17 changed · " in second.said
    again = [call for call in second.calls if call in folder.calls()[: folder.before]]
    assert {call.split()[1] for call in again} <= {"q17"}
    assert len(second.calls) < 80


def test_another_bar_tolerance_or_confidence_evaluates_only_what_is_open(folder: Folder) -> None:
    first = folder.run()
    easier = folder.run("--tolerance=6%")
    assert f"tolerance is 6 %, not 3 % · all {first.verdict['told']} results hold · nothing is left" in easier.said
    sure = folder.run("--tolerance=6%", "--confidence=90%")
    assert (easier.calls, sure.calls, sure.verdict["ran"]) == ([], [], False)
    moved = folder.run("--at-least=70%")
    assert "ask, revision 4: the bar is 70 %, not 80 %" in moved.said
    assert len(set(folder.calls())) == len(folder.calls()), "nothing is evaluated twice"
    assert moved.verdict["open"] == []


def test_when_the_script_changes_nothing_holds_unless_somebody_vouches_for_it(folder: Folder) -> None:
    first = folder.run()
    (folder.path / "ask.py").write_text(f"{ASK}# a comment\n")
    vouched = folder.run("--same-code")
    assert f"ask.py changed · all {first.verdict['told']} results hold by --same-code" in vouched.said
    assert vouched.calls == []
    assert "vouched" in vouched.verdict["guarantee"]
    (folder.path / "ask.py").write_text(f"{ASK}# another comment\n")
    again = folder.run()
    assert "ask, revision 3: ask.py changed · nothing holds" in again.said
    assert len(again.calls) == again.verdict["told"] > 100


def test_without_a_change_nothing_is_run(folder: Folder) -> None:
    folder.run()
    again = folder.run()
    assert "ask: nothing changed and it is finished, so nothing is run; --fresh starts over" in again.said
    assert (again.calls, again.verdict["ran"]) == ([], False)
    fresh = folder.run("--fresh")
    assert "ask, revision 2: --fresh takes nothing over" in fresh.said
    assert len(fresh.calls) == fresh.verdict["told"]


def test_what_is_reverted_holds_again(folder: Folder) -> None:
    first = folder.run()
    folder.write_prompt(5, "prompt five")
    edited = folder.run()
    folder.write_prompt(5, "prompt 5")
    back = folder.run()
    assert back.calls == []
    old = sum(call.startswith("p5 ") for call in folder.calls()) - edited.arms()["p5"]
    kept = first.verdict["told"] - old
    assert (
        f" · {kept:,} of {edited.verdict['told']:,} results hold, and {old} earlier ones again · nothing" in back.said
    )
    labels = [{row["arm"]: row["reached"] for row in ran.verdict["rows"]} for ran in (first, back)]
    assert labels[0] == labels[1]


def test_rows_without_names_that_moved_are_named_in_the_remedy(folder: Folder) -> None:
    rows = [f"question {number},{number * number}\n" for number in range(CASES)]
    cases = folder.path / "cases.csv"
    cases.write_text("question,answer\n" + "".join(rows))
    first = folder.run()
    cases.write_text("question,answer\n" + "".join(rows[1:]))
    shorter = folder.run()
    assert f"{CASES - 1} cases only moved, and rows without a name are numbered" in shorter.said
    numbered = [f"{number},{row}" for number, row in enumerate(rows, start=1)]
    cases.write_text("case,question,answer\n" + "".join(reversed(numbered)))
    assert f"{first.verdict['told']} earlier results hold again" in folder.run().said


def test_what_will_be_evaluated_again_is_estimated_from_what_it_took(folder: Folder) -> None:
    first = folder.run()
    with (folder.path / "ask.py").open("a") as script:
        script.write("# the same\n")
    assert f"ask.py changed · nothing holds · about {first.verdict['told']} pulls" in folder.run().said


def test_a_folder_may_be_depended_on(folder: Folder) -> None:
    (folder.path / "lib" / "__pycache__").mkdir(parents=True)
    (folder.path / "lib" / "a.py").write_text("1")
    folder.run("--depends=lib")
    for name in ("__pycache__/a.pyc", ".hidden"):
        (folder.path / "lib" / name).write_text("2")
    assert "nothing changed" in folder.run("--depends=lib").said
    (folder.path / "lib" / "b.py").write_text("3")
    assert "lib/b.py counts now · nothing holds" in folder.run("--depends=lib").said


def test_results_depend_on_the_version_that_a_program_names_with_its_arms(tmp_path: Path) -> None:
    script = """
import json, os, sys
print(json.dumps({"protocol": 1, "arms": ["a", "b"], "version": os.environ["VERSION"]}), flush=True)
for line in sys.stdin:
    print(json.dumps({"pull": json.loads(line)["pull"], "reward": 1}), flush=True)
"""
    (tmp_path / "evaluate.py").write_text(script)

    def run(version: str, *args: str) -> Result:
        argv = ["run", "--stay", "--at-least=0.5", "--workers=2", *args, "--", "python", "evaluate.py"]
        environment = {**HERE, "VERSION": version}
        return Result(*FORKED.run(argv, stdin=b"", cwd=tmp_path, env=environment, patience=PATIENCE))

    assert run("1").status == 0
    assert "evaluate: nothing changed" in run("1").err
    assert "evaluate, revision 2: version changed · nothing holds" in run("2").err
    refused = run("2", "--arm=a", "--arm=b")
    assert (refused.status, "names its version only after the study has begun" in refused.err) == (3, True), refused


@pytest.mark.parametrize("seed", range(4))
def test_after_kill_9_while_a_revision_is_made_it_is_whole_or_absent(folder: Folder, seed: int) -> None:
    first = folder.run()
    folder.write_prompt(5, "prompt five")
    (folder.path / "hold").touch()
    process = folder.start()
    if seed:
        time.sleep(random.Random(seed).uniform(0.1, 1.0))
    else:
        until(lambda: folder.study().revision == 2, "the revision")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    (folder.path / "hold").unlink()
    study = folder.study()
    assert library.verify(study.events()).sound
    assert study.revision in (1, 2)
    if study.revision == 1:
        assert study.verdict().told == first.verdict["told"]
    after = folder.run()
    held = set(folder.calls()[: first.verdict["told"]]) - {f"p5 q{number}" for number in range(CASES)}
    assert not held & set(after.calls)
    assert folder.study().revision == 2
    assert after.verdict["study"] == "ask"


@pytest.mark.parametrize("where", ["sqlite", "postgres"])
def test_two_agents_make_one_revision(folder: Folder, where: str, request: pytest.FixtureRequest) -> None:
    storage = "" if where == "sqlite" else request.getfixturevalue("postgres_url")
    finish(folder.start(storage=storage))
    before = len(folder.calls())
    folder.write_prompt(5, "prompt five")
    agents = [folder.start(storage=storage) for _ in range(2)]
    results = [finish(agent) for agent in agents]
    assert [result.status for result in results] == [0, 0], results
    url = storage or f"sqlite:///{folder.path}/thresher.db"
    assert open_store(url).studies() == ["ask"]
    study = library.open_study("ask", storage=url)
    assert study.revision == 2
    calls = folder.calls()[before:]
    assert {call.split()[0] for call in calls} == {"p5"}
    assert len(set(calls)) == len(calls)


# -- while agents are at work ------------------------------------------------------------------------------------------


def held_run(folder: Folder, *args: str) -> "subprocess.Popen[bytes]":
    """A run whose first pulls wait."""
    (folder.path / "hold").touch()
    process = folder.start(*args)
    until(lambda: len(folder.calls()) >= 2, "two pulls")
    return process


def test_a_prompt_is_added_while_agents_run_a_study(folder: Folder) -> None:
    folder.name_arms(11)
    running = held_run(folder, "--study=mine")
    folder.name_arms(12)
    joining = folder.start("--study=mine")
    until(lambda: folder.study("mine").revision == 2, "the revision")
    (folder.path / "hold").unlink()
    results = [finish(process) for process in (running, joining)]
    assert [result.status for result in results] == [0, 0], results
    assert "mine, revision 2: arm p11 is new" in results[1].err
    study = folder.study("mine")
    assert study.revision == 2
    assert len(set(folder.calls())) == len(folder.calls())
    told = Counter(row.agent for row in study.pulls() if row.state == "told")
    assert len(told) == 2, "both agents went on with it"
    assert [len(json.loads(result.out)["rows"]) for result in results] == [12, 12]


def test_another_question_beside_a_running_study_is_a_study_of_its_own(folder: Folder) -> None:
    running = held_run(folder)
    other = folder.start("--at-least=70%")
    store = open_store(f"sqlite:///{folder.path}/thresher.db")
    until(lambda: store.studies() == ["ask", "ask-2"], "a second study")
    (folder.path / "hold").unlink()
    results = [finish(process) for process in (running, other)]
    assert [result.status for result in results] == [0, 0]
    assert "ask-2 takes nothing over from ask, where another agent is working" in results[1].err
    assert [folder.study(name).revision for name in ("ask", "ask-2")] == [1, 1]
    assert "ask-2: nothing changed" in folder.run("--at-least=70%").said


@pytest.mark.parametrize("name", [[], ["--study=mine"]], ids=["by default", "by name"])
@pytest.mark.parametrize("file", ["ask.py", "prompts/p5.txt"])
def test_one_with_other_files_is_refused_while_others_run(folder: Folder, file: str, name: list[str]) -> None:
    running = held_run(folder, *name)
    content = (folder.path / file).read_text()
    (folder.path / file).write_text(f"{content}# changed")
    line = complaint(finish(folder.start(*name)))
    assert f"{file} differs from what its results depend on, and it has" in line
    (folder.path / file).write_text(content)
    (folder.path / "hold").unlink()
    assert finish(running).status == 0


def test_an_agent_ends_when_its_study_is_revised_for_something_else(folder: Folder) -> None:
    running = held_run(folder, "--study=mine")
    url = f"sqlite:///{folder.path}/thresher.db"
    library.create_study("mine", arms=["p0", "p1"], at_least=0.8, budget=9, storage=url, if_exists="revise")
    (folder.path / "hold").unlink()
    ended = finish(running)
    assert ended.status == 3
    assert "study 'mine': another agent revised it" in ended.err
    assert folder.study("mine").verdict().told == 0, "no reward counts that another program measured"
