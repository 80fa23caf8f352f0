"""Private means private: nobody uses another module's underscores, and of dependencies only what this list names."""

import ast
import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PUBLIC = {  # underscores that Python and notebooks document
    "_asdict", "_exit", "_fields", "_ipython_display_", "_make", "_replace", "_repr_html_", "_repr_mimebundle_",
}  # fmt: skip
# What has no public way and is worth it: where to find it, and why.
PRIVATE = {
    ("numba.core.options", "DefaultOptions._nrt"): "compiled loops allocate nothing, and compile a third faster",
    ("_pytest.runner", "runtestprotocol"): "the only way to run an item again in one process",
    ("_pytest.reports", "TestReport"): "what every plugin that reports takes",
    ("_pytest._code.code", "ReprFileLocation"): "a report's location, which annotations read",
    ("_pytest._code.code", "TerminalRepr"): "a report's text, which the terminal and JUnit XML read",
    ("_pytest._io", "TerminalWriter"): "draws that text",
    ("_pytest.nodes", "Item._report_sections"): "what an earlier run of the same item captured",
    ("inspect_ai._util.registry", "registry_log_name"): "the name of a task or scorer in logs",
    (
        "xdist.remote",
        "WorkerInteractor._nodeid",
    ): "set by xdist before pytest 9.2: a test's id, with its group at the end",
    ("_pytest.nodes", "Node._id"): "tests: xdist's groups, which pytest 9.2 reads nowhere else",
    ("threading", "_shutdown"): "tests: a forked command ends as a program does, without the time that this takes",
    ("atexit", "_run_exitfuncs"): "tests: the same",
}
MOST = 15
BY_TEXT = ("getattr", "setattr", "hasattr", "delattr")  # which take a name as text, also as methods of monkeypatch


def test_the_list_is_short() -> None:
    assert len(PRIVATE) <= MOST


@pytest.mark.parametrize(("module", "name"), PRIVATE)
def test_the_installed_version_has_what_the_list_names(module: str, name: str) -> None:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        if isinstance(found, type) and not hasattr(found, part):  # instances have it
            assert re.search(rf"\.{part}\b", inspect.getsource(found))
        else:
            found = getattr(found, part)


@cache
def private_uses(file: Path) -> list[str]:
    """The names with an underscore that a file reads from something that is not its own."""
    uses = []
    tree = ast.parse(file.read_text())
    own = {
        name
        for node in ast.walk(tree)
        for name in (
            [node.name]
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            else [node.attr]
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            else [node.id]
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            else []
        )
    }
    listed = {part for _, name in PRIVATE for part in name.split(".")} | PUBLIC
    is_test = "tests" in file.parts
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Attribute):
            owner = node.value
            is_mine = _is_self(owner) or (not is_test and node.attr in own)
            names = [] if is_mine else [node.attr]
            if node.attr == "__new__" and is_test and not _is_super(owner):
                uses.append(f"{file.relative_to(ROOT)}:{node.lineno}: __new__")
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and _function(node) in BY_TEXT and not _is_self(node.args[0]):
            names = [_text(arg).rpartition(".")[2] for arg in node.args]
        for name in names:
            if name.startswith("_") and not name.endswith("__") and name not in listed and name != "__version__":
                uses.append(f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}: {name}")
    return uses


def _is_super(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "super"


def _function(node: ast.Call) -> str:
    return getattr(node.func, "id", "") or getattr(node.func, "attr", "")


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


@pytest.mark.parametrize("folder", ["tests", "src", "bench", "paper", "examples"])
def test_nobody_uses_private_names_of_others(folder: str) -> None:
    uses = [use for file in sorted((ROOT / folder).rglob("*.py")) for use in private_uses(file)]
    assert not uses, "\n".join(uses)
