"""thresher paper at the command line: what it writes, what it refuses, what it leaves behind."""

import csv
from pathlib import Path

import pytest
import rewritten
from lab_commands import run

from thresher.core.policies import custom
from thresher.errors import ThresherError
from thresher.paper import claims, figures, table1


@pytest.mark.parametrize("name", ["figure1.csv", "figure1.png", "claims.md"])
def test_the_paper_command_overwrites_no_other_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thresher.paper.report.compile_together", lambda loops, **_: 1 // 0)  # before the work
    (tmp_path / name).write_text("my own")
    with pytest.raises(ThresherError, match=f"{name}': already exists, and is not a file that thresher paper wrote"):
        run("paper", "figure1", "--out", str(tmp_path), "--repetitions", "1")
    assert (tmp_path / name).read_text() == "my own"
    with pytest.raises(ZeroDivisionError):
        run("paper", "figure1", "--out", str(tmp_path), "--repetitions", "1", "--force")


def test_a_failed_paper_command_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from thresher.paper import plots

    def broken(*_: object) -> None:
        raise RuntimeError("no ink")

    monkeypatch.setattr(plots, "table1", broken)
    monkeypatch.setattr(table1, "INSTANCES", 50)
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "table1.csv").write_text("section,old")
    for out in (tmp_path / "new" / "below", kept):
        with pytest.raises(RuntimeError, match="no ink"):
            run("paper", "table1", "--out", str(out), "--repetitions", "2")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert [path.name for path in kept.iterdir()] == ["table1.csv"]
    assert (kept / "table1.csv").read_text() == "section,old"


def test_paper_writes_data_pictures_and_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (figures, claims):
        monkeypatch.setattr(module, "TAUS", (1, 10, 100, 500))
    monkeypatch.setattr(table1, "INSTANCES", 50)
    out = tmp_path / "paper"
    names = run("paper", "all", "--out", str(out), "--repetitions", "2").splitlines()
    assert sorted(path.name for path in out.iterdir()) == sorted(Path(name).name for name in names)
    parts = ("figure1", "figure2", "table1", "certificates", "guarantee")
    written = {path.name for path in out.iterdir()}
    assert {f"{name}.{kind}" for name in parts for kind in ("csv", "png", "pdf")} <= written
    third = list(csv.DictReader((out / "certificates.csv").read_text().splitlines()))
    assert len(third) == 18
    assert all(float(row["settled"]) == 1.0 for row in third)
    assert "| HDoC |" in (out / "certificates.md").read_text()
    first = list(csv.DictReader((out / "figure1.csv").read_text().splitlines()))
    assert ",".join(first[0]) == "setting,algorithm,n,repetitions,accuracy,accuracy_se,success,success_se"
    assert {row["algorithm"] for row in first} == {"ATP", "EVT", "EVT_pf", "uniform", "anytime EVT"}
    second = list(csv.DictReader((out / "figure2.csv").read_text().splitlines()))
    assert ",".join(second[0]) == "setting,algorithm,delta,tau,pulls_to_95,speedup"
    assert {int(row["tau"]) for row in second} >= {0, 1, 500}
    assert {row["delta"] for row in second} == {"0", "0.5", "1"}
    text = (out / "claims.md").read_text()
    assert text.count("Verdict: **") == 6


def test_the_paper_command_may_run_again(tmp_path: Path) -> None:
    for _ in range(2):
        run("paper", "guarantee", "--out", str(tmp_path), "--repetitions", "1")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["guarantee.csv", "guarantee.pdf", "guarantee.png"]


def test_one_repetition_decides_no_claim(tmp_path: Path) -> None:
    run("paper", "figure1", "--out", str(tmp_path), "--repetitions", "1")
    assert (tmp_path / "claims.md").read_text().count("**not decided by these data**") == 6


def test_without_matplotlib_pictures_are_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from thresher.lab import pictures

    monkeypatch.setattr(pictures, "find_spec", lambda _: None)
    out = tmp_path / "out"
    with pytest.raises(ThresherError, match="a picture needs the package matplotlib"):
        run("paper", "all", "--out", str(out))
    assert not out.exists()


def test_a_policy_of_one_s_own_is_added_to_figures_table_and_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (figures, claims):
        monkeypatch.setattr(module, "TAUS", (10, 100, 500))
        monkeypatch.setattr(module, "DELTAS", (0.0, 1.0))
        monkeypatch.setattr(module, "PULLS_41", (1000, 20_000))
    monkeypatch.setattr("thresher.paper.plots.DELTAS", (0.0, 1.0))
    monkeypatch.setattr("thresher.lab.pictures.FORMATS", (".png",))
    monkeypatch.setattr(table1, "INSTANCES", 50)
    monkeypatch.setattr(table1, "PULLS", (1000, 2000, 3000))
    parts = ("figure1", "figure2", "table1")
    run("paper", *parts, "--policy", "rewritten:thirds", "--out", str(tmp_path), "--repetitions", "2")
    for part, rows in (("figure1", 6), ("figure2", 24), ("table1", 6)):
        found = csv.DictReader((tmp_path / f"{part}.csv").read_text().splitlines())
        assert sum(row["algorithm"] == "rewritten:thirds" for row in found) == rows
        assert (tmp_path / f"{part}.png").exists()
    page = (tmp_path / "claims.md").read_text().partition("## Not in the paper")[2]
    for other in ("EVT", "ATP", "AP-EVT at δ = 1"):
        assert f"- That rewritten:thirds outperforms {other} **" in page
    assert "| rewritten:thirds | – |" in (tmp_path / "table1.md").read_text()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("certificates",), "policy 'evt-pf': certificates is about settling arms, so no policy can be added to it"),
        (("figure1", "guarantee"), "guarantee is about settling arms"),
        (("figure1", "figure9"), "part 'figure9': is not a part of the paper; choose one of figure1, figure2"),
        (("figure1", "--policy=evt-pf"), "policy 'evt-pf': is given twice"),
        (("figure1", "--policy=nosuch:score"), "there is no module 'nosuch'"),
    ],
)
def test_a_policy_that_cannot_be_added_is_refused_in_one_line(
    words: tuple[str, ...], line: str, tmp_path: Path
) -> None:
    with pytest.raises(ThresherError) as raised:
        run("paper", *words, "--policy=evt-pf", "--out", str(tmp_path / "out"))
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_a_policy_that_follows_the_budget_plays_each_number_of_pulls_by_itself() -> None:
    follows, free = custom(rewritten.evt_again), custom(rewritten.evt_again, exploration=3.0)
    second = figures.algorithm_42("mine", 0.5, {"mine": follows})
    assert (second.exploration, second.pending_weight) == (200.0, 0.5)
    assert figures.algorithm_42("mine", 0.5, {"mine": free}).exploration == 3.0
    alone = figures.figure1_pulls(1)
    assert figures.figure1_pulls(1, {"mine": follows}) - alone == 3 * sum(figures.PULLS_41)
    assert figures.figure1_pulls(1, {"mine": free}) - alone == 3 * figures.PULLS_41[-1]
