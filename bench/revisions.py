"""Revisions: what an edit evaluates again, and false answers of people who choose their edits by the results."""

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import thresher
from thresher.core import revisions
from thresher.core.verdict import Verdict
from thresher.log.store import MemoryStore
from thresher.study import Study, peek_study

from .report import Figure

BAR, JUST_BELOW = 0.5, 0.49
Means = Mapping[str, float]


class Editing:
    """A study, its revisions, and whether any answer of any of them was wrong."""

    def __init__(self, seed: int, risk: float) -> None:
        self.chance, self.risk, self.store = random.Random(seed), risk, MemoryStore()
        self.study: Study
        self.was_wrong = False

    def ask(self, arms: Any, **question: Any) -> None:
        """Create the study, or make its next revision."""
        bar = {"at_least": question.pop("at_least", BAR), "confidence": 1.0 - self.risk}
        self.study = thresher.create_study(
            "edited", arms=arms, storage=self.store, if_exists="revise", **bar, **question
        )

    def pull(self, reward: Callable[[thresher.Pull], float], pulls: int) -> Verdict:
        """Make so many pulls."""
        for _ in range(pulls):
            pull = self.study.ask()
            if pull is None:
                break
            self.study.tell(pull, reward(pull))
        return self.study.verdict()

    def coin(self, means: Means, pull: thresher.Pull) -> float:
        """A reward of 0 or 1 with the arm's mean."""
        return float(self.chance.random() < means[pull.arm])

    def look(self, means: Means) -> None:
        """Note wrong answers: those beyond the tolerance."""
        verdict = self.study.verdict()
        low, high = verdict.edges
        for row in verdict:
            beyond = means[row.arm] < low - 1e-12 if row.reached else means[row.arm] >= high + 1e-12
            self.was_wrong = self.was_wrong or (row.certified and beyond)

    @property
    def promised(self) -> float:
        """At most with this probability, any answer of any revision is wrong."""
        lineage = peek_study(self.study, lambda ledger: ledger.lineage)
        return self.risk if lineage is None or lineage.risk is None else lineage.risk


