"""The guard kills commands that outlive thresher, and nothing else."""

import pytest

from thresher.run.command import guard
from thresher.run.command.process import Command
from thresher.study import Pull


def test_a_command_that_ended_is_guarded_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number may belong to another program by the time thresher dies."""
    said: list[tuple[str, int]] = []
    monkeypatch.setattr(guard.GUARD, "_tell", lambda sign, group: said.append((sign, group)))
    assert Command(("echo", "0.5"), "last-float")(Pull(1, "a", 1, {}, 7)) == 0.5
    (begun, first), (ended, second) = said
    assert (begun, ended, first) == ("+", "-", second)
