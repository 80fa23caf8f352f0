"""A report and an exported notebook in a real browser without a network: each carries the library of the charts."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Site, Tab, tab

import thresher
from thresher.web.report import report

HOSTILE = "</script><img src=x onerror=alert(1)> $study @above"


@pytest.fixture(scope="module")
def study() -> thresher.Study:
    study = thresher.create_study("coins", arms=["fair", "loaded", HOSTILE], at_least=0.6, budget=100)
    while pull := study.ask():
        study.tell(pull, pull.arm == "loaded" or pull.number % 2)
    return study


@pytest.fixture(scope="module")
def offline(site: Site) -> Iterator[Tab]:
    opened = tab(site.chromium, offline=True)
    yield opened
    opened.page.context.close()


def test_figures_show_in_an_exported_notebook_offline(study: thresher.Study, tmp_path: Path, offline: Tab) -> None:
    """Exporters such as nbconvert put the HTML of each output into a page of their own."""
    outputs = []
    for figure in (study.figure("arms"), study.figure("history")):
        bundle = figure._repr_mimebundle_()
        assert {"application/vnd.plotly.v1+json", "text/html", "text/plain"} <= set(bundle)
        assert "http" not in re.sub(r"<script.*?</script>", "", bundle["text/html"], flags=re.DOTALL)
        outputs.append(f"<div class='output'>{bundle['text/html']}</div>")
    (tmp_path / "notebook.html").write_text(f"<!doctype html><meta charset='utf-8'>{''.join(outputs)}")
    page, complaints, origins = offline
    complaints.clear()
    page.goto(f"file://{tmp_path}/notebook.html")
    for output in page.locator(".output").all():
        output.locator(".main-svg").first.wait_for()
        assert output.get_by_text("pulls", exact=True).count() > 0
    assert page.locator(".output").count() == 2
    assert (complaints, origins) == ([], {"file://"})


def test_a_report_works_offline(study: thresher.Study, tmp_path: Path, offline: Tab) -> None:
    file = tmp_path / "report.html"
    file.write_text(report(study), encoding="utf-8")
    page, complaints, origins = offline
    complaints.clear()
    page.goto(file.as_uri())
    page.wait_for_selector("#figure-0 .main-svg")
    page.wait_for_selector("#figure-1 .main-svg")
    assert (complaints, origins) == ([], {"file://"})
    assert page.locator("main img").count() == 0
