"""thresher finds which of K noisy options clear a bar, with as few evaluations as possible."""

from ._version import __version__
from .errors import (
    AlreadyTold,
    Busy,
    CannotGoOn,
    InvalidInput,
    StoreFailed,
    StudyExists,
    ThresherError,
    UnknownPull,
    UnknownStudy,
)
from .events import Event
from .opening import create_study, open_study
from .policies import Policy, anytime_evt, ap_evt, ap_evt_pf, apt, balanced, evt, evt_pf, lsa, uniform
from .progress import Progress
from .runner import run
from .study import Pull, Study
from .verdict import Row, Verdict

__all__ = [
    "AlreadyTold",
    "Busy",
    "CannotGoOn",
    "Event",
    "InvalidInput",
    "Policy",
    "Progress",
    "Pull",
    "Row",
    "StoreFailed",
    "Study",
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
