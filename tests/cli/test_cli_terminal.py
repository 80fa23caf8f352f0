"""What a person sees on a terminal: a live table during the run, and only the verdict afterwards."""

import io
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from program import ENVIRONMENT, THRESHER
from rich.cells import cell_len
from rich.live import Live
from terminal import Terminal

import thresher
from thresher.cli.live_table import watching_live_table
from thresher.run.loop import Progress
from thresher.text.logs import log

COLOURS = re.compile(rb"\x1b\[[0-9;]*m")


@contextmanager
def watched(*args: str, columns: int = 100, rows: int = 24, env: dict[str, str] | None = None) -> Iterator[Terminal]:
    """``thresher run`` with two workers on a terminal."""
    argv = [*THRESHER, "run", "--at-least=0.5", "--workers=2", *args]
    terminal = Terminal(argv, columns=columns, rows=rows, env={**ENVIRONMENT, **(env or {})})
    try:
        yield terminal
    finally:
        terminal.close()


def waiting(folder: Path) -> list[str]:
    """A command whose third pull of an arm, and those after it, wait for a marker."""
    script = (
        f"test $THRESHER_NUMBER -le 2 || until test -e {folder}/go; do sleep 0.02; done; echo 0.$((THRESHER_SEED % 9))"
    )
    return ["--", "sh", "-c", script, "{arm}"]


def test_the_table_shows_arms_means_pulls_and_what_is_pending(tmp_path: Path) -> None:
    with watched("--arm=first", "--arm=second", "--arm=third", "--budget=12", *waiting(tmp_path)) as terminal:
        screen = terminal.wait_for(lambda seen: "8 of at most 12 pulls · " in seen.text and "  1  " in seen.text)
        assert terminal.lines[0] == "Which of 3 arms reach 0.5?"
        assert terminal.lines[1] == "0 reach it, 0 miss it, 3 open."
        assert terminal.lines[4].split() == ["arm", "mean", "pulls", "pending", "how", "far", "against", "0.5"]
        assert {line.split()[0] for line in terminal.lines[5:8]} == {"first", "second", "third"}
        for line in terminal.lines[5:8]:
            assert re.fullmatch(r"\w+ +· so far [✓✗] +0(\.\d+)? +2( +1)? +[█░]{8} +[─━┼●]+", line), screen
        (tmp_path / "go").touch()
        assert terminal.finish() == 0


