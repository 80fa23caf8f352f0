"""What cases save: pulls until everything is settled, next to a run of every case of every arm."""

from dataclasses import dataclass

import numpy as np

from .crossing import RANGE
from .result import Result
from .settled import known, standard_error

SAVING = 0.05  # less than this is not worth the trouble


@dataclass(frozen=True)
class FullRun:
    """The pulls of a full run, and those that settle every arm: their mean, and a range for nine of ten studies."""

    pulls: int
    needed: float
    needed_se: float | None
    low: int
    high: int

    @property
    def share(self) -> float:
        """What is needed of a full run."""
        return self.needed / self.pulls

    @property
    def saves(self) -> bool:
        """Whether it is worth running less than everything."""
        return self.share <= 1.0 - SAVING

    def sentence(self) -> str:
        """For people.

        >>> print(FullRun(20_000, 8_700.0, 12.0, 7_900, 9_600).sentence())
        A full run takes 20,000 pulls and is exact. thresher settles every arm after about 8,700 (44 %), in nine of \
ten studies after 7,900 to 9,600.
        >>> print(FullRun(40, 39.2, 0.1, 38, 40).sentence())
        A full run takes 40 pulls and is exact. thresher would save less than 5 % of them: run every case of every arm.
        """
        full = f"A full run takes {self.pulls:,} pulls and is exact."
        if not self.saves:
            return f"{full} thresher would save less than {100 * SAVING:g} % of them: run every case of every arm."
        about = float(f"{self.needed:.3g}")
        return (
            f"{full} thresher settles every arm after about {about:,.0f} ({100 * self.share:.0f} %), "
            f"in nine of ten studies after {self.low:,} to {self.high:,}."
        )

    def to_json(self) -> dict[str, float | int | bool | None]:
        """The same for programs."""
        return {**vars(self), "share": self.share, "saves": self.saves}


def full_run_of(result: Result) -> FullRun:
    """What a plan with cases found."""
    used = result.measures.used[:, 0]
    low, high = np.quantile(used, RANGE, method="inverted_cdf")
    error = known(standard_error(result.measures.used)[0])
    return FullRun(result.setup.arms * result.setup.cases, float(used.mean()), error, int(low), int(high))
