"""The second run of pytest --thresher-storage: what changed runs again, and nothing else."""

from collections.abc import Callable
from pathlib import Path

import pytest

pytest_plugins = ["pytester", "sifted"]

PLUGIN = "-pthresher.adapters.pytest_plugin"
NOTED = "def test_{name}():\n    open('runs.txt', 'a').write('{name}\\n')\n    assert {passes}\n"
Session = Callable[..., tuple[dict[str, int], str]]


def source(name: str, passes: str = "True") -> str:
    return NOTED.format(name=name, passes=passes)


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Session:
    """A pytest process. Returns how often it ran each test, as the tests themselves say, and its output."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")

    def run(*options: str) -> tuple[dict[str, int], str]:
        Path("runs.txt").unlink(missing_ok=True)
        storage = "--thresher-storage=sqlite:///runs.db"
        result = pytester.runpytest_subprocess(PLUGIN, "-pno:cacheprovider", "--thresher=.5", storage, *options)
        runs = Path("runs.txt").read_text().split() if Path("runs.txt").exists() else []
        return {name: runs.count(name) for name in runs}, result.stdout.str()

    return run


def write(name: str, text: str) -> None:
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_only_what_changed_runs_again(session: Session, pytester: pytest.Pytester) -> None:
    write("test_a.py", source("a"))
    write("sub/test_b.py", source("b", "False"))
    write("sub/conftest.py", "")
    write("app.py", "")
    first, shown = session()
    assert first.keys() == {"a", "b"}
    assert "revision" not in shown
    assert session()[0] == {}

    write("sub/test_b.py", source("b"))  # mended
    again, shown = session()
    assert ({*again}, "sub/test_b.py changed · " in shown) == ({"b"}, True)
    assert "2 tests reach 50 %" in shown

    write("sub/test_c.py", source("c"))
    more, shown = session()
    assert more["c"] > more.get("a", 0) + more.get("b", 0)
    assert "revision 3: test sub/test_c.py::test_c is new · all " in shown

    write("sub/conftest.py", "x = 1\n")
    assert session()[0].keys() == {"b", "c"}
    assert session("-k", "a or b")[0] == {}
    assert session("--thresher-tolerance=.1")[0] == {}
    assert session("--thresher-isolation=module")[0].keys() == {"a", "b", "c"}
    assert session()[0] == {}, "what was measured in the other way"
    write("app.py", "x = 1\n")  # a test might import it while it runs
    everything, shown = session()
    assert everything.keys() == {"a", "b", "c"}
    assert "app.py changed · nothing holds" in shown


def test_a_test_file_that_another_uses_is_code_of_all_tests(session: Session) -> None:
    write("test_a.py", f"from test_b import HELP\n{source('a')}")
    write("test_b.py", f"HELP = 1\n{source('b')}")
    write("test_c.py", source("c"))
    session()
    write("test_c.py", source("c", "1"))
    assert session()[0].keys() == {"c"}
    write("test_b.py", f"HELP = 2\n{source('b')}")
    assert session()[0].keys() == {"a", "b", "c"}


def test_workers_of_xdist_find_what_one_process_knows(session: Session) -> None:
    pytest.importorskip("xdist")
    write("test_a.py", source("a"))
    write("test_b.py", source("b"))
    session()
    assert session("-pxdist", "-n2")[0] == {}
    write("test_b.py", source("b", "1"))
    again, shown = session("-pxdist", "-n2")
    assert ({*again}, "revision 2: test_b.py changed" in shown) == ({"b"}, True)
