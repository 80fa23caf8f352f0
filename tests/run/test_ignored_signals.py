"""A signal that comes while Python ends an object is not lost."""

import os
import signal
import time

import pytest

from thresher.run.signals import until_stopped


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_a_finaliser_still_stops_the_job(number: signal.Signals) -> None:
    class Slow:
        def __del__(self) -> None:
            os.kill(os.getpid(), number)
            for _ in range(1000):  # the signal is handled here, and what it raises is ignored
                pass

    def job() -> None:
        Slow()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            time.sleep(0.01)

    assert until_stopped(job) == 128 + number
