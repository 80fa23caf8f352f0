"""Resources that a pull needs besides a thread or a processor: GPUs, licences, memory."""

import math
from collections.abc import Mapping

from ...core import checks
from ...errors import InvalidInput

REMEDY = "write them as {'GPU': 1}"


def read_resources(resources: Mapping[str, float] | None) -> dict[str, float]:
    """Check the argument ``resources``: amounts by name.

    >>> read_resources({"GPU": 1}), read_resources(None)
    ({'GPU': 1.0}, {})
    """
    if resources is None:
        return {}
    if not isinstance(resources, Mapping):
        raise InvalidInput("resources", resources, "must be amounts by name", REMEDY)
    for name, amount in resources.items():
        checks.checked_name("resource", name)
        if checks.checked_number(f"resource {name}", amount, remedy=REMEDY) <= 0:
            raise InvalidInput(f"resource {name}", amount, "must be more than 0", "ask for some of it, or leave it out")
    return {name: float(amount) for name, amount in resources.items()}


def pulls_that_fit_resources(available: Mapping[str, float], needed: Mapping[str, float]) -> float:
    """How many pulls can run at once with the available resources; infinitely many if they need none.

    >>> pulls_that_fit_resources({"CPU": 8.0, "GPU": 2.0}, {"GPU": 0.5}), pulls_that_fit_resources({}, {"GPU": 1})
    (4.0, 0.0)
    >>> pulls_that_fit_resources({}, {})
    inf
    """
    slots = [(available.get(name, 0.0) + 1e-9) // amount for name, amount in needed.items()]
    return min(slots, default=math.inf)


def resources_in_words(amounts: Mapping[str, float]) -> str:
    """Amounts as messages show them.

    >>> resources_in_words({"GPU": 1.0, "licence": 0.5})
    'GPU 1, licence 0.5'
    """
    return ", ".join(f"{name} {amount:g}" for name, amount in amounts.items()) or "none"


def worker_resources_in_words(needed: Mapping[str, float]) -> str:
    """The kind of worker that is needed, in words.

    >>> worker_resources_in_words({"GPU": 1.0}), worker_resources_in_words({})
    ('worker with GPU 1', 'worker')
    """
    return f"worker with {resources_in_words(needed)}" if needed else "worker"


def pulls_queued_for_resources(workers: int) -> int:
    """How many pulls keep remote workers busy: a few wait, so that no worker idles until the next decision."""
    return workers + -(-workers // 8)
