"""Studies with any rule of certificates: version 0.1 wrote rule 1, and its logs keep that rule."""

from dataclasses import replace
from typing import Any

from logs import append

import thresher
from thresher.core import spec as specs
from thresher.core.events import Event
from thresher.log.memory import MemoryStore


def study_of_rule(rule: int, **given: Any) -> thresher.Study:
    """A study in memory whose log names that rule."""
    store = MemoryStore()
    spec = replace(specs.Spec(**given), rule=rule)
    append(store, "s", [Event(1, "created", spec=spec.to_json(), key="made")])
    return thresher.open_study("s", storage=store)
