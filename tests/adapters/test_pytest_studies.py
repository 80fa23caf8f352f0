"""The studies behind the pytest plugin: several bars, one confidence; what is charged; resuming."""

import math
import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from chances import most

import thresher
from thresher.adapters.pytest_plugin import studies as studies_module
from thresher.adapters.pytest_plugin.repeating import RepeatedOutcome
from thresher.adapters.pytest_plugin.reports import guarantees_of_test_reports
from thresher.adapters.pytest_plugin.session_options import Options, SessionBar
from thresher.adapters.pytest_plugin.studies import Ask, SessionStudies, arm_of_pytest_study
from thresher.errors import CannotGoOn
from thresher.log.store import MemoryStore

FAILED = RepeatedOutcome(reward=0.0, traceback="E   assert 0", message="assert 0")
PASSED = RepeatedOutcome(reward=1.0)
SIMULATIONS = 12
WAYS: dict[str, Callable[[SessionStudies, Ask], None]] = {  # ways to end a run instead of failing
    "skip": lambda studies, ask: studies.tell(ask, RepeatedOutcome(skipped="not now")),
    "error": lambda studies, ask: studies.tell(ask, RepeatedOutcome(failure="error in teardown")),
    "die": lambda studies, ask: studies.drop_lost(ask, "worker crashed"),
    "fail": lambda studies, ask: studies.tell(ask, FAILED),
}


