"""thresher finds which of K noisy options clear a bar, with as few evaluations as possible."""

from ._version import __version__
from .core.events import Event
from .core.policies import Policy, anytime_evt, ap_evt, ap_evt_pf, apt, balanced, evt, evt_pf, lsa, uniform
from .core.row import Row
from .core.verdict import Verdict
from .create import create_study, open_study
from .errors import (
    AlreadyTold,
    Busy,
    CannotGoOn,
    DamagedStudy,
    InvalidInput,
    OutsideBounds,
    StoreFailed,
    StudyDeleted,
    StudyExists,
    ThresherError,
    UnknownPull,
    UnknownStudy,
)
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
    "OutsideBounds",
    "Policy",
    "Progress",
    "Pull",
    "Row",
    "StoreFailed",
    "Study",
    "StudyDeleted",
    "StudyExists",
    "ThresherError",
    "UnknownPull",
    "UnknownStudy",
    "Verdict",
    "__version__",
    "anytime_evt",
    "ap_evt",
    "ap_evt_pf",
    "apt",
    "balanced",
    "create_study",
    "evt",
    "evt_pf",
    "lsa",
    "open_study",
    "run",
    "uniform",
]
