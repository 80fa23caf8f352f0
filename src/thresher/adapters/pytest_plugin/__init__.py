"""The pytest plugin. It does nothing unless one of its options is set.

pytest imports this module at every start, wherever thresher is installed, so it imports nothing but pytest. The other
modules of this folder are loaded only when they are needed. PYTEST_DONT_REWRITE
"""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .repeating import ThresherPull

MARK = "thresher(at_least, *, tolerance): the bar and the tolerance of this test, instead of those of the options"
OPTIONS = {  # option: metavar, help; a configuration file can set these, too
    "tolerance": ("SHARE", "Within this of the bar, either answer is right: 0.02 or 2%%. It saves runs. Default: 0."),
    "budget": ("N", "Make at most this many runs, over all tests. Default: run until every test is settled."),
    "for": ("DURATION", "Start no run after this time, such as 90s, 10m or 2h."),
    "guarantee": ("KIND", "all (default): no certified answer is wrong. rate: few are; this suits many tests."),
    "confidence": ("SHARE", "How sure all certified answers together must be. Default: 0.95."),
    "isolation": ("SCOPE", "Each run sets up fixtures anew up to this scope: function (default), module or session."),
    "open": ("HOW", "Whether tests that are still open at the end pass (default) or fail (exit code 8)."),
    "storage": ("URL", "Keep the runs in this store, such as sqlite:///runs.db. The same command resumes them."),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("thresher", "thresher: which tests pass often enough, with certificates")
    text = "Run every test until it is certified to pass in at least this share of runs (0.95 or 95%%), or in fewer."
    group.addoption("--thresher", metavar="SHARE", default=None, help=text)
    for name, (metavar, text) in OPTIONS.items():
        group.addoption(f"--thresher-{name}", metavar=metavar, default=None, help=text)
        parser.addini(f"thresher_{name}", f"The default of --thresher-{name}.", default=None)
    text = "The studies' seed, to repeat a session. Default: every new study draws its own."
    group.addoption("--thresher-study-seed", metavar="SEED", default=None, help=text)
    text = "Run tests once, with this seed, to repeat a failure that --thresher found."
    group.addoption("--thresher-seed", metavar="SEED", default=None, help=text)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARK)
    if any(config.getoption(name) is not None for name in ("thresher", "thresher_seed")):
        from .plugin import register_plugin_hooks

        register_plugin_hooks(config)
        return
    for name in (*OPTIONS, "study-seed"):
        if config.getoption(f"--thresher-{name}") is not None:
            raise pytest.UsageError(f"--thresher-{name}: does nothing without --thresher; add --thresher 0.95")


@pytest.fixture
def thresher_pull(request: pytest.FixtureRequest) -> "ThresherPull":
    """The current run of the test: its ``seed``, its ``number`` (from 1), and ``reward(0.8)`` to record a number.

    Without --thresher, the test runs once, with a seed drawn at random.
    """
    from .repeating import pull_while_repeating

    return pull_while_repeating(request.node)
