"""A study that is created again from its export knows no more than the original did: no charge is lost on the way."""

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import thresher as library
from thresher import evidence
from thresher.cli import cli
from thresher.errors import InvalidInput
from thresher.events import DROPPED, OUTSIDE
from thresher.ledger import Ledger
from thresher.study import give_up

ARMS = ("a", "b", "c")
CAUSES = ("failed", "lost", "cancelled", "cancelled", "broken-pool", "outage")


def lived(study: library.Study, chance: random.Random, outside: float) -> None:
    """Pulls that are told, dropped for every cause, told late, told nonsense or left pending, in any order."""
    if chance.random() < 0.3:
        study.add_many([(chance.choice(ARMS), chance.choice([0, 1, 0.5, None])) for _ in range(20)])
    means = {arm: chance.random() for arm in ARMS}
    lossy, slow = chance.choice([0.05, 0.3]), chance.choice([1, 4, 40])
    waiting: list[library.Pull] = []
    dropped: list[library.Pull] = []
    for _ in range(chance.choice([30, 300])):
        waiting += study.ask_many(chance.randint(1, slow))
        for pull in chance.sample(waiting, chance.randint(0, len(waiting))):
            waiting.remove(pull)
            if chance.random() < lossy:
                give_up(study, pull, cause=chance.choice(CAUSES), reason="so it goes")  # type: ignore[arg-type]
                dropped.append(pull)
            else:
                tell(study, pull, chance, means, outside)
        if dropped and chance.random() < 0.2:
            pull = dropped.pop(chance.randrange(len(dropped)))
            if study.look(lambda ledger, pull=pull: ledger.state_of(pull.id)) == DROPPED:  # type: ignore[misc]
                tell(study, pull, chance, means, outside)


def tell(
    study: library.Study, pull: library.Pull, chance: random.Random, means: dict[str, float], outside: float
) -> None:
    with suppress(InvalidInput):  # it retires its arm
        study.tell(pull, 7 if chance.random() < outside else chance.random() < means[pull.arm])


def owed(ledger: Ledger, arm: int) -> tuple[int, int]:
    """How many pulls of the arm have a reward that counts, and how many are charged, or will be if nothing comes."""
    told = charged = 0
    for pull in range(ledger.issued, 0, -1):
        if ledger.pull_arm[pull - 1] != arm:
            continue
        state, outcome = ledger.pull_state[pull - 1], ledger.docket.outcome[pull]
        if outcome == evidence.TOLD or state == OUTSIDE:  # they are imported where they are no nonsense
            told += 1
        else:  # a cancelled one too: later pulls will be told where it is imported
            charged += 1
    return told, 0 if ledger.spec.failure == "ignore" else charged


@pytest.mark.parametrize("seed", range(60))
def test_an_import_of_an_export_has_every_reward_and_every_charge(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance, url = random.Random(seed), f"sqlite:///{tmp_path}/s.db?durability=normal"
    outside = chance.choice([0, 0, 0.01])
    failure, tolerance = chance.choice(["worst", "worst", "ignore", 0.25]), chance.choice([0.0, 0.05])
    question: dict[str, Any] = {"arms": ARMS, "threshold": 0.5, "failure": failure, "tolerance": tolerance}
    original = library.create_study("original", **question, max_failures=chance.choice([None, 3]))
    lived(original, chance, outside)
    ledger = original.look(lambda ledger: ledger)
    store = library.store.open_store(url)
    store.append("original", original.events())
    cli.main(["export", "original", "csv", "--storage", url], standalone_mode=False)
    file = tmp_path / "original.csv"
    file.write_text(capsys.readouterr().out)
    copy = library.create_study("copy", **question, storage=store)
    command = ["import", str(file), "--storage", url, "--study"]
    if ledger.outside:
        with pytest.raises(InvalidInput, match=r"^line \d+ of .*: reward 7\.0: must lie within the bounds"):
            cli.main([*command, "copy"], standalone_mode=False)
        assert copy.verdict().issued == 0
        copy = library.create_study("clipped", **question, clip=True, storage=store)
    cli.main([*command, copy.name], standalone_mode=False)
    copy.ask()
    found = copy.look(lambda ledger: ledger)
    for arm in range(len(ARMS)):
        assert (found.docket.committed[arm], found.docket.charged[arm]) == owed(ledger, arm)
        if not ledger.outside and not ledger.docket.waiting[arm] and not ledger.is_certified(arm):
            assert not found.is_certified(arm)
    store.close()
