"""``thresher run``: options, formats and exit statuses."""

import csv
import json
from pathlib import Path

import pytest
from program import run, thresher
from rows import ROW_NAMES

from thresher.core.rows import Row

TWO_ARMS = ["--arm", "0.2", "--arm", "0.8", "--budget", "8"]
ECHO = ["--", "echo", "{arm}"]


def test_the_verdict_divides_the_arms_at_the_bar() -> None:
    result = run(*TWO_ARMS, "--confidence=off", "--format=json", *ECHO)
    assert result.status == 0
    assert result.err == ""
    verdict = json.loads(result.out)
    assert (verdict["reached"], verdict["missed"]) == (["0.8"], ["0.2"])
    assert (verdict["issued"], verdict["told"], verdict["pending"], verdict["done"]) == (8, 8, 0, True)


def test_json_says_its_format_and_has_the_names_of_the_rows() -> None:
    verdict = json.loads(run(*TWO_ARMS, "--format=json", *ECHO).out)
    assert verdict["format"] == 1
    assert [list(row) for row in verdict["rows"]] == [ROW_NAMES, ROW_NAMES]
    assert list(Row.__dataclass_fields__) == ROW_NAMES


def test_csv_has_one_row_per_arm_with_the_same_names() -> None:
    rows = list(csv.DictReader(run(*TWO_ARMS, "--format=csv", *ECHO).out.splitlines()))
    assert [list(row) for row in rows] == [ROW_NAMES, ROW_NAMES]
    assert [(row["arm"], row["reached"]) for row in rows] == [("0.2", "False"), ("0.8", "True")]
    assert [float(row["mean"]) for row in rows] == pytest.approx([0.2, 0.8])


def test_markdown_is_a_table_that_survives_strange_names() -> None:
    out = run("--arm", "a|b", "--arm", "<i>", "--budget=4", "--format=markdown", "--", "echo", "1").out
    assert "| arm |  | mean | low | high | pulls | failures |" in out
    assert "| a\\|b | · open, so far ✓ | 1 | 0 | 1 | 2 | 0 |" in out
    assert "&lt;i&gt;" in out


def test_the_table_ends_with_the_question_and_its_answer() -> None:
    lines = run(*TWO_ARMS, "--confidence=off", *ECHO).out.splitlines()
    assert lines[0].split() == ["arm", "mean", "pulls"]
    assert [line.split()[:4] for line in lines[1:3]] == [["0.8", "✓", "reaches", "0.8"], ["0.2", "✗", "misses", "0.2"]]
    answer = "By their means, 1 of 2 reaches 0.5, 1 misses it; nothing is certified."
    assert lines[4].startswith(f"{answer} It took 8 pulls and ")
    assert lines[5].startswith("Nothing is certified")


def test_a_table_for_a_file_has_no_escape_codes() -> None:
    assert "\x1b" not in run(*TWO_ARMS, *ECHO, env={"FORCE_COLOR": "1"}).out


@pytest.mark.parametrize(
    ("requirements", "status"),
    [
        (["--require=reached=any"], 0),
        (["--require=reached=all"], 1),
        (["--require=missed=any"], 0),
        (["--require=missed=all"], 1),
        (["--require=reached=any", "--require=missed=any"], 0),
        (["--require=reached=any", "--require=missed=all"], 1),
    ],
)
def test_a_requirement_that_is_not_met_is_status_1(requirements: list[str], status: int) -> None:
    certified, plain = ["--budget=400"], [*TWO_ARMS[-2:], "--confidence=off"]
    for more in (certified, plain):
        result = run(*TWO_ARMS[:-2], *more, *requirements, "--format=json", *ECHO)
        assert result.status == status
        assert json.loads(result.out)["format"] == 1, "the verdict is printed either way"
        assert ("1 of 2 arms " in result.err) == bool(status)


