"""inspect_ai tasks that need no network: a model that knows a share of the answers.

inspect_ai takes seconds to import, so nothing here does before it is needed.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspect_ai import Task
    from inspect_ai.dataset import Sample
    from inspect_ai.model import Model, ModelOutput

Act = Callable[[int], None]  # called with a sample's number; an exception is the model's error


def knows(number: int, rate: float) -> bool:
    """Whether the model is right on this sample: on a share of ``rate`` of every hundred samples."""
    return number * 37 % 100 < rate * 100


def model(rate: float, calls: list[int], act: Act | None = None) -> "Model":
    """A model that is right on a share of the samples, and counts its calls."""
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def answer(messages: list[Any], *_: Any) -> "ModelOutput":
        number = int(messages[-1].text)
        calls.append(number)
        if act is not None:
            act(number)
        output = ModelOutput.from_content("mockllm", "yes" if knows(number, rate) else "no")
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    return get_model("mockllm/model", custom_outputs=answer, memoize=False)


def samples(count: int, *, ids: bool = True) -> "list[Sample]":
    from inspect_ai.dataset import Sample

    return [Sample(id=f"q{at}" if ids else None, input=str(at), target="yes") for at in range(count)]


def task(
    name: str,
    rate: float,
    calls: list[int],
    *,
    count: int = 40,
    act: Act | None = None,
    shuffled: int | None = None,
    scorers: Sequence[str] = ("match",),
    **more: Any,
) -> "Task":
    """A task of that many samples; ``shuffled`` is the seed of a shuffle."""
    from inspect_ai import Task, scorer
    from inspect_ai.dataset import MemoryDataset
    from inspect_ai.solver import generate

    dataset = MemoryDataset(samples(count))
    if shuffled is not None:
        dataset.shuffle(shuffled)
    return Task(
        dataset=dataset,
        solver=generate(),
        scorer=[getattr(scorer, name)() for name in scorers],
        name=name,
        model=model(rate, calls, act),
        **more,
    )
