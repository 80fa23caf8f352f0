"""Figures from the library, a report in one file, and the error if the extra is missing."""

import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from running import command

import thresher
from thresher.log.store import MemoryStore
from thresher.web import charts
from thresher.web.json_shapes import short_json
from thresher.web.report import report

HOSTILE = "</script><img src=x onerror=alert(1)> $study @above"


@pytest.fixture(scope="module")
def study() -> thresher.Study:
    study = thresher.create_study("coins", arms=["fair", "loaded", HOSTILE], at_least=0.6, budget=600)
    while pull := study.ask():
        study.tell(pull, pull.arm == "loaded" or pull.number % 2)
    return study


def drawn(whiskers: Any) -> Iterator[tuple[str, str, str]]:
    standings = {colour: name for name, colour in charts.figure_styles()["themes"]["light"].items()}
    for shape in whiskers:
        for low, high in re.findall(r"M\d+,([-.e\d]+)V([-.e\d]+)", shape.path):
            yield standings[shape.line.color], low, high


def test_a_figure_shows_every_arm_against_the_bar(study: thresher.Study) -> None:
    figure = study.figure()
    names = [name for trace in figure.data if trace.mode == "markers" for name in trace.text or ()]
    assert {"fair", "loaded"} <= set(names)
    *whiskers, bar = figure.layout.shapes
    assert bar.y0 == 0.6
    intervals = {(standing, float(low), float(high)) for standing, low, high in drawn(whiskers)}
    assert intervals == {(row.standing, short_json(row.low), short_json(row.high)) for row in study.verdict().rows}


def test_a_figure_names_up_to_30_arms_on_its_axis_in_their_order() -> None:
    names = ["tests/test_run.py::test_a_reward_is_read", "a<b>", *(f"prompt {number}" for number in range(28))]
    study = thresher.create_study("few", arms=names, at_least=0.5, budget=90)
    while pull := study.ask():
        study.tell(pull, names.index(pull.arm) / 30)
    axis = study.figure().layout.xaxis
    assert axis.title.text is None
    assert list(axis.tickvals) == [*range(1, 31)]
    assert list(axis.ticktext) == [
        *(f"prompt {number}" for number in reversed(range(28))),
        "a&lt;b&gt;",
        "tests…ward_is_read",
    ]
    many = thresher.create_study("many", arms=[*names, "one more"], at_least=0.5, budget=90).figure().layout.xaxis
    assert (many.title.text, many.ticktext) == ("rank", None)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            {},
            "a probability of at least 95 %, all intervals are right before an answer cuts them at the bar; with 90",
        ),
        (
            {"confidence": 0.99},
            "With a probability of at least 99 %, all intervals are right before an answer cuts them at the bar; with "
            "98 %, intervals and answers are all right together. Diamonds",
        ),
        (
            {"guarantee": "rate"},
            "at least 95 %, all intervals are right together; answers may be wrong, and do not",
        ),
        ({"tolerance": 0.1}, "right together. In the band, from 0.4 to 0.6, either answer is right. Diamonds"),
        ({"confidence": 0.4}, "at least 40 %, all intervals are right before an answer cuts them at the bar. Diamonds"),
        ({"confidence": None}, "The best first.  Diamonds"),
    ],
)
def test_a_report_says_in_numbers_how_sure_its_intervals_are(question: dict[str, Any], said: str) -> None:
    assert said in report(thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=9, **question))


def test_names_in_figures_are_text(study: thresher.Study) -> None:
    texts = [name for trace in study.figure().data if trace.mode == "markers" for name in trace.text or ()]
    assert not any("<" in text.replace("<br>", "") for text in texts)


def test_a_notebook_does_not_display_only_the_data_of_a_figure(study: thresher.Study) -> None:
    """Plotly's own method displays the figure in a way that an export leaves blank."""
    assert not callable(study.figure()._ipython_display_)


