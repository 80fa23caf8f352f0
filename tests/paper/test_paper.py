"""`python -m paper`: what it writes, and what it refuses."""

import csv
from pathlib import Path

import pytest
import rewritten

from paper import claims, figures, table1
from paper.__main__ import main, write
from thresher import custom
from thresher.errors import ThresherError


def test_paper_writes_data_pictures_and_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (figures, claims):
        monkeypatch.setattr(module, "TAUS", (1, 10, 100, 500))
    monkeypatch.setattr(table1, "INSTANCES", 50)
    names = write(["all"], tmp_path, repetitions=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    parts = ("figure1", "figure2", "table1", "guarantee")
    assert {f"{part}.{suffix}" for part in parts for suffix in ("csv", "png", "pdf")} <= set(names)
    first = list(csv.DictReader((tmp_path / "figure1.csv").read_text().splitlines()))
    assert ",".join(first[0]) == "setting,algorithm,n,repetitions,accuracy,accuracy_se,success,success_se"
    assert {row["algorithm"] for row in first} == {"ATP", "EVT", "EVT_pf", "uniform", "anytime EVT"}
    second = list(csv.DictReader((tmp_path / "figure2.csv").read_text().splitlines()))
    assert ",".join(second[0]) == "setting,algorithm,delta,tau,pulls_to_95,speedup"
    assert {int(row["tau"]) for row in second} >= {0, 1, 500}
    assert {row["delta"] for row in second} == {"0", "0.5", "1"}
    assert (tmp_path / "claims.md").read_text().count("Verdict: **") == 6


def test_one_repetition_decides_no_claim_and_the_files_may_be_written_again(tmp_path: Path) -> None:
    for _ in range(2):
        write(["figure1"], tmp_path, repetitions=1)
    assert (tmp_path / "claims.md").read_text().count("**not decided by these data**") == 6


def test_a_policy_of_one_s_own_is_added_to_figures_table_and_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (figures, claims):
        monkeypatch.setattr(module, "TAUS", (10, 100, 500))
        monkeypatch.setattr(module, "DELTAS", (0.0, 1.0))
        monkeypatch.setattr(module, "PULLS_41", (1000, 20_000))
    monkeypatch.setattr("paper.plots.DELTAS", (0.0, 1.0))
    monkeypatch.setattr("thresher.lab.pictures.FORMATS", (".png",))
    monkeypatch.setattr(table1, "INSTANCES", 50)
    monkeypatch.setattr(table1, "PULLS", (1000, 2000, 3000))
    words = ["figure1", "figure2", "table1", "--policy", "rewritten:thirds", "--repetitions", "2"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    for part, rows in (("figure1", 6), ("figure2", 24), ("table1", 6)):
        written = csv.DictReader((tmp_path / f"{part}.csv").read_text().splitlines())
        assert sum(row["algorithm"] == "rewritten:thirds" for row in written) == rows
        assert (tmp_path / f"{part}.png").exists()
    page = (tmp_path / "claims.md").read_text().partition("## Not in the paper")[2]
    for other in ("EVT", "ATP", "AP-EVT at δ = 1"):
        assert f"- That rewritten:thirds outperforms {other} **" in page
    assert "| rewritten:thirds | – |" in (tmp_path / "table1.md").read_text()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("figure1", "guarantee", "--policy=evt-pf"), "guarantee is about settling arms"),
        (("figure1", "figure9"), "part 'figure9': is not a part of the paper; choose one of figure1, figure2"),
        (("figure1", "--policy=evt-pf", "--policy=evt-pf"), "policy 'evt-pf': is given twice"),
        (("figure1", "--policy=nosuch:score"), "No module named 'nosuch'"),
        (("all", "--repetitions=0"), "repetitions 0: must be at least 1"),
    ],
)
def test_wrong_use_is_one_line(
    words: tuple[str, ...], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    complaint = capsys.readouterr().err
    assert line in complaint
    assert complaint.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_without_matplotlib_pictures_are_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from thresher.lab import pictures

    monkeypatch.setattr(pictures, "find_spec", lambda _: None)
    with pytest.raises(ThresherError, match="a picture needs the package matplotlib"):
        write(["all"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_policy_that_follows_the_budget_plays_each_number_of_pulls_by_itself() -> None:
    follows, free = custom(rewritten.evt_again), custom(rewritten.evt_again, exploration=3.0)
    second = figures.algorithm_42("mine", 0.5, {"mine": follows})
    assert (second.exploration, second.pending_weight) == (200.0, 0.5)
    assert figures.algorithm_42("mine", 0.5, {"mine": free}).exploration == 3.0
    alone = figures.figure1_pulls(1)
    assert figures.figure1_pulls(1, {"mine": follows}) - alone == 3 * sum(figures.PULLS_41)
    assert figures.figure1_pulls(1, {"mine": free}) - alone == 3 * figures.PULLS_41[-1]
