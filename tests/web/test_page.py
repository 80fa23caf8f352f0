"""The page of a running study in a real browser; the study runs in another process."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import HOSTILE, STATE, Site, hurried, hurry, until
from running import served

import thresher
from thresher.log.store import open_store

ARMS = [*(f"prompt {k:02}" for k in range(30)), HOSTILE, "'\"&amp;</td>"]
AGENT = """
import random, sys, time, thresher
study = thresher.open_study("running", storage=sys.argv[1])
def evaluate(pull):
    time.sleep(0.1)
    if pull.arm == "prompt 07" and pull.number == 1:
        raise RuntimeError("<b>out of memory</b>")
    return random.Random(pull.seed).random() < 0.35 + 0.02 * study.spec.arms.index(pull.arm)
thresher.run(study, evaluate, workers=4)
"""
RUNNING = "/study/running"
TOLD = "document.getElementById('f-told').textContent"
NOTICE = "document.getElementById('notice').textContent"
CHANGES = "performance.getEntriesByName('change').length"


def make(storage: str) -> None:
    thresher.create_study("running", arms=ARMS, at_least=0.6, budget=200_000, storage=storage, seed=0)
    thresher.create_study("cards", arms=["fair", "loaded"], at_least=0.5, budget=500, storage=storage)


@pytest.fixture(scope="module", autouse=True)
def _agent(site: Site) -> Iterator[None]:
    site.once(make)
    with subprocess.Popen([sys.executable, "-c", AGENT, site.storage]) as agent:
        yield
        agent.terminate()
    site.open("/docs")  # so that no page draws the study while other tests run


def test_the_token_lets_a_browser_in_and_leaves_the_address(site: Site) -> None:
    page, complaints, _ = site.open("/docs")
    page.wait_for_load_state("networkidle")  # what is still loading would be refused
    page.context.clear_cookies()
    assert page.context.request.get(f"{site.server.url}{RUNNING}").status == 401
    page.goto(site.server.entry)
    assert page.url == f"{site.server.url}/"
    page.get_by_role("link", name="running").click()
    page.wait_for_url(f"**{RUNNING}")
    page.get_by_text("Which of 32 arms reach 0.6?").wait_for()
    assert complaints == []


def test_a_running_study_is_shown_and_updates_without_reload(site: Site) -> None:
    page, complaints, origins = site.at(RUNNING)
    page.evaluate("window.mark = 1")
    page.wait_for_selector("#pulse[data-state=live]")
    page.wait_for_selector("#chart-arms .main-svg")
    number = f"Number({TOLD}.replaceAll(',', ''))"
    before = page.evaluate(number)
    until(page, f"{number} > {before} + 20")
    page.wait_for_selector("#events li")
    page.get_by_role("cell", name="<b>out of memory</b>").wait_for()  # as text
    assert page.evaluate("window.mark") == 1
    assert origins == {site.server.url}
    assert complaints == []


def test_nothing_jumps_while_it_updates(site: Site) -> None:
    page = site.at(RUNNING).page
    page.wait_for_selector("#chart-arms .main-svg")
    tops = "[...document.querySelectorAll('main > *')].slice(0, 8).map((node) => node.getBoundingClientRect().top)"
    before, told = page.evaluate(tops), page.locator("#f-told").text_content()
    until(page, f"{TOLD} !== '{told}'")
    assert page.evaluate(tops) == before


def test_screen_readers_are_not_told_every_number(site: Site) -> None:
    page = site.at(RUNNING).page
    until(page, f"{STATE} === 'live'")
    page.evaluate(
        "window.said = 0; new MutationObserver((found) => { window.said += found.length; })"
        ".observe(document.getElementById('spoken'), { childList: true, characterData: true, subtree: true })"
    )
    before = page.evaluate(CHANGES)
    until(page, f"{CHANGES} > {before} + 5")
    assert page.evaluate("window.said") <= 2  # a sentence replaces the one before
    assert page.locator("main [aria-live]").count() == 0


def test_the_page_shows_the_servers_sentences(site: Site) -> None:
    page = site.at(RUNNING).page
    page.wait_for_selector("#pulse[data-state=live]")
    texts = "['question', 'answer', 'guarantee'].map((id) => document.getElementById(id).textContent)"
    until(page, f"{texts}.every((text) => text.length > 10)")
    question, answer, guarantee = page.evaluate(texts)
    assert question == "Which of 32 arms reach 0.6?"
    assert re.fullmatch(r"\d+ reach(es)? it, \d+ miss(es)? it, \d+ open\.", answer)
    assert "certified" in guarantee


def test_rows_stay_where_they_are_while_one_is_focused(site: Site) -> None:
    page = site.at(RUNNING).page
    page.wait_for_selector("#rows tr")
    with hurried(page):  # it draws rows after every change
        page.locator("#rows a").nth(5).focus()
        names = "[...document.querySelectorAll('#rows a')].map((link) => link.textContent).join()"
        before, told = page.evaluate(names), page.evaluate(TOLD)
        page.evaluate("window.row = document.activeElement")
        until(page, f"{TOLD} !== '{told}'")
        drawn = page.evaluate(CHANGES)
        until(page, f"{CHANGES} > {drawn} + 5")
    assert page.evaluate(names) == before
    assert page.evaluate("document.activeElement === window.row")
    page.evaluate("window.row.blur()")


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_it_fits_a_phone_and_follows_the_scheme(site: Site, width: int, scheme: str) -> None:
    page = site.at(RUNNING, viewport={"width": width, "height": 720}, color_scheme=scheme).page
    page.wait_for_selector("#rows tr")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (int(ground[4:].split(",")[0]) < 128) == (scheme == "dark")


def test_search_and_filter_show_only_matching_arms(site: Site) -> None:
    page = site.at(RUNNING).page
    page.wait_for_selector("#rows tr")
    page.get_by_role("searchbox").fill("PROMPT 1")
    until(page, "document.querySelectorAll('#rows tr').length === 10")
    page.get_by_role("searchbox").fill("")
    page.get_by_label("Filter by answer").select_option("misses")
    until(
        page,
        "(rows => rows.length > 0 && rows.length < 32 && rows.every(row => row.className === 'misses'))"
        "([...document.querySelectorAll('#rows tr')])",
    )
    page.get_by_label("Filter by answer").select_option("")


def test_it_can_be_used_with_the_keyboard_and_has_names_for_everything(site: Site) -> None:
    page = site.open(RUNNING).page  # a fresh one: Tab goes to the first element
    page.wait_for_selector("#rows tr")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the table of arms"
    page.keyboard.press("Enter")
    page.wait_for_url("**#arms")
    nameless = page.evaluate(
        "[...document.querySelectorAll('input, select, button, progress, a, [role=img], [tabindex]')].filter((node) =>"
        " !node.getAttribute('aria-label') && !node.textContent.trim() && !node.closest('.main-svg')).length"
    )
    assert nameless == 0
    assert page.evaluate("document.documentElement.lang") == "en"


def test_an_arm_has_its_own_page_and_hostile_names_stay_text(site: Site) -> None:
    page, complaints, origins = site.at(RUNNING)
    page.wait_for_selector("#chart-arms .main-svg")
    page.get_by_role("searchbox").fill("onerror")
    page.get_by_role("link", name=HOSTILE).first.click()
    page.get_by_role("heading", name=HOSTILE).wait_for()
    page.wait_for_selector("#chart-rewards .main-svg")
    page.wait_for_selector("#chart-evidence .main-svg")
    page.wait_for_selector("#pulls tr")
    assert page.locator("main img, main script").count() == 0
    assert (complaints, origins) == ([], {site.server.url})


def test_a_rebinding_attempt_is_refused(site: Site) -> None:
    page = site.tab.page.context.new_page()
    address = site.server.entry.replace("127.0.0.1", "rebound.example")
    assert page.goto(address).status == 421
    assert not page.context.cookies(address)
    page.close()


def test_the_interface_is_described(site: Site) -> None:
    page, complaints, origins = site.open("/docs")
    page.get_by_text("/api/studies/{study}/ask").click()
    page.get_by_text("Repeating an Idempotency-Key").wait_for()
    assert (complaints, origins) == ([], {site.server.url})


@pytest.fixture
def pages_without_charts(site: Site) -> Iterator[tuple[Any, Any]]:
    """Two pages for another server. They draw nothing, because the library of the charts would be compiled again."""
    context, stub = site.tab.page.context, "window.Plotly = { react: async () => {} }"
    context.route("**/static/plotly.js*", lambda route: route.fulfill(body=stub, content_type="text/javascript"))
    other = context.new_page()
    yield site.tab.page, other
    other.close()
    context.unroute_all()


def test_open_pages_outlive_their_server_and_continue_with_a_new_session(
    site: Site, pages_without_charts: tuple[Any, Any], tmp_path: Path
) -> None:
    storage = f"sqlite:///{tmp_path}/s.db?durability=normal"
    study = thresher.create_study("coins", arms=["fair", "loaded"], at_least=0.5, budget=500, storage=storage)
    page, arm = pages_without_charts
    with served(storage) as first:
        page.goto(first.entry)
        page.goto(f"{first.url}/study/coins")
        arm.goto(f"{first.url}/study/coins/arm/fair")
        for view in (page, arm):
            until(view, f"{STATE} === 'live'")
            hurry(view)
        os.kill(first.pid, signal.SIGKILL)
        for view in (page, arm):
            until(
                view,
                f"{STATE} === 'lost' && document.getElementById('pulse').textContent.startsWith('lost since ')",
            )
            until(view, f"{NOTICE}.includes('keeps trying')")
    for pull in study.ask_many(2):
        study.tell(pull, 1)
    with served(storage, "--port", first.url.rpartition(":")[2], "--token", "another-token-for-tests") as second:
        for view in (page, arm):
            until(view, f"{NOTICE}.includes('Your session has expired')")
        assert page.context.request.get(second.entry).ok  # as the user enters in another tab
        until(page, f"{STATE} === 'live' && document.getElementById('notice').hidden && {TOLD} === '2'")
        until(arm, f"{STATE} === 'live' && document.getElementById('f-seen').textContent === '1'")
        arm.close()  # the server need not wait for the pages
        site.open("/docs")


def test_a_page_says_that_the_server_has_no_room_for_it(pages_without_charts: tuple[Any, Any], tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/s.db?durability=normal"
    thresher.create_study("coins", arms=["fair"], at_least=0.5, budget=500, storage=storage)
    page, _ = pages_without_charts
    with served(storage, patience={"served_studies.STREAMS": 0}) as server:
        page.goto(server.entry)
        page.goto(f"{server.url}/study/coins")
        hurry(page)
        until(page, f"{NOTICE}.includes('The server has no room for another live page at present.')")
        page.goto("about:blank")


def test_a_page_says_that_there_is_no_reward_yet_and_that_its_study_was_deleted(site: Site) -> None:
    thresher.create_study("dice", arms=["fair", "loaded"], at_least=0.5, budget=500, storage=site.storage)
    page, complaints, _ = site.open("/study/dice")
    page.get_by_text("No reward has come back yet.").wait_for()
    page.get_by_text("0 reach it, 0 miss it, 2 open.").first.wait_for()
    until(page, f"{STATE} === 'live'")
    assert complaints == []
    open_store(site.storage).delete("dice")
    until(page, f"{NOTICE}.includes('was deleted')")
    assert "Which of 2 arms" in page.locator("h1").text_content()
    reply = page.goto(f"{site.server.url}/study/dice")
    assert reply.status == 404
    page.get_by_text("is not in this store").wait_for()


AXIS = "[...document.querySelectorAll('#chart-arms .xtick text')].map((node) => node.textContent)"


def test_few_arms_are_named_under_the_chart_and_failures_that_retire_none_are_not_called_retired(site: Site) -> None:
    names = ["tests/test_run.py::test_a_reward_is_read", HOSTILE, *(f"prompt {number}" for number in range(18))]
    study = thresher.create_study("few", arms=names, at_least=0.5, budget=60, storage=site.storage)
    study.drop(study.ask_many(1)[0], cause="failed", reason="no network")
    while pull := study.ask():
        study.tell(pull, names.index(pull.arm) / 20)
    page, complaints, _ = site.open("/study/few")
    page.wait_for_selector("#chart-arms .xtick text")
    ticks = page.evaluate(AXIS)
    assert ticks[:18] == [f"prompt {number}" for number in reversed(range(18))]
    assert ticks[18:] == ["<img …(2)</script>", "tests…ward_is_read"]
    page.get_by_text("with 90 %, intervals and answers are all right together").wait_for()
    assert page.locator("#troubles-note").text_content() == "The arms with the most failures first."
    study.retire(names[2])
    page.get_by_text("Retired arms first.").wait_for()
    page = site.open("/study/few", viewport={"width": 390, "height": 800}).page
    page.wait_for_selector("#chart-arms .xtick text")
    assert page.locator("#chart-arms .xtitle").text_content() == "rank"
    assert complaints == []


def test_an_empty_store_names_the_commands_as_code(site: Site) -> None:
    site.tab.page.route("**/api/studies", lambda route: route.fulfill(json={"studies": []}), times=1)
    page = site.open("/").page
    page.get_by_text("This store has no studies yet. Create one with thresher run or thresher create.").wait_for()
    assert page.locator("#lead code").all_text_contents() == ["thresher run", "thresher create"]


def test_answers_that_fail_are_asked_for_again(site: Site) -> None:
    failing = [503, 0]  # refused, and no answer at all

    def fail(route: Any) -> None:
        status = failing.pop(0)
        if status:
            route.fulfill(status=status, body="<p>a proxy's page</p>")
        else:
            route.abort()

    site.tab.page.route("**/api/studies/cards/arms", fail, times=2)
    page = site.open("/study/cards").page
    until(page, f"{STATE} === 'live' && document.querySelectorAll('#rows tr').length === 2")
    assert failing == []
    assert page.locator("#notice").is_hidden()