def test_a_report_has_verdict_figures_guarantee_and_specification(study: thresher.Study) -> None:
    text = report(study).replace("<wbr>", "")
    verdict = study.verdict()
    for part in (verdict.question, verdict.guarantee, "settling_constant", "fair"):
        assert part in text
    assert HOSTILE not in text
    study.extend(budget=77_777)
    assert re.search(r"budget[^0-9]+77777\b", report(study)), "the budget in force"
    assert not re.search(r'(?:src|href)="?(?:https?:)?//', text.partition('<script type="application/json"')[0])


def test_a_report_says_which_rewards_are_old_and_which_arm_is_not_certified() -> None:
    store = MemoryStore()
    study = thresher.create_study("coins", arms=["a", "b"], at_least=0.5, storage=store)
    study.tell(study.ask_many(1)[0], 1)
    with pytest.raises(thresher.InvalidInput):
        study.tell(study.ask_many(1)[0], 2)
    assert "from earlier runs" not in report(study).partition("<script")[0]
    text = report(thresher.open_study("coins", storage=store)).partition("<script")[0]
    assert "All rewards are from earlier runs or other agents, since 20" in text
    assert "not certified</td>" in text
    assert "returned 2.0, outside the bounds (0, 1)" in text


def test_the_command_writes_a_report_or_says_why_not(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/s.db"
    thresher.create_study("coins", arms=["a"], at_least=0.5, budget=4, storage=storage)
    argv = ["report", "coins", "--storage", storage, "--out"]
    assert command(*argv, str(tmp_path / "r.html")).returncode == 0
    assert "Does the arm reach 0.5?" in (tmp_path / "r.html").read_text()
    wrong = command(*argv, str(tmp_path / "no" / "r.html"))
    assert wrong.returncode == 2
    assert "cannot be written" in wrong.stderr
    assert len(wrong.stderr.splitlines()) == 1


@pytest.fixture(name="write")
def a_writer(tmp_path: Path) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """A function that calls ``thresher report`` for a study in its own store."""
    storage = f"sqlite:///{tmp_path}/s.db"
    thresher.create_study("coins", arms=["a"], at_least=0.5, budget=4, storage=storage).store.close()
    argv = ["report", "coins", "--storage", storage, "--out"]
    program = [sys.executable, "-m", "thresher", *argv]

    def write(*args: object, **options: Any) -> "subprocess.CompletedProcess[str]":
        """Run the command, as the real program where a test needs a pipe or sets limits."""
        arguments = [*map(str, args)]
        if options or "/dev/stdout" in arguments or "-" in arguments:
            return subprocess.run([*program, *arguments], capture_output=True, text=True, **options)
        return command(*argv, *arguments)

    return write


def test_a_dash_means_standard_output_which_may_also_be_named(tmp_path: Path, write: Any) -> None:
    done = write("-", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("<!doctype html>\n<!-- thresher report -->")
    assert done.stdout.endswith("</html>\n")
    assert not (tmp_path / "-").exists()
    assert "Does the arm" in write("/dev/stdout").stdout


def test_a_report_replaces_an_earlier_report_and_nothing_else(tmp_path: Path, write: Any) -> None:
    assert [write(tmp_path / "r.html").returncode for _ in range(2)] == [0, 0]
    (tmp_path / "letter.html").write_text("<!doctype html>Dear Ann")
    (tmp_path / "other.db").write_bytes((tmp_path / "s.db").read_bytes())
    for name in ("other.db", "letter.html"):
        before = (tmp_path / name).read_bytes()
        refused = write(tmp_path / name)
        assert refused.returncode == 2
        assert "is not a report that thresher wrote; name another file, or overwrite it with --force" in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
        assert (tmp_path / name).read_bytes() == before
    assert write(tmp_path / "letter.html", "--force").returncode == 0
    assert "Does the arm" in (tmp_path / "letter.html").read_text()
    assert not [file.name for file in tmp_path.iterdir() if "partial" in file.name]


def test_a_report_never_replaces_the_store_it_reads(tmp_path: Path, write: Any) -> None:
    before = (tmp_path / "s.db").read_bytes()
    (tmp_path / "link.html").symlink_to("s.db")
    (tmp_path / "same.html").hardlink_to(tmp_path / "s.db")
    for name in ("s.db", "link.html", "same.html", "s.db-wal", "s.db-journal"):
        refused = write(tmp_path / name, "--force")
        assert refused.returncode == 2
        assert "belongs to the store that the report reads" in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
    assert (tmp_path / "s.db").read_bytes() == before


def test_a_report_that_cannot_be_finished_leaves_the_earlier_one(tmp_path: Path, write: Any) -> None:
    write(tmp_path / "r.html")
    before = (tmp_path / "r.html").read_bytes()
    limited = write(tmp_path / "r.html", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6)))
    assert limited.returncode == 2
    assert "cannot be written (File too large)" in limited.stderr
    assert (tmp_path / "r.html").read_bytes() == before
    assert not [file.name for file in tmp_path.iterdir() if "partial" in file.name]


