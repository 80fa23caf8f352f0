"""How the laboratory compiles, and caches machine code."""

import os
import subprocess
import sys
from pathlib import Path

from thresher.lab import compiler

PROGRAM = """
from thresher.lab import Setup, simulate
print(simulate(Setup(policy="evt", arms=4, budget=40), repetitions=3).measures.wrong.tolist())
"""


def test_machine_code_is_kept_under_a_hash_of_its_sources_and_found_again(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM], env=environment, capture_output=True, text=True)
        for _ in range(2)
    )
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == second.stdout
    [folder] = (tmp_path / "thresher").iterdir()
    assert folder.name.startswith("lab-")
    assert [path.name.split("-uniform")[0] for path in folder.rglob("*.nbi")] == ["loops.run_at_once-evt"]


def test_where_nothing_can_be_kept_it_compiles_quietly(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "file")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_formula_of_the_kernel_is_known() -> None:
    assert sorted(compiler.FORMULAS) == ["apt", "cheapest", "evt", "evt_pf", "evt_supplement", "lsa", "uniform"]


EACH = """
import sys
from thresher.lab import Setup, simulate
for words in sys.argv[1:]:
    policy, family = words.split(",")
    result = simulate(Setup(policy=policy, family=family, arms=5, budget=300, threshold=0.65), repetitions=9)
    print(result.measures.wrong.tolist(), result.measures.issued.tolist())
"""


def test_loops_that_different_processes_compiled_do_not_get_mixed_up(tmp_path: Path) -> None:
    """The cache links machine code by name: two functions with one name would take each other's place."""
    nowhere = tmp_path / "file"  # here nothing can be cached
    nowhere.write_text("")

    def run(cache: Path, *loops: str) -> str:
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
        command = [sys.executable, "-c", EACH, *loops]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    first, second = "evt,constant", "uniform,bernoulli"
    expected = run(nowhere, second, first)
    run(tmp_path, first)
    assert run(tmp_path, second, first) == expected
