"""The tab of cases, in a real browser."""

from pathlib import Path
from typing import Any

from browser import HOSTILE, STATE, a_chromium, a_storage, closed_tabs, entered, until  # noqa: F401 - fixtures
from running import served

import thresher


def test_a_tab_lists_the_cases_the_hardest_first(chromium: Any, tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/s.db?durability=normal"
    names = [HOSTILE, *(f"case {k:03}" for k in range(1, 150))]
    study = thresher.create_study("evals", arms=["a", "b", "c"], threshold=0.5, cases=names, storage=storage)
    study.add_many([(arm, 0.0 if case == HOSTILE else 1.0, case) for arm in "ab" for case in names])
    with served(storage) as server:
        page, complaints, _ = entered(chromium, server, "/study/evals")
        page.get_by_text("150 of 150").first.wait_for()
        assert page.locator("#rows tr", has_text="✓ exact").count() == 2
        page.get_by_role("tab", name="Cases").click()
        page.get_by_text("The 100 hardest of 150 cases with a reward.").wait_for()
        assert not page.locator("#panel-arms").is_visible()
        first = page.locator("#cases tr").first
        assert first.locator("td").all_text_contents()[:4] == [HOSTILE, "2", "0", "0"]
        assert first.locator("a").all_text_contents() == ["a 0", "b 0"]
        page.locator("#more-cases").click()
        until(page, "document.querySelectorAll('#cases tr').length === 150")
        pull = study.ask()
        assert pull is not None
        study.tell(pull, 0.0)
        until(page, "document.querySelector('#cases').textContent.includes('c 0')")
        page.get_by_role("tab", name="Cases").press("ArrowLeft")
        assert page.locator("#rows").is_visible()
        page.goto(f"{server.url}/study/evals/arm/a")
        page.get_by_text("150 of 150, exact").wait_for()
        assert page.locator("#pulls tr").first.locator("td").all_text_contents()[3] == "case 149"
        assert complaints == []


def test_a_study_without_cases_has_no_tabs(chromium: Any, storage: str) -> None:
    with served(storage) as server:
        page = entered(chromium, server, "/study/coins").page
        until(page, f"{STATE} === 'live'")
        assert not page.locator("#tabs").is_visible()
        assert page.get_by_role("heading", name="Arms", exact=True).is_visible()
