"""Each kind of question on the page, in a real browser."""

import re
from urllib.parse import quote

import pytest
from browser import DESK, HOSTILE, STATE, Site, hurry, until
from narrow import PHONE, broken, cut
from questions import QUESTIONS, TIMES, make

import thresher
from thresher.core.row_text import DETAILS, row_text_cells

GREEN, RED = "rgb(27, 127, 92)", "rgb(180, 84, 58)"
COLOURS = {"reaches": GREEN, "misses": RED, "baseline": "rgb(59, 110, 165)", "open": "rgb(105, 114, 110)"}
HEADS = {
    "mean at least": ["mean", "against the bar", "pulls"],
    "mean at most": ["mean", "against the bar", "pulls"],
    "share": ["within", "against the bar", "median", "p95", "pulls"],
    "score in points": ["share", "against the bar", "median", "p25", "pulls"],
    "pairs": ["difference", "against the bar", "mean", "baseline", "pulls"],
    "slower by": ["difference", "against the bar", "mean", "baseline", "pulls"],
    "cases": ["difference", "against the bar", "mean", "baseline", "cases"],
    "ratio": ["within", "against the bar", "median", "mean", "baseline", "pulls"],
}
ROWS = """() => [...document.querySelectorAll('#rows tr')].map((row) => [row.querySelector('.name').textContent,
  getComputedStyle(row.querySelector('.sign')).color, row.querySelector('.key').textContent,
  [...row.querySelectorAll('[data-head]:not(.key)')].map((cell) => cell.textContent)])"""
HEAD = "[...document.querySelectorAll('.arms th')].slice(2, -3).map((cell) => cell.textContent)"
LINES = """(id) => document.getElementById(id).layout.shapes.filter((shape) => shape.type === 'line')
  .map((shape) => [shape.y0, shape.label.text])"""
POINTS = """(id) => Object.fromEntries(document.getElementById(id).data
  .filter((trace) => trace.text).flatMap((trace) => trace.text.map((name, at) => [name, trace.y[at]])))"""


@pytest.fixture(scope="module", autouse=True)
def _studies(site: Site) -> None:
    site.once(make)


def verdict_of(storage: str, name: str) -> thresher.Verdict:
    return thresher.open_study(name, storage=storage).verdict()


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_page_answers_each_kind_of_question(site: Site, name: str) -> None:
    page, complaints, _ = site.open(f"/study/{quote(name)}")
    page.wait_for_selector("#chart-history .main-svg")
    verdict = verdict_of(site.storage, name)
    wording = verdict.wording
    assert page.evaluate(HEAD) == HEADS[name]
    assert page.locator("#tabs").is_visible() == (name == "cases"), "only a study with cases has tabs"
    assert page.locator("#arms-title.hidden").count() == (name == "cases")
    assert page.get_by_role("heading", name="Arms", exact=True).count() == 1
    rows = {arm: (colour, key) for arm, colour, key, _ in page.evaluate(ROWS)}
    compared = {row.arm: (COLOURS[row.standing], wording.estimate(row.estimate)) for row in verdict if row.arm in rows}
    if verdict.baseline is not None:
        assert next(iter(rows)) == verdict.baseline, "the baseline is on top"
        compared[verdict.baseline] = (COLOURS["baseline"], "")
    assert rows == compared
    further = {arm: texts[: len(HEADS[name]) - 3] for arm, _, _, texts in page.evaluate(ROWS)}
    assert further == {
        row.arm: [text for [(text, _)] in row_text_cells([row], wording, DETAILS, keep=DETAILS).values()]
        for row in verdict
    }
    differs = [[0, f"= {verdict.baseline}"]] if wording.asks == "difference" else []
    assert page.evaluate(LINES, "chart-arms") == [*differs, [wording.bar, f"bar {wording.estimate(wording.bar)}"]]
    drawn = {row.arm: row.estimate for row in verdict if row.standing != "baseline"}
    assert page.evaluate(POINTS, "chart-arms") == pytest.approx(drawn, rel=1e-5)
    legend = "[...document.querySelectorAll('#chart-history .legendtext')].map((node) => node.textContent)"
    assert page.evaluate(legend) == ["reached", "missed", "open"]
    ends = "document.getElementById('chart-history').data.slice(0, 2).map((line) => line.y.at(-1))"
    assert page.evaluate(ends) == [len(verdict.reached), len(verdict.missed)]
    names = ("reached", "missed", "open")
    tiles = [page.locator(f"#n-{name}").text_content() for name in names]
    assert tiles == [f"{len(getattr(verdict, name))}" for name in names]
    for size in (DESK, PHONE):
        page.set_viewport_size(size)
        assert (size, cut(page), broken(page), complaints) == (size, [], [], [])


def test_the_tab_of_cases_colours_what_an_arm_failed_against_the_baseline(site: Site) -> None:
    page = site.at("/study/cases", viewport=PHONE).page
    page.get_by_role("tab", name="Cases").click()
    page.wait_for_selector("#cases tr")
    first = page.locator("#cases tr").first
    failed = int(first.locator("td").nth(1).text_content())
    assert failed == first.locator(".reward.misses").count() > 0
    assert first.locator(".reward.baseline").count() == 1


@pytest.mark.parametrize("name", ["cases", "share"])
def test_an_arm_says_that_counting_settles_it_earlier_only_where_there_are_cases(site: Site, name: str) -> None:
    page = site.open(f"/study/{name}/arm/{quote(QUESTIONS[name]['arms'][-1])}").page
    page.wait_for_selector("#pulls tr")
    ending = ", or earlier, by counting." if name == "cases" else "."
    note = page.locator("#evidence-card .note").inner_text()
    assert note.endswith(f"At the line the arm is settled for good{ending}")
    assert page.locator("#last-pulls th").all_inner_texts()[:2] == ["pull", "number"]


