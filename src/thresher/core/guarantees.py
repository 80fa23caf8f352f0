"""What may be relied on, in a sentence with its assumptions, and what else a reader must know."""

from typing import NamedTuple

from ..errors import shown
from ..text.phrasing import MOST_NAMED, listed, plural
from ..text.quantities import number, percent
from .ledger import Ledger
from .wording import look_of

SIDE = "a label only says on which side of the bar the {} is"


class Words(NamedTuple):
    """What the readers of a guarantee call things."""

    arms: str = "arms"
    rewards: str = "an arm's rewards"


USUAL = Words()


def guarantee(ledger: Ledger, words: Words = USUAL) -> str:
    """What may be relied on, in one sentence with its assumptions."""
    spec = ledger.spec
    if spec.confidence is None:
        lacking = "a confidence" if spec.limits else "bounds (--bounds none), which certificates need"
        return f"Nothing is certified: the study was created without {lacking}; {SIDE.format('mean')}."
    assumed = _assumed(ledger, words.rewards)
    if isinstance(spec.failure, float):
        assumed += f", a failed evaluation counting as {number(spec.failure, exact=True)}"
    if spec.failure == "ignore":
        assumed += ", and whether a pull is lost does not depend on its reward"
    caveats = _caveats(ledger)
    settled = ledger.certified
    risk = percent(round(1 - spec.confidence, 12), exact=True)
    if ledger.cases:
        size = ledger.cases.count
        which = "this one case" if size == 1 else f"these {size:,} cases"
        what = "mean over exactly" if spec.baseline is None else "difference from the baseline on exactly"
        caveats = f" The labels are about the {what} {which}.{caveats}"
    share = f"{risk} are wrong on average"
    if settled == 0:
        rest = f"at most {risk} of studies contain a wrong one"
        if spec.guarantee == "rate":
            rest = f"at most {share}, in each list"
        once = f"Once labels are certified, {rest}, provided that {assumed}."
        if ledger.base in ledger.outside:
            return f"Nothing is certified: a reward of the baseline lay outside the bounds.{caveats}"
        return f"Nothing is certified yet: {SIDE.format(look_of(spec).asks)}. {once}{caveats}"
    if spec.guarantee == "rate":
        close = " or close" if spec.tolerance else ""
        one, two = ("below", "above") if spec.lower_is_better else ("above", "below")
        lists = f"Of the {words.arms} certified {one}, at most {share}, and likewise of those certified {two}{close}"
        return f"{lists}, whenever you stop, provided that {assumed}.{caveats}"
    count = {1: "the certified label is", 2: "both certified labels are"}.get(settled)
    labels = f"{count or f'all {settled:,} certified labels are'} right"
    sure = number(spec.confidence, exact=True)
    return f"With probability at least {sure} {labels}, whenever you stop, provided that {assumed}.{caveats}"


def _assumed(ledger: Ledger, rewards: str) -> str:
    """What the certificates rest on."""
    spec = ledger.spec
    within = ""
    if spec.bounds is not None:
        low, high = spec.bounds
        between = f"between {number(low, exact=True)} and {number(high, exact=True)}"
        within = f"counted as the nearest number {between}" if spec.clip else between
    if ledger.cases:
        rest = f" and is {within}" if within else ""
        return f"a case's reward does not depend on when or how often it is tried{rest}"
    if spec.pairs:
        rest = f" and rewards are {within}" if within else ""
        return f"the pairs of an arm are independent and identically distributed{rest}"
    if not within:
        return f"{rewards} are independent and identically distributed"
    return f"{rewards} are independent, identically distributed and {within}"


def named(ledger: Ledger, arms: list[int]) -> str:
    """The first few arms by name, and how many more there are."""
    return listed([ledger.spec.arms[arm] for arm in arms], show=shown)


def _caveats(ledger: Ledger) -> str:
    """What else a reader of the guarantee must know, each in a sentence."""
    found = []
    if ledger.repeatable:
        found.append(
            "Some evaluations were, or may have been, repeated: what is certified is the mean of what the evaluator"
            " finally returns."
        )
    if ledger.hosted:
        found.append("It also assumes that the host which chose the order of the cases had shuffled them.")
    if ledger.outside:
        names = named(ledger, sorted(ledger.outside))
        found.append(f"Not certified, because a reward lay outside the bounds: {names}.")
    if len(ledger.evaluators) > 1:
        commands = "; ".join(shown(text, 200) for text in ledger.evaluators[:MOST_NAMED])
        accepted = f"{len(ledger.evaluators)} evaluators that were accepted as equivalent"
        found.append(f"The rewards were measured by {accepted}: {commands}.")
    if ledger.vouched:
        them = "this makes" if len(ledger.vouched) == 1 else "these changes make"
        names = listed(ledger.vouched, show=shown)
        found.append(f"After rewards were measured, {names} changed; somebody vouched that {them} no difference.")
    if ledger.imported:
        they, were = ("it", "was") if ledger.imported == 1 else ("they", "were")
        unknown = f"when, by what and how often {they} {were} evaluated"
        found.append(f"{plural(ledger.imported, 'pull')} {were} imported; this log does not record {unknown}.")
    lacking = [arm for arm in range(len(ledger.spec.arms)) if ledger.cases and ledger.cases.missing[arm]]
    if ledger.cases and lacking:
        count = sum(ledger.cases.missing[arm] for arm in lacking)
        tried = f"{plural(count, 'case')} of {named(ledger, lacking)} failed {plural(ledger.spec.tries, 'time')}"
        they = "it has no reward, and counts" if count == 1 else "they have no reward, and count"
        found.append(f"{tried}: {they} as the worst.")
    if ledger.lacking:
        them = "which counts" if ledger.lacking == 1 else "which count"
        found.append(
            f"The baseline has no reward for {plural(ledger.lacking, 'case')}, {them} as the worst for every arm."
        )
    if ledger.unweighed:
        found.append("Imported results are weighed all together when the first pull is asked for.")
    return "".join(f" {sentence}" for sentence in found)
