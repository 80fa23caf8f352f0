"""Text of others is unchanged in JSON, and harmless on a terminal and in a spreadsheet."""

import contextlib
import csv
import fcntl
import io
import json
import os
import pty
import struct
import termios
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from program import ENVIRONMENT, FORKED, PATIENCE, complaint, run, thresher
from workdir import Workdir, a_workdir  # noqa: F401 - the fixture

import thresher as library

REASON = "\x1b]0;owned\x07\x1b[31mred\x1b[0m\x9b2J\r\x7f\u202e"
CODES = "\\x1b]0;owned\\x07\\x1b[31mred\\x1b[0m\\x9b2J\\r\\x7f\\u202e"


@pytest.fixture(name="hurt")
def a_damaged_workdir(workdir: Workdir) -> Workdir:
    """A study with a reason, a note, an agent and a command that contain terminal codes."""
    study = workdir.study()
    first, second = study.ask_many(2)
    study.drop(first, cause="failed", reason=REASON)
    study.tell(second, 0.5, note=REASON)
    study.retire("b", reason=REASON)
    study.store.note("s", REASON, REASON)
    study.store.close()
    return workdir


def on_terminal(workdir: Workdir, *args: str) -> str:
    """What a command sends to a terminal."""
    environment = {**ENVIRONMENT, "THRESHER_STORAGE": workdir.url, "NO_COLOR": "1", "TERM": "xterm-256color"}
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
    with ThreadPoolExecutor(1) as reader:
        sent = reader.submit(_all_of, master)
        FORKED.run(args, stdin=b"", cwd=None, env=environment, patience=PATIENCE, terminal=os.ttyname(slave))
        os.close(slave)
        text = sent.result().decode()
    os.close(master)
    return text


def _all_of(file: int) -> bytes:
    data = b""
    with contextlib.suppress(OSError):  # how Linux says that the other side was closed
        while part := os.read(file, 65536):
            data += part
    return data


FORMATS = [["verdict", "s", f"--format={style}"] for style in ("csv", "json", "markdown", "table")]
OTHERS = [["export", "s", "csv"], ["export", "s", "json"], ["log", "s"], ["log", "s", "--format=json"], ["status", "s"]]
OTHERS += [["status", "s", "--format=json"], ["studies"], ["verify", "s"], ["doctor"]]


@pytest.mark.parametrize("command", FORMATS + OTHERS, ids=" ".join)
def test_no_command_sends_a_terminal_what_others_wrote(hurt: Workdir, command: list[str]) -> None:
    raw = on_terminal(hurt, *command)
    assert raw
    for code in ("\x1b]", "\x07", "\x1b[31m", "\x9b", "\r\x7f", "\x7f", "\u202e"):
        assert code not in raw


@pytest.mark.parametrize("command", [FORMATS[0], ["log", "s"], ["status", "s"]], ids=" ".join)
def test_control_characters_are_shown_on_a_terminal(hurt: Workdir, command: list[str]) -> None:
    assert "\\x1b[31mred" in on_terminal(hurt, *command)


def test_data_is_left_as_it_is_in_json(hurt: Workdir) -> None:
    assert hurt.json("verdict", "s")["rows"][1]["reason"] == REASON
    events = json.loads(hurt.good("export", "s", "json"))["events"]
    reasons = [event["reason"] for event in events if event["reason"]]
    assert reasons == [REASON, json.dumps({"note": REASON}), REASON]


@pytest.mark.parametrize("command", [FORMATS[0], ["export", "s", "csv"]], ids=" ".join)
def test_notes_and_reasons_in_csv_show_codes_in_files_and_pipes_too(hurt: Workdir, command: list[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(hurt.good(*command), newline="")))
    assert CODES.replace("\\u202e", "\u202e") in [row.get("reason") or row.get("note") for row in rows]


def test_lines_for_people_show_codes_in_pipes_too(hurt: Workdir) -> None:
    for command in (["log", "s"], ["status", "s"], ["verdict", "s"]):
        out = hurt.good(*command)
        assert "\x1b" not in out
        assert CODES.split("\\r")[0] in out.replace("\n", "")


def test_an_error_shows_codes() -> None:
    assert "\x1b" not in complaint(thresher("status", "a\x1b[31m"))
    assert "\x1b" not in complaint(thresher("run", "--\x1b[31m"))


NAMES = ["=1+1", "'=1+1", "''=1+1", "+a", "-b", "@c", "-0.5", "it's", '=HYPERLINK("http://evil","x")', " =d", "'"]
NAMES += ["a;=1", "a;'=1", "a;-0.5", "＝1+1", "＠e", 'f;"=1"']


def test_arms_that_look_like_formulas_are_text_to_a_spreadsheet_and_are_read_back(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = library.create_study("s", arms=NAMES, at_least=-0.5, bounds=(-1, 1), storage=url)
    for pull in study.ask_many(len(NAMES)):
        study.tell(pull, -0.25)
    study.store.close()
    text = thresher("export", "s", "csv", f"--storage={url}").out
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["reward"] for row in rows} == {"-0.25"}
    for row in rows:
        assert row["arm"] == "-0.5" or row["arm"][0] not in "=+-@\t\r＝＋－＠"
        assert ";=" not in row["arm"]
    (tmp_path / "s.csv").write_text(text)
    copy = library.create_study("copy", arms=NAMES, at_least=-0.5, bounds=(-1, 1), storage=url)
    copy.store.close()
    done = thresher("import", str(tmp_path / "s.csv"), "--study=copy", f"--storage={url}")
    assert done.status == 0, done.err
    verdict = library.open_study("copy", storage=url).verdict()
    assert [(row.arm, row.seen) for row in verdict.rows] == [(name, 1) for name in NAMES]


def test_names_and_reasons_of_a_verdict_are_not_formulas() -> None:
    study = library.create_study("s", arms=["=1+1", "b"], at_least=0.5)
    study.retire("b", reason="@SUM(A1)")
    rows = list(csv.DictReader(io.StringIO(study.verdict().to_csv())))
    assert [(row["arm"], row["reason"]) for row in rows] == [("'=1+1", ""), ("b", "'@SUM(A1)")]


def test_names_in_markdown_are_text() -> None:
    args = ["--arm", "[a](http://evil)", "--arm", "![b](x)", "--arm", "*c*", "--budget=6"]
    out = run(*args, "--format=markdown", "--", "echo", "1").out
    assert "| \\[a\\]\\(http\\://evil\\) | · open, so far ✓ |" in out
    assert "| \\!\\[b\\]\\(x\\) | · open, so far ✓ |" in out
    assert "| \\*c\\* | · open, so far ✓ |" in out
