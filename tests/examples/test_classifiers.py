"""The example of the classifiers: an eval set of real cases, and the truth to compare with."""

import json
import threading
from importlib.util import find_spec
from pathlib import Path

import classifiers
import pytest
from showing import show, show_here

import thresher

pytestmark = pytest.mark.skipif(not find_spec("sklearn"), reason="scikit-learn is not here")

ARMS = classifiers.classifiers()


@pytest.fixture(scope="module")
def digits() -> classifiers.Digits:
    return classifiers.Digits()


def test_there_are_40_classifiers_and_800_cases_that_a_store_can_keep(digits: classifiers.Digits) -> None:
    cases = digits.cases()
    assert (len(ARMS), len(cases)) == (40, 800)
    assert json.loads(json.dumps([ARMS, cases])) == [ARMS, cases]


def test_no_classifier_learns_from_a_case(digits: classifiers.Digits) -> None:
    cases = {case["image"] for case in digits.cases().values()}
    assert len(digits.learned_from) == 997
    assert not cases & set(digits.learned_from)


def test_a_pull_reads_its_case(digits: classifiers.Digits) -> None:
    name = "LinearDiscriminantAnalysis solver=lsqr shrinkage=0.1"
    cases = list(digits.cases().items())[:50]
    pulls = [
        thresher.Pull(1 + at, name, 1 + at, ARMS[name], 0, case, params) for at, (case, params) in enumerate(cases)
    ]
    right = sum(digits.reads(pull) for pull in pulls)
    assert right == digits.right(name, ARMS[name], [params["image"] for _, params in cases])
    assert 40 <= right < 50


def test_workers_share_a_classifier_that_is_trained_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.linear_model import RidgeClassifier

    trained, fit = [], RidgeClassifier.fit

    def slow_fit(model: RidgeClassifier, *data: object) -> RidgeClassifier:
        trained.append(model)
        return fit(model, *data)

    monkeypatch.setattr(RidgeClassifier, "fit", slow_fit)
    fresh = classifiers.Digits()
    workers = [
        threading.Thread(target=fresh.right, args=("RidgeClassifier", ARMS["RidgeClassifier"], [1])) for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(trained) == 1


def test_the_example_runs_for_real_says_the_truth_and_repeats_exactly(tmp_path: Path) -> None:
    stored = show("classifiers", "--quick", "--format=json", f"--storage=sqlite:///{tmp_path}/s.db?durability=normal")
    assert stored.status == 0, stored.err
    verdict = json.loads(stored.out)
    assert (len(verdict["rows"]), verdict["cases"], verdict["open"]) == (6, 200, [])
    assert all(row["certified"] for row in verdict["rows"])
    assert verdict["issued"] < 1200
    assert verdict["full_run"] == 1200
    assert "Certified answers that are different: 0 of 6; by more than the tolerance: 0" in stored.err
    assert f"thresher cases classifiers-quick --storage sqlite:///{tmp_path}/s.db" in stored.err
    again = json.loads(show_here(classifiers.main, "--quick", "--format=json").out)
    assert again["rows"] == verdict["rows"]


def test_with_a_tolerance_answers_differ_from_the_sharp_truth_within_it_only() -> None:
    sharp, wide = (
        show_here(classifiers.main, "--quick", f"--tolerance={tolerance}", "--format=json") for tolerance in (0, 0.06)
    )
    assert json.loads(wide.out)["issued"] < json.loads(sharp.out)["issued"]
    assert "different: 0 of 6;" in sharp.err
    assert "by more than the tolerance: 0\n" in wide.err


def test_a_budget_leaves_arms_open_and_the_answer_says_so() -> None:
    shown = show_here(classifiers.main, "--quick", "--budget=12")
    assert shown.status == 0, shown.err
    assert "0 reach it, 0 miss it, 6 open. It took 12 of 1,200 pulls" in shown.out


def test_the_others_are_compared_with_a_baseline_and_with_a_plain_bar() -> None:
    shown = show_here(classifiers.main, "--quick", "--baseline", "--format=json")
    assert shown.status == 0, shown.err
    verdict = json.loads(shown.out)
    assert (len(verdict["rows"]), verdict["cases"], verdict["open"]) == (7, 200, [])
    assert [row["arm"] for row in verdict["rows"] if row["standing"] == "baseline"] == [classifiers.CURRENT]
    assert verdict["full_run"] == 1400
    assert "the truth, by a full run: 1 of 6 do. 6 of 6 certified answers are right" in shown.err
    assert f"compared case by case: {verdict['issued']:,} pulls with the baseline's own 200" in shown.err
    assert "against the plain bar: " in shown.err
    assert "the plain bar: 6 of 6 certified answers are right" in shown.err


def test_an_accuracy_on_the_bar_of_a_margin_reaches_it() -> None:
    assert classifiers.bar_of(744, 800, 0.02) == 760 / 800
    assert classifiers.bar_of(7, 10, 0.1) == 8 / 10
