"""How the laboratory compiles, and caches machine code."""

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from itertools import product, starmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import rewritten

from thresher.core import board, evidence
from thresher.core.board import Rule
from thresher.core.policies import custom
from thresher.lab import compiled_scores, compiler, parallel_compile
from thresher.lab.compiler import CompilerChoices
from thresher.lab.setup import Setup
from thresher.lab.simulator import simulated_kind

PROGRAM = """
import sys
from thresher.lab import Setup, simulate
for words in sys.argv[1:]:
    policy, delay = words.split(",")
    result = simulate(Setup(policy=policy, delay=delay, arms=5, budget=300, at_least=0.65), repetitions=9)
    print(result.measures.wrong.tolist(), result.measures.issued.tolist())
"""
FIRST, SECOND = "evt,none", "uniform,fifo:3"


def run(cache: Path, *loops: str) -> str:
    """What a process prints that looks for machine code there; it prints no warning."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-W", "error", "-c", PROGRAM, *loops]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def name(path: Path) -> str:
    """The loop whose machine code it is."""
    return path.name.partition("-")[0]


class Ran(NamedTuple):
    folder: Path
    kept: list[dict[str, int]]  # when each loop was written, after the first process and after the second
    said: list[str]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Two processes, of which the second uses the loop that the first compiled."""
    cache = tmp_path_factory.mktemp("cache")
    kept, said = [], []
    for loops in ([FIRST], [SECOND, FIRST]):
        said.append(run(cache, *loops))
        kept.append({name(path): path.stat().st_mtime_ns for path in cache.rglob("*.run_*.nbc")})
    [folder] = (cache / "thresher").iterdir()
    return Ran(folder, kept, said)


def test_machine_code_is_kept_under_a_hash_of_its_sources_and_found_again(ran: Ran) -> None:
    assert ran.folder.name.startswith("lab-")
    first, second = ran.kept
    assert [*first] == ["loops.run_loop_at_once"]
    assert {*second} == {"loops.run_loop_at_once", "loops.run_loop_delayed"}
    assert first.items() <= second.items(), "the second process used what the first had compiled"


def test_loops_that_different_processes_compiled_do_not_get_mixed_up(
    ran: Ran, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache links machine code by name: two functions with one name would take each other's place."""
    monkeypatch.setattr(sys, "argv", ["", SECOND, FIRST])
    exec(PROGRAM, {})
    expected = capsys.readouterr().out
    assert ran.said == [expected.splitlines(keepends=True)[1], expected]


def test_where_nothing_can_be_cached_loops_are_compiled_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    program = "from thresher.lab import compiler; loop = compiler.compiled_outermost(lambda number: None); "
    program += "loop(1); print(compiler.can_cache_compiled(), loop.stats.cache_path)"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "file")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False None\n", "")


def test_another_process_compiles_what_it_is_told(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(ran.folder.parent.parent))
    assert parallel_compile.child_that_compiles([CompilerChoices()]).wait(60) == 0
    assert {name(path) for path in ran.folder.rglob("*.run_*.nbc")} == {*ran.kept[1]}  # it was there


def test_every_cached_function_has_one_signature(ran: Ran) -> None:
    """With two, processes that compile at the same time could give one file to both."""
    signatures = {}
    for path in ran.folder.rglob("*.nbi"):
        with path.open("rb") as file:
            pickle.load(file)  # numba's version
            _, overloads = pickle.load(file)
            signatures[path.name] = len(overloads)
    assert len(signatures) > 20
    assert {*signatures.values()} == {1}


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_each_loop_that_is_missing_is_compiled_by_one_process(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    loops = [
        CompilerChoices(delayed=True),
        CompilerChoices(certifies=True, delayed=True),
        CompilerChoices(certifies=True),
    ]
    shares: list[Sequence[CompilerChoices]] = []

    def started(share: Sequence[CompilerChoices]) -> "subprocess.Popen[bytes]":
        shares.append(share)
        return subprocess.Popen(["true"])

    monkeypatch.setattr(parallel_compile, "available_cores", lambda: cores)
    monkeypatch.setattr(parallel_compile, "child_that_compiles", started)
    monkeypatch.setattr(parallel_compile, "compile_parallel_share", lambda share, _: shares.append(share))
    monkeypatch.setattr(compiler, "is_compiled", lambda kind: kind.delayed and kind.certifies)
    parallel_compile.compile_in_parallel([*loops, *loops])
    assert sorted(loop for share in shares for loop in share) == sorted([loops[0], loops[2]])
    assert len(shares) == min(cores, 2)


def test_every_formula_has_a_number() -> None:
    names = [
        name for name, function in vars(board).items() if [*getattr(function, "__annotations__", ())][:1] == ["gap"]
    ]
    assert sorted(names) == sorted(compiled_scores.NAMES)


@pytest.mark.parametrize("name", compiled_scores.NAMES)
def test_a_formula_is_found_by_its_number(name: str) -> None:
    formula = getattr(board, name)
    rule = Rule(formula, bar=0.5, exploration=4.0, pending_weight=1.0, warmup=2, slack=0.0)
    assert compiled_scores.apply_formula(compiled_scores.numbered_score(rule), 0.25, 0.5, 3, 5.0) == formula(
        0.25, 0.5, 3, 5.0, 4.0
    )


def test_no_two_compiled_functions_have_the_same_name() -> None:
    """They share one namespace, where one would take the other's place, as `scores.apply_formula` does on purpose."""
    names = [name for module in (*compiler.SHARED, *compiler.LOOPS) for name in compiler.functions_to_compile(module)]
    assert sorted([*set(names), "apply_formula"]) == sorted(names)


def test_no_two_constants_of_compiled_functions_have_the_same_name() -> None:
    constants: dict[str, object] = {}
    for module in (*compiler.SHARED, *compiler.LOOPS):
        for name, value in vars(module).items():
            if name.isupper() and isinstance(value, int | float):
                assert constants.setdefault(name, value) == value, f"{name} of {module.__name__}"


MOST = 4  # the certificates have another constant of this name


def at_most(columns: list[float]) -> None:
    """A loop of another room, as in `bench`."""
    columns[0] = min(columns[0], MOST)


def test_a_loop_of_another_room_reads_the_constants_of_its_own_module() -> None:
    column = np.array([7.0])
    compiler.compiled_other_loop(at_most)(column)
    assert column[0] == MOST < evidence.MOST


EITHER = (False, True)
KINDS = [
    loop
    for loop in starmap(CompilerChoices, product(EITHER, EITHER, EITHER, EITHER))
    if loop.certifies or not loop.ranks
]


@pytest.mark.parametrize("loop", KINDS)
def test_every_loop_has_a_game_to_compile_it(loop: CompilerChoices, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[Setup] = []
    monkeypatch.setattr(parallel_compile, "prepared_simulation", lambda game, certifies: played.append(game))
    parallel_compile.compile_parallel_share([loop])
    assert [simulated_kind(game) for game in played] == [loop]


def test_a_users_score_is_compiled_without_being_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """It need not be right for the small game: its own has another warm-up, or other rewards."""
    called: list[tuple[Any, ...]] = []
    monkeypatch.setattr(compiler, "compiled_loop", lambda _: lambda *arguments: called.append(arguments))
    own = custom(rewritten.thirds, warmup=5)
    parallel_compile.compile_parallel_share([CompilerChoices(formula=own.formula, digest=own.digest)])
    [(_, begin, end, *_)] = called
    assert begin == end
