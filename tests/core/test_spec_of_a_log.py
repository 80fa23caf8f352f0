"""A specification that is read from a log is checked as strictly as one that is written."""

from typing import Any

import pytest

import thresher
from thresher.core import spec as specs
from thresher.core.spec import from_json


def written() -> dict[str, Any]:
    return specs.Spec(arms={"a": {"depth": 1}, "b": {"depth": 2}}, at_least=0.5, budget=10, seed=7).to_json()


def test_a_specification_survives_its_log() -> None:
    spec = specs.Spec(arms={"a": {"depth": 1}, "b": {"depth": 2}}, at_least=0.5, budget=10, seed=7)
    assert from_json(spec.to_json()) == spec


@pytest.mark.parametrize("params", [[{"depth": 1}], [{"depth": 1}, 2], [1, {"depth": 2}], [1, 2], "ab", {"a": {}}])
def test_params_in_a_log_are_one_object_for_each_arm(params: object) -> None:
    with pytest.raises(thresher.InvalidInput, match="must be a list of 2 objects"):
        from_json({**written(), "params": params})
