"""What a run reports of its progress, and when."""

import threading

import pytest
from engines import make
from steps import Still

import thresher
from thresher.run import loop
from thresher.run.loop import Progress, RunLoopMeter


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> Still:
    still = Still()
    monkeypatch.setattr(loop, "time", still)
    return still


def reports(
    study: thresher.Study, still: Still, *rounds: tuple[float, int], end: float | None = None
) -> list[Progress]:
    """The reports at these times, each after so many more rewards; three more pulls are always pending."""
    seen: list[Progress] = []
    meter = RunLoopMeter(study, seen.append, end)
    pending = study.ask_many(3)
    for still.now, count in rounds:
        pending += study.ask_many(count)
        for _ in range(count):
            study.tell(pending.pop(0), 0.5)
        meter.report()
    return seen


def test_a_report_says_how_many_how_fast_and_how_long(still: Still) -> None:
    first, second, third = reports(make(budget=70), still, (100.0, 10), (101.0, 0), (104.0, 20))
    assert first == second == Progress(13, 10, 3, 0, 0.0, None)
    assert third == Progress(33, 30, 3, 0, 5.0, 8.0)


@pytest.mark.parametrize(("end", "expected"), [(110.0, 6.0), (120.0, 8.0), (99.0, 0.0)])
def test_the_time_that_is_left_is_that_of_whatever_ends_first(end: float, expected: float, still: Still) -> None:
    assert reports(make(budget=70), still, (100.0, 10), (104.0, 20), end=end)[-1].seconds_left == expected


def test_the_rate_is_that_of_the_last_hundred_reports(still: Still) -> None:
    rounds = [(float(now), count) for now, count in enumerate([0] * 20 + [50] + [11] + [1] * 98, start=100)]
    assert reports(make(budget=1000), still, *rounds)[-1].rate == 109 / 99


def test_progress_is_reported_while_a_pull_takes_long() -> None:
    seen: list[int] = []
    enough = threading.Event()

    def note(report: Progress) -> None:
        seen.append(report.pending)
        if len(seen) > 3:
            enough.set()

    assert thresher.run(make("a", budget=2), lambda _: enough.wait(10), workers=1, on_progress=note).told == 2
    assert enough.is_set()
    assert seen[:3] == [1, 1, 1]
