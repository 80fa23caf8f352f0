"""thresher finds which of K noisy options clear a bar, with as few evaluations as possible.

Whoever has the pytest plugin installed imports this file at every start of pytest. So it loads nothing by itself: a
name is imported from its module at its first use.
"""

import importlib as _importlib
from typing import TYPE_CHECKING

from ._version import __version__

_importlib.import_module(".run", __name__)  # the room `run`, which is empty. It is bound only when it is first loaded:
del globals()["run"]  # from here on, whatever else is imported, `thresher.run` is the function

if TYPE_CHECKING:
    from collections.abc import Callable as _Callable
    from contextlib import AbstractContextManager as _Context

    from .adapters.evaluator import evaluator
    from .core.events import Event
    from .core.policies import (
        Policy,
        anytime_evt,
        ap_evt,
        ap_evt_pf,
        apt,
        balanced,
        cheapest,
        custom,
        evt,
        evt_pf,
        lsa,
        uniform,
    )
    from .core.replay import verify
    from .core.rows import Row
    from .core.spec import Spec
    from .core.verdict import Verdict
    from .create import create_study, open_study
    from .errors import (
        AlreadyTold,
        Busy,
        CannotGoOn,
        DamagedStudy,
        InvalidInput,
        NoScore,
        OutsideBounds,
        ScoreFailed,
        StoreFailed,
        StudyDeleted,
        StudyExists,
        ThresherError,
        UnknownArgument,
        UnknownArm,
        UnknownPull,
        UnknownStudy,
    )
    from .log.store import Store
    from .run.arun import arun
    from .run.loop import Progress, run
    from .study import Pull, Study, Telling

__all__ = [
    "AlreadyTold", "Busy", "CannotGoOn", "DamagedStudy", "Event", "InvalidInput", "NoScore", "OutsideBounds", "Policy",
    "Progress", "Pull", "Row", "ScoreFailed", "Spec", "Store", "StoreFailed", "Study", "StudyDeleted", "StudyExists",
    "Telling", "ThresherError", "UnknownArgument", "UnknownArm", "UnknownPull", "UnknownStudy", "Verdict",
    "__version__", "anytime_evt", "ap_evt", "ap_evt_pf", "apt", "arun", "balanced", "cheapest", "create_study",
    "custom", "evaluator", "evt", "evt_pf", "live", "lsa", "open_study", "run", "uniform", "verify",
]  # fmt: skip

_HOME = {  # in which module each name is, as the imports above say for tools that read them
    name: module
    for module, names in {
        ".adapters.evaluator": "evaluator",
        ".core.events": "Event",
        ".core.policies": "Policy anytime_evt ap_evt ap_evt_pf apt balanced cheapest custom evt evt_pf lsa uniform",
        ".core.replay": "verify",
        ".core.rows": "Row",
        ".core.spec": "Spec",
        ".core.verdict": "Verdict",
        ".create": "create_study open_study",
        ".errors": "AlreadyTold Busy CannotGoOn DamagedStudy InvalidInput NoScore OutsideBounds ScoreFailed "
        "StoreFailed StudyDeleted StudyExists ThresherError UnknownArgument UnknownArm UnknownPull UnknownStudy",
        ".log.store": "Store",
        ".run.arun": "arun",
        ".run.loop": "Progress run",
        ".study": "Pull Study Telling",
    }.items()
    for name in names.split()
}
_ROOMS = {"core", "create", "errors", "log", "study", "text"}  # `thresher.errors` and so on, without a further import


def live(study: "Study") -> "_Context[_Callable[[Progress], object]]":
    """Show a run while it lasts, as the command line does: a live table on a terminal, elsewhere a line now and then.

    It is written to standard error. Use it around `run`::

        with thresher.live(study) as show:
            thresher.run(study, evaluate, on_progress=show)
    """
    from .cli.live_table import watching_live_table  # here: it loads what draws tables

    return watching_live_table(study, quiet=False)


if not TYPE_CHECKING:  # else a type checker would accept any name

    def __getattr__(name: str) -> object:
        if name in _ROOMS:
            return _importlib.import_module(f".{name}", __name__)
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        found: object = getattr(_importlib.import_module(_HOME[name], __name__), name)
        globals()[name] = found  # next time it is found without this function
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS} - {"TYPE_CHECKING"})
