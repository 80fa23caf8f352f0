"""The pytest plugin: it does nothing unless it is asked.

pytest imports this module at every start, wherever thresher is installed. It therefore imports nothing but pytest; the
plugin's work is in the modules beside it, which are loaded if one of the options is given. PYTEST_DONT_REWRITE
"""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .repeating import ThresherPull

MARK = "thresher(at_least): the share of runs of this test that must pass, instead of the one given with --thresher"
OPTIONS = {  # option: metavar, help; those that a configuration file may set as well
    "budget": ("N", "Runs, over all tests. Without it: until every test is settled."),
    "for": ("DURATION", "Start no run after this time: 90s, 10m, 2h."),
    "guarantee": ("KIND", "all: no certified label is wrong (default). rate: few are, for many tests."),
    "confidence": ("SHARE", "How sure all certified labels together must be (0.95)."),
    "isolation": ("SCOPE", "What each run sets up anew: function (default), module or session fixtures as well."),
    "open": ("HOW", "What tests that are still open do: pass (default), or fail (exit code 8)."),
    "storage": ("URL", "Keep the runs, such as in sqlite:///runs.db: the same command resumes."),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("thresher", "thresher: which tests pass often enough, with certificates")
    text = "Run every test until it is certified to pass in at least this share of runs, or in less: 0.95, 95%%."
    group.addoption("--thresher", metavar="SHARE", default=None, help=text)
    for name, (metavar, text) in OPTIONS.items():
        group.addoption(f"--thresher-{name}", metavar=metavar, default=None, help=text)
        parser.addini(f"thresher_{name}", f"The default of --thresher-{name}.", default=None)
    text = "Run tests once, with this seed: reruns the failure that --thresher showed."
    group.addoption("--thresher-seed", metavar="SEED", default=None, help=text)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARK)
    asked = [name for name in ("thresher", "thresher_seed") if config.getoption(name) is not None]
    if asked:
        from .plugin import start

        start(config)
    else:
        given = [name for name in OPTIONS if config.getoption(f"thresher_{name}") is not None]
        if given:
            raise pytest.UsageError(f"--thresher-{given[0]}: does nothing without --thresher; add --thresher 0.95")


@pytest.fixture
def thresher_pull(request: pytest.FixtureRequest) -> "ThresherPull":
    """The run that the test is in: ``seed``, ``number`` among the test's runs, and ``reward(0.8)`` to record a number.

    It works without --thresher too: the test then runs once, with a seed drawn at random.
    """
    from .repeating import pull_of

    return pull_of(request.node)
