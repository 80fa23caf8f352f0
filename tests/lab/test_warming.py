"""Loops are compiled for a small game: for every kind of loop, there is one."""

from itertools import product, starmap
from typing import Any

import pytest
import rewritten

from thresher.core.policies import custom
from thresher.lab import compiler, parallel_compile
from thresher.lab.compiler import Kind
from thresher.lab.setup import Setup
from thresher.lab.simulator import kind

EITHER = (False, True)
KINDS = [loop for loop in starmap(Kind, product(EITHER, EITHER, EITHER, EITHER)) if loop.certifies or not loop.ranks]


@pytest.mark.parametrize("loop", KINDS)
def test_every_loop_has_a_game_to_compile_it(loop: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[Setup] = []
    monkeypatch.setattr(parallel_compile, "prepared", lambda game, certifies: played.append(game))
    parallel_compile.compile_here([loop])
    assert [kind(game) for game in played] == [loop]


def test_a_users_score_is_compiled_without_being_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """It need not be right for the small game: its own has another warm-up, or other rewards."""
    called: list[tuple[Any, ...]] = []
    monkeypatch.setattr(compiler, "loop", lambda _: lambda *given: called.append(given))
    mine = custom(rewritten.thirds, warmup=5)
    parallel_compile.compile_here([Kind(formula=mine.formula, digest=mine.digest)])
    [(_, begin, end, *_)] = called
    assert begin == end