def test_a_requirement_counts_certified_answers_where_there_are_certificates() -> None:
    result = run(*TWO_ARMS, "--require=reached=any", "--format=json", *ECHO)
    assert result.status == 1
    verdict = json.loads(result.out)
    assert (verdict["reached"], verdict["open"], verdict["rows"][1]["reached"]) == ([], ["0.2", "0.8"], True)
    assert result.err == "thresher: --require reached=any: 0 of 2 arms are certified to reach the bar\n"


def test_without_a_budget_a_run_ends_when_every_arm_is_settled() -> None:
    result = run("--arm=0.2", "--arm=0.8", "--arm=0.5", "--tolerance=0.2", "--format=json", *ECHO)
    verdict = json.loads(result.out)
    assert sorted(verdict["reached"] + verdict["missed"]) == ["0.2", "0.5", "0.8"]
    assert ("0.8" in verdict["reached"], "0.2" in verdict["missed"], verdict["edges"]) == (True, True, [0.3, 0.7])
    assert all(row["certified"] and row["left"] == 0 for row in verdict["rows"])
    assert verdict["done"] is True


def test_the_table_shows_answers_intervals_and_a_hint() -> None:
    # with one worker no pull can wait for so long that it is charged
    lines = run("--arm=0.2", "--arm=0.51", "--budget=150", "--workers=1", *ECHO).out.splitlines()
    assert lines[0].split() == ["arm", "mean", "between", "pulls", "left"]
    assert lines[1].split()[:3] == ["0.2", "✗", "misses"]
    assert lines[2].split()[:6] == ["0.51", "·", "open,", "so", "far", "✓"]
    assert lines[4].startswith("Which of 2 arms reach 0.5? 0 reach it, 1 misses it, 1 open. It took 150 pulls and ")
    assert lines[5].startswith("With a probability of at least 95 %, the certified answer is right, whenever you stop")
    assert lines[6].startswith("'0.51' is ")


def test_a_retired_arm_neither_reaches_the_bar_nor_misses_it() -> None:
    script = "test $THRESHER_ARM = good || exit 9; echo 1"
    arms = ["--arm=good", "--arm=broken", "--budget=12", "--require=reached=all"]
    result = run(*arms, "--format=json", "--", "sh", "-c", script)
    assert result.status == 1
    (broken,) = (row for row in json.loads(result.out)["rows"] if row["arm"] == "broken")
    assert broken["standing"] == "retired"
    assert broken["failures"] >= 3, "one more may have been pending"
    assert "exited with 9" in broken["reason"]


def test_a_table_says_why_arms_were_retired_and_how_often_others_failed() -> None:
    script = "case $THRESHER_ARM$THRESHER_NUMBER in a2) exit 4;; b*) echo no such model >&2; exit 9;; esac; echo 1"
    out = run("--arm=a", "--arm=b", "--budget=12", "--", "sh", "-c", script).out
    assert "✕ b: 3 failures in a row, the last: exited with 9: 'no such model'" in out
    assert "1 pull failed; a: exited with 4" in out


def test_max_failures_says_how_many_retire_an_arm() -> None:
    script = "test $THRESHER_ARM = good || exit 9; echo 1"
    args = ["--arm=good", "--arm=broken", "--budget=20", "--max-failures=1", "--format=json", "--", "sh", "-c", script]
    broken = json.loads(run("--workers=1", *args).out)["rows"][1]
    assert (broken["standing"], broken["failures"]) == ("retired", 1)


def test_a_failure_can_be_given_a_reward() -> None:
    script = "test $THRESHER_ARM = good || exit 3; echo 1"
    args = ["--arm=good", "--arm=bad", "--budget=8", "--failure=0.25", "--format=json", "--", "sh", "-c", script]
    assert [row["mean"] for row in json.loads(run(*args).out)["rows"]] == [1, 0.25]


def test_bounds_are_in_the_units_of_the_user() -> None:
    args = ["--at-least=0", "--bounds=-10:10", "--arm=-3", "--arm=7", "--budget=4", "--confidence=off", "--format=json"]
    verdict = json.loads(run(*args, *ECHO).out)
    assert (verdict["reached"], verdict["bounds"], verdict["rows"][0]["mean"]) == (["7"], [-10, 10], -3)


