"""The pytest plugin: runs of tests, and how their outcomes count."""

from collections.abc import Callable
from textwrap import dedent

import pytest

pytest_plugins = ["pytester", "sifted"]
Reports = Callable[..., dict[str, str]]


def test_every_test_gets_one_report_with_its_status(reports: Reports) -> None:
    source = """
        def test_steady(): pass
        def test_failing(): assert 0
        def test_often(): assert random.random() > 0.5
        def test_late_skip(): pytest.skip("not today")
        def test_late_xfail(): pytest.xfail("known")
        def test_exits(): raise SystemExit(3)
        def test_fails(): pytest.fail("no")
        @pytest.fixture
        def broken(): raise ValueError("no database")
        def test_setup(broken): pass
        @pytest.fixture
        def leaky():
            yield
            raise ValueError("still open")
        def test_teardown(leaky): pass
        @pytest.mark.parametrize("n", [1, 2])
        def test_each(n): pass
        @pytest.mark.skip
        def test_no_arm(): assert 0
        @pytest.mark.xfail
        def test_no_arm_either(): assert 0
        @pytest.mark.xfail(False, reason="condition")
        def test_arm(): pass
    """
    assert reports(dedent(source), "--thresher=0.8", "--thresher-study-seed=1", "-ppytest_randomly") == {
        "test_steady": "reaches",
        "test_failing": "misses",
        "test_often": "misses",
        "test_late_skip": "skipped",
        "test_late_xfail": "skipped",
        "test_exits": "misses",
        "test_fails": "misses",
        "test_setup": "error",
        "test_teardown": "error",
        "test_each[1]": "reaches",
        "test_each[2]": "reaches",
        "test_arm": "reaches",
    }


def test_unittest_classes_subtests_coroutines_and_doctests_are_arms(reports: Reports) -> None:
    source = '''
        import unittest
        class TestOld(unittest.TestCase):
            @classmethod
            def setUpClass(cls): cls.calls = []
            def setUp(self): self.fresh = []
            def test_state(self):
                assert not self.fresh
                self.fresh.append(1)
                self.calls.append(1)
            def test_part(self):
                with self.subTest(part=1): assert random.random() > 0.6
            @unittest.skip("no arm")
            def test_no_arm(self): pass
        class TestNew:
            seen = None
            def test_self(self):
                assert self.seen is None
                self.seen = 1
        def test_parts(subtests):
            with subtests.test("one"): assert random.random() > 0.6
        @pytest.mark.asyncio
        async def test_later(): pass
        def double(n):
            """
            >>> a = double(3)
            >>> a
            6
            """
            return 2 * n
    '''
    options = (
        "--thresher=0.8",
        "--doctest-modules",
        "-ppytest_asyncio.plugin",
        "-oasyncio_default_fixture_loop_scope=function",
    )
    assert reports(dedent(source), *options) == {
        "TestOld::test_state": "reaches",
        "TestOld::test_part": "misses",
        "TestNew::test_self": "reaches",
        "test_parts": "misses",
        "test_later": "reaches",
        "test_it.double": "reaches",
    }


@pytest.mark.parametrize(
    ("isolation", "fresh"),
    [("function", ["each"]), ("module", ["each", "klass", "module"]), ("session", ["each", "klass", "module", "all"])],
)
def test_isolation_says_which_fixtures_are_set_up_anew(
    sifted: Callable[..., pytest.RunResult], pytester: pytest.Pytester, isolation: str, fresh: list[str]
) -> None:
    source = """
        from pathlib import Path
        def noted(name):
            with Path("notes").open("a") as file: print(name, file=file)
        @pytest.fixture(scope="session")
        def all():
            noted("all")
            yield
            noted("all ends")
        @pytest.fixture(scope="module")
        def module(): noted("module")
        @pytest.fixture(scope="class")
        def klass(): noted("klass")
        @pytest.fixture
        def each(): noted("each")
        class TestIt:
            def test_it(self, all, module, klass, each): noted("run")
    """
    result = sifted(dedent(source), "--thresher=0.5", f"--thresher-isolation={isolation}")
    assert result.ret == 0
    notes = (pytester.path / "notes").read_text().splitlines()
    for name in ("each", "klass", "module", "all"):
        assert notes.count(name) == (notes.count("run") if name in fresh else 1)
    assert notes.count("all ends") == notes.count("all")


