"""Help and version, and what they load."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from program import thresher

from thresher import __version__
from thresher.cli import COMMANDS, cli
from thresher.cli.options import Duration
from thresher.text.quantities import duration_text

HEAVY = ["rich", "asyncio", "numpy", "numba", "multiprocessing", "apsw", "thresher.cli.run_command"]


def test_the_version_is_printed() -> None:
    assert thresher("--version") == (0, f"thresher {__version__}\n", "")


@pytest.mark.parametrize("args", [["-h"], ["--help"]])
def test_help_names_every_command(args: list[str]) -> None:
    result = thresher(*args)
    assert (result.status, result.err) == (0, "")
    for command in COMMANDS:
        assert re.search(rf"^  {command} +\w", result.out, re.MULTILINE)


def test_without_a_command_help_is_shown_with_status_2() -> None:
    result = thresher()
    assert (result.status, result.out) == (2, "")
    assert "Ask a question:" in result.err


def test_the_version_loads_nothing_heavy() -> None:
    program = f"import sys, thresher.cli; print(*(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_list_of_commands_loads_none_of_them() -> None:
    listing = "import sys\nfrom thresher.cli import cli\ncli.main(['--help'], standalone_mode=False)\n"
    program = f"{listing}print('loaded', *(name for name in sys.modules if name.startswith('thresher.cli.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "Ask a question:" in done.stdout
    assert done.stdout.splitlines()[-1] == "loaded thresher.cli.output"


def command_of(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli, info_name="thresher"), name)
    assert command is not None
    return command


def examples() -> list[str]:
    """The command lines in the help texts, continued lines joined."""
    commands = (cli, *map(command_of, COMMANDS))
    texts = [text or "" for command in commands for text in (command.help, command.epilog)]
    lines = [line.strip() for text in texts for line in text.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line.startswith("thresher ")]


def test_there_are_examples_for_every_command() -> None:
    assert {shlex.split(example)[1] for example in examples()} >= set(COMMANDS)


@pytest.mark.parametrize("example", examples())
def test_the_examples_in_the_help_texts_parse(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text("def score(gap, scatter, seen, weight, exploration):\n    return gap\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    _, name, *args = shlex.split(example)
    assert command_of(name).make_context(name, args).params


def test_the_help_of_run_begins_with_examples_and_common_options_on_one_screen() -> None:
    lines = thresher("run", "--help").out.splitlines()
    examples, common = lines.index("  Examples:"), lines.index("Common options:")
    assert examples < common < 30
    options = {name for param in command_of("run").params for name in param.opts if name.startswith("--")}
    assert options == {line.split()[0] for line in lines if line.startswith("  --")}
    assert next(at for at in range(common, len(lines)) if not lines[at]) < 50


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_fits_a_terminal_of_80_columns(command: list[str]) -> None:
    lines = CliRunner().invoke(cli, [*command, "--help"], terminal_width=80).output.splitlines()
    assert [line for line in lines if len(line) > 80] == []


def test_every_option_is_explained() -> None:
    options = [
        (name, param) for name in COMMANDS for param in command_of(name).params if isinstance(param, click.Option)
    ]
    assert [(name, param.opts) for name, param in options if not param.help] == []


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("1.5h", 5400), ("10m", 600), ("2d", 172800), (" .5 s", 0.5)]
)
def test_a_length_of_time_is_read_with_or_without_its_unit(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1", "1w", "nan", "inf", "1e3", "1:30", "9" * 400])
def test_text_that_is_not_a_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Duration().convert(text, None, None)


def test_a_length_of_time_is_shown_to_two_units() -> None:
    assert [duration_text(seconds) for seconds in (0.04, 9.96, 59.6, 3599.7, 90061)] == [
        "0.0 s",
        "10 s",
        "1 min 0 s",
        "1 h 0 min",
        "1 d 1 h",
    ]


@pytest.mark.parametrize(
    ("words", "completions"),
    [("thresher st", {"status", "studies"}), ("thresher run --at", {"--at-least", "--at-most"})],
)
def test_a_shell_completes_commands_and_options(words: str, completions: set[str]) -> None:
    count = str(len(words.split()) - 1)
    asked = {"_THRESHER_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": count}
    program = [sys.executable, "-m", "thresher"]
    done = subprocess.run(program, env={**os.environ, **asked}, capture_output=True, text=True, check=False)
    assert {line.partition(",")[2] for line in done.stdout.splitlines()} == completions
