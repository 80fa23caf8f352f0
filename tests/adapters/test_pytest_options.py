"""The pytest plugin: its options, marks, exit codes, and resuming."""

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

import thresher
from thresher.adapters import pytest_plugin

pytest_plugins = ["pytester", "sifted"]
Sifted = Callable[..., pytest.RunResult]
PLAIN = "def test_it(): pass"


def test_what_everybody_imports_is_light() -> None:
    tree = ast.parse(Path(pytest_plugin.__file__).read_text())
    names = [name.name for node in tree.body if isinstance(node, ast.Import) for name in node.names]
    modules = [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert (names, modules) == (["pytest"], ["typing"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--thresher=1"], "--thresher '1': must lie strictly between 0 and 1; no number of runs can prove*"),
        (["--thresher=high"], "--thresher 'high': is not a number; write 0.95 or 95%"),
        (["--thresher=95ms"], "--thresher '95ms': is not a number; write 0.95 or 95%"),
        (["--thresher=.9", "--thresher-tolerance=x"], "--thresher-tolerance 'x': is not a number; write 0.02 or 2%"),
        (["--thresher=.9", "--thresher-tolerance=-1%"], "--thresher-tolerance '-1%': must not be negative"),
        (["--thresher=.9", "--thresher-tolerance=2"], "--thresher-tolerance '2': 90 % ± 200 points must lie *"),
        (["--thresher=.9", "--thresher-tolerance=10%"], "--thresher-tolerance '10%': 90 % ± 10 points must lie *"),
        (["--thresher-tolerance=2%"], "--thresher-tolerance: does nothing without --thresher; add --thresher 0.95"),
        (["--thresher=.9", "--thresher-for=1e3"], "--thresher-for '1e3': is not a length of time *"),
        (["--thresher=.9", "--thresher-budget=0"], "--thresher-budget '0': must be a whole number of at least 1"),
        (["--thresher=.9", "--thresher-budget=1"], "--thresher-budget 1: must be at least 2: 2 runs for each of 1 *"),
        (["--thresher=.9", "--thresher-guarantee=x"], "--thresher-guarantee 'x': must be all or rate"),
        (["--thresher=.9", "--thresher-isolation=x"], "--thresher-isolation 'x': must be function, module or session"),
        (["--thresher=.9", "--thresher-open=x"], "--thresher-open 'x': must be pass or fail"),
        (["--thresher=.9", "--thresher-confidence=2"], "--thresher-confidence '2': must lie strictly between 0 and 1*"),
        (["--thresher=.9", "--thresher-storage=x:y"], "--thresher-storage 'x:y': is not a store*"),
        (["--thresher=.9", "--thresher-seed=1"], "--thresher-seed: runs tests once, so it cannot be used with *"),
        (["--thresher-study-seed=1"], "--thresher-study-seed: does nothing without --thresher; *"),
        (["--thresher=.9", "--thresher-study-seed=x"], "--thresher-study-seed 'x': must be a whole number of *"),
        (["--thresher-seed=-1"], "--thresher-seed '-1': must be a whole number of at least 0 and below *"),
        (["--thresher-budget=10"], "--thresher-budget: does nothing without --thresher; add --thresher 0.95"),
    ],
)
def test_a_wrong_option_is_one_line_and_exit_code_4(sifted: Sifted, options: list[str], message: str) -> None:
    result = sifted(PLAIN, *options)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
    assert len([line for line in result.errlines if line]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "the mark thresher() must name at_least or tolerance, as in thresher(0.9, tolerance=0.02)"),
        ("0.9, 0.02", "the mark thresher(0.9, 0.02) must name at_least or tolerance, as in *"),
        ("0.9, at_least=0.9", "the mark thresher(0.9, at_least=0.9) must name at_least or tolerance, as in *"),
        ("least=0.9", "the mark thresher(least=0.9) must name at_least or tolerance, as in *"),
        ("tolerance=0.1", "tolerance 0.1: 90 % ± 10 points must lie strictly between 0 and 100 %; give less than *"),
        ("tolerance=2", "tolerance 2: 90 % ± 200 points must lie strictly between 0 and 100 %; write 2%"),
        ("tolerance=-0.1", "tolerance -0.1: must not be negative"),
        ("tolerance='2s'", "tolerance '2s': is not a number; write 0.02 or 2%"),
        ("at_least=90", "at_least 90: must lie strictly between 0 and 1; write 0.95 or 95%"),
        ("at_least=True", "at_least True: is not a number; write 0.95 or 95%"),
    ],
)
def test_a_wrong_mark_is_one_line_and_exit_code_4(sifted: Sifted, arguments: str, message: str) -> None:
    result = sifted(f"@pytest.mark.thresher({arguments})\n{PLAIN}", "--thresher=0.9")
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"ERROR: test_it.py::test_it: {message}"])


def test_pytests_own_exit_codes_stay(sifted: Sifted) -> None:
    assert sifted("x = 1", "--thresher=0.9").ret == 5
    assert sifted("1 / 0", "--thresher=0.9").ret == 2
    assert sifted(PLAIN, "--thresher=0.9", "--collect-only").ret == 0
    assert sifted("@pytest.mark.skip\ndef test_no(): pass", "--thresher=0.9").ret == 0