def test_a_test_may_record_a_number(reports: Reports) -> None:
    source = """
        def test_high(thresher_pull): thresher_pull.reward(0.95)
        def test_low(thresher_pull): thresher_pull.reward(0.3)
        def test_failed_after(thresher_pull):
            thresher_pull.reward(1)
            assert 0
        def test_twice(thresher_pull):
            thresher_pull.reward(1)
            thresher_pull.reward(0)
        def test_outside(thresher_pull): thresher_pull.reward(1.5)
        def test_nan(thresher_pull):
            try: thresher_pull.reward(float("nan"))
            except ValueError: pass
        def test_tampers(thresher_pull):
            for name in ("seed", "number", "arm"):
                with pytest.raises(AttributeError): setattr(thresher_pull, name, 1)
            assert thresher_pull.number >= 1 and thresher_pull.arm.endswith("test_tampers")
        kept = []
        def test_late(thresher_pull):
            for pull in kept:
                with pytest.raises(ValueError): pull.reward(1)
            kept.append(thresher_pull)
            assert 0
    """
    assert reports(dedent(source), "--thresher=0.8") == {
        "test_high": "reaches",
        "test_low": "misses",
        "test_failed_after": "misses",
        "test_twice": "misses",
        "test_outside": "error",
        "test_nan": "error",
        "test_tampers": "reaches",
        "test_late": "misses",
    }


def test_a_shared_fixture_that_failed_once_is_set_up_again(reports: Reports) -> None:
    source = """
        tried = []
        @pytest.fixture(scope="module")
        def database():
            tried.append(1)
            if len(tried) < 3: raise ConnectionError("not yet")
        def test_it(database): pass
    """
    assert reports(dedent(source), "--thresher=0.8") == {"test_it": "reaches"}


def test_a_timeout_is_a_failure_of_the_run(reports: Reports) -> None:
    source = """
        import time
        @pytest.mark.timeout(0.25)
        def test_hangs(): time.sleep(10)
    """
    assert reports(dedent(source), "--thresher=0.8", "-ppytest_timeout") == {"test_hangs": "error"}


def test_other_plugins_cannot_repeat_a_run_that_failed(reports: Reports) -> None:
    source = "def test_often(): assert random.random() > 0.5\n"
    assert reports(source, "--thresher=0.8", "-ppytest_rerunfailures", "--reruns=5") == {"test_often": "misses"}


@pytest.mark.parametrize("randomly", [True, False])
def test_every_run_draws_other_numbers_and_a_seed_draws_the_same_again(
    sifted: Callable[..., pytest.RunResult], pytester: pytest.Pytester, randomly: bool
) -> None:
    source = """
        import numpy
        @pytest.fixture(scope="module")
        def shared(): return [random.random() for _ in range(5)]
        @pytest.fixture
        def own(shared): return random.random()
        def test_draws(own, thresher_pull):
            with open("draws", "a") as file:
                print(thresher_pull.seed, own, random.random(), numpy.random.random(), file=file)
    """
    options = ["-ppytest_randomly"] if randomly else []
    sifted(dedent(source), "--thresher=0.98", "--thresher-budget=250", *options)
    draws = [line.split() for line in (pytester.path / "draws").read_text().splitlines()]
    assert len(draws) > 200
    for column in zip(*draws, strict=True):
        assert len(set(column)) == len(draws)
    for at in (0, 30):
        (pytester.path / "draws").unlink()
        sifted("", f"--thresher-seed={draws[at][0]}", *options)
        assert (pytester.path / "draws").read_text().split() == draws[at]


