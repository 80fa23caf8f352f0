"""Warnings about a run that looks wrong although nothing failed. Each is said once."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..core.events import LATE, TOLD
from ..core.ledger import Ledger
from ..core.spec import Params
from ..errors import shown
from ..run.command.process import PLACEHOLDER
from ..run.progress import Progress
from ..study import Study, look
from ..text.logs import log
from ..text.plural import plural

ENOUGH = 20  # rewards after which a pattern is not likely to be chance
WIDE = 10.0  # bounds this many times wider than needed cost a large multiple of the pulls
LARGEST = 1_000_000  # bytes of a script that is searched for THRESHER_ARM


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


def command_caution(argv: Sequence[str], arms: Mapping[str, Params]) -> str | None:
    """A warning if the command seems to do the same for every arm."""
    used = {found[1] for part in argv for found in PLACEHOLDER.finditer(part) if found[1]}
    if len(arms) == 1 or used - {"seed", "number", "pull"} or any(_reads_the_arm(word) for word in argv):
        return None
    return (
        "the command has no {arm}, so it runs the same for every arm unless it reads THRESHER_ARM; "
        "add {arm} where the command takes the arm's name"
    )


def _reads_the_arm(word: str) -> bool:
    """Whether a word of the command, or the script that it names, mentions THRESHER_ARM."""
    if "THRESHER_ARM" in word:
        return True
    try:
        file = Path(word)
        return file.is_file() and file.stat().st_size <= LARGEST and b"THRESHER_ARM" in file.read_bytes()
    except (OSError, ValueError):
        return False


class Cautions:
    """Watches a run. Looks at the rewards when there are enough of them, and again at the end."""

    def __init__(self, study: Study) -> None:
        self._study, self._said = study, set[str]()
        self._looked = False

    def __call__(self, progress: Progress) -> None:
        """Look, the first time there are enough rewards."""
        if progress.told >= ENOUGH and not self._looked:
            self._looked = True
            self._say(dict(look(self._study, lambda ledger: list(rewards_cautions(ledger)))))

    def at_the_end(self) -> None:
        """Look at all rewards and labels."""
        self._say(dict(look(self._study, lambda ledger: [*rewards_cautions(ledger), *labels_cautions(ledger)])))

    def _say(self, found: dict[str, str]) -> None:
        for kind, text in found.items():
            if kind not in self._said:
                self._said.add(kind)
                log.warning(f"warning: {text}")


def rewards_cautions(ledger: Ledger) -> Iterator[tuple[str, str]]:
    """What is odd about the rewards so far: its kind, and the warning."""
    rewards = _rewards(ledger)
    if len(rewards) >= ENOUGH and min(rewards) == max(rewards):
        same = f"all {len(rewards):,} rewards are {rewards[0]:g}"
        yield "same", f"{same}; check that each evaluation depends on its arm and seed"
    if ledger.spec.clip and ledger.spec.bounds:
        low, high = ledger.spec.bounds
        outside = sum(not low <= reward <= high for reward in rewards)
        if outside == len(rewards) > 1:
            changed = f"--clip changed all {outside:,} rewards ({min(rewards):g} to {max(rewards):g})"
            why = f"because they lie outside the bounds ({low:g}, {high:g})"
            yield "clip", f"{changed}, {why}; give the --bounds that rewards really have"


def labels_cautions(ledger: Ledger) -> Iterator[tuple[str, str]]:
    """What is odd about the labels at the end: its kind, and the warning."""
    spec, rewards = ledger.spec, _rewards(ledger)
    if not ledger.certifies or spec.bounds is None:
        return
    low, high = spec.bounds
    if spec.tolerance >= max(spec.threshold - low, high - spec.threshold):
        covers = f"a tolerance of {spec.tolerance:g} covers all of the bounds ({low:g}, {high:g})"
        yield "tolerance", f"{covers}, so every arm is close; give a smaller --tolerance"
    if len(rewards) < ENOUGH:
        return
    least, most = min(*rewards, spec.threshold), max(*rewards, spec.threshold)
    is_open = ledger.certified + len(ledger.retired) < len(spec.arms)
    if is_open and low <= least < most <= high and high - low > WIDE * (most - least):
        lie = f"all {plural(len(rewards), 'reward')} lie from {min(rewards):g} to {max(rewards):g}"
        remedy = "if rewards can never leave a narrower range, give it as --bounds"
        gain = "arms are then settled with far fewer pulls"
        yield "bounds", f"{lie}, far inside the bounds ({low:g}, {high:g}); {remedy}: {gain}"


def _rewards(ledger: Ledger) -> list[float]:
    """The rewards that were told, as they came."""
    pairs = zip(ledger.pull_state, ledger.pull_reward, strict=True)
    return [reward for state, reward in pairs if state in (TOLD, LATE)]
