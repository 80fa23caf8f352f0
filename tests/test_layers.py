"""The folders are the layers: imports between rooms point down."""

import ast
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "thresher"

# What each room may use besides itself. Whoever opens src/thresher sees these names.
GROUND = {"_version", "errors", "text"}
ROOMS = {
    "_version": set[str](),
    "errors": {"text"},
    "text": {"errors"},
    "core": GROUND,
    "log": GROUND | {"core"},
    "study": GROUND | {"core", "log"},
    "depends": GROUND | {"core"},
    "create": GROUND | {"core", "log", "study", "depends"},
    "run": GROUND | {"core", "log", "study", "depends", "create"},
    "web": GROUND | {"core", "log", "study", "depends", "create", "run"},
    "lab": GROUND | {"core"},
    "adapters": GROUND | {"core", "log", "study", "depends", "create", "run"},
    "cli": GROUND | {"core", "log", "study", "depends", "create", "run", "web", "lab", "adapters"},
}
HEAVY = {  # each is imported by the one room that needs it
    "numpy": {"lab"},
    "numba": {"lab"},
    "matplotlib": {"lab"},
    "psycopg": {"log"},
    "apsw": {"log"},
    "fastapi": {"web"},
    "uvicorn": {"web"},
    "plotly": {"web"},
    "dask": {"run"},
    "distributed": {"run"},
    "ray": {"run"},
    "inspect_ai": {"adapters"},
}
# The core has no I/O, no clock and no threads.
NOT_IN_THE_CORE = {"os", "pathlib", "time", "threading", "socket", "subprocess", "sqlite3", "asyncio"}


@cache
def imports(file: Path) -> set[str]:
    """Absolute dotted names of everything that a file imports, at its top or inside."""
    package = file.relative_to(SOURCE.parent).with_suffix("").parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return found


def room(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def rooms_used(file: Path) -> set[str]:
    return {name.split(".")[1] for name in imports(file) if name.startswith("thresher.")} - {room(file)}


FILES = [
    file for file in sorted(SOURCE.rglob("*.py")) if file.parent != SOURCE or file.stem not in ("__init__", "__main__")
]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_imports_point_down(file: Path) -> None:
    assert rooms_used(file) <= ROOMS[room(file)]


COMPILED = ("board", "error_rate", "evidence", "places", "question")  # board.py has their rules


@pytest.mark.parametrize("name", sorted({*COMPILED} - {"places"}))  # it knows the type of a specification
def test_what_is_compiled_imports_nothing_but_math_typing_and_what_is_compiled(name: str) -> None:
    modules = {
        module.removeprefix("thresher.core.").split(".")[0] for module in imports(SOURCE / "core" / f"{name}.py")
    }
    assert modules <= {"math", "typing", "collections", *COMPILED}


@pytest.mark.parametrize("file", sorted((SOURCE / "core").glob("*.py")), ids=lambda file: file.stem)
def test_the_core_has_no_clock_no_threads_and_no_input_or_output(file: Path) -> None:
    assert not {name.split(".")[0] for name in imports(file)} & NOT_IN_THE_CORE


def test_the_layer_test_can_see_an_import_that_points_up() -> None:
    assert "study" in rooms_used(SOURCE / "run" / "loop.py")
    assert "study" not in ROOMS["core"]


@pytest.mark.parametrize("library", sorted(HEAVY))
def test_a_heavy_library_is_imported_by_one_room(library: str) -> None:
    users = {room(file) for file in FILES if any(name.split(".")[0] == library for name in imports(file))}
    assert users <= HEAVY[library]


def test_a_file_name_says_which_file_is_meant() -> None:
    names = [file.stem for file in FILES if not file.stem.startswith("__")]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
