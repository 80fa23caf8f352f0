"""Imports point down, as the design draws the house."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "thresher"

# From the ground up: a part of the house may import from lower rows alone.
ROWS = [
    {"secretnames", "maskprograms", "escapes", "parsing"},
    {"maskrules"},
    {"masking"},
    {"_version", "errors", "logs", "kernel", "seeds", "events", "evidence"},
    {"checks", "files", "theory", "results", "tracebacks", "chain"},
    {"policies"},
    {"spec"},
    {"columns", "differences"},
    {"state"},
    {"grammar"},
    {"ledger", "intervals"},
    {"certainty"},
    {"verdict"},
    {"store"},
    {"tail"},
    {"journal", "leases", "keys"},
    {"study"},
    {"opening"},
    {"guard", "signals", "reading"},
    {"executors", "command", "progress"},
    {"waiting", "workers", "starting"},
    {"flights", "outage"},
    {"running"},
    {"runner"},
    {"verify"},
    {"web"},
    {"cli"},
]
HEIGHT = {name: height for height, row in enumerate(ROWS) for name in row}
LAB_MAY_USE = {"lab", "kernel", "evidence", "policies", "checks", "results", "errors", "files", "theory", "_version"}
HEAVY = {"numpy", "numba", "matplotlib", "psycopg", "fastapi", "uvicorn", "plotly", "dask", "distributed", "ray"}


def imports(file: Path) -> set[str]:
    """Absolute dotted names of everything that a file imports, at its top or inside."""
    package = [*file.relative_to(SOURCE.parent).with_suffix("").parts]
    package = package[:-1]
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return found


def part(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def parts_used(file: Path) -> set[str]:
    own = {name.split(".")[1] for name in imports(file) if name.startswith("thresher.") and name.count(".") >= 1}
    return {name for name in own if name in HEIGHT or name == "lab"}


FILES = [file for file in sorted(SOURCE.rglob("*.py")) if file != SOURCE / "__init__.py"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_imports_point_down(file: Path) -> None:
    here = part(file)
    if here == "lab":
        assert parts_used(file) <= LAB_MAY_USE
        return
    assert here in HEIGHT, f"{here} has no place in the layers"
    above = {name for name in parts_used(file) - {here} if name != "lab" and HEIGHT[name] >= HEIGHT[here]}
    assert not above
    if "lab" in parts_used(file):
        assert here == "cli"


def test_the_kernel_imports_nothing_but_math_and_typing() -> None:
    assert {name.split(".")[0] for name in imports(SOURCE / "kernel.py")} <= {"math", "typing", "collections"}


def test_the_layer_test_can_see_an_import_that_points_up(tmp_path: Path) -> None:
    file = SOURCE / "kernel.py"
    assert "thresher.study.Study" in imports(SOURCE / "running.py")
    assert "study" not in parts_used(file)


@pytest.mark.parametrize("library", sorted(HEAVY))
def test_a_heavy_library_is_imported_by_one_part_of_the_house(library: str) -> None:
    users = {part(file) for file in FILES if any(name.split(".")[0] == library for name in imports(file))}
    assert users <= {"numpy": {"lab"}, "numba": {"lab"}, "matplotlib": {"lab"}, "psycopg": {"store"}}.get(
        library, users
    )
    assert len(users) <= 1
