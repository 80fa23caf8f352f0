"""In a real browser 360 pixels wide, like a phone, nothing important is cut off, even with long names."""

from typing import Any

import pytest
from browser import Site
from narrow import CASES, IDS, MODELS, NIGHTLY, PHONE, PROMPTS, UNBROKEN, broken, cut, make, path, rows

import thresher
from thresher.text.naming import name_pieces

STUDIES = ["unbroken", "prompts", NIGHTLY, "evals"]


@pytest.fixture(scope="module", autouse=True)
def _studies(site: Site) -> None:
    site.once(make)


def expected(storage: str, study: str) -> set[tuple[str, str]]:
    verdict = thresher.open_study(study, storage=storage).verdict()
    return {(row.arm, row.standing) for row in verdict.rows}


def shown(page: Any, selector: str) -> set[tuple[str, str]]:
    """The rows that are within the screen, with answer and mean."""
    arms = [
        (name, answer.split()[1].rstrip(",")) for name, answer, mean, inside in rows(page, selector) if inside and mean
    ]
    assert len({*arms}) == len(arms)
    return {*arms}


@pytest.mark.parametrize("study", STUDIES)
def test_every_row_of_the_page_has_its_name_answer_and_mean(site: Site, study: str) -> None:
    page = site.open(path(study), viewport=PHONE).page
    page.wait_for_selector("#chart-history .main-svg")
    arms = expected(site.storage, study)
    for width in (360, 620, 1101, 1280):
        page.set_viewport_size({**PHONE, "width": width})
        assert (width, cut(page), broken(page)) == (width, [], [])
        assert shown(page, "#rows tr") == arms


def test_the_tab_of_cases_fits_a_phone_and_names_the_arms(site: Site) -> None:
    page = site.at(path("evals"), viewport=PHONE).page
    page.get_by_role("tab", name="Cases").click()
    page.wait_for_selector("#cases tr")
    assert (cut(page), broken(page)) == ([], [])
    assert page.locator("#cases .name").first.text_content() in CASES
    assert page.locator("#cases .reward").first.is_visible()


@pytest.mark.parametrize("study", ["prompts", "unbroken"])
def test_every_row_of_the_report_has_its_name_answer_and_mean(site: Site, study: str) -> None:
    page = site.read(thresher.open_study(study, storage=site.storage), viewport=PHONE).page
    page.wait_for_selector("#figure-1 .main-svg")
    arms = expected(site.storage, study)
    for width in (360, 1280):
        page.set_viewport_size({**PHONE, "width": width})
        assert (width, cut(page), broken(page)) == (width, [], [])
        assert shown(page, "table:first-of-type tr:has(.key)") == arms


@pytest.mark.parametrize(("study", "arm"), [(NIGHTLY, IDS[4]), ("evals", MODELS[3]), ("unbroken", UNBROKEN[0])])
def test_the_page_of_an_arm_fits_a_phone(site: Site, study: str, arm: str) -> None:
    page = site.open(path(study, arm), viewport=PHONE).page
    page.wait_for_selector("#chart-evidence .main-svg")
    page.wait_for_selector("#pulls tr")
    assert (cut(page), broken(page)) == ([], [])
    assert page.locator("h1").text_content() == arm


def test_the_list_of_studies_fits_a_phone(site: Site) -> None:
    page = site.open("/", viewport=PHONE).page
    page.get_by_role("heading", name=NIGHTLY).wait_for()
    page.get_by_text("Which of 40 arms").wait_for()
    assert (cut(page), broken(page)) == ([], [])


def test_the_name_of_a_point_in_the_chart_fits_a_phone(site: Site) -> None:
    page = site.open(path(NIGHTLY), viewport=PHONE).page
    page.wait_for_selector("#chart-arms .main-svg")
    page.locator("#chart-arms").scroll_into_view_if_needed()
    points = page.locator("#chart-arms .scatterlayer .trace .points path")
    points.first.wait_for(state="attached")
    for index in range(3):
        box = points.nth(4 * index).bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        label = page.locator("#chart-arms .hovertext")
        label.first.wait_for()
        around = label.first.bounding_box()
        assert around["x"] >= 0
        assert around["x"] + around["width"] <= PHONE["width"]
        assert label.first.locator(".nums").text_content().startswith("tests/unit/")
        page.mouse.move(0, 0)


def test_further_columns_fit_a_phone(site: Site) -> None:
    page = site.at(path(NIGHTLY), viewport=PHONE).page
    page.wait_for_selector("#chart-history .main-svg")
    page.evaluate(
        "for (const mean of document.querySelectorAll('#rows .key'))"
        " for (const head of ['difference', 'quantile 0.95']) {"
        " const cell = mean.cloneNode(true);"
        " cell.dataset.head = head; cell.classList.remove('key'); mean.after(cell); }"
    )
    for width in (360, 1100):
        page.set_viewport_size({**PHONE, "width": width})
        assert (width, cut(page), broken(page)) == (width, [], [])


def test_the_page_and_the_report_break_names_in_the_same_places(site: Site) -> None:
    names = [
        *IDS,
        *PROMPTS,
        *CASES[:3],
        *UNBROKEN,
        "",
        "a",
        "__init__",
        "a/b/c::d",
        "C:\\eval\\1",
        "top_p=0.9,k=4",
        "😀-" * 9,
    ]
    page = site.at("/docs").page
    broken = page.evaluate("async (names) => names.map((await import('/static/tools.js')).pieces)", names)
    assert broken == [name_pieces(name) for name in names]


def test_the_description_of_the_interface_fits_a_phone(site: Site) -> None:
    page = site.at("/docs", viewport=PHONE).page
    page.wait_for_selector("#operations details")
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert cut(page) == []
