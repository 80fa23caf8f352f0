"""pytest within pytest: what the tests of the plugin share."""

from collections.abc import Callable
from typing import Protocol

import numpy  # noqa: F401  # a run within this process may import it, and it cannot be loaded twice
import pytest

import thresher.adapters.pytest_plugin.plugin  # noqa: F401  # else each run within this process loads it again

PLUGIN = "-pthresher.adapters.pytest_plugin"


class Sifted(Protocol):
    """Write a test file, and run pytest on it in this process."""

    def __call__(self, source: str, *options: str) -> pytest.RunResult: ...


@pytest.fixture
def sifted(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Sifted:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    def run(source: str, *options: str) -> pytest.RunResult:
        if source:
            pytester.makepyfile(test_it=f"import random\nimport pytest\n{source}")
        return pytester.runpytest_inprocess(PLUGIN, "-pno:cacheprovider", *options, no_reraise_ctrlc=True)

    return run


@pytest.fixture
def reports(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, str]]:
    """Write a test file, run pytest on it, and return the outcomes of all reports: one per test, or this fails."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(source: str, *options: str) -> dict[str, str]:
        pytester.makepyfile(test_it=f"import random\nimport pytest\n{source}")
        run = pytester.inline_run(PLUGIN, "-pno:cacheprovider", *options)
        found: dict[str, str] = {}
        for report in run.getreports("pytest_runtest_logreport"):
            result = getattr(report, "thresher", None)
            if result is not None:
                name = report.nodeid.split("::", 1)[1]
                assert name not in found
                found[name] = result.status
        return found

    return run