def deletes_all_but_the_best(edit: Editing) -> None:
    means = dict.fromkeys((f"a{arm}" for arm in range(20)), JUST_BELOW)
    edit.ask(list(means))
    for _ in range(4):
        verdict = edit.pull(partial(edit.coin, means), 1200)
        edit.look(means)
        best = sorted(verdict, key=lambda row: -(row.mean or 0.0))[: max(1, len(verdict) // 4)]
        edit.ask([row.arm for row in best])


def touches_until_it_passes(edit: Editing) -> None:
    means = dict.fromkeys((f"a{arm}" for arm in range(4)), JUST_BELOW)
    versions = dict.fromkeys(means, 0)
    for _ in range(8):
        edit.ask({arm: {"version": version} for arm, version in versions.items()})
        verdict = edit.pull(partial(edit.coin, means), 400)
        edit.look(means)
        versions = {arm: version + (not verdict[arm].certified) for arm, version in versions.items()}


def mends_what_failed(edit: Editing) -> None:
    """Each edit of an arm mends cases that failed, and breaks as many that were not seen: the mean stays."""
    cases = [f"q{case}" for case in range(200)]
    failing = {f"a{arm}": set(edit.chance.sample(cases, 102)) for arm in range(6)}
    means, versions = dict.fromkeys(failing, JUST_BELOW), dict.fromkeys(failing, 0)
    for turn in range(6):
        edit.ask({arm: {"version": version} for arm, version in versions.items()}, cases=cases)
        edit.pull(lambda pull: float(pull.case not in failing[pull.arm]), 300 if turn < 5 else 2000)
        edit.look(means)
        for arm, fails in failing.items():
            rewards = {str(row.case): row.rewards[arm] for row in edit.study.cases() if arm in row.rewards}
            seen = sorted(case for case, reward in rewards.items() if reward == 0.0)
            unseen = sorted(set(cases) - fails - rewards.keys())
            count = min(len(seen), len(unseen), 10)
            versions[arm] += count > 0
            fails -= set(edit.chance.sample(seen, count))
            fails |= set(edit.chance.sample(unseen, count))


def moves_bar_and_tolerance(edit: Editing) -> None:
    means = {f"a{arm}": 0.3 + 0.04 * arm for arm in range(10)}
    bar, tolerance = BAR, 0.0
    for _ in range(6):
        edit.ask(list(means), at_least=bar, tolerance=tolerance)
        verdict = edit.pull(partial(edit.coin, means), 500)
        edit.look(means)
        undecided = [row.mean for row in verdict if not row.certified and row.mean is not None]
        if not undecided:
            break
        bar = min(0.9, max(0.1, round(edit.chance.choice(undecided) + edit.chance.choice((-0.05, 0.05)), 3)))
        tolerance = edit.chance.choice((0.0, 0.0, 0.01, 0.03))


def reverts_edits(edit: Editing) -> None:
    means = dict.fromkeys((f"a{arm}" for arm in range(4)), JUST_BELOW)
    versions = dict.fromkeys(means, 0)
    for _ in range(8):
        edit.ask({arm: {"version": version} for arm, version in versions.items()})
        verdict = edit.pull(partial(edit.coin, means), 400)
        edit.look(means)
        looks_bad = {row.arm for row in verdict if (row.mean or 0.0) < BAR}
        versions = {arm: 1 - version if arm in looks_bad else version for arm, version in versions.items()}


def replaces_and_reorders(edit: Editing) -> None:
    arms = [f"a{arm}" for arm in range(10)]
    named = 10
    for _ in range(6):
        edit.ask(arms)
        means = dict.fromkeys(arms, JUST_BELOW)
        verdict = edit.pull(partial(edit.coin, means), 700)
        edit.look(means)
        arms = [row.arm for row in verdict if (row.mean or 0.0) >= BAR]
        edit.chance.shuffle(arms)
        arms += [f"a{named + new}" for new in range(10 - len(arms))]
        named += 10


def looked_up(values: Mapping[str, Means], pull: thresher.Pull) -> float:
    """The reward of a case, from a table."""
    return values[str(pull.case)][pull.arm]


def changes_the_cases(edit: Editing) -> None:
    """Each edit removes the cases that were seen to be bad, and adds cases that are worse."""
    arms, count = [f"a{arm}" for arm in range(4)], 200
    values = {f"q{case}": {arm: float(edit.chance.random() < BAR) for arm in arms} for case in range(count)}
    for arm in arms:
        while sum(rewards[arm] for rewards in values.values()) > 98:
            values[edit.chance.choice(list(values))][arm] = 0.0
    for turn in range(6):
        edit.ask(arms, cases=list(values))
        edit.pull(partial(looked_up, values), 120 if turn < 5 else 3000)
        edit.look({arm: sum(rewards[arm] for rewards in values.values()) / len(values) for arm in arms})
        seen = sorted(edit.study.cases(), key=lambda row: sum(row.rewards.values()) - len(row.rewards))
        for row in seen[:20]:
            del values[str(row.case)]
        values |= {f"q{count + new}": dict.fromkeys(arms, 0.0) for new in range(20)}
        count += 20


def keeps_back_bad_batches(edit: Editing) -> None:
    """Batches are evaluated, and told only if they are good; else the list of cases is edited."""
    arms, cases = ["a0"], [f"q{case}" for case in range(300)]
    passing = set(edit.chance.sample(cases, 147))
    for turn in range(3):
        edit.ask(arms, cases=[*cases, f"x{turn}"])
        while pulls := edit.study.ask_many(8):
            rewards = [float(pull.case in passing) for pull in pulls]
            if sum(rewards) < 4:
                break
            for pull, reward in zip(pulls, rewards, strict=True):
                edit.study.tell(pull, reward)
        edit.look({"a0": 147 / 301})


ADVERSARIES: tuple[Callable[[Editing], None], ...] = (
    deletes_all_but_the_best,
    touches_until_it_passes,
    mends_what_failed,
    moves_bar_and_tolerance,
    reverts_edits,
    replaces_and_reorders,
    changes_the_cases,
    keeps_back_bad_batches,
)


def play(adversary: Callable[[Editing], None], risk: float, seed: int) -> tuple[bool, float]:
    """Whether one study had a wrong answer in any revision, and what was promised about that."""
    edit = Editing(seed, risk)
    adversary(edit)
    return edit.was_wrong, edit.promised


def shares(adversary: Callable[[Editing], None], risk: float, studies: int) -> tuple[float, float]:
    """The share of studies with a wrong answer, and the mean of what was promised."""
    results = [play(adversary, risk, seed) for seed in range(studies)]
    return sum(wrong for wrong, _ in results) / studies, sum(promised for _, promised in results) / studies


# -- what an edit costs ------------------------------------------------------------------------------------------------


def edited_cost(seed: int, *, translated: bool = True) -> tuple[int, int, int, int]:
    """Pulls of 12 arms on 300 cases; after one case was edited; after an arm was added: of the old arms, of the new."""
    sources = revisions.revision_sources
    if not translated:
        revisions.revision_sources = lambda *given: [
            source._replace(translated=None, values={}) for source in sources(*given)
        ]
    try:
        return _edited_cost(seed)
    finally:
        revisions.revision_sources = sources


def _edited_cost(seed: int) -> tuple[int, int, int, int]:
    chance, store = random.Random(seed), MemoryStore()
    rates = {f"p{arm}": chance.uniform(0.7, 0.99) for arm in range(12)}
    cases: dict[str, dict[str, int]] = {f"q{case}": {} for case in range(300)}

    def reward(pull: thresher.Pull) -> float:
        key = f"{seed} {pull.arm} {pull.case} {dict(pull.case_params)}"
        return float(random.Random(key).random() < rates[pull.arm])

    def evaluate() -> int:
        study = thresher.create_study(
            "edited", arms=list(rates), cases=cases, at_least=0.9, storage=store, if_exists="revise", seed=seed
        )
        pulls = 0
        while pull := study.ask():
            study.tell(pull, reward(pull))
            pulls += 1
        return pulls

    first = evaluate()
    cases["q17"] = {"version": 2}
    edited = evaluate()
    rates["new"] = 0.93
    added = evaluate()
    own = thresher.open_study("edited", storage=store).verdict()["new"].seen
    return first, edited, added - own, own


def costs() -> Iterator[Figure]:
    """Means over 12 seeds."""
    for translated in (True, False):
        results = [edited_cost(seed, translated=translated) for seed in range(12)]
        first, edited, old, _ = (sum(column) / len(results) for column in zip(*results, strict=True))
        how = "with translation" if translated else "without translation"
        bar = (60.0, 20.0) if translated else (first, first)
        yield Figure(f"12 arms, 300 cases, one edited: pulls, {how}", edited, "", bar[0], at_most=True)
        yield Figure(f"an arm added: pulls of the old ones, {how}", old, "", bar[1], at_most=True)


def figures() -> Iterator[Figure]:
    yield from costs()
    jobs = [(adversary, risk, studies) for risk, studies in ((0.05, 150), (0.005, 500)) for adversary in ADVERSARIES]
    with ProcessPoolExecutor() as pool:
        results = pool.map(shares, *zip(*jobs, strict=True))
        for (adversary, risk, studies), (wrong, promised) in zip(jobs, results, strict=True):
            name = adversary.__name__.replace("_", " ")
            what = f"{name}, risk {risk:g}: wrong in any revision (promised: {promised:.3f}; {studies} studies)"
            yield Figure(what, wrong, "", promised + 3.0 * (promised / studies) ** 0.5, at_most=True)


if __name__ == "__main__":
    sys.stdout.writelines(f"{figure}\n" for figure in figures())