@pytest.mark.parametrize("bar", [SessionBar(0.9), SessionBar(0.85, 0.04)], ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_no_way_to_hide_a_failure_makes_a_test_reach_the_bar(way: str, bar: SessionBar) -> None:
    chance = random.Random(f"hidden {way}")
    wrong = 0
    for at in range(SIMULATIONS):
        studies = SessionStudies({"test": bar}, Options(bar, budget=150, seed=at))
        while asks := studies.ask(1 + at % 8):
            for ask in asks:
                if chance.random() < 0.8:
                    studies.tell(ask, PASSED)
                else:
                    WAYS[way](studies, ask)
        (result,) = studies.results()
        wrong += result.status == "reaches"
    assert wrong <= most(SIMULATIONS, 0.05)


def test_bars_that_differ_in_the_seventh_digit_have_studies_of_their_own(tmp_path: Path) -> None:
    tests = {"a": SessionBar(0.9000001), "b": SessionBar(0.9000002), "c": SessionBar(0.99)}
    options = Options(SessionBar(0.99), storage=f"sqlite:///{tmp_path}/s.db")
    for _ in range(2):  # the second resumes
        studies = SessionStudies(tests, options)
        assert [verdict.at_least for verdict in studies.verdicts()] == [0.9000001, 0.9000002, 0.99]
    assert [verdict.study for verdict in studies.verdicts()] == ["pytest 0.9000001", "pytest 0.9000002", "pytest"]
    assert "90.00001 %" in "\n".join(guarantees_of_test_reports(studies.verdicts(), options))


def test_tests_with_one_bar_and_different_tolerances_have_studies_of_their_own() -> None:
    bars = {"a": SessionBar(0.9), "b": SessionBar(0.9, 0.02), "c": SessionBar(0.9, 0.05)}
    verdicts = SessionStudies(bars, Options(SessionBar(0.9))).verdicts()
    assert [verdict.study for verdict in verdicts] == ["pytest", "pytest 0.9±0.02", "pytest 0.9±0.05"]
    assert [verdict.edges for verdict in verdicts] == [(0.9, 0.9), (0.88, 0.92), (0.85, 0.95)]


def test_the_name_of_a_stored_study_is_for_people_and_never_changes() -> None:
    bars = {"a": SessionBar(0.9), "b": SessionBar(1 / 3)}
    studies = SessionStudies(bars, Options(SessionBar(0.9), confidence=0.99, seed=7), project="shop")
    names = [verdict.study for verdict in studies.verdicts()]
    assert names == ["pytest shop 0.3333333333333333 seed 7", "pytest shop seed 7"]


def test_all_bars_share_one_confidence() -> None:
    studies = SessionStudies(
        {"a": SessionBar(0.9), "b": SessionBar(0.5), "c": SessionBar(0.9), "d": SessionBar(0.9)},
        Options(SessionBar(0.9), budget=80, confidence=0.9),
    )
    verdicts = {verdict.at_least: verdict for verdict in studies.verdicts()}
    risks = {bar: 1 - (verdict.confidence or 0) for bar, verdict in verdicts.items()}
    assert sum(risks.values()) == pytest.approx(0.1)
    assert risks[0.9] == pytest.approx(3 * risks[0.5])
    assert {bar: verdict.budget for bar, verdict in verdicts.items()} == {0.5: 20, 0.9: 60}
    while asks := studies.ask(7):
        assert len(asks) <= 7
        for ask in asks:
            studies.tell(ask, PASSED if ask.nodeid != "c" else FAILED)
    assert {result.nodeid: result.status for result in studies.results()} == {
        "a": "open",
        "b": "reaches",
        "c": "misses",
        "d": "open",
    }


def test_runs_that_are_asked_for_one_by_one_are_shared_by_all_bars() -> None:
    studies = SessionStudies(
        {"a": SessionBar(0.5), "b": SessionBar(0.6), "c": SessionBar(0.7), "d": SessionBar(0.7)},
        Options(SessionBar(0.5)),
    )
    asked = Counter(ask.nodeid for _ in range(40) for ask in studies.ask(1))
    assert asked == dict.fromkeys("abcd", 10)


def test_runs_that_never_began_are_taken_back() -> None:
    studies = SessionStudies({"a": SessionBar(0.5)}, Options(SessionBar(0.5)))
    asks = studies.ask(3)
    studies.tell(asks[0], PASSED)
    studies.take_back(asks[1:])
    (result,) = studies.results()
    assert (result.row.seen, result.row.charged, result.row.pending) == (1, 0, 0)


def test_the_same_tests_resume_and_flakiness_is_remembered(tmp_path: Path) -> None:
    tests, options = (
        {"b": SessionBar(0.9), "a": SessionBar(0.9)},
        Options(SessionBar(0.9), storage=f"sqlite:///{tmp_path}/runs.db"),
    )
    first = SessionStudies(tests, options)
    failed: dict[str, int] = {}
    for ask in first.ask(20):
        first.tell(ask, FAILED if ask.number == 2 else PASSED)
        if ask.number == 2:
            failed[ask.nodeid] = ask.seed
    first.close()
    again = SessionStudies(dict(reversed(tests.items())), options)  # in another order
    assert [(result.nodeid, result.flaky, result.tally.seed) for result in again.results()] == [
        ("a", True, failed["a"]),
        ("b", True, failed["b"]),
    ]
    assert min(ask.number for ask in again.ask(2)) > 2
    again.close()


# -- revisions ---------------------------------------------------------------------------------------------------------


def code_of(common: str = "1", **files: str) -> dict[str, dict[str, Any]]:
    return {"files": {"app.py": common}, "arms": {nodeid: {f"{nodeid}.py": digest} for nodeid, digest in files.items()}}


def settle(studies: SessionStudies) -> Counter[str]:
    """Make all runs; all pass. Returns how many of each test were made."""
    made = Counter[str]()
    while asks := studies.ask(4):
        for ask in asks:
            studies.tell(ask, PASSED)
            made[ask.nodeid] += 1
    return made


def test_only_tests_whose_code_changed_run_again(tmp_path: Path) -> None:
    bar = SessionBar(0.5)
    options = Options(bar, storage=f"sqlite:///{tmp_path}/runs.db")

    def session(code: dict[str, Any], bar: SessionBar = bar) -> tuple[Counter[str], list[str]]:
        tests = dict.fromkeys(code["arms"], bar)
        with closing(SessionStudies(tests, options._replace(bar=bar), code=code)) as studies:
            return settle(studies), studies.revised

    first, said = session(code_of(a="1", b="1"))
    assert ({*first}, said) == ({"a", "b"}, [])
    assert session(code_of(a="1", b="1")) == (Counter(), [])
    again, said = session(code_of(a="1", b="2"))
    assert ({*again}, len(said)) == ({"b"}, 1)
    assert said[0].startswith("pytest, revision 2: b.py changed · ")
    more, said = session(code_of(a="1", b="2", c="1"))
    assert more["c"] > max(more["a"], more["b"])
    assert said[0].startswith("pytest, revision 3: test c is new · all ")
    assert session(code_of(a="1", b="2"))[0] == Counter()
    assert session(code_of(a="1", b="2"), SessionBar(0.4))[0] == Counter(), "another bar, which they reach as well"
    everything, said = session(code_of("2", a="1", b="2"), SessionBar(0.4))
    assert everything.keys() == {"a", "b"}
    assert said[0].endswith(": app.py changed · nothing holds")


def test_a_mended_test_begins_anew(tmp_path: Path) -> None:
    options = Options(SessionBar(0.9), storage=f"sqlite:///{tmp_path}/runs.db")
    with closing(SessionStudies({"a": SessionBar(0.9)}, options, code=code_of(a="1"))) as studies:
        for ask in studies.ask(20):
            studies.tell(ask, FAILED)
    with closing(SessionStudies({"a": SessionBar(0.9)}, options, code=code_of(a="2"))) as studies:
        (result,) = studies.results()
        assert (result.runs, result.flaky, result.tally.failures, result.tally.seed) == (0, False, 0, None)
        assert settle(studies)["a"] > 20
        assert studies.results()[0].status == "reaches"


def test_a_session_with_other_code_has_a_study_of_its_own_while_another_runs(tmp_path: Path) -> None:
    options, tests = Options(SessionBar(0.5), storage=f"sqlite:///{tmp_path}/runs.db"), {"a": SessionBar(0.5)}
    with closing(SessionStudies(tests, options, code=code_of(a="1"))) as first:
        asks = first.ask(2)
        with closing(SessionStudies(tests, options, code=code_of(a="2"))) as second:
            assert [verdict.study for verdict in second.verdicts()] == ["pytest 2"]
            settle(second)
        with closing(SessionStudies(tests, options, code=code_of(a="1"))) as third:
            assert [verdict.study for verdict in third.verdicts()] == ["pytest"]
        for ask in asks:
            first.tell(ask, PASSED)
    with closing(SessionStudies(tests, options, code=code_of(a="2"))) as again:
        assert settle(again) == Counter(), "it finds the study whose results hold"


def test_a_session_stops_when_another_has_revised_its_study(tmp_path: Path) -> None:
    options, tests = Options(SessionBar(0.5), storage=f"sqlite:///{tmp_path}/runs.db"), {"a": SessionBar(0.5)}
    with (
        closing(SessionStudies(tests, options, code=code_of(a="1"))) as first,
        closing(SessionStudies(tests, options, code=code_of(a="2"))) as second,
    ):
        with pytest.raises(CannotGoOn, match="was revised by another session, which has other tests or other code"):
            first.ask(1)
        (verdict,) = second.verdicts()
        assert (verdict.told, verdict["a"].pending) == (0, 0)
        settle(second)


def test_a_run_of_the_studies_can_be_verified(tmp_path: Path) -> None:
    studies = SessionStudies({"a": SessionBar(0.5)}, Options(SessionBar(0.5), storage=f"sqlite:///{tmp_path}/runs.db"))
    while asks := studies.ask(4):
        for ask in asks:
            studies.tell(ask, PASSED)
    (verdict,) = studies.verdicts()
    study = thresher.open_study(verdict.study, storage=f"sqlite:///{tmp_path}/runs.db")
    thresher.verify(study.events())
    studies.close()
    study.close()


def test_long_and_unprintable_names_are_arms() -> None:
    names = ["test_a[\x00]", "test_a[x" + "y" * 3000 + "1]", "test_a[x" + "y" * 3000 + "2]", "test_a[ü]"]
    assert len({arm_of_pytest_study(name) for name in names}) == len(names)
    studies = SessionStudies(dict.fromkeys(names, SessionBar(0.5)), Options(SessionBar(0.5)))
    assert {ask.nodeid for ask in studies.ask(8)} == set(names)


def test_a_test_that_skips_after_it_was_certified_stays_certified() -> None:
    studies = SessionStudies({"a": SessionBar(0.5)}, Options(SessionBar(0.5)))
    *asks, last = studies.ask(60)
    for ask in asks:
        studies.tell(ask, PASSED)
    assert studies.counts()["reaches"] == 1
    studies.tell(last, RepeatedOutcome(skipped="now"))
    (result,) = studies.results()
    assert (result.status, result.row.certified) == ("reaches", True)


def test_processes_that_start_at_once_share_a_study(tmp_path: Path) -> None:
    """Each process draws a seed. The seed of the first to create the study counts."""
    options = Options(SessionBar(0.9), storage=f"sqlite:///{tmp_path / 'runs.db'}")
    start = threading.Barrier(4)

    def begin(_: int) -> tuple[str, list[Ask]]:
        start.wait()
        with closing(SessionStudies({"test": SessionBar(0.9)}, options)) as studies:
            return studies.verdicts()[0].study, studies.ask(5)

    with ThreadPoolExecutor(4) as threads:
        begun = dict[str, list[Ask]]()
        for name, asks in threads.map(begin, range(4)):
            begun.setdefault(name, []).extend(asks)
    ((name, asks),) = begun.items()
    with thresher.open_study(name, storage=options.storage) as study:
        pulls = sorted((pull.number, pull.seed) for pull in study.pulls())
    assert sorted((ask.number, ask.seed) for ask in asks) == pulls
    assert [number for number, _ in pulls] == [*range(1, 21)]


def test_outcomes_are_written_together_with_the_next_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting(MemoryStore):
        appends = 0

        def append(self, *args: Any, **options: Any) -> None:
            self.appends += 1
            super().append(*args, **options)

    monkeypatch.setattr(studies_module, "WAIT", math.inf)  # else a slow machine writes some of them before
    store: Any = Counting()
    studies = SessionStudies({"one": SessionBar(0.5), "two": SessionBar(0.5)}, Options(SessionBar(0.5), storage=store))
    asks = studies.ask(8)
    before = store.appends
    for ask in asks:
        studies.tell(ask, PASSED)
    assert (len(studies.ask(8)), store.appends) == (8, before + 1)
    assert [event.kind for event in store.logs["pytest"]][-16:] == ["told"] * 8 + ["asked"] * 8
