"""thresher finds which of K noisy options clear a bar, with as few evaluations as possible."""

from collections.abc import Callable as _Callable
from contextlib import AbstractContextManager as _Context

from ._version import __version__
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
from .core.row import Row
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
    UnknownArm,
    UnknownPull,
    UnknownStudy,
)
from .log.store import Store
from .run.progress import Progress
from .run.runner import run  # this binds the function; the room `run` is reached with `from thresher.run import …`
from .study import Pull, Study

__all__ = [
    "AlreadyTold",
    "Busy",
    "CannotGoOn",
    "DamagedStudy",
    "Event",
    "InvalidInput",
    "NoScore",
    "OutsideBounds",
    "Policy",
    "Progress",
    "Pull",
    "Row",
    "ScoreFailed",
    "Spec",
    "Store",
    "StoreFailed",
    "Study",
    "StudyDeleted",
    "StudyExists",
    "ThresherError",
    "UnknownArm",
    "UnknownPull",
    "UnknownStudy",
    "Verdict",
    "__version__",
    "anytime_evt",
    "ap_evt",
    "ap_evt_pf",
    "apt",
    "balanced",
    "cheapest",
    "create_study",
    "custom",
    "evt",
    "evt_pf",
    "live",
    "lsa",
    "open_study",
    "run",
    "uniform",
    "verify",
]


def live(study: Study) -> _Context[_Callable[[Progress], object]]:
    """Show a run while it lasts, as the command line does: a live table on a terminal, elsewhere a line now and then.

    It is written to standard error. Use it around `run`::

        with thresher.live(study) as show:
            thresher.run(study, evaluate, on_progress=show)
    """
    from .cli.livetable import watching  # here: it loads what draws tables

    return watching(study, quiet=False)