FOUND = {"found": 40, "searching": 5}  # how many pulls are made


def search(storage: str) -> None:
    for name, pulls in FOUND.items():
        study = thresher.create_study(
            name, arms=[*"abcdefghijklmnopqrst"], at_least=0.5, find=1, storage=storage, seed=1
        )
        while study.verdict().issued < pulls and (pull := study.ask()):
            study.tell(pull, 1.0)


@pytest.mark.parametrize("name", FOUND)
def test_the_bar_of_a_study_that_is_done_is_full_and_names_what_it_shows(site: Site, name: str) -> None:
    site.once(search)
    is_done = name == "found"
    page = site.open(f"/study/{name}").page
    page.wait_for_selector("#rows tr")
    left = page.locator("#f-left").inner_text()
    assert re.fullmatch("nothing" if is_done else r"about \d+ pulls(, .*)?", left)
    label = "Done" if is_done else "Left: about"
    for path, where in ((f"/study/{name}", "main"), ("/", f"a[href='/study/{name}']")):
        bar = site.at(path).page.locator(f"{where} progress[aria-label^='{label}']")
        bar.wait_for()
        assert (bar.evaluate("bar => bar.value") == 1) == is_done, path


@pytest.mark.parametrize("name", ["share", "cases", "slower by"])
def test_report_and_arm_fit_a_phone(site: Site, name: str) -> None:
    page = site.read(thresher.open_study(name, storage=site.storage), viewport=PHONE).page
    page.wait_for_selector("#figure-1 .main-svg")
    assert (cut(page), broken(page)) == ([], [])
    page = site.open(f"/study/{quote(name)}/arm/{quote(QUESTIONS[name]['arms'][-1])}", viewport=PHONE).page
    page.wait_for_selector("#chart-evidence .main-svg")
    page.wait_for_selector("#pulls tr")
    assert (cut(page), broken(page)) == ([], [])


def test_an_arm_of_a_pair_has_both_rewards(site: Site) -> None:
    arm = list(TIMES)[-1]
    page, complaints, _ = site.at(f"/study/{quote('slower by')}/arm/{quote(arm)}", viewport=PHONE)
    page.wait_for_selector("#chart-evidence .main-svg")
    verdict = verdict_of(site.storage, "slower by")
    row, wording = verdict[arm], verdict.wording
    facts = page.evaluate("Object.fromEntries([...document.querySelectorAll('[data-fact]')]"
                          ".map((node) => [node.dataset.fact, node.textContent]))")  # fmt: skip
    assert facts["difference"] == wording.estimate(row.difference)
    assert facts["interval"] == wording.span(row.low, row.high)
    assert (facts["bar"], facts["baseline"]) == ("+10 ms", wording.amount(row.baseline))
    assert all(text.endswith(" ms") for text in page.locator("#pulls td[data-head=baseline]").all_text_contents())
    assert page.evaluate(LINES, "chart-rewards") == [[0, "= grep -r"], [0.01, "bar +10 ms"]]
    page.goto(f"{site.server.url}/study/{quote('slower by')}/arm/{quote('grep -r')}")
    page.get_by_text("the baseline, which the other arms are compared with").first.wait_for()
    page.get_by_text("Its rewards are in the pairs of the other arms.").wait_for()
    assert complaints == []


def test_a_page_follows_the_baseline_as_pairs_come(site: Site) -> None:
    study = thresher.create_study(
        "new pairs",
        arms=list(TIMES)[:2],
        baseline=next(iter(TIMES)),
        lower_is_better=True,
        unit="s",
        storage=site.storage,
    )
    page = site.open("/study/new%20pairs").page
    until(page, f"{STATE} === 'live'")
    pull = study.ask()
    assert pull is not None
    study.tell(pull, (0.02, 0.03))
    base = "document.querySelector('#rows tr.baseline')?.textContent ?? ''"
    until(page, f"{base}.includes('30 ms')")
    page.get_by_text("reward 20 ms, sqlite3 in memory 30 ms").wait_for()


def test_a_tab_lists_the_cases_the_hardest_first(site: Site) -> None:
    names = [HOSTILE, *(f"case {k:03}" for k in range(1, 150))]
    study = thresher.create_study("graded", arms=["a", "b", "c"], at_least=0.5, cases=names, storage=site.storage)
    study.add_many([(arm, 0.0 if case == HOSTILE else 1.0, case) for arm in "ab" for case in names])
    page, complaints, _ = site.open("/study/graded")
    page.get_by_text("150 of 150").first.wait_for()
    assert page.locator("#rows tr", has_text=", exact").count() == 2
    page.get_by_role("tab", name="Cases").click()
    page.get_by_text("The 100 hardest of 150 cases with a reward.").wait_for()
    assert not page.locator("#panel-arms").is_visible()
    first = page.locator("#cases tr").first
    assert first.locator("td").all_text_contents()[:4] == [HOSTILE, "2", "0", "0"]
    assert first.locator("a").all_text_contents() == ["a 0", "b 0"]
    page.locator("#more-cases").click()
    until(page, "document.querySelectorAll('#cases tr').length === 150")
    hurry(page)  # it reads the cases again every five seconds
    pull = study.ask()
    assert pull is not None
    study.tell(pull, 0.0)
    until(page, "document.querySelector('#cases').textContent.includes('c 0')")
    page.get_by_role("tab", name="Cases").press("ArrowLeft")
    assert page.locator("#rows").is_visible()
    page.goto(f"{site.server.url}/study/graded/arm/a")
    page.get_by_text("150 of 150, exact").wait_for()
    assert page.locator("#pulls tr").first.locator("td").all_text_contents()[3] == "case 149"
    assert complaints == []
