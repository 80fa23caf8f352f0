"""What all tests share."""

import signal
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import engines
import pytest
from hypothesis import settings

# tests of an extra that is not installed are skipped
collect_ignore = [
    folder for folder, library in {"lab": "numba", "paper": "numba", "web": "fastapi"}.items() if not find_spec(library)
]
pytest_plugins = ["clusters", "piped", "postgres", "stores"]
if find_spec("numba"):
    pytest_plugins.append("interpreted")
settings.register_profile("thresher", deadline=None, max_examples=50)  # a loaded machine is slow, not wrong
settings.load_profile("thresher")

# Under nohup or in the background, the programs that tests start would ignore these.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _compile_in_one_process() -> Iterator[None]:
    """Other cores are busy with other tests, and a second process would compile the core a second time."""
    with pytest.MonkeyPatch.context() as patch:
        if "thresher.lab" in sys.modules:
            patch.setattr("thresher.lab.parallel_compile.available_cores", lambda: 1)
        yield


@pytest.fixture(scope="session", autouse=True)
def _release_hung_threads() -> Iterator[None]:
    yield
    engines.RELEASE.set()
