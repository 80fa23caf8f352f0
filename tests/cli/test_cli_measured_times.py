"""Times are measured one after the other, on an idle machine, and again by every run."""

import json
from pathlib import Path

from program import Result, thresher
from workdir import only_study

HERE = {"THRESHER_STORAGE": ""}
TIMES = ["--reward=seconds", "--at-most=1s", "--arm=a", "--budget=6"]
ALONE = ["--", "sh", "-c", "mkdir {arm}.lock || exit 9; sleep 0.02; rmdir {arm}.lock"]


def test_times_are_measured_one_after_the_other_unless_workers_are_given(tmp_path: Path) -> None:
    def measure(*more: str, loads: str = "[]") -> Result:
        then = f"import itertools, os\nos.cpu_count, loads = lambda: 2, itertools.chain({loads}, itertools.repeat(0.5))"
        first = f"{then}\nos.getloadavg = lambda: (next(loads), 0, 0)"
        return thresher("run", *TIMES, "--format=json", *more, *ALONE, cwd=tmp_path, env=HERE, first=first)

    alone, crowded, together = measure(), measure(loads="[1, 2.5, 9]"), measure("--workers=3")
    assert [json.loads(result.out)["rows"][0]["failures"] for result in (alone, crowded)] == [0, 0]
    assert "busy" not in alone.err
    assert crowded.err.count("warning: the machine is busy (a load of 2.5 on 2 cores), so times are longer;") == 1
    assert together.err.count("warning: the machine is busy (a load of 0.5 and 3 more workers on 2 cores)") == 1


def test_finished_times_are_never_the_answer_to_a_new_run(tmp_path: Path) -> None:
    for times in range(1, 3):
        result = thresher("run", *TIMES, "--format=json", *ALONE, cwd=tmp_path, env=HERE)
        assert json.loads(result.out)["earlier"] == 0
        assert only_study(tmp_path).revision == times
    assert "revision 2: times are measured again by every new run" in result.err
    more = ["--budget=8" if word == "--budget=6" else word for word in TIMES]
    assert "resumes after 6 pulls" in thresher("run", *more, *ALONE, cwd=tmp_path, env=HERE).err