@pytest.mark.parametrize("spelling", [["--bounds", "none"], ["--bounds=none"]])
def test_without_bounds_any_reward_is_accepted(spelling: list[str]) -> None:
    args = ["--at-least=1000", *spelling, "--arm=5", "--arm=7777", "--budget=4", "--format=json"]
    verdict = json.loads(run(*args, *ECHO).out)
    assert (verdict["reached"], verdict["bounds"], verdict["confidence"]) == (["7777"], None, None)


def test_confidence_policy_and_seed_reach_the_study() -> None:
    certified = json.loads(run(*TWO_ARMS, "--confidence=0.9", "--policy=ap-evt", "--format=json", *ECHO).out)
    assert (certified["confidence"], certified["policy"]) == (0.9, "ap-evt")
    without = json.loads(run(*TWO_ARMS, "--confidence=off", "--format=json", *ECHO).out)
    assert (without["confidence"], without["policy"]) == (None, "anytime-evt")


def test_the_seeds_of_the_pulls_follow_from_the_seed(tmp_path: Path) -> None:
    def seeds(name: str, seed: str) -> list[str]:
        file = tmp_path / name
        script = f"echo {{seed}} >> {file}; echo 1"
        run("--workers=1", "--arm=a", "--budget=5", f"--seed={seed}", "--", "sh", "-c", script)
        return file.read_text().split()

    first, again, other = seeds("1", "1"), seeds("2", "1"), seeds("3", "2")
    assert first == again
    assert len(set(first)) == 5
    assert not set(first) & set(other)


def test_for_starts_no_pull_after_a_time() -> None:
    result = run("--arm=a", "--arm=b", "--for=0.3s", "--format=json", "--", "echo", "0.5")
    assert result.status == 0
    verdict = json.loads(result.out)
    assert verdict["issued"] >= verdict["told"] > 0  # what had not begun when the time came was taken back
    assert verdict["pending"] == 0
    assert verdict["done"] is False


def test_workers_run_at_the_same_time(tmp_path: Path) -> None:
    # each of the three waits until it sees the two others, so with fewer at once none would ever end
    script = f"touch {tmp_path}/$THRESHER_PULL; until test $(ls {tmp_path} | wc -l) -ge 3; do sleep 0.01; done; echo 1"
    assert run("--workers=3", "--timeout=20s", "--arm=a", "--budget=3", "--", "sh", "-c", script).status == 0


def test_a_terminal_is_not_needed_and_a_line_now_and_then_shows_progress() -> None:
    soon = "import thresher.cli.live_table\nthresher.cli.live_table.FIRST_LINE = 0.8"
    command = ["--budget=6", "--", "sh", "-c", "sleep 0.2; echo 1"]
    ask = ["run", "--at-least=0.5", "--arm=a", "--workers=1", "--confidence=off"]
    result = thresher(*ask, *command, first=soon)
    (line,) = result.err.splitlines()
    assert line.startswith("thresher: By its mean, it reaches 0.5; nothing is certified. ")
    assert " left, 1 pending" in line
    assert thresher(*ask, "--quiet", *command, first=soon).err == ""


def test_two_dashes_may_be_left_out_and_options_of_the_command_are_its_own() -> None:
    command = ["sh", "-c", 'test "$1 $2" = "--bounds none" && echo 1', "x", "--bounds", "none"]
    result = run("--arm=a", "--budget=2", "--format=json", *command)
    assert json.loads(result.out)["bounds"] == [0, 1]
    assert json.loads(result.out)["told"] == 2


def test_a_command_that_never_gives_a_reward_does_not_count_as_finished() -> None:
    result = run("--arm=only", "--budget=9", "--", "sh", "-c", "echo broken >&2; exit 5")
    assert result.status == 3
    assert result.err.startswith("thresher: error: run: the only arm failed before anything succeeded: exited with 5")
    assert "broken" in result.err
    assert len(result.err.splitlines()) == 1
