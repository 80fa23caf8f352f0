"""What a run reports of its progress, and when."""

from types import SimpleNamespace
from typing import Any

import pytest
from engines import make
from steps import Still

from thresher.run import runner as progress
from thresher.run.runner import Meter, Progress


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> Still:
    found = Still()
    monkeypatch.setattr(progress, "time", found)
    return found


def ledger(told: int, left: int | None = None) -> Any:
    return SimpleNamespace(issued=told + 3, told=told, pending=3, certified=1, left=left)


def test_a_report_comes_at_most_ten_times_a_second_and_at_the_end(still: Still) -> None:
    seen: list[Progress] = []
    meter = Meter(make(), seen.append, None)
    for now, expected in ((100.0, 1), (100.05, 1), (100.125, 2), (100.25, 3), (100.3, 3)):
        still.now = now
        meter.report()
        assert len(seen) == expected
    meter.report(last=True)
    assert len(seen) == 4
    Meter(make(), None, None).report(last=True)


def test_a_report_says_how_many_how_fast_and_how_long() -> None:
    meter = Meter(make(), None, None)
    assert meter._read(ledger(10, left=40), 100.0) == Progress(13, 10, 3, 1, 0.0, None)
    assert meter._read(ledger(10, left=40), 101.0) == Progress(13, 10, 3, 1, 0.0, None)
    assert meter._read(ledger(30, left=40), 104.0) == Progress(33, 30, 3, 1, 5.0, 8.0)
    assert meter._read(ledger(30), 104.0) == Progress(33, 30, 3, 1, 5.0, None)


@pytest.mark.parametrize(
    ("end", "left", "expected"), [(110.0, 40, 6.0), (120.0, 40, 8.0), (110.0, None, 6.0), (99.0, 40, 0.0)]
)
def test_the_time_that_is_left_is_that_of_whatever_ends_first(end: float, left: int | None, expected: float) -> None:
    meter = Meter(make(), None, end)
    meter._read(ledger(10), 100.0)
    assert meter._read(ledger(30, left), 104.0).seconds_left == expected
