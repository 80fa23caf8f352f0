"""The studies behind the pytest plugin: several bars, one confidence; what is charged; resuming."""

import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from chances import most

import thresher
from thresher.adapters.pytest_plugin.repeating import Outcome
from thresher.adapters.pytest_plugin.reports import guarantees
from thresher.adapters.pytest_plugin.session_options import Options
from thresher.adapters.pytest_plugin.studies import Ask, Sift, arm_of

FAILED = Outcome(reward=0.0, traceback="E   assert 0", message="assert 0")
PASSED = Outcome(reward=1.0)
SIMULATIONS = 12
WAYS: dict[str, Callable[[Sift, Ask], None]] = {  # what a test may do instead of failing
    "skip": lambda sift, ask: sift.tell(ask, Outcome(skipped="not now")),
    "error": lambda sift, ask: sift.tell(ask, Outcome(failure="error in teardown")),
    "die": lambda sift, ask: sift.drop_lost(ask, "worker crashed"),
    "fail": lambda sift, ask: sift.tell(ask, FAILED),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_way_to_hide_a_failure_makes_a_test_steady(way: str) -> None:
    chance = random.Random(f"hidden {way}")
    wrong = 0
    for at in range(SIMULATIONS):
        sift = Sift({"test": 0.9}, Options(0.9, budget=150, seed=at))
        while asks := sift.ask(1 + at % 8):
            for ask in asks:
                if chance.random() < 0.8:
                    sift.tell(ask, PASSED)
                else:
                    WAYS[way](sift, ask)
        (result,) = sift.results()
        wrong += result.status == "steady"
    assert wrong <= most(SIMULATIONS, 0.05)


def test_bars_that_differ_in_the_seventh_digit_have_studies_of_their_own(tmp_path: Path) -> None:
    tests, options = {"a": 0.9000001, "b": 0.9000002, "c": 0.99}, Options(0.99, storage=f"sqlite:///{tmp_path}/s.db")
    for _ in range(2):  # the second resumes
        sift = Sift(tests, options)
        assert [verdict.at_least for verdict in sift.verdicts()] == [0.9000001, 0.9000002, 0.99]
    assert [verdict.study.split()[1] for verdict in sift.verdicts()] == ["0.9000001", "0.9000002", "0.99"]
    assert "0.9000001" in "\n".join(guarantees(sift.verdicts(), options))


def test_the_name_of_a_stored_study_never_changes() -> None:
    verdicts = Sift({"a": 0.9, "b": 1 / 3}, Options(0.9, confidence=0.99)).verdicts()
    assert [verdict.study for verdict in verdicts] == ["pytest 0.333333 f95810de8615", "pytest 0.9 f95810de8615"]


def test_all_bars_share_one_confidence() -> None:
    sift = Sift({"a": 0.9, "b": 0.5, "c": 0.9, "d": 0.9}, Options(0.9, budget=80, confidence=0.9))
    verdicts = {verdict.at_least: verdict for verdict in sift.verdicts()}
    risks = {bar: 1 - (verdict.confidence or 0) for bar, verdict in verdicts.items()}
    assert sum(risks.values()) == pytest.approx(0.1)
    assert risks[0.9] == pytest.approx(3 * risks[0.5])
    assert {bar: verdict.budget for bar, verdict in verdicts.items()} == {0.5: 20, 0.9: 60}
    while asks := sift.ask(7):
        assert len(asks) <= 7
        for ask in asks:
            sift.tell(ask, PASSED if ask.nodeid != "c" else FAILED)
    assert {result.nodeid: result.status for result in sift.results()} == {
        "a": "open",
        "b": "steady",
        "c": "failing",
        "d": "open",
    }


def test_runs_that_are_asked_for_one_by_one_are_shared_by_all_bars() -> None:
    sift = Sift({"a": 0.5, "b": 0.6, "c": 0.7, "d": 0.7}, Options(0.5))
    asked = Counter(ask.nodeid for _ in range(40) for ask in sift.ask(1))
    assert asked == dict.fromkeys("abcd", 10)


def test_runs_that_never_began_are_taken_back() -> None:
    sift = Sift({"a": 0.5}, Options(0.5))
    asks = sift.ask(3)
    sift.tell(asks[0], PASSED)
    sift.take_back(asks[1:])
    (result,) = sift.results()
    assert (result.row.seen, result.row.charged, result.row.pending) == (1, 0, 0)


def test_the_same_tests_resume_and_flakiness_is_remembered(tmp_path: Path) -> None:
    tests, options = {"b": 0.9, "a": 0.9}, Options(0.9, storage=f"sqlite:///{tmp_path}/runs.db")
    first = Sift(tests, options)
    failed: dict[str, int] = {}
    for ask in first.ask(20):
        first.tell(ask, FAILED if ask.number == 2 else PASSED)
        if ask.number == 2:
            failed[ask.nodeid] = ask.seed
    first.close()
    again = Sift(dict(reversed(tests.items())), options)  # in another order
    assert [(result.nodeid, result.flaky, result.tally.seed) for result in again.results()] == [
        ("a", True, failed["a"]),
        ("b", True, failed["b"]),
    ]
    assert min(ask.number for ask in again.ask(2)) > 2
    again.close()
    other = Sift(tests, options, version="changed code")
    assert [result.runs for result in other.results()] == [0, 0]
    other.close()


def test_a_run_of_the_studies_can_be_verified(tmp_path: Path) -> None:
    sift = Sift({"a": 0.5}, Options(0.5, storage=f"sqlite:///{tmp_path}/runs.db"))
    while asks := sift.ask(4):
        for ask in asks:
            sift.tell(ask, PASSED)
    (verdict,) = sift.verdicts()
    study = thresher.open_study(verdict.study, storage=f"sqlite:///{tmp_path}/runs.db")
    thresher.verify(study.events())
    sift.close()
    study.close()


def test_long_and_unprintable_names_are_arms() -> None:
    names = ["test_a[\x00]", "test_a[x" + "y" * 3000 + "1]", "test_a[x" + "y" * 3000 + "2]", "test_a[ü]"]
    assert len({arm_of(name) for name in names}) == len(names)
    sift = Sift(dict.fromkeys(names, 0.5), Options(0.5))
    assert {ask.nodeid for ask in sift.ask(8)} == set(names)


def test_a_test_that_skips_after_it_was_certified_stays_certified() -> None:
    sift = Sift({"a": 0.5}, Options(0.5))
    *asks, last = sift.ask(60)
    for ask in asks:
        sift.tell(ask, PASSED)
    assert sift.counts()["steady"] == 1
    sift.tell(last, Outcome(skipped="now"))
    (result,) = sift.results()
    assert (result.status, result.row.certified) == ("steady", True)


def test_processes_that_start_at_once_share_a_study(tmp_path: Path) -> None:
    """Each draws a seed; that of the first to create the study holds."""
    options = Options(0.9, storage=f"sqlite:///{tmp_path / 'runs.db'}")
    start = threading.Barrier(4)

    def begin(_: int) -> tuple[str, list[Ask]]:
        start.wait()
        with closing(Sift({"test": 0.9}, options)) as sift:
            return sift.verdicts()[0].study, sift.ask(5)

    with ThreadPoolExecutor(4) as threads:
        begun = dict[str, list[Ask]]()
        for name, asks in threads.map(begin, range(4)):
            begun.setdefault(name, []).extend(asks)
    ((name, asks),) = begun.items()
    with thresher.open_study(name, storage=options.storage) as study:
        pulls = sorted((pull.number, pull.seed) for pull in study.pulls())
    assert sorted((ask.number, ask.seed) for ask in asks) == pulls
    assert [number for number, _ in pulls] == [*range(1, 21)]
