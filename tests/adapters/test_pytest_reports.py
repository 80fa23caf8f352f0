"""The pytest plugin: its output for people, CI services and other plugins."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest

pytest_plugins = ["pytester", "sifted"]
SEEDED = ("-ppytest_randomly", "--randomly-seed=3", "--thresher-study-seed=3")
Sifted = Callable[..., pytest.RunResult]
SEVERAL = """
def test_steady(): pass
def test_rare():
    value = random.random()
    print("drawn:", value)
    assert value > 0.1
def test_failing(): assert "one" == "two"
def test_skips(): pytest.skip("not today")
@pytest.mark.thresher(at_least=0.3)
def test_half(): assert random.random() > 0.5
"""


def test_the_summary_shows_what_does_not_plainly_reach_the_bar(sifted: Sifted) -> None:
    result = sifted(SEVERAL, "--thresher=0.8", *SEEDED)
    assert result.ret == 1
    result.stdout.fnmatch_lines_random(
        [
            "*= FLAKY =*",
            "drawn: 0.*",
            "misses * 0 %  * 0 – * %  * test_it.py::test_failing",
            "skipped            * test_it.py::test_skips",
            "reaches, but flaky  * %  * – 100 % * test_it.py::test_rare",
            "reaches, but flaky  * %  * test_it.py::test_half",
            "    pytest test_it.py::test_rare --thresher-seed [0-9]*",
            "E   AssertionError: assert 'one' == 'two'",
            "3 tests reach the bar (2 of them flaky), 1 misses it, 0 open, 1 skipped. It took * runs (* %).",
            "30 %: With a probability of at least 99 %, the certified answer is right, *",
            "Together, they hold with a probability of at least 95 %.",
            "*1 failed, 3 passed, 1 skipped in *",
        ]
    )
    result.stdout.no_fnmatch_line("reaches  * test_it.py::test_steady")


def test_quiet_and_verbose(sifted: Sifted) -> None:
    quiet = sifted(SEVERAL, "--thresher=0.8", "-qq", *SEEDED)
    quiet.stdout.no_fnmatch_line("misses  *")
    quiet.stdout.fnmatch_lines(["3 tests reach the bar (2 of them flaky), 1 misses it, *"])
    verbose = sifted("", "--thresher=0.8", "-v", "--tb=no", *SEEDED)
    verbose.stdout.fnmatch_lines_random(
        ["*::test_steady REACHES *", "*::test_failing MISSES *", "reaches * test_it.py::test_steady"]
    )
    verbose.stdout.fnmatch_lines(["rerun: pytest test_it.py::test_failing --thresher-seed *"])
    verbose.stdout.no_fnmatch_line("drawn: *")


def test_junit_has_one_case_each(sifted: Sifted, pytester: pytest.Pytester) -> None:
    sifted(SEVERAL, "--thresher=0.8", "--junitxml=out.xml", *SEEDED)
    suite = ET.parse(pytester.path / "out.xml").getroot()[0]
    assert {name: suite.get(name) for name in ("tests", "failures", "skipped", "errors")} == {
        "tests": "5",
        "failures": "1",
        "skipped": "1",
        "errors": "0",
    }
    cases = {case.get("name"): case for case in suite}
    parts = {name: [part.tag for part in case if part.tag != "properties"] for name, case in cases.items()}
    assert parts == {
        "test_steady": [],
        "test_rare": ["flakyFailure"],
        "test_failing": ["failure"],
        "test_skips": ["skipped"],
        "test_half": ["flakyFailure"],
    }
    flaky = cases["test_rare"].find("flakyFailure")
    assert flaky is not None
    assert "assert value > 0.1" in (flaky.findtext("stackTrace") or "")
    assert "pass rate " in (flaky.get("message") or "")
    assert flaky.get("type") == "AssertionError"
    properties = {entry.get("name"): entry.get("value") or "" for entry in cases["test_rare"].iter("property")}
    assert (
        0
        <= float(properties["thresher_low"])
        <= float(properties["thresher_rate"])
        <= float(properties["thresher_high"])
    )
    assert int(properties["thresher_runs"]) > 10
    assert (properties["thresher_status"], properties["thresher_flaky"]) == ("reaches", "true")
    assert (properties["thresher_at_least"], properties["thresher_tolerance"]) == ("0.8", "0")


def test_junit_names_the_class_of_what_was_raised(sifted: Sifted, pytester: pytest.Pytester) -> None:
    source = """
class Odd(Exception): pass
def test_plain(thresher_pull): assert thresher_pull.number != 2
def test_with_words(thresher_pull): assert thresher_pull.number != 2, "the second: it fails"
def test_own(thresher_pull):
    if thresher_pull.number == 2: raise Odd
def test_failed(thresher_pull):
    if thresher_pull.number == 2: pytest.fail("no")
def test_part(thresher_pull, subtests):
    with subtests.test(part=1): assert thresher_pull.number != 2
