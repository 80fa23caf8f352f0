"""Lost workers: which arm's pull killed one, and how long there has been none."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..errors import CannotGoOn
from ..study import Pull
from ..text.logs import log

WARN_AFTER = 10.0  # seconds without a worker after which a warning is logged


@dataclass
class Suspects:
    """Finds the arm whose pulls kill workers that others share.

    When several pulls die together, any of their arms may be to blame. From then on only one pull of a suspected arm is
    pending at a time, until a reward clears the arm. The next time that pulls die together, that arm is to blame.
    """

    arms: set[str] = field(default_factory=set)  # a reward takes its arm out
    _judged: dict[tuple[int, ...], str | None] = field(default_factory=dict)  # by pulls that died together: whose fault

    def judge(self, pull: Pull, together: Sequence[Pull]) -> str:
        """Why to drop a pull that died together with others: ``"failed"`` for one pull of the arm to blame."""
        if len(together) == 1:
            return "failed"
        group = tuple(lost.id for lost in together)
        if group not in self._judged:
            arms = {lost.arm for lost in together}
            known = arms if len(arms) == 1 else arms & self.arms
            self._judged[group] = next(iter(known)) if len(known) == 1 else None
            self.arms |= arms
        arm = next((lost.arm for lost in together if lost.id == pull.id), pull.arm)  # of a pair, the side that died
        if self._judged[group] != arm:
            return "broken-pool"
        self._judged[group] = None
        return "failed"


@dataclass
class NoWorkers:
    """A time without any worker: it is logged, and after ``give_up`` seconds it ends the run."""

    sought: str  # what is missing
    give_up: float  # seconds
    since: float | None = None
    _is_said: bool = False

    def is_over(self, workers: int, now: float) -> bool:
        """Whether there are workers. Raises `CannotGoOn` if there were none for too long."""
        if workers > 0:
            self.since = None
            return True
        if self.since is None:
            self.since, self._is_said = now, False
        if now - self.since >= WARN_AFTER and not self._is_said:
            self._is_said = True
            log.warning(f"there is no {self.sought}: waiting for one")
        if now - self.since >= self.give_up:
            rule = f"there was no {self.sought} for {self.give_up:g} s"
            raise CannotGoOn("run", rule=rule, remedy="start some and run again")
        return False
