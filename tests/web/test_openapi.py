"""The OpenAPI document is true, also for generated requests."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from running import WRITER as BEARER
from running import Served, served

httpx = pytest.importorskip("httpx")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("openapi")
    with served(f"sqlite:///{folder}/s.db?durability=normal", "--write") as server:
        new = {"name": "0", "arms": ["a", "b"], "at_least": 0.5, "budget": 1000}
        httpx.post(f"{server.url}/api/studies", headers=BEARER, json=new, timeout=60).raise_for_status()
        yield server


def test_replies_are_as_described(server: Served) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="the dev extra brings it")  # here: it imports slowly
    positive_data_acceptance = pytest.importorskip("schemathesis.specs.openapi.checks").positive_data_acceptance
    document = schemathesis.openapi.from_url(f"{server.url}/openapi.json", headers=BEARER).exclude(
        path_regex="/stream$"
    )
    operations = [result.ok() for result in document.get_all_operations()]
    assert {operation.path.rpartition("/")[2] for operation in operations} >= {"ask", "tell", "drop", "verdict"}
    for operation in operations:

        @settings(
            max_examples=12,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def described(case: Any) -> None:
            # a schema cannot say that arms must differ or that the bar lies inside the bounds: 422 is an answer
            case.call_and_validate(headers=BEARER, timeout=30, excluded_checks=[positive_data_acceptance])

        described()