"""
    sifted(source, "--thresher=0.5", "--junitxml=out.xml")
    suite = ET.parse(pytester.path / "out.xml").getroot()[0]
    assert {case.get("name"): [part.get("type") for part in case.iter("flakyFailure")] for case in suite} == {
        "test_plain": ["AssertionError"],
        "test_with_words": ["AssertionError"],
        "test_own": ["Odd"],
        "test_failed": ["Failed"],
        "test_part": ["AssertionError"],
    }


def test_markdown_goes_to_the_page_of_the_ci_service(
    sifted: Sifted, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = pytester.path / "page.md"
    page.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    sifted(SEVERAL, "--thresher=0.8", *SEEDED)
    text = page.read_text()
    assert text.startswith("before\n### thresher: which tests reach 80 %?")
    assert re.search(r"^\| misses \| 0 % \|.*\| test\\_it.py::test\\_failing \|$", text, re.MULTILINE)
    assert "--thresher-seed" in text


@pytest.mark.parametrize(("open_tests", "code"), [("pass", 0), ("fail", 8)])
def test_open_tests_pass_unless_they_are_to_fail(sifted: Sifted, open_tests: str, code: int) -> None:
    source = "def test_it(): pass\ndef test_rare(thresher_pull): assert thresher_pull.number != 2"
    options = ("--thresher=0.99", "--thresher-budget=10", f"--thresher-open={open_tests}")
    result = sifted(source, *options)
    assert result.ret == code
    result.stdout.fnmatch_lines(
        ["0 tests reach 99 %, 0 miss it, 2 open (1 of them flaky). It took 10 runs.", "*= 2 open in *"]
    )


def test_of_many_open_tests_that_never_failed_a_few_are_listed(
    sifted: Sifted, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "page.md"))
    source = """
@pytest.mark.parametrize("n", range(30))
def test_it(n): pass
def test_rare(thresher_pull): assert thresher_pull.number != 2
"""
    few = sifted(source, "--thresher=0.99", "--thresher-budget=62")
    few.stdout.fnmatch_lines(
        ["open, flaky * test_it.py::test_rare", "and 20 more tests that are open and never failed; -v *"]
    )
    few.stdout.fnmatch_lines(
        ["0 tests reach 99 %, 0 miss it, 31 open (1 of them flaky). It took 62 runs.", "Nothing is certified yet."]
    )
    assert sum(line.startswith("open ") for line in few.outlines) == 10
    assert "and 20 more tests that are open and never failed." in (pytester.path / "page.md").read_text()
    plain = sifted("", "--thresher=0.99", "--thresher-budget=62", "-knot rare")
    plain.stdout.fnmatch_lines(["*= thresher =*", "state * test"], consecutive=True)
    every = sifted("", "--thresher=0.99", "--thresher-budget=62", "-v")
    assert sum(line.startswith("open ") for line in every.outlines) == 30


def test_only_failing_tests_run_again_with_last_failed(pytester: pytest.Pytester, sifted: Sifted) -> None:
    source = "def test_bad(): assert 0\ndef test_good(): pass"
    assert sifted(source, "--thresher=0.8", "-pcacheprovider").ret == 1
    result = sifted("", "--thresher=0.8", "-pcacheprovider", "--lf")
    result.stdout.fnmatch_lines(["0 tests reach 80 %, 1 misses it, *"])


def test_the_summary_says_how_many_of_those_that_miss_the_bar_are_flaky(sifted: Sifted) -> None:
    source = "from itertools import count\nn = count()\ndef test_odd(): assert next(n) % 2\ndef test_bad(): assert 0"
    result = sifted(source, "--thresher=0.9")
    result.stdout.fnmatch_lines(["0 tests reach 90 %, 2 miss it (1 of them flaky), 0 open. It took *"])


def test_exitfirst_ends_with_the_first_test_that_misses_the_bar(sifted: Sifted) -> None:
    result = sifted("def test_bad(): assert 0\ndef test_good(): pass", "--thresher=0.8", "-x")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["0 tests reach 80 %, 1 misses it, 1 open. It took *", "*stopping after 1 failures*"])


def test_an_error_when_a_module_is_left_is_reported(sifted: Sifted) -> None:
    source = """
@pytest.fixture(scope="module")
def leaky():
    yield
    raise ValueError("still open")
def test_it(leaky): pass
"""
    result = sifted(source, "--thresher=0.8")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_it*", "ValueError: still open", "1 test reaches 80 %, *"])


def test_warnings_are_shown_once(sifted: Sifted) -> None:
    source = "import warnings\ndef test_it(): warnings.warn('old')"
    sifted(source, "--thresher=0.8", "-Wdefault").stdout.fnmatch_lines(["*1 passed, 1 warning in *"])


def test_a_failed_subtest_fails_its_run_even_if_another_folder_has_the_hook_that_logs_reports(
    sifted: Sifted, pytester: pytest.Pytester
) -> None:
    """pytest then calls a copy of the hook, and the test's own report does not say that a subtest failed."""
    other = pytester.mkdir("other")
    (other / "conftest.py").write_text(
        "def pytest_runtest_logreport(report): pass\ndef pytest_warning_recorded(): pass"
    )
    (other / "test_other.py").write_text("def test_other(): pass")
    source = """
import warnings
def test_part(subtests):
    warnings.warn("old")
    with subtests.test("one"): assert 0
"""
    result = sifted(source, "--thresher=0.8", "-Wdefault")
    result.stdout.fnmatch_lines(["1 test reaches 80 %, 1 misses it, *", "*= 1 failed, 1 passed, 1 warning in *"])


def test_a_terminal_sees_progress(sifted: Sifted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thresher.adapters.pytest_plugin.reports.LOGGED", 0.0)
    sifted("def test_it(): pass", "--thresher=0.8").stdout.fnmatch_lines(
        ["thresher: * run*, *, 1 open, * s; about * runs left, * s"]
    )
