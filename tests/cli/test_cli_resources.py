"""``thresher run --resource``."""

import pytest
from program import run


@pytest.mark.parametrize("text", ["GPU", "GPU=", "GPU=x", "=1", "GPU=0", "GPU=-1", "GPU=nan"])
def test_the_command_line_refuses_invalid_resources(text: str) -> None:
    found = run("--arm", "a", "--engine", "dask", "--resource", text, "--", "true")
    assert found.status == 2
    assert found.err.count("\n") == 1
    assert "resource" in found.err


def test_the_command_line_hands_resources_to_the_engine() -> None:
    found = run("--arm", "a", "--engine", "threads", "--resource", "GPU=1", "--", "echo", "1")
    assert (found.status, "only Dask and Ray count them" in found.err) == (2, True)
