"""Warnings about a run that looks wrong although nothing failed. Each is said once."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ..core.events import LATE, TOLD
from ..core.ledger import Ledger
from ..core.sentences import look_of
from ..core.spec import Params
from ..errors import shown
from ..run.command.process import CASE
from ..run.runner import Progress
from ..study import Study, peek
from ..text.logs import log
from ..text.phrasing import plural
from ..text.quantities import percent
from .run_checks import placeholders

ENOUGH = 20  # rewards after which a pattern is not likely to be chance
WIDE = 10.0  # bounds this many times wider than needed cost a large multiple of the pulls
LARGEST = 1_000_000  # bytes of a script that is searched for THRESHER_ARM and THRESHER_CASE


def arms_caution(names: Sequence[str]) -> str | None:
    """A warning if the only arm looks like several arms, or like a file of arms."""
    if len(names) != 1:
        return None
    (name,) = names
    parts = [part.strip() for part in name.split(",")]
    if len(parts) > 1 and all(parts):
        return f"--arm {shown(name)} is one arm; for {len(parts)} arms write --arm {' --arm '.join(parts)}"
    if name.endswith((".txt", ".csv", ".json")) and Path(name).is_file():
        return f"--arm {shown(name)} is one arm; to read the arms from that file write --arms {name}"
    return None


def command_cautions(argv: Sequence[str], arms: Mapping[str, Params], *, cases: bool = False) -> Iterator[str]:
    """Warnings if the command seems to do the same for every arm, or for every case."""
    used = placeholders(*argv)
    of_case = {name for name in used if cases and name.split(".")[0] == CASE}
    if len(arms) > 1 and not used - of_case - {"seed", "number", "pull"} and not _reads("THRESHER_ARM", argv):
        yield (
            "the command has no {arm}, so it runs the same for every arm unless it reads THRESHER_ARM; "
            "add {arm} where the command takes the arm's name"
        )
    if cases and not of_case and not _reads("THRESHER_CASE", argv):
        yield (
            "the command has no {case}, so it runs the same for every case unless it reads THRESHER_CASE; "
            "add {case} where the command takes the case's name"
        )


def _reads(variable: str, argv: Sequence[str]) -> bool:
    """Whether a word of the command, or a script that one names, mentions the variable."""
    return any(variable in word or _mentions(word, variable.encode()) for word in argv)


def _mentions(word: str, variable: bytes) -> bool:
    try:
        file = Path(word)
        return file.is_file() and file.stat().st_size <= LARGEST and variable in file.read_bytes()
    except (OSError, ValueError):
        return False


class Cautions:
    """Watches a run. Looks at the rewards when there are enough of them, and again at the end.

    If the rewards are times that are ``measured`` on this machine, it also looks at how busy the machine is.
    """

    def __init__(self, study: Study, *, measured: bool = False, workers: int = 0) -> None:
        self._study, self._said = study, set[str]()
        self._looked, self._measured = False, measured
        self._say(dict(busy_cautions(workers)) if measured else {})

    def __call__(self, progress: Progress) -> None:
        """Look at the machine, and the first time there are enough rewards, at these."""
        if self._measured:
            self._say(dict(busy_cautions()))
        if progress.told >= ENOUGH and not self._looked:
            self._looked = True
            self._say(dict(peek(self._study, lambda ledger: list(rewards_cautions(ledger)))))

    def at_the_end(self) -> None:
        """Look at all rewards and labels."""
        self._say(dict(peek(self._study, lambda ledger: [*rewards_cautions(ledger), *labels_cautions(ledger)])))

    def _say(self, found: dict[str, str]) -> None:
        for kind, text in found.items():
            if kind not in self._said:
                self._said.add(kind)
                log.warning(f"warning: {text}")


def rewards_cautions(ledger: Ledger) -> Iterator[tuple[str, str]]:
    """What is odd about the rewards so far: its kind, and the warning."""
    rewards, asked = _rewards(ledger), look_of(ledger.spec)
    if len(rewards) >= ENOUGH and min(rewards) == max(rewards):
        same = f"all {len(rewards):,} rewards are {asked.amount(rewards[0])}"
        other = "seed" if ledger.spec.cases is None else "case"
        yield "same", f"{same}; check that each evaluation depends on its arm and {other}"
    if ledger.spec.clip and ledger.spec.bounds:
        low, high = ledger.spec.bounds
        outside = sum(not low <= reward <= high for reward in rewards)
        if outside == len(rewards) > 1:
            ends = f"{asked.amount(min(rewards))} to {asked.amount(max(rewards))}"
            changed = f"--clip changed all {outside:,} rewards ({ends})"
            why = f"because they lie outside the bounds ({low:g}, {high:g})"
            yield "clip", f"{changed}, {why}; give the --bounds that rewards really have"


def busy_cautions(workers: int = 0) -> Iterator[tuple[str, str]]:
    """Whether more programs want to run than the machine has cores; ``workers`` of them have yet to start."""
    with suppress(OSError):
        load, cores = os.getloadavg()[0], os.cpu_count() or 1
        if load + workers > cores:
            more = f" and {plural(workers, 'more worker')}" if workers else ""
            busy = f"the machine is busy (a load of {load:.1f}{more} on {plural(cores, 'core')}), so times are longer"
            yield "busy", f"{busy}; run again when nothing else is running, or with fewer --workers"


def labels_cautions(ledger: Ledger) -> Iterator[tuple[str, str]]:
    """What is odd about the labels at the end: its kind, and the warning."""
    spec, asked = ledger.spec, look_of(ledger.spec)
    if not ledger.certifies or spec.limits is None:
        return
    low, high = spec.limits
    if spec.tolerance >= max(spec.bar - low, high - spec.bar):
        whole = {"mean": "of the bounds ({:g}, {:g})", "share": "shares", "difference": "differences ({:g}, {:g})"}
        covers = (
            f"covers all {whole[asked.asks].format(*(spec.bounds if asked.asks == 'mean' else None) or spec.limits)}"
        )
        size = percent(spec.tolerance) if asked.asks == "share" else asked.amount(spec.tolerance)
        yield "tolerance", f"a tolerance of {size} {covers}, so every arm is close; give a smaller --tolerance"
    yield from _wide_bounds(ledger)


def _wide_bounds(ledger: Ledger) -> Iterator[tuple[str, str]]:
    """Bounds that are far wider than the rewards, and the bar if they are compared with one.

    Rewards that are all equal, or near a bound, say nothing: whoever passes every test so far may fail the next.
    """
    spec, rewards, asked = ledger.spec, _rewards(ledger), look_of(ledger.spec)
    if len(rewards) < ENOUGH or spec.bounds is None:
        return
    (low, high), bars = spec.bounds, [spec.stated_bar] if spec.baseline is None else []
    least, most = min(rewards + bars), max(rewards + bars)
    is_open = ledger.certified + len(ledger.retired) < spec.contenders
    is_wide, apart = high - low > WIDE * (most - least), (high - low) / WIDE
    if is_open and is_wide and low + apart < min(rewards) < max(rewards) < high - apart:
        ends = f"{asked.amount(min(rewards))} to {asked.amount(max(rewards))}"
        lie = f"all {plural(len(rewards), 'reward')} so far lie from {ends}, far inside the bounds ({low:g}, {high:g})"
        rule = "narrower --bounds would settle arms with fewer pulls, but rewards so far do not show what can come"
        yield "bounds", f"{lie}; {rule}: give them only if it is impossible that a reward ever leaves them"


def _rewards(ledger: Ledger) -> list[float]:
    """The rewards that were told, as they came, of pairs both."""
    told = [pull for pull, state in enumerate(ledger.pull_state) if state in (TOLD, LATE)]
    rewards = [ledger.pull_reward[pull] for pull in told]
    return rewards + [ledger.pull_other[pull] for pull in told] if ledger.spec.pairs else rewards
