"""Loops are compiled by playing a small game: for every family and question, there is one."""

import pytest

from thresher.core import policies
from thresher.lab import families, warming
from thresher.lab.setup import Setup


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("family", [name for name in families.FAMILIES if not name.startswith("pilot")])
def test_every_loop_of_a_plan_has_a_game_to_compile_it(
    family: str, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[Setup] = []
    monkeypatch.setattr(warming, "simulate", lambda game, **_: played.append(game))
    certifies = counts or family != "normal"  # its rewards have no bounds, so only a share can be certified
    warming.compile_here([warming.Loop(policies.balanced(), family, False, certifies, counts=counts)])
    assert [game.counts for game in played] == [counts]
