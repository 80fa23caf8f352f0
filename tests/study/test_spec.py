"""A specification validates itself once, is passed on, and is checked as strictly when a log is read."""

from typing import Any

import pytest

import thresher
from thresher.core.spec import Spec, spec_from_json
from thresher.log.store import MemoryStore


class CountingStore(MemoryStore):
    """Notes how many specifications had been checked when the log was begun."""

    def __init__(self, checked: list[Spec]) -> None:
        super().__init__()
        self._checked, self.at_append = checked, -1

    def append(self, *args: Any, **options: Any) -> None:
        self.at_append = len(self._checked)
        super().append(*args, **options)


def test_a_specification_is_validated_once_on_its_way_to_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[Spec] = []
    check = Spec.__init__

    def counted(spec: Spec, **given: Any) -> None:
        checked.append(spec)
        check(spec, **given)

    monkeypatch.setattr(Spec, "__init__", counted)
    store = CountingStore(checked)
    thresher.create_study("s", arms=["a"], at_least=0.5, budget=4, storage=store)
    assert store.at_append == 1


def test_numpy_numbers_in_parameters_become_plain_numbers() -> None:
    np = pytest.importorskip("numpy")
    given = {"depth": np.int64(3), "rate": np.float32(0.5), "deep": {"on": np.bool_(True), "at": [np.uint8(7)]}}
    study = thresher.create_study(
        "s", arms={"a": given}, at_least=np.float64(0.5), budget=np.int32(9), seed=np.int64(4), storage=None
    )
    (params,) = study.spec.params or ()
    assert params == {"depth": 3, "rate": 0.5, "deep": {"on": True, "at": [7]}}
    assert [type(params["depth"]), type(params["rate"]), type(params["deep"]["on"])] == [int, float, bool]
    assert (study.spec.budget, study.spec.seed) == (9, 4)


@pytest.mark.parametrize("value", ["array", "nan", "complex"])
def test_numpy_values_that_json_cannot_hold_are_refused(value: str) -> None:
    np = pytest.importorskip("numpy")
    values = {"array": np.zeros(2), "nan": np.float64("nan"), "complex": np.complex64(1j)}
    with pytest.raises(thresher.InvalidInput, match="must be plain JSON data"):
        Spec(arms={"a": {"x": values[value]}}, at_least=0.5)


# -- the largest values that a specification takes, and the first that it refuses ----------------------------------


def specified(**given: Any) -> Spec:
    return Spec(**{"arms": {"a": {"depth": 1}, "b": {"depth": 2}}, "at_least": 0.5, "budget": 10, **given})


@pytest.mark.parametrize(
    ("name", "accepted", "refused", "rule"),
    [
        ("bounds", [(-1e100, 1.0), (0.0, 1e100), (-1e100, 1e100)], [(-1.1e100, 1.0), (0.0, 1.1e100)], "within ±1e"),
        ("bounds", [], [(-1.1e100, 1.1e100), (-1.7e308, 1.7e308)], "must lie within ±1e"),
        ("seed", [2**128 - 1], [2**128], "seed"),
        ("budget", [10**15], [10**15 + 1], "budget"),
        (
            "evaluator",
            ["x" * 10_000],
            ["x" * 10_001, "", "  ", 5],
            "must be a text of 1 to 10,000 characters; name the",
        ),
        ("cases", [10**9], [10**9 + 1], "cases"),
        ("unit", ["x" * 16], ["x" * 17, ""], "must be a text of 1 to 16 characters; write s, for example"),
    ],
)
def test_each_parameter_has_a_limit(name: str, accepted: list[Any], refused: list[Any], rule: str) -> None:
    others = {"budget": None} if name == "cases" else {"confidence": None}
    for value in accepted:
        assert getattr(specified(**{**others, name: value}), name) == value
    for value in refused:
        with pytest.raises(thresher.InvalidInput, match=rule):
            specified(**{**others, name: value})


def test_a_specification_survives_its_log() -> None:
    assert spec_from_json(specified(seed=7).to_json()) == specified(seed=7)


@pytest.mark.parametrize("params", [[{"depth": 1}], [{"depth": 1}, 2], [1, {"depth": 2}], [1, 2], "ab", {"a": {}}])
def test_params_in_a_log_are_one_object_for_each_arm(params: object) -> None:
    with pytest.raises(thresher.InvalidInput, match="must be a list of 2 objects"):
        spec_from_json({**specified(seed=7).to_json(), "params": params})
