"""The documentation is complete, and its examples run."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import thresher
from thresher import cli
from thresher.core import events, policies

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


@pytest.mark.parametrize("call", [thresher.create_study, thresher.run, thresher.arun], ids=lambda call: call.__name__)
def test_every_argument_is_explained_where_help_shows_it(call: object) -> None:
    text = inspect.getdoc(call) or ""
    for name in inspect.signature(call).parameters:  # type: ignore[arg-type]
        assert f"    {name}: " in text


@pytest.mark.parametrize("kind", get_args(events.Kind))
def test_every_event_is_documented(kind: str) -> None:
    assert f"| `{kind}` |" in DOCS["docs/reference/events.md"]


@pytest.mark.parametrize("cause", events.CAUSES)
def test_every_cause_is_documented(cause: str) -> None:
    assert f"`{cause}`" in DOCS["docs/reference/events.md"]


@pytest.mark.parametrize("name", [name for name in vars(thresher.Study) if not name.startswith("_")])
def test_every_method_of_a_study_is_documented(name: str) -> None:
    assert f"`{name}" in DOCS["docs/reference/library.md"]


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_is_documented(command: str) -> None:
    assert f"thresher {command}" in ALL


@pytest.mark.parametrize("file", DOCS)
def test_links_lead_somewhere(file: str) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", DOCS[file]):
        if "://" not in target:
            found = (ROOT / file).parent.joinpath(target) if target else ROOT / file
            assert found.exists(), target
            assert not anchor or anchor in anchors(found), f"{target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """What the headings of a page are linked by, as GitHub spells it."""
    titles = re.findall(r"^#+ (.*)", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_every_picture_is_shown_and_every_picture_shown_exists() -> None:
    shown = set()
    for file, text in DOCS.items():
        for target in re.findall(r"!\[[^]]*\]\(([^)]+)\)|<(?:img|source)[^>]*\ssrc(?:set)?=\"([^\"]+)\"", text):
            shown.add((ROOT / file).parent.joinpath(*filter(None, target)).resolve())
    there = {file.resolve() for kind in ("png", "svg", "jpg", "gif") for file in ROOT.glob(f"docs/**/*.{kind}")}
    assert shown == there


def test_the_readme_has_no_link_that_a_package_index_cannot_follow() -> None:
    assert all("://" in target for target in re.findall(r"\]\(([^)]+)\)", DOCS["README.md"]))


@pytest.mark.parametrize("file", DOCS)
def test_source_files_that_the_documentation_names_exist(file: str) -> None:
    for path in re.findall(r"`((?:core|log|run|web|cli|lab|text)/[\w/]+\.py)`", DOCS[file]):
        assert (ROOT / "src" / "thresher" / path).exists(), path
    for path in re.findall(r"`((?:docs|tests|bench|src|examples|paper)/[\w/.-]+)`", DOCS[file]):
        assert (ROOT / path).exists(), path


def test_the_map_of_the_architecture_page_has_every_module() -> None:
    source = Path(thresher.__file__).parent
    _, *rooms = re.split(r"^\| \*\*`(\w+)/`\*\*", DOCS["docs/explanation/architecture.md"], flags=re.MULTILINE)
    named = {room: set(re.findall(r"`(\w+)`", text)) for room, text in zip(rooms[::2], rooms[1::2], strict=True)}
    for file in source.rglob("*/*.py"):
        room = file.relative_to(source).parts[0]
        assert file.stem == "__init__" or file.stem in named[room], f"{room}/{file.stem} is not on the map"


CROSSED = """
import collections, math, sys, threading
from thresher.run import loop
loop.TICK = math.inf  # no progress is reported: on a slow machine, that would be for every pull
calls, (source, budget) = collections.Counter(), sys.argv[1:3]
def note(frame, event, argument):
    if event == "call" and frame.f_code.co_filename.startswith(source) and frame.f_code.co_flags & 1:  # no class body
        calls[frame.f_code.co_filename, frame.f_code.co_name] += 1
        if frame.f_code.co_name == "study_verdict_in_words":  # the run is over
            threading.setprofile(None), sys.setprofile(None)
threading.setprofile(note), sys.setprofile(note)
from thresher.cli import main
sys.argv[1:] = ["run", "--at-least", "0.5", "--arm", "a", "--budget", budget, "--workers", "1", "--quiet",
                "--storage", f"sqlite:///{budget}.db", "--", "echo", "0.5"]
try:
    main()
finally:
    sys.setprofile(None)
    for (file, name), count in list(calls.items()):
        print("crossed", file, name, count)
"""


def test_the_page_that_follows_one_pull_lists_the_files_that_a_pull_crosses(tmp_path: Path) -> None:
    source = Path(thresher.__file__).parent

    def calls(budget: int) -> dict[tuple[str, str], int]:
        command = [sys.executable, "-c", CROSSED, f"{source}{os.sep}", str(budget)]
        ran = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=True)
        found = [line.split(" ") for line in ran.stdout.splitlines() if line.startswith("crossed ")]
        return {(file, name): int(count) for _, file, name, count in found}

    few, many = calls(2), calls(12)
    crossed = {Path(key[0]).relative_to(source).as_posix() for key in many if many[key] - few.get(key, 0) >= 8}  # of 10
    page = DOCS["docs/design/follow-one-pull.md"]
    assert crossed == set(re.findall(r"^- `([\w/]+\.py)`$", page, re.MULTILINE))
    assert f" {len(crossed)} of them for every pull" in page


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
    for name, label in [("cot-99", "reaches"), ("verbose-70", "misses"), ("pirate-30", "misses")]:
        assert re.search(rf"{name} .*{label}", ran.stdout)


def test_tests_that_run_alone_are_where_the_makefile_runs_them() -> None:
    folders = re.findall(r"-m alone ([\w/ ]+) &&", (ROOT / "Makefile").read_text())[0].split()
    alone = [file for file in (ROOT / "tests").rglob("test_*.py") if "@pytest.mark." + "alone" in file.read_text()]
    assert len(alone) > 3
    for file in alone:
        assert any(file.is_relative_to(ROOT / folder) for folder in folders), file
