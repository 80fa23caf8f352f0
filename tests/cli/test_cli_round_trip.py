"""A study recreated from its export knows no more than the original did: no charge is lost."""

import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import thresher as library
from thresher.cli import cli
from thresher.core import evidence
from thresher.core.events import DROPPED, OUTSIDE
from thresher.core.state import State
from thresher.errors import InvalidInput
from thresher.log.store import START, open_store
from thresher.study import give_up_in_study, peek_study

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
                give_up_in_study(study, pull, cause=chance.choice(CAUSES), reason="so it goes")  # type: ignore[arg-type]
                dropped.append(pull)
            else:
                tell(study, pull, chance, means, outside)
        if dropped and chance.random() < 0.2:
            pull = dropped.pop(chance.randrange(len(dropped)))
            if peek_study(study, lambda ledger, pull=pull: ledger.state_of(pull.id)) == DROPPED:  # type: ignore[misc]
                tell(study, pull, chance, means, outside)


def tell(
    study: library.Study, pull: library.Pull, chance: random.Random, means: dict[str, float], outside: float
) -> None:
    with suppress(InvalidInput):  # it retires its arm
        study.tell(pull, 7 if chance.random() < outside else chance.random() < means[pull.arm])


def owed(ledger: State, arm: int) -> tuple[int, int]:
    """How many pulls of the arm have a reward that counts, and how many are or will be charged."""
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


