"""Loops are compiled by playing a small game: for every kind of loop, there is one."""

from itertools import product

import pytest

from thresher.core import policies
from thresher.lab import warming
from thresher.lab.delays import NONE
from thresher.lab.setup import Setup

KINDS = [flags for flags in product((False, True), repeat=4) if flags[1] or not flags[2]]  # ranks only certificates


@pytest.mark.parametrize(("late", "certifies", "ranks", "counts"), KINDS)
def test_every_loop_has_a_game_to_compile_it(
    late: bool, certifies: bool, ranks: bool, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[Setup] = []
    monkeypatch.setattr(warming, "simulate", lambda game, **_: played.append(game))
    warming.compile_here([warming.Loop(policies.balanced(), late, certifies, ranks, counts)])
    [game] = played
    found = (game.timing.model != NONE, game.confidence is not None, game.guarantee == "rate", game.counts)
    assert found == (late, certifies, ranks, counts)
