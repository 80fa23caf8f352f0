"""What is said while there is no worker."""

import pytest

from thresher.errors import CannotGoOn
from thresher.run.failures import NoWorkers


def test_a_time_without_workers_is_mentioned_once_each_time(caplog: pytest.LogCaptureFixture) -> None:
    missing = NoWorkers("worker with GPU 1", 100.0)
    for now in (50.0, 59.9):
        assert not missing.is_over(0, now)
    assert caplog.text == ""
    for now in (60.0, 61.0, 80.0):
        assert not missing.is_over(0, now)
    words = "there is no worker with GPU 1: waiting for one"
    assert caplog.text.count(words) == 1
    assert missing.is_over(1, 90.0)
    assert missing.since is None
    for now in (91.0, 100.9):
        assert not missing.is_over(0, now)
    assert caplog.text.count(words) == 1
    assert not missing.is_over(0, 101.0)
    assert caplog.text.count(words) == 2
    with pytest.raises(CannotGoOn, match="there was no worker with GPU 1 for 100 s; start some and run again"):
        missing.is_over(0, 191.0)
