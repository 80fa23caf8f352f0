"""What simpler plans would have cost, from the rewards and the times that were measured."""

from itertools import chain

from ..core.sentences import duration
from ..study import Study, look


def comparison(study: Study, took: float) -> str:
    """What equal allocation costs for the same certainty, from the rewards and the times that were just measured."""
    begun: dict[int, float] = {}
    seconds = [0.0] * len(study.spec.arms)
    for event in chain.from_iterable(study.pages()):
        if event.kind == "asked":
            begun[event.pull or 0] = event.time or 0.0
        elif event.kind == "told":
            seconds[event.arm or 0] += (event.time or 0.0) - begun.pop(event.pull or 0)
    rows, needed = study.verdict().rows, look(study, lambda ledger: list(ledger.docket.committed))
    most, arms, spent = max(needed), len(rows), sum(seconds)
    each = [taken / row.seen for taken, row in zip(seconds, rows, strict=True)]
    equally, skipping = (
        most * sum(each) / spent * took,
        sum(n * t for n, t in zip(needed, each, strict=True)) / spent * took,
    )
    equal = f"{arms * most:,} pulls, {duration(equally)} at the times measured here, {equally / took:.1f} times as long"
    return (
        f"{study.verdict().issued:,} pulls in {duration(took)}. The hardest arm needed {most} rewards to be settled; "
        f"equal allocation gives every arm as many: {equal}. Uniform that skips settled arms: {sum(needed):,} pulls, "
        f"{duration(skipping)}"
    )
