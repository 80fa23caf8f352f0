"""Loops are compiled by playing a small game: for every kind of loop, there is one."""

from itertools import product

import pytest

from thresher.lab import warming
from thresher.lab.compiler import Kind
from thresher.lab.setup import Setup
from thresher.lab.simulator import kind

KINDS = [Kind(*flags) for flags in product((False, True), repeat=4) if flags[0] or not flags[1]]  # certificates rank


@pytest.mark.parametrize("loop", KINDS)
def test_every_loop_has_a_game_to_compile_it(loop: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[Setup] = []
    monkeypatch.setattr(warming, "simulate", lambda game, **_: played.append(game))
    warming.compile_here([loop])
    assert [kind(game) for game in played] == [loop]