@pytest.mark.parametrize("seed", range(30))
def test_an_import_of_an_export_has_every_reward_and_every_charge(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance, url = random.Random(seed), f"sqlite:///{tmp_path}/s.db?durability=normal"
    outside = chance.choice([0, 0, 0.01])
    failure, tolerance = chance.choice(["worst", "worst", "ignore", 0.25]), chance.choice([0.0, 0.05])
    question: dict[str, Any] = {"arms": ARMS, "at_least": 0.5, "failure": failure, "tolerance": tolerance}
    original = library.create_study("original", **question, max_failures=chance.choice([None, 3]))
    lived(original, chance, outside)
    ledger = peek_study(original, lambda ledger: ledger)
    store = open_store(url)
    store.append("original", original.events(), before=START)
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
    imported_ledger = peek_study(copy, lambda ledger: ledger)
    for arm in range(len(ARMS)):
        assert (imported_ledger.docket.committed[arm], imported_ledger.docket.charged[arm]) == owed(ledger, arm)
        if not ledger.outside and not ledger.docket.waiting[arm] and not ledger.is_certified(arm):
            assert not imported_ledger.is_certified(arm)
    store.close()


# -- digests of events ----------------------------------------------------------------------------------------------


@pytest.fixture
def exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """What export json writes for a study with drops and a whole number as a reward."""
    url = f"sqlite:///{tmp_path}/s.db?durability=normal"
    study = library.create_study("s", arms=["a", "b"], at_least=0.5, budget=40, storage=url)
    pulls = study.ask_many(6)
    for pull in pulls[:4]:
        study.tell(pull, pull.id % 2)
    study.drop(pulls[4], reason="a\0b ✓", cause="failed")
    study.tell(pulls[4], 1)
    cli.main(["export", "s", "json", "--storage", url], standalone_mode=False)
    file = tmp_path / "s.json"
    file.write_text(capsys.readouterr().out)
    study.store.close()
    return file


def imported(file: Path, name: str) -> library.Study:
    url = f"sqlite:///{file.parent}/s.db"
    cli.main(["import", str(file), "--study", name, "--storage", url], standalone_mode=False)
    return library.open_study(name, storage=url)


def test_an_export_carries_the_digests_and_an_import_keeps_them(exported: Path) -> None:
    data = json.loads(exported.read_text())
    assert all(len(event["digest"]) == 32 for event in data["events"])
    copy = imported(exported, "copy")
    assert copy.verdict().head == data["events"][-1]["digest"]
    assert copy.verdict().head == library.open_study("s", storage=copy.store).verdict().head


def test_the_longest_note_in_any_script_is_imported_as_it_was(tmp_path: Path) -> None:
    """As JSON, a character of it can be six."""
    url, note = f"sqlite:///{tmp_path}/s.db", "語" * 10_000
    study = library.create_study("s", arms=["a"], at_least=0.5, storage=url)
    pull = study.ask()
    assert pull
    study.tell(pull, 1, note=note)
    study.store.close()
    result = CliRunner().invoke(cli, ["export", "s", "json", "--storage", url])
    (tmp_path / "s.json").write_text(result.output)
    assert [row.note for row in imported(tmp_path / "s.json", "copy").pulls()] == [note]


@pytest.mark.parametrize("field", ["reward", "time", "key", "agent", "reason", "digest"])
def test_an_export_that_was_changed_is_refused(exported: Path, field: str) -> None:
    data = json.loads(exported.read_text())
    event = next(event for event in data["events"][1:] if event[field] is not None)
    event[field] = {"reward": 0.25, "time": 5.0, "digest": "00" * 16}.get(field, "other")
    exported.write_text(json.dumps(data))
    with pytest.raises(InvalidInput, match=rf"event {event['seq']}: does not match its digest"):
        imported(exported, "copy")


def test_some_events_without_digests_among_others_are_refused(exported: Path) -> None:
    for without in (1, 5):
        data = json.loads(exported.read_text())
        data["events"][without - 1].pop("digest")
        (exported.parent / "some.json").write_text(json.dumps(data))
        with pytest.raises(InvalidInput, match="digest"):
            imported(exported.parent / "some.json", "copy")
    data["events"][3]["digest"] = "no digits"
    exported.write_text(json.dumps(data))
    with pytest.raises(InvalidInput, match="event 4"):
        imported(exported, "copy")


def test_an_export_that_another_program_has_written_again_keeps_its_digests(exported: Path) -> None:
    data = json.loads(exported.read_text())
    head = data["events"][-1]["digest"]
    for event in data["events"]:
        if event["reward"] is not None:
            event["reward"] = int(event["reward"])  # as other programs write 1.0
    exported.write_text(json.dumps(data))
    assert imported(exported, "copy").verdict().head == head


@pytest.mark.parametrize("lost", [1, 3, 12])
def test_an_export_whose_end_is_missing_is_refused(exported: Path, lost: int) -> None:
    data = json.loads(exported.read_text())
    assert len(data["events"]) == 13
    assert data["head"] == {"seq": 13, "digest": data["events"][-1]["digest"]}
    del data["events"][-lost:]
    exported.write_text(json.dumps(data))
    with pytest.raises(InvalidInput, match=rf"its end: event {13 - lost}: is not the log's head, which was event 13"):
        imported(exported, "copy")


def test_the_head_comes_first_so_a_file_that_was_cut_and_closed_again_still_has_it(exported: Path) -> None:
    lines = exported.read_text().splitlines()
    exported.write_text("\n".join(lines[:6]).removesuffix(",") + "\n]}")
    with pytest.raises(InvalidInput, match="event 5: is not the log's head"):
        imported(exported, "copy")


@pytest.mark.parametrize("head", [7, "x", [], {}, {"seq": 13}, {"seq": 13, "digest": "no digits"}, {"digest": "00"}])
def test_an_invalid_head_is_refused(exported: Path, head: Any) -> None:
    exported.write_text(json.dumps({**json.loads(exported.read_text()), "head": head}))
    with pytest.raises(InvalidInput, match="is not the log of a study, its end"):
        imported(exported, "copy")


def test_an_export_without_its_head_or_digests_is_refused(exported: Path) -> None:
    data = json.loads(exported.read_text())
    del data["head"]
    exported.write_text(json.dumps(data))
    with pytest.raises(InvalidInput, match="head None: must be an object with seq and digest"):
        imported(exported, "copy")
    exported.write_text(json.dumps({**data, "head": {}}))
    with pytest.raises(InvalidInput, match=r"head {}: must be an object"):
        imported(exported, "copy")
    for event in data["events"]:
        del event["digest"]
    exported.write_text(json.dumps(data))
    with pytest.raises(InvalidInput, match="does not match its digest"):
        imported(exported, "copy")


def test_an_export_ends_at_its_head_although_the_study_continues(
    exported: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{exported.parent}/s.db"
    whole = library.Study.pages

    def pages(study: library.Study, after: int = 0) -> Any:
        assert study.ask()
        return whole(study, after)

    monkeypatch.setattr(library.Study, "pages", pages)
    cli.main(["export", "s", "json", "--storage", url], standalone_mode=False)
    assert json.loads(capsys.readouterr().out) == json.loads(exported.read_text())
