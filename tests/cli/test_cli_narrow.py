"""The live table on a narrow terminal: the sign and what tells arms apart are never cut off."""

import random
from contextlib import nullcontext
from functools import cache

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.live import Live

import thresher
from thresher.cli.live_table import Screen, live_arms_table
from thresher.core.rows import Row, row_of
from thresher.core.sentences import SIGNS
from thresher.core.state import State
from thresher.run.loop import Progress
from thresher.study import peek_study
from thresher.text.naming import distinct_names

IDS = [
    f"tests/unit/test_payments.py::TestRefund::test_partial_refund_is_idempotent[{currency}-visa-{number}]"
    for currency in ("eur", "usd")
    for number in range(40, 50)
]
MIDDLE = [f"suite-{letter * 30}-{number}-{letter * 30}-end" for number in range(5) for letter in "ab"]
UNEVEN = [f"models/{'deep/' * depth}large-{number}/prompt-of-the-day.txt" for depth in range(3) for number in (1, 22)]
ALIKE = [f"{'x' * 40}{'-' * number}{'y' * 40}" for number in range(8)]  # no words to tell them apart
NAMES = {
    "ids": IDS,
    "prompts": [f"prompt-{n:02}" for n in range(12)],
    "middle": MIDDLE,
    "uneven": UNEVEN,
    "alike": ALIKE,
}


@cache
def studied(which: str, cases: int | None) -> thresher.Study:
    """A study with certified, open, retired, failed and pending arms, and with one that has no reward."""
    arms = NAMES[which]
    study = thresher.create_study("s", arms=arms, at_least=0.5, cases=cases, confidence=0.9)
    draw = random.Random(7)
    for workdir, arm in enumerate(arms[:-1]):
        mean, count = (0.02, 0.98, 0.45, 0.55)[workdir % 4], min(60, cases or 60)
        study.add_many([(arm, draw.random() < mean, case if cases else None) for case in range(count)])
    for pull in study.ask_many(3):
        study.drop(pull, reason="it broke", cause="failed")
    study.retire(arms[2])
    study.ask_many(3)
    return study


def drawn(study: thresher.Study, width: int) -> tuple[list[Row], list[str]]:
    console = Console(width=width, color_system=None)

    def picture(ledger: State) -> tuple[list[Row], list[str]]:
        rows = [row_of(ledger, arm) for arm in range(len(ledger.spec.arms))]
        with console.capture() as output:
            console.print(live_arms_table(rows, ledger, width))
        return rows, output.get().splitlines()

    return peek_study(study, picture)


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120])
@pytest.mark.parametrize("cases", [None, 60, 2000])
@pytest.mark.parametrize("which", NAMES)
def test_sign_and_name_are_whole(which: str, cases: int | None, width: int) -> None:
    rows, (_, *lines) = drawn(studied(which, cases), width)
    assert all(cell_len(line) <= width for line in lines)
    starts = [workdir for workdir, line in enumerate(lines) if set(line.split()) & {*SIGNS.values()}]
    assert len(starts) == len(rows)
    names = []
    for row, start, end in zip(rows, starts, [*starts[1:], len(lines)], strict=True):
        name, *cells = lines[start].split()
        assert cells[0] == SIGNS[row.standing]
        assert row.mean is None or f"{row.mean:.4g}" in cells
        names.append(name + "".join(line.strip() for line in lines[start + 1 : end]))
    assert len({*names}) == len(rows), "names that look the same"


@pytest.mark.parametrize("width", range(8, 40))
@pytest.mark.parametrize("which", NAMES)
def test_short_names_fit_and_differ(which: str, width: int) -> None:
    short = distinct_names(tuple(NAMES[which]), width)
    assert [*short] == NAMES[which]
    assert len({*short.values()}) == len(short)
    assert all(cell_len(line) <= width for text in short.values() for line in text.split("\n"))


def test_a_further_line_of_the_question_takes_the_place_of_an_arm() -> None:
    study = thresher.create_study("s", arms=[f"a{k}" for k in range(1000)], at_least=0.505, cases=5000)
    console = Console(width=30, height=24, color_system=None)
    screen = Screen(study, Live(console=console), nullcontext())
    with console.capture() as output:
        console.print(peek_study(study, lambda ledger: screen.picture(ledger, Progress(0, 0, 0, 0, 0.0, None))))
    lines = output.get().rstrip("\n").splitlines()
    assert " ".join(" ".join(lines[:2]).split()) == "Which of 1,000 arms reach 0.505 on 5,000 cases?"
    assert len(lines) < 24