SLOW = """
import sys, time
from pathlib import Path
from thresher import cli
write_text = Path.write_text
def slow(self, text, **options):
    write_text(self, text[:1000])
    print("writing", flush=True)
    for _ in range(6000):  # in one long sleep, Python would miss a signal that comes just before it begins
        time.sleep(0.01)
Path.write_text = slow
cli.main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_report_that_is_stopped_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    storage = f"sqlite:///{tmp_path}/s.db"
    thresher.create_study("coins", arms=["a"], at_least=0.5, budget=4, storage=storage).store.close()
    argv = [sys.executable, "-c", SLOW, "report", "coins", "--storage", storage, "--out", str(tmp_path / "r.html")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert said == "thresher: stopped; nothing was written\n"
    assert not [file.name for file in tmp_path.iterdir() if not file.name.startswith("s.db")]


@pytest.mark.parametrize(
    ("statement", "package"),
    [
        ("thresher.create_study('s', arms=['a'], at_least=0.5).figure()", "plotly"),
        ("sys.argv[1:] = ['serve', '--storage', 'memory']; cli.main()", "uvicorn"),
    ],
)
def test_a_missing_extra_is_named_in_one_line(statement: str, package: str) -> None:
    hidden = ["plotly", "fastapi", "uvicorn", "starlette", "pydantic"]
    lines = [f"import sys; sys.modules.update(dict.fromkeys({hidden}))", "import thresher", "from thresher import cli"]
    program = "\n".join([*lines, statement])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode != 0
    assert f"needs the package {package}" in done.stderr
    assert "pip install 'thresher[web]'" in done.stderr.splitlines()[-1]


def test_importing_thresher_loads_nothing_of_the_web_and_a_report_nothing_of_the_server() -> None:
    program = (
        "import sys, thresher.cli; print([m for m in ('fastapi', 'plotly', 'uvicorn') if m in sys.modules]);"
        "import thresher.web.report; print([m for m in ('fastapi', 'plotly', 'uvicorn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "['plotly']"]


def test_a_report_lists_the_hardest_cases() -> None:
    arms, cases = [HOSTILE, *(f"arm {k}" for k in range(29))], [f"<b>{k}</b>" for k in range(150)]
    study = thresher.create_study("evals", arms=arms, at_least=0.5, cases=cases, storage=MemoryStore())
    study.add_many([(arm, case != "<b>7</b>", case) for arm in arms for case in cases])
    text = report(study)
    assert "The 100 hardest of 150 cases with a reward." in text
    assert "<td class='n' data-head='cases'>150 of 150</td>" in text
    assert "✓ reaches, exact" in text
    _, table = text.split("<h2>Cases</h2>")
    first = table[table.index("<tbody>") :].splitlines()[1]
    numbers = "<td class='n' data-head='failed'>30</td><td class='n' data-head='passed'>0</td>"
    assert f"&lt;b&gt;7&lt;/<wbr>b&gt;</td>{numbers}" in first
    assert " and 10 more</td>" in first
    assert "150 in all" in text, "the specification is cut"
    assert HOSTILE not in text.replace("<wbr>", "").replace("</script", "")
    assert "<h2>Cases</h2>" not in report(thresher.create_study("plain", arms=["a"], at_least=0.5))