def test_at_the_end_the_verdict_alone_remains(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    with watched(
        *("--arm=0.2", "--arm=0.8", "--budget=30", "--confidence=off"),
        *("--", "sh", "-c", "sleep 0.05; echo $THRESHER_ARM"),
    ) as terminal:
        terminal.wait_for(lambda seen: " pending" in seen.text)
        assert terminal.finish() == 0
        assert [line.split() for line in terminal.lines[:3]] == [
            ["arm", "mean", "pulls"],
            ["0.8", "✓", "reaches", "0.8", terminal.lines[1].split()[-1]],
            ["0.2", "✗", "misses", "0.2", terminal.lines[2].split()[-1]],
        ]
        answer = "By their means, 1 of 2 reaches 0.5, 1 misses it; nothing is certified."
        assert terminal.lines[4].startswith(f"{answer} It took 30 pulls")
        assert "pending" not in terminal.text
        last = next(at for at, line in enumerate(terminal.lines) if line.startswith("Nothing is certified"))
        assert last < 10
        assert not any(line.startswith(("0.", "arm")) for line in terminal.lines[last + 1 :])


def test_the_table_is_redrawn_in_its_place(tmp_path: Path) -> None:
    with watched(
        "--arm=a", "--arm=b", "--budget=6000", "--", "sh", "-c", "sleep 0.05; echo 0.$((THRESHER_SEED % 9))", "{arm}"
    ) as terminal:
        counts: set[str] = set()
        for _ in range(3):
            terminal.wait_for(
                lambda seen: "of at most 6,000 pulls" in seen.lines[2] and seen.lines[2].split()[0] not in counts
            )
            counts.add(terminal.lines[2].split()[0])
            assert terminal.text.count("Which of 2 arms reach") == 1
        terminal.type(b"\x03")
        assert terminal.finish() == 130


def drawn(terminal: Terminal) -> list[str]:
    return [line for line in terminal.lines if line.startswith("an-")]


@pytest.mark.parametrize(("columns", "rows", "shown"), [(40, 24, 17), (80, 8, 1), (30, 5, 1)])
def test_many_arms_fit_any_terminal(tmp_path: Path, columns: int, rows: int, shown: int) -> None:
    arms = tmp_path / "arms.txt"
    arms.write_text("\n".join(f"an-arm-with-a-long-name-{number}" for number in range(100)))
    args = ["--arms", str(arms), "--budget=203", *waiting(tmp_path)]
    with watched(*args, columns=columns, rows=rows) as terminal:
        terminal.wait_for(
            lambda seen: (
                any(line.startswith("202 of at most 203") for line in seen.lines[1:3]) and len(drawn(seen)) == shown
            )
        )
        assert terminal.lines[0] == "Which of 100 arms reach 0.5?"
        assert all(
            re.match(r"an-[\w-]*…?[\w-]* +·( so far)? [✓✗] +0(\.\d+)? +2( |$)", line) for line in drawn(terminal)
        ), terminal.text
        if rows >= 8:
            assert terminal.lines[-2] == f"… and {100 - shown} more arms, less open"
        os.kill(terminal.process.pid, signal.SIGINT)
        terminal.wait_for(lambda seen: b"stopping: waiting" in seen.raw)
        (tmp_path / "go").touch()
        assert terminal.finish() == 130


def test_wide_letters_and_markup_keep_the_columns_in_line(tmp_path: Path) -> None:
    names = ["[red]x[/red]", "日本語の名前", "naïve", "plain"]
    with watched(*(f"--arm={name}" for name in names), "--budget=12", *waiting(tmp_path)) as terminal:
        screen = terminal.wait_for(lambda seen: "10 of at most 12 pulls · " in seen.text and all(seen.lines[5:9]))
        lines = [line.replace("\0", "") for line in terminal.lines[5:9]]
        assert {line.split()[0] for line in lines} == set(names), screen
        assert len({cell_len(line.split("·")[0]) for line in lines}) == 1, screen
        (tmp_path / "go").touch()
        assert terminal.finish() == 0


def test_warnings_stand_above_the_table(tmp_path: Path) -> None:
    script = f"test $THRESHER_PULL -le 2 && echo 1 || cat {tmp_path}/up"
    with watched("--arm=a", "--arm=b", "--budget=6000", "--", "sh", "-c", script) as terminal:
        terminal.wait_for(lambda seen: "evaluations all failed" in seen.text and "Which of 2" in seen.text)
        assert terminal.text.index("evaluations all failed") < terminal.text.index("Which of 2")
        (tmp_path / "up").write_text("1\n")
        assert terminal.finish() == 0


EVALUATOR = """
import pathlib, sys, time
import thresher
from thresher.cli.live_table import watching_live_table

def evaluate(pull):
    if pull.arm == "b":
        raise KeyError("depth")
    while pull.number > 2 and not pathlib.Path(sys.argv[1]).exists():
        time.sleep(0.02)
    return 0.5

study = thresher.create_study("s", arms=["a", "b"], at_least=0.4, budget=12)
with watching_live_table(study, quiet=False) as show:
    thresher.run(study, evaluate, workers=2, on_progress=show)
"""


def test_tracebacks_stand_above_the_table(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", EVALUATOR, str(tmp_path / "go")]
    terminal = Terminal(argv, columns=100, rows=30, env=ENVIRONMENT)
    try:
        terminal.wait_for(lambda seen: "KeyError: 'depth'" in seen.text and "Which of 2" in seen.text)
        lines = terminal.lines
        at = [next(i for i, line in enumerate(lines) if words in line) for words in ("Traceback", "KeyError", "Which")]
        assert at == sorted(at), terminal.text
        assert "the first traceback of this error:" in lines[at[0] - 1]
        (tmp_path / "go").touch()
        assert terminal.finish() == 0
        assert terminal.raw.count(b"KeyError: 'depth'") == 1
    finally:
        terminal.close()


def test_ctrl_c_on_the_terminal_reaches_thresher_and_not_its_commands(tmp_path: Path) -> None:
    with watched("--arm=a", "--arm=b", "--budget=20", *waiting(tmp_path)) as terminal:
        terminal.wait_for(lambda seen: "6 of at most 20 pulls · " in seen.text)
        terminal.type(b"\x03")
        terminal.wait_for(lambda seen: "stopping: waiting for 2 pending pulls" in seen.text)
        (tmp_path / "go").touch()
        assert terminal.finish() == 130
        assert "So far 6 of at most 20 pulls" in terminal.text
        assert "nothing was stored" in terminal.text
        assert "failed" not in terminal.text


def test_colours_are_left_out_when_they_are_not_wanted(tmp_path: Path) -> None:
    args = ["--arm=0.2", "--arm=0.8", "--budget=8", "--", "sh", "-c", "sleep 0.1; echo $THRESHER_ARM"]

    def painted(env: dict[str, str]) -> bool:
        with watched(*args, env=env) as terminal:
            assert terminal.finish() == 0
            return any(b"3" in code for code in COLOURS.findall(terminal.raw))

    assert painted({})
    assert not painted({"NO_COLOR": "1"})


def test_studies_are_readable_on_a_terminal_of_80_columns(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    for name in ("first", "second"):
        thresher.create_study(name, arms=["a", "b"], at_least=0.9, tolerance=0.02, storage=url).close()
    terminal = Terminal([*THRESHER, "studies", "--storage", url], columns=80, rows=24, env=ENVIRONMENT)
    assert terminal.finish() == 0
    one, question, other, _ = terminal.lines[:4]
    assert re.fullmatch(r"first  open  0 pulls, 0 pending  [0-9T:-]+Z", one)
    assert question == "    Which of 2 arms reach 0.9, give or take 0.02? 0 reach it, 0 miss it, 2 open."
    assert other.startswith("second  open")


def test_a_terminal_that_cannot_move_its_cursor_gets_lines(tmp_path: Path) -> None:
    args = ["--arm=a", "--budget=6", "--", "sh", "-c", "sleep 0.1; echo 1"]
    with watched(*args, env={"TERM": "dumb"}) as terminal:
        assert terminal.finish() == 0
        assert b"\x1b" not in terminal.raw


def test_the_table_lives_on_standard_error_while_the_verdict_goes_to_a_file(tmp_path: Path) -> None:
    run = [*THRESHER, "run", "--at-least=0.5", "--workers=2", "--arm=a", "--arm=b", "--budget=8", "--format=json"]
    argv = ["sh", "-c", f'exec "$@" > {tmp_path}/verdict.json', "sh", *run, *waiting(tmp_path)]
    terminal = Terminal(argv, columns=80, rows=24, env=ENVIRONMENT)
    try:
        terminal.wait_for(lambda seen: "6 of at most 8 pulls · " in seen.text)
        (tmp_path / "go").touch()
        assert terminal.finish() == 0
    finally:
        terminal.close()
    assert terminal.text.strip() == ""
    assert json.loads((tmp_path / "verdict.json").read_text())["told"] == 8


def test_a_line_waits_until_the_table_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich reads where the table is and writes later: a line in between left a second table on the screen."""
    screen, draw, threads, seen = io.StringIO(), Live.update, list[threading.Thread](), list[bool]()

    def slowly(live: Live, *given: Any, **more: Any) -> None:
        threads.append(threading.Thread(target=log.warning, args=("careful",)))
        threads[-1].start()
        threads[-1].join(0.1)
        seen.append("careful" in screen.getvalue())
        draw(live, *given, **more)

    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(Live, "update", slowly)
    monkeypatch.setenv("TERM", "xterm-256color")
    study = thresher.create_study("s", arms=["a", "b"], at_least=0.5)
    with watching_live_table(study, quiet=False) as show:
        show(Progress(0, 0, 0, 0, 0.0, None))
        threads[0].join()
    assert seen == [False]
    assert "thresher: careful" in screen.getvalue()
