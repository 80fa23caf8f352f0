"""Each kind of question in the report and in figures."""

import re

import pytest
from questions import QUESTIONS, make

import thresher
from thresher.core.row_text import COLUMNS
from thresher.log.store import MemoryStore
from thresher.web.report import report


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    store = MemoryStore()
    make(store)
    return store


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_report_and_the_figure_answer_each_kind_of_question(store: MemoryStore, name: str) -> None:
    study = thresher.open_study(name, storage=store)
    verdict = study.verdict()
    text = report(study).partition("<script")[0]
    wording = verdict.wording
    for row in verdict.rows:
        match = re.search(rf"<tr class='(\w+)'><td class='name'>{row.arm.replace('-', '-(?:<wbr>)?')}</td>.*", text)
        assert match is not None
        assert match[1] == row.standing
        if row.standing != "baseline":
            head = COLUMNS["estimate"].head(wording)
            assert f"data-head='{head}'>{wording.estimate(row.estimate)}</td>" in match[0]
    figure = study.figure()
    lines = [(shape.y0, shape.label.text) for shape in figure.layout.shapes if shape.type == "line"]
    differs = [(0, f"= {verdict.baseline}")] if wording.asks == "difference" else []
    assert lines == [*differs, (wording.bar, f"bar {wording.estimate(wording.bar)}")]
    points = {arm: y for trace in figure.data if trace.text for arm, y in zip(trace.text, trace.y, strict=True)}
    assert points == {row.arm: row.estimate for row in verdict if row.standing != "baseline"}
    reached, missed, still_open = study.figure("history").data
    assert (reached.x[-1], missed.y[-1], still_open.y[-1]) == (verdict.issued, len(verdict.missed), len(verdict.open))
    assert (reached.name, reached.y[-1]) == ("reached", len(verdict.reached))
    assert (missed.name, missed.y[-1]) == ("missed", len(verdict.missed))
