"""Loops are compiled by playing a small game: for every kind of loop, there is one."""

from itertools import product, starmap

import pytest

from thresher.lab import warming
from thresher.lab.compiler import Kind
from thresher.lab.setup import Setup
from thresher.lab.simulator import kind

EITHER = (False, True)
KINDS = [loop for loop in starmap(Kind, product(EITHER, EITHER, EITHER, EITHER)) if loop.certifies or not loop.ranks]


@pytest.mark.parametrize("loop", KINDS)
def test_every_loop_has_a_game_to_compile_it(loop: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[Setup] = []
    monkeypatch.setattr(warming, "simulate", lambda game, **_: played.append(game))
    warming.compile_here([loop])
    assert [kind(game) for game in played] == [loop]
