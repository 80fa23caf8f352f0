"""The public API: what `import thresher` offers, and what it costs."""

import ast
import importlib
import inspect
import subprocess
import sys
import typing
from collections.abc import Callable
from pathlib import Path

import pytest

import thresher
from thresher.core import events
from thresher.core.events import event_time_text
from thresher.core.parameters import PARAMETERS

EXAMPLES = Path(__file__).parents[2] / "examples"
HEAVY = (
    "numpy",
    "numba",
    "matplotlib",
    "pandas",
    "fastapi",
    "uvicorn",
    "plotly",
    "asyncio",
    "rich",
    "click",
    "psycopg",
)


def program(text: str) -> str:
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def test_everything_public_is_listed() -> None:
    assert set(thresher.__all__) <= set(dir(thresher))
    assert {"run", "live", "verify", "Spec", "Store"} <= set(thresher.__all__)
    assert callable(thresher.run)


def test_importing_loads_nothing_heavy() -> None:
    assert program(f"import sys, thresher; print([name for name in {HEAVY} if name in sys.modules])") == "[]\n"


def test_importing_loads_nothing_of_thresher_itself() -> None:
    text = "import sys, thresher; print(sorted(name for name in sys.modules if name.startswith('thresher')))"
    assert program(text) == "['thresher', 'thresher._version', 'thresher.run']\n"


@pytest.mark.parametrize(
    "before",
    ["import thresher.run.loop", "from thresher.run import loop", "import thresher.create", "from thresher import *"],
)
def test_run_is_the_function_whatever_was_imported_before(before: str) -> None:
    assert program(f"{before}\nimport thresher, thresher.run.engines\nprint(thresher.run.__name__)") == "run\n"


def test_every_name_is_where_the_table_says_and_where_type_checkers_look() -> None:
    tree = ast.parse(Path(thresher.__file__).read_text())
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    found = {
        alias.name: f".{node.module}"
        for node in checked.body
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
    }
    for name, module in found.items():
        assert getattr(thresher, name) is getattr(importlib.import_module(module, "thresher"), name)
    assert {*found, "live", "__version__"} == set(thresher.__all__)


def test_a_row_of_the_table_is_an_argument_an_option_and_a_field_of_http() -> None:
    models, cli = pytest.importorskip("thresher.web.models"), importlib.import_module("thresher.cli.question_options")
    arguments = inspect.signature(thresher.create_study).parameters
    assert list(arguments) == ["name", "storage", "if_exists", "depends", "version", "lease", *PARAMETERS]
    of_a_spec = inspect.signature(thresher.Spec).parameters
    assert all(of_a_spec[name] == arguments[name] for name in PARAMETERS)
    fields = models.NewStudy.model_fields
    assert {*fields} == {"name", "if_exists", "version", *PARAMETERS}
    options = {option.name: option for option in cli.arm_options(lambda: None).__click_params__}
    assert {*PARAMETERS} - options.keys() == {"arms", "unit"}, "--arms or --arm; --reward"
    for name in {*PARAMETERS} - {"arms"}:
        default = PARAMETERS[name].default
        assert (arguments[name].default, fields[name].default) == (default, default)
    assert arguments["arms"].default is inspect.Parameter.empty
    assert (arguments["unit"].annotation, arguments["clip"].annotation) == (str | None, bool)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'thresher' has no attribute 'rum'"):
        thresher.rum  # type: ignore[attr-defined]  # noqa: B018
    assert thresher.errors.InvalidInput is thresher.InvalidInput, "as messages name it"


def test_importing_takes_at_most_four_times_as_long_as_asyncio() -> None:
    text = "import time; start = time.process_time(); import {}; print(time.process_time() - start)"
    times = {name: min(float(program(text.format(name))) for _ in range(5)) for name in ("asyncio", "thresher")}
    assert times["thresher"] < 4 * times["asyncio"]


def test_the_module_is_the_command() -> None:
    argv = [sys.executable, "-m", "thresher", "--version"]
    shown = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout
    assert thresher.__version__ in shown


def test_a_study_can_be_verified_from_its_events() -> None:
    study = thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=10)
    while pull := study.ask():
        study.tell(pull, pull.arm == "a")
    found = list(study.events())
    assert thresher.verify(found).sound
    asked = next(at for at, event in enumerate(found) if event.kind == "asked")
    found[asked] = found[asked]._replace(arm=1 - (found[asked].arm or 0))
    assert not thresher.verify(found).sound


@pytest.mark.parametrize(
    ("of", "field", "one"),
    [(thresher.Row, "standing", "reaches"), (events.Event, "kind", "told"), (events.Event, "cause", "lost")],
)
def test_fields_with_few_values_say_which(of: type, field: str, one: str) -> None:
    def values(hint: object) -> set[object]:
        if typing.get_origin(hint) is typing.Literal:
            return set(typing.get_args(hint))
        return {value for part in typing.get_args(hint) for value in values(part)}

    assert one in values(typing.get_type_hints(of)[field])


def test_a_live_table_shows_a_run_outside_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    study = thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=10)
    with thresher.live(study) as show:
        verdict = thresher.run(study, lambda pull: pull.arm == "a", workers=1, on_progress=show)
    assert verdict.issued == 10
    assert capsys.readouterr().out == "", "standard output is the program's own"


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.py")), ids=lambda file: file.stem)
def test_examples_use_only_what_is_public(file: Path) -> None:
    tree = ast.parse(file.read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not [name for name in names if name.startswith("thresher.")]
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    roots = {node.attr for node in used if isinstance(node.value, ast.Name) and node.value.id == "thresher"}
    assert roots <= set(thresher.__all__)


WRONG: dict[str, tuple[Callable[[thresher.Study], object], str]] = {
    "a reason that is not text": (lambda study: study.retire("a", reason=5), "reason 5: must be a string"),  # type: ignore[arg-type]
    "a key that is not text": (lambda study: study.ask_many(1, key=5), "key 5: must be a string"),  # type: ignore[arg-type]
    "a result without a reward": (lambda study: study.add_many([("a",)]), "must be a pair of arm and reward"),  # type: ignore[list-item]
    "an unknown arm": (lambda study: study.retire("x"), "'x': is not an arm of this study"),
    "an unknown figure": (lambda study: study.figure("pie"), "'pie': is not a figure"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_gets_our_error_message(name: str) -> None:
    study = thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=9)
    call, words = WRONG[name]
    with pytest.raises(thresher.InvalidInput, match=words):
        call(study)


def test_a_storage_that_is_not_one_is_named() -> None:
    with pytest.raises(thresher.InvalidInput, match="storage 5: is not a store"):
        thresher.open_study("a", storage=5)  # type: ignore[arg-type]


def test_the_lease_of_one_pull_can_be_renewed_by_itself() -> None:
    study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=9)
    study.renew(study.ask() or 0, 1.0)
    with pytest.raises(thresher.UnknownPull):
        study.renew(7, 1.0)


def test_times_of_a_log_beyond_the_calendar_are_shown_as_its_end() -> None:
    assert (event_time_text(1e300), event_time_text(-5.0)) == ("9999-12-31T23:59:59Z", "1970-01-01T00:00:00Z")
