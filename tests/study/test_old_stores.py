"""What version 0.1 wrote opens, verifies to the same digest and gives the same answers, forever.

The store has a study for each policy and setting, with drops of every cause, late rewards, retirements, extensions,
imports in a sorted order and pulls under way. Nothing writes it again.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import thresher
from thresher.core import verdict as verdicts
from thresher.core.replay import verify
from thresher.log.stores import open_store
from thresher.study import peek

STORED = Path(__file__).parent / "stored"
KNOWN: dict[str, dict[str, Any]] = json.loads((STORED / "0.1.json").read_text())


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("old") / "thresher.db"
    file.write_bytes(gzip.decompress((STORED / "0.1.db.gz").read_bytes()))
    return f"sqlite:///{file}"


@pytest.mark.parametrize("name", KNOWN)
def test_an_old_study_verifies_and_answers_as_it_did(storage: str, name: str) -> None:
    known, events = KNOWN[name], open_store(storage).read(name)
    report = verify(events)
    assert (report.sound, report.events, report.digest) == (True, known["events"], known["digest"])
    found = peek(thresher.open_study(name, storage=storage), lambda ledger: verdicts.read(name, ledger))
    assert (found.issued, found.told) == (known["issued"], known["told"])
    for row in found.rows:
        label, certified, mean, low, high, *counts = known["rows"][row.arm]
        assert (row.label, row.certified, row.mean) == (label, certified, mean)
        assert [row.seen, row.pending, row.charged, row.failures] == counts
        assert (row.low, row.high) == pytest.approx((low, high))  # intervals use a logarithm


def test_an_old_study_goes_on_by_its_own_rule(storage: str) -> None:
    study = thresher.open_study("until-settled", storage=storage)
    study.extend(budget=(study.verdict().budget or 0) + 50)
    for pull in study.ask_many(20):
        study.tell(pull, pull.number % 2)
    assert study.spec.rule == 1
    assert verify(study.events()).sound
