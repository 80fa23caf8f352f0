"""The documentation is complete, and its examples run."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import thresher
from thresher import cli
from thresher.core import events, ledger, policies

ROOT = Path(__file__).parent.parent
DOCS = {
    file.relative_to(ROOT).as_posix(): file.read_text() for file in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
}
ALL = "\n".join(DOCS.values())


@pytest.mark.parametrize("name", policies.CONSTRUCTORS)
def test_every_policy_is_documented(name: str) -> None:
    assert f"`{name.replace('-', '_')}(" in DOCS["docs/reference/policies.md"]
    assert f"`{name}`" in DOCS["README.md"]


@pytest.mark.parametrize("name", [name for name in thresher.__all__ if name[0].islower() and name != "__version__"])
def test_every_public_function_is_documented(name: str) -> None:
    assert f"`{name}(" in ALL


@pytest.mark.parametrize("name", [name for name in thresher.__all__ if name[0].isupper()])
def test_every_public_class_is_documented(name: str) -> None:
    assert re.search(rf"\b{name}\b", ALL)


@pytest.mark.parametrize("call", [thresher.create_study, thresher.run], ids=lambda call: call.__name__)
def test_every_argument_is_explained_where_help_shows_it(call: object) -> None:
    text = inspect.getdoc(call) or ""
    for name in inspect.signature(call).parameters:  # type: ignore[arg-type]
        assert f"    {name}: " in text


@pytest.mark.parametrize("kind", [*ledger._FOLDS, "created"])
def test_every_event_is_documented(kind: str) -> None:
    assert f"| `{kind}` |" in DOCS["docs/reference/events.md"]


@pytest.mark.parametrize("cause", events.CAUSES)
def test_every_cause_is_documented(cause: str) -> None:
    assert f"`{cause}`" in DOCS["docs/reference/events.md"]


@pytest.mark.parametrize("name", [name for name in vars(thresher.Study) if not name.startswith("_")])
def test_every_method_of_a_study_is_documented(name: str) -> None:
    if name != "look":  # for readers of the code
        assert f"`{name}" in DOCS["docs/reference/library.md"]


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_is_documented(command: str) -> None:
    assert f"thresher {command}" in ALL


@pytest.mark.parametrize("file", DOCS)
def test_links_lead_somewhere(file: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", DOCS[file]):
        if "://" not in target:
            assert (ROOT / file).parent.joinpath(target).exists(), target


def test_the_commands_of_the_readme_are_targets_of_the_makefile() -> None:
    targets = re.findall(r"^make (\w+)", DOCS["README.md"], re.MULTILINE)
    assert targets == ["demo", "test"]
    makefile = (ROOT / "Makefile").read_text()
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_the_shell_commands_of_the_guide_run(tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", DOCS["docs/guide/first-study.md"], re.DOTALL)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["sh", "-e"],
        input="\n".join(blocks),
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        text=True,
        capture_output=True,
    )
    assert ran.returncode == 0, ran.stderr
    for name, label in [("cot-99", "above"), ("verbose-70", "below"), ("pirate-30", "below")]:
        assert re.search(rf"{name} .*{label}", ran.stdout)
