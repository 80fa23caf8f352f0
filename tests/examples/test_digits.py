"""The example of the digits: a real training job, made small."""

import json
import pickle
import sys
from importlib.util import find_spec

import digits
import pytest
from showing import show, show_here

import thresher

pytestmark = pytest.mark.skipif(not find_spec("sklearn"), reason="scikit-learn is not here")


def pull_of(name: str, seed: int = 12345) -> thresher.Pull:
    return thresher.Pull(1, name, 1, digits.settings()[name], seed)


def test_the_arms_are_60_settings_that_a_store_can_keep() -> None:
    settings = digits.settings()
    assert len(settings) == 60
    assert json.loads(json.dumps(settings)) == settings


@pytest.mark.parametrize("name", ["SVC C=10 gamma=0.05", "ExtraTreesClassifier n_estimators=20 max_features=4"])
def test_a_reward_depends_only_on_the_arm_and_the_seed(name: str) -> None:
    first = digits.accuracy(pull_of(name))
    assert first == digits.accuracy(pull_of(name)._replace(id=99, number=7))
    assert len({digits.accuracy(pull_of(name, seed)) for seed in range(6)}) > 1
    assert 0.9 <= first <= 1


def test_a_worker_needs_scikit_learn_but_not_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    cloudpickle = pytest.importorskip("cloudpickle", reason="what Dask and Ray send functions with is not here")
    cloudpickle.register_pickle_by_value(digits)  # as they do with the functions of a program that is started
    try:
        sent = cloudpickle.dumps((digits.accuracy, pull_of("GaussianNB var_smoothing=0.1")))
    finally:
        cloudpickle.unregister_pickle_by_value(digits)
    expected = digits.accuracy(pull_of("GaussianNB var_smoothing=0.1"))
    monkeypatch.setitem(sys.modules, "digits", None)  # importing it fails, as in a worker's process
    evaluate, pull = pickle.loads(sent)
    assert evaluate(pull) == expected


def test_the_example_runs_for_real_and_says_what_a_fixed_number_of_pulls_would_take() -> None:
    shown = show("digits", "--quick", "--workers=2", "--format=json")
    assert shown.status == 0, shown.err
    verdict = json.loads(shown.out)
    assert (len(verdict["rows"]), verdict["open"], verdict["retired"]) == (6, [], [])
    assert all(row["certified"] for row in verdict["rows"])
    assert {"SVC C=0.3 gamma=0.01", "LogisticRegression C=0.1 tol=0.001"} <= set(verdict["missed"])
    hardest = max(row["seen"] for row in verdict["rows"])
    fewest = max(row["seen"] - row["pending"] for row in verdict["rows"]) // 2
    assert verdict["full_run"] % 6 == 0, "the same number for each of the six"
    assert 6 * fewest <= verdict["full_run"] <= 6 * hardest, "rewards that overtook others are not needed"


def test_an_unknown_engine_is_refused_in_one_line() -> None:
    shown = show_here(digits.main, "--engine=abacus", "--quick")
    assert (shown.status, shown.out, shown.err.count("\n")) == (3, "", 1)
    assert "abacus" in shown.err