def test_a_configuration_file_may_set_defaults(sifted: Sifted, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nthresher_budget = 2\nthresher_open = fail")
    assert sifted(PLAIN, "--thresher=90%").ret == 8
    assert sifted(PLAIN, "--thresher=90%", "--thresher-budget=100").ret == 0
    assert sifted(PLAIN).ret == 0


ON_THE_BAR = "def test_it(thresher_pull): assert thresher_pull.number % 10"  # 90 % of runs pass


def test_with_a_tolerance_a_test_on_the_bar_is_settled(sifted: Sifted, pytester: pytest.Pytester) -> None:
    seeded = (ON_THE_BAR, "--thresher=90%", "--thresher-study-seed=3")
    result = sifted(*seeded, "--thresher-tolerance=5%")
    result.stdout.fnmatch_lines(
        [
            "thresher: which tests reach 90 %, give or take 5 points? Confidence 95 %",
            "* (flaky)*, 0 open. It took * runs.",
            "With a probability of at least 95 %, none that reaches it is under 85 %, and none that misses it is *",
        ]
    )
    pytester.makeini("[pytest]\nthresher_tolerance = 0.05")
    assert _took(sifted(*seeded)) == _took(result)
    sharp = sifted(*seeded, "--thresher-tolerance=0", "--thresher-budget=500")
    sharp.stdout.fnmatch_lines(["0 tests reach 90 %, 0 miss it, 1 open (flaky). It took 500 runs."])


def _took(result: pytest.RunResult) -> str:
    return next(line.partition("It took")[2] for line in result.outlines if "It took" in line)


@pytest.mark.parametrize("arguments", ["0.9, tolerance=0.05", "at_least='90%', tolerance='5%'"])
def test_a_mark_may_have_a_tolerance(sifted: Sifted, arguments: str) -> None:
    source = f"@pytest.mark.thresher({arguments})\n{ON_THE_BAR}\ndef test_other(): pass"
    result = sifted(source, "--thresher=80%", "-v")
    result.stdout.fnmatch_lines(
        [
            "* (flaky)*, 0 open. It took *",
            "80 %: With a probability of at least 97.5 %, the certified answer is right, *",
            "90 %, give or take 5 points: With a probability of at least 97.5 %, none that reaches it is under 85 %*",
            "Together, they hold with a probability of at least 95 %.",
        ]
    )


def test_the_time_limit_ends_a_run(sifted: Sifted) -> None:
    result = sifted("import time\ndef test_it(): time.sleep(0.02)", "--thresher=0.999", "--thresher-for=100ms")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["0 tests reach 99.9 %, 0 miss it, 1 open. It took * runs."])


@pytest.mark.parametrize("guarantee", ["all", "rate"])
def test_both_guarantees(sifted: Sifted, guarantee: str) -> None:
    result = sifted(PLAIN, "--thresher=0.8", f"--thresher-guarantee={guarantee}")
    said = "With a probability of at least 95 %, the certified answer is right"
    said = said if guarantee == "all" else "Of the tests certified to reach it, at most 5 % are wrong"
    result.stdout.fnmatch_lines([f"{said}*provided that the outcomes of a test's runs are independent, *"])


INTERRUPTED = """
from pathlib import Path
def test_steady(): pass
def test_stops(thresher_pull):
    with open("runs", "a") as file: print(thresher_pull.number, file=file)
    if thresher_pull.number == 5 and not Path("again").exists():
        Path("again").touch()
        raise {error}
"""


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "pytest.exit('enough')"])
def test_ctrl_c_shows_what_is_known_and_the_same_command_resumes(
    sifted: Sifted, pytester: pytest.Pytester, error: str
) -> None:
    command = ("--thresher=0.8", "--thresher-storage=sqlite:///runs.db")
    result = sifted(INTERRUPTED.replace("{error}", error), *command)
    assert result.ret == 2
    result.stdout.fnmatch_lines(["0 tests reach 80 %, 0 miss it, 2 open. It took * runs."])
    result = sifted("", *command)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["2 tests reach 80 %, 0 miss it, *", "*outcomes are from earlier runs*"])
    numbers = [int(line) for line in (pytester.path / "runs").read_text().split()]
    assert len(set(numbers)) == len(numbers)  # no run twice
    study = thresher.open_study(_only_study(pytester), storage=f"sqlite:///{pytester.path}/runs.db")
    states = [row.state for row in study.pulls() if row.arm.endswith("test_stops")]
    assert states[4] == "dropped"
    assert study.verdict()["test_it.py::test_stops"].charged >= 1
    assert study.pending() == []
    thresher.verify(study.events())
    study.close()
    result = sifted("", *command)
    result.stdout.fnmatch_lines(["2 tests reach 80 %, 0 miss it, *", "All outcomes are from earlier runs*"])
    assert [int(line) for line in (pytester.path / "runs").read_text().split()] == numbers


def test_changed_code_is_another_study(sifted: Sifted) -> None:
    command = ("--thresher=0.8", "--thresher-storage=sqlite:///runs.db")
    assert sifted("def test_it(): assert 0", *command).ret == 1
    assert sifted("def test_it(): assert 1", *command).ret == 0


def test_a_store_that_fails_ends_the_run_with_one_line(sifted: Sifted) -> None:
    source = """
import thresher.log.sqlite
def test_it(thresher_pull, request):
    if thresher_pull.number == 3:
        def broken(*_, **__): raise thresher.StoreFailed("storage", "runs.db", "the disk is full", "make room")
        patch = pytest.MonkeyPatch()
        patch.setattr(thresher.log.sqlite.SqliteStore, "append", broken)
        request.config.add_cleanup(patch.undo)
"""
    result = sifted(source, "--thresher=0.8", "--thresher-storage=sqlite:///runs.db")
    assert result.ret == 3
    result.stdout.fnmatch_lines(["*Exit: --thresher-storage: storage 'runs.db': the disk is full; make room*"])


def _only_study(pytester: pytest.Pytester) -> str:
    from thresher.log.store import open_store

    store = open_store(f"sqlite:///{pytester.path}/runs.db")
    (name,) = store.studies()
    store.close()
    return str(name)
