"""What we say ourselves holds no secret: masking leaves it as it is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from thresher.cli import cli
from thresher.text.masking import masked

ROOT = Path(__file__).parents[2]
EXAMPLES = [
    "TOKEN=a-long-secret",
    "-token TEXT",
    "lab:password@server",
    "password=secret",
    "password=x y",
]  # of secrets, in our texts
MODULES = sorted(file for file in ROOT.glob("src/**/*.py") if file.name != "masking.py")  # it is all examples


def helps(command: click.Command, context: click.Context | None = None) -> Iterator[str]:
    """The help of a command, and of those below it."""
    context = click.Context(command, parent=context, info_name=command.name)
    yield command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from helps(below, context)


def literals(file: Path) -> Iterator[str]:
    """The texts in a module."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def check(text: str) -> None:
    for example in EXAMPLES:
        text = text.replace(example, "")
    assert masked(text) == text


def test_help_is_not_masked() -> None:
    found = list(helps(cli))
    assert len(found) > 15
    for text in found:
        check(text)


@pytest.mark.parametrize("file", MODULES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_texts_of_the_program_are_not_masked(file: Path) -> None:
    for text in literals(file):
        check(text)


@pytest.mark.parametrize(
    "file", [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))], ids=lambda file: file.relative_to(ROOT).as_posix()
)
def test_examples_in_the_documentation_are_not_masked(file: Path) -> None:
    for text in re.findall(r"^```[^\n]*\n(.*?)^```", file.read_text(), re.MULTILINE | re.DOTALL):
        check(text)