RARELY = """
from pathlib import Path
def test_it(thresher_pull):
    item = str(thresher_pull.seed)
    if random.random() > 0.6 and item not in Path("mended").read_text().split():
        with open("failed", "a") as file:
            print(item, file=file)
        assert 0
"""


@pytest.mark.parametrize("seeded", [False, True])
def test_a_session_does_not_meet_again_what_was_mended_unless_its_seed_is_given(
    reports: Reports, pytester: pytest.Pytester, seeded: bool
) -> None:
    """Six of ten draws pass, and those that failed are mended. pytest-randomly's seed is no seed of the study."""
    options = ["--randomly-seed=1", "-ppytest_randomly", *(["--thresher-study-seed=1"] if seeded else [])]
    for name in ("mended", "failed"):
        (pytester.path / name).touch()
    reports(RARELY, "--thresher=0.6", "--thresher-budget=80", *options)
    (pytester.path / "failed").rename(pytester.path / "mended")
    assert reports(RARELY, "--thresher=0.9", *options) == {"test_it": "reaches" if seeded else "misses"}


def test_without_the_option_nothing_happens_and_the_fixture_works(sifted: Callable[..., pytest.RunResult]) -> None:
    source = """
        @pytest.mark.thresher(at_least=0.9)
        def test_it(thresher_pull):
            thresher_pull.reward(0.5)
            assert thresher_pull.number == 1 and thresher_pull.seed >= 0
    """
    result = sifted(dedent(source), "--strict-markers")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*reach*")


def test_a_test_whose_outcome_decides_whether_there_is_a_reward_never_reaches_the_bar(reports: Reports) -> None:
    source = """
        @pytest.fixture
        def bad():
            bad = random.random() > 0.7
            yield bad
            assert not bad
        def test_skips(bad):
            if bad: pytest.skip("hidden")
        def test_teardown(bad): pass
        @pytest.fixture
        def worse():
            if random.random() > 0.7: raise RuntimeError
        def test_setup(worse): pass
        def test_number(thresher_pull):
            if random.random() > 0.7: thresher_pull.reward(1.0001)
        def test_xfails(request):
            if random.random() > 0.7:
                request.node.add_marker(pytest.mark.xfail)
                assert 0
    """
    outcomes = reports(dedent(source), "--thresher=0.9", "--thresher-budget=400")
    assert len(outcomes) == 5
    assert not {"reaches", "misses"} & set(outcomes.values())


def test_a_test_that_a_plugin_retries_after_a_failure_is_not_certified(
    reports: Reports, pytester: pytest.Pytester
) -> None:
    """As pytest-retry does it: half of the runs fail, and one of 32 after five retries."""
    pytester.makeconftest("""
        import pytest

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(item, call):
            report = yield
            for _ in range(5 if report.when == "call" else 0):
                if report.failed:
                    again = pytest.CallInfo.from_call(lambda: item.ihook.pytest_runtest_call(item=item), "call")
                    report = pytest.TestReport.from_item_and_call(item, again)
            return report
    """)
    source = """
        import os
        def test_half(): assert os.urandom(1)[0] < 128
        def test_never_retried(): pass
    """
    outcomes = reports(dedent(source), "--thresher=0.9", "--thresher-budget=400")
    assert outcomes.pop("test_never_retried") == "reaches"
    assert outcomes["test_half"] in ("error", "open")


def test_temporary_folders_of_runs_are_removed_except_the_first_that_failed(
    sifted: Callable[..., pytest.RunResult], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thresher.adapters.pytest_plugin.repeating.MOST", 3)
    source = """
        def test_it(tmp_path, thresher_pull):
            (tmp_path / str(thresher_pull.number)).touch()
            assert thresher_pull.number not in (2, 4)
    """
    sifted(dedent(source), "--thresher=0.5", "--basetemp=runs")
    left = [file.name for file in (pytester.path / "runs").glob("test_it*[0-9]/*")]
    assert len(left) == 4
    assert "2" in left
