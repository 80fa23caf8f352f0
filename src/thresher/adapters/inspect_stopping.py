"""The EarlyStopping object of inspect_ai: asks an arm's gate about each sample, and tells it the scores."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from ..errors import InvalidInput
from ..study import Study
from .host_gate import Gate
from .inspect_scores import Value, reward_of, scorer_of

if TYPE_CHECKING:
    from inspect_ai.dataset import Sample
    from inspect_ai.log import EvalSpec
    from inspect_ai.scorer import SampleScore
    from inspect_ai.solver import TaskState
    from inspect_ai.util import EarlyStop

Answer = TypeVar("Answer")
NUMBERED = 5  # a shuffled list of more samples than this is not in order by chance
_last: "WeakKeyDictionary[Study, dict[str, Stopping]]" = WeakKeyDictionary()  # the last one that started, by arm


class Stopping:
    """Stops a task's samples as soon as its arm of a study is settled: an ``EarlyStopping`` of inspect_ai.

    `stopping` makes one. ``close()``, or the end of a ``with`` block, drops the pulls that an eval left pending when it
    was cancelled or ended with an error. An eval that finishes leaves none.
    """

    def __init__(self, study: Study, arm: str, *, scorer: str | None, value: Value | None, shuffled: bool) -> None:
        self.gate = Gate(study, arm)
        self.error: BaseException | None = None  # the first one, which inspect_ai only logs
        self._study, self._arm, self._wanted, self._value = study, arm, scorer, value
        self._scorer = scorer or ""
        self._tolerant = False  # whether the task goes on after an error
        self._shuffled = shuffled  # by the study itself, not by the host

    async def start_task(self, task: "EvalSpec", samples: "list[Sample]", epochs: int) -> str:
        """Called by inspect_ai when the task begins."""
        return await self._call(lambda: self._start(task, [sample.id for sample in samples], epochs))

    async def schedule_sample(self, id: str | int, epoch: int) -> "EarlyStop | None":  # noqa: A002 - their name
        """Called by inspect_ai when a sample is about to run."""
        from inspect_ai.util import EarlyStop

        reason = await self._call(lambda: self.gate.begin(self._study.spec.case(id)))
        return None if reason is None else EarlyStop(id=id, epoch=epoch, reason=reason)

    async def complete_sample(self, id: str | int, epoch: int, scores: "dict[str, SampleScore]") -> None:  # noqa: A002
        """Called by inspect_ai when a sample has its scores."""
        await self._call(lambda: self._tell(self._study.spec.case(id), scores))

    async def complete_task(self) -> dict[str, Any]:
        """Called by inspect_ai when all samples of the task have ended."""
        await self._call(lambda: self.gate.end(finished=True))
        row = self._study.verdict()[self._arm]
        return {"study": self._study.name, "arm": self._arm, "label": row.label, "certified": row.certified}

    def cleanup(
        self, theirs: "Callable[[TaskState], Awaitable[None]] | None"
    ) -> "Callable[[TaskState], Awaitable[None]]":
        """For `Task(cleanup=…)`: nothing else tells us about a sample whose error is tolerated."""

        async def clean(state: "TaskState") -> None:
            if self._tolerant and self._scorer not in (state.scores or {}):
                self.gate.ended(self._study.spec.case(state.sample_id))
            if theirs is not None:
                await theirs(state)

        return clean

    def close(self) -> None:
        """Drop all pending pulls. Samples that began and have no score are lost; the others never began."""
        self.gate.end(finished=False)

    def __enter__(self) -> "Stopping":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, task: "EvalSpec", ids: list[Any], epochs: int) -> str:
        self.gate.end(finished=False)  # what an earlier attempt of the task left
        if (earlier := _last.setdefault(self._study, {}).get(self._arm)) not in (None, self):
            earlier.close()
        _last[self._study][self._arm] = self
        check_eval(epochs, task.config.log_samples, task.config.sample_id)
        self._tolerant = task.config.fail_on_error not in (None, True) or task.config.continue_on_fail is True
        self._scorer = scorer_of([each.name for each in task.scorers or []], self._wanted)
        cases = [self._case(each) for each in ids]
        if not self._shuffled:
            self._check_shuffled(task, ids)
            self.gate.follow(cases)
        return "thresher"

    def _check_shuffled(self, task: "EvalSpec", ids: list[Any]) -> None:
        """Whatever was seen before, each remaining sample must be equally likely to be next."""
        name, count = task.dataset.name or task.task, self._study.spec.case_count
        if not task.dataset.shuffled:
            rule = "is not shuffled, and the first samples need not be like the others"
            raise InvalidInput("dataset", name, rule, "pass sample_shuffle=True to eval, or use sift")
        if task.dataset.samples != count:
            rule = f"has {task.dataset.samples} samples, and the study {count} cases"
            raise InvalidInput("dataset", name, rule, "they must be the same; limit= of eval is fine")
        if len(ids) > NUMBERED and [str(each) for each in ids] == [str(at + 1) for at in range(len(ids))]:
            rule = "is in order, so its samples were numbered after it was shuffled, in another way each time"
            raise InvalidInput("dataset", name, rule, "give the samples ids")

    def _case(self, sample: Any) -> int:
        try:
            return self._study.spec.case(sample)
        except InvalidInput as error:
            raise InvalidInput("sample", sample, "is not a case of the study", error.remedy) from None

    def _tell(self, case: int, scores: "dict[str, SampleScore]") -> None:
        try:
            reward = reward_of(scores, self._scorer, self._value)
        except BaseException:
            self.gate.fail(case, "its score could not be read")
            raise
        if reward is None:
            self.gate.fail(case, f"no score of {self._scorer}")
        else:
            self.gate.tell(case, reward)

    async def _call(self, act: Callable[[], Answer]) -> Answer:
        """Act, on a thread if the store may block, and remember the first error."""
        import anyio

        try:
            return await anyio.to_thread.run_sync(act) if self._study.store.leased else act()
        except Exception as error:
            self.error = self.error or error
            raise


def check_eval(epochs: Any, log_samples: bool | None = None, sample_id: object = None) -> None:
    """Refuse options of an eval that no study of its samples can be run with."""
    if (getattr(epochs, "epochs", epochs) or 1) > 1:
        raise InvalidInput("epochs", epochs, "each sample is a case, and a case counts once", "run one epoch")
    if log_samples is False:
        raise InvalidInput("log_samples", False, "inspect_ai stops no sample early without them", "leave it out")
    if sample_id is not None:
        rule = "samples chosen by hand need not be like the others"
        raise InvalidInput("sample_id", sample_id, rule, "leave it out; limit= is fine")
