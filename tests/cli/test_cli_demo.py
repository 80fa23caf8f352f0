"""``thresher demo``: a real study, made small."""

import json
import signal
import subprocess

import pytest
from program import ENVIRONMENT, THRESHER, finish, runs, thresher, until

from thresher.cli.demo import WINDOW, bytes_saved_in_demo, demo_corpus, demo_settings
from thresher.study import Pull


def test_the_arms_are_28_ways_to_compress() -> None:
    arms = demo_settings()
    assert len(arms) == 28
    assert [sum(name.startswith(codec) for name in arms) for codec in ("zlib", "bz2", "lzma")] == [9, 9, 10]


def test_the_corpus_is_the_source_of_the_standard_library() -> None:
    text = demo_corpus()
    assert len(text) > 20 * WINDOW
    assert b"class Future" in text


@pytest.mark.parametrize("name", ["zlib-1", "bz2-9", "lzma-0"])
def test_a_reward_depends_only_on_the_arm_and_the_seed(name: str) -> None:
    first = Pull(1, name, 1, demo_settings()[name], 12345)
    again = first._replace(id=99, number=7)
    other = first._replace(seed=54321)
    assert bytes_saved_in_demo(first) == bytes_saved_in_demo(again) != bytes_saved_in_demo(other)
    assert 0 < bytes_saved_in_demo(first) < 1


def test_the_demonstration_runs_for_real() -> None:
    result = thresher("demo", "--budget=56", "--no-compare", "--workers=2", "--format=json")
    assert result.status == 0, result.err
    verdict = json.loads(result.out)
    assert (verdict["told"], len(verdict["rows"]), verdict["retired"]) == (56, 28, [])
    assert {row["seen"] for row in verdict["rows"]} == {2}
    assert all(0.6 < row["mean"] < 0.95 for row in verdict["rows"])


def test_a_budget_too_small_for_the_arms_is_refused_in_one_line() -> None:
    result = thresher("demo", "--budget=5")
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("thresher: error: budget 5: must be at least 56")


def test_ctrl_c_ends_the_demonstration_and_its_processes() -> None:
    argv = [*THRESHER, "demo", "--workers=2", "--format=json"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)

    def workers() -> list[int]:
        listed = subprocess.run(["ps", "--ppid", str(process.pid), "-o", "pid="], capture_output=True, text=True)
        return [int(pid) for pid in listed.stdout.split()]

    until(lambda: len(workers()) == 2, "two processes at work")
    started = workers()
    process.send_signal(signal.SIGINT)
    result = finish(process)
    assert result.status == 130
    assert json.loads(result.out)["pending"] == 0
    until(lambda: not any(map(runs, started)), "the end of the processes")
