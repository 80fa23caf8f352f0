"""Checks of a run: errors before the first pull, and warnings about a run that looks wrong."""

import math
import os
import re
import resource
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ..core.events import LATE, TOLD
from ..core.named_items import Params
from ..core.sentences import sentence_wording
from ..core.state import State
from ..errors import InvalidInput, shown
from ..run.command.process import CASE, PLACEHOLDER, PULL_FIELDS, fill_command_template, process_pull_values
from ..run.command.reward import FAILING, MEASURED, PASSING, codes_text
from ..run.engines.resources import read_resources
from ..run.loop import Progress
from ..study import Pull, Study, peek_study
from ..text.logs import log
from ..text.phrasing import plural
from ..text.quantities import SCALES

Cases = int | list[str] | dict[str, Params]


def check_run_start(argv: Sequence[str], *, needs_arms: bool) -> None:
    """Raise if COMMAND begins with a word that was meant for thresher: the unit of ``50 ms``, or a name."""
    if not argv or shutil.which(argv[0]) is not None:
        return
    if argv[0] in SCALES:
        rule = "is read as COMMAND, because a space separates it from its number"
        raise InvalidInput("unit", argv[0], rule, f"write the two as one word, such as 50{argv[0]}")
    if needs_arms and "{" not in argv[0] and any(word.partition("=")[0] in ("--arms", "--arm") for word in argv):
        rule = "is read as COMMAND, and all options after it as COMMAND's"
        remedy = f"if it names a study, write --study {argv[0]}, and put -- before COMMAND"
        raise InvalidInput("word", argv[0], rule, remedy)


def check_run_command(
    argv: Sequence[str], arms: Mapping[str, Params], cases: Cases | None = None, *, elsewhere: bool = False
) -> tuple[str, ...]:
    """The command. Raises unless every placeholder has a value for every arm and case, and the program exists.

    The program is not looked for if it runs ``elsewhere``, on a cluster.
    """
    _check_there_is_one(argv)
    names = checked_run_placeholders(*argv) - set(PULL_FIELDS)
    if cases is not None:
        names -= set(_filled_by_cases(names, arms, cases))
    for name in sorted(names):
        lacking = next((arm for arm, params in arms.items() if name not in params), None)
        if lacking is not None:
            fields = PULL_FIELDS if cases is None else (*PULL_FIELDS, CASE)
            rule, known = f"arm {shown(lacking)} has no such value", _listed([*fields, *arms[lacking]])
            if name.split(".")[0] == CASE:
                rule, known = "there are no cases", "give them with --cases"
            raise InvalidInput("placeholder", f"{{{name}}}", rule, known)
    for program in () if elsewhere else _programs(argv[0], arms):
        _check_exists(program, argv)
    return tuple(argv)


def checked_run_placeholders(*words: str) -> set[str]:
    """The names in braces in the words of a command.

    >>> checked_run_placeholders("./run.sh", "{arm}-{{1}}")
    {'arm'}
    """
    return {match[1] for word in words for match in PLACEHOLDER.finditer(word) if match[1]}


def check_run_program(argv: Sequence[str], *, elsewhere: bool = False) -> None:
    """Raise if there is no command, or, unless it runs ``elsewhere``, no such program."""
    _check_there_is_one(argv)
    if not elsewhere:
        _check_exists(argv[0], argv)


def _check_there_is_one(argv: Sequence[str]) -> None:
    if not argv:
        remedy = "put it after --, as in: thresher run … -- ./evaluate.sh {arm}"
        raise InvalidInput("command", rule="there is none", remedy=remedy)


def _check_exists(program: str, argv: Sequence[str]) -> None:
    if shutil.which(program) is None:
        exists = Path(program).exists()
        if exists and "/" not in program and shutil.which(f"./{program}"):
            raise InvalidInput("command", program, "is not in PATH", f"write ./{program}")
        rule = "is not an executable file" if exists else "was not found"
        raise InvalidInput("command", program, rule, f"try chmod +x {program}" if exists else _instead(argv))


def _filled_by_cases(names: set[str], arms: Mapping[str, Params], cases: Cases) -> Iterator[str]:
    """The placeholders that cases fill in. Raises if a case has no value for one."""
    clashing = next((arm for arm, params in arms.items() if CASE in params), None)
    if clashing is not None:
        rule = f"its parameter {CASE!r} has a name that thresher uses itself where there are cases"
        raise InvalidInput("arm", clashing, rule, "rename it")
    for name in names:
        prefix, _, key = name.partition(".")
        if prefix != CASE:
            continue
        if key and not isinstance(cases, dict):
            raise InvalidInput("placeholder", f"{{{name}}}", "cases have no parameters", _listed([CASE]))
        for case, params in cases.items() if key and isinstance(cases, dict) else ():
            if key not in params:
                known = _listed([CASE, *(f"{CASE}.{field}" for field in params)])
                raise InvalidInput("placeholder", f"{{{name}}}", f"case {shown(case)} has no such value", known)
        yield name


def _listed(names: Sequence[str]) -> str:
    return f"there are {', '.join(f'{{{name}}}' for name in names)}"


def _instead(argv: Sequence[str]) -> str:
    """The remedy if a program was not found. Perhaps it is a line for a shell."""
    words = argv[0].split()
    if set(argv[0]) & set("|&;<>$`*") or (words and "=" in words[0]):
        return f"commands run without a shell: write -- sh -c {shlex.quote(shlex.join(argv) if argv[1:] else argv[0])}"
    if len(words) > 1 and shutil.which(words[0]):
        return f"do not quote the whole command: write -- {' '.join([*words, *argv[1:]])}"
    return "check the spelling, or give its path"


def _programs(template: str, arms: Mapping[str, Params]) -> list[str]:
    """The programs that a template stands for; none if it depends on more than the arm, such as the case."""
    names = checked_run_placeholders(template)
    if not names:
        return [fill_command_template(template, {})]
    by_arm = [process_pull_values(Pull(0, arm, 0, params, 0)) for arm, params in arms.items()]
    if names & {"seed", "number", "pull"} or not all(names <= values.keys() for values in by_arm):
        return []
    return [fill_command_template(template, values) for values in by_arm]


def check_run_reader(reward: str) -> str:
    """The value of ``--reward``. Raises if there is no such way to read a reward."""
    kind, _, rest = reward.partition(":")
    known = ("last-float", "exit-code", *MEASURED)
    if reward not in known and not (kind == "json" and rest):
        near = "write json:KEY" if kind == "json" else ""
        raise InvalidInput("--reward", reward, f"must be {', '.join(known)} or json:KEY", near)
    return reward


def check_run_exits(reward: str, passing: str | None, failing: str | None) -> tuple[frozenset[int], frozenset[int]]:
    """The exit codes that mean reward 1, and those that mean 0.

    >>> [sorted(codes) for codes in check_run_exits("exit-code", "0,5-7", None)]
    [[0, 5, 6, 7], [1]]
    """
    for option, text in (("--pass", passing), ("--fail", failing)):
        if text is not None and reward != "exit-code":
            rule = f"has no effect with --reward {reward}"
            raise InvalidInput(option, text, rule, "add --reward exit-code, or leave it out")
    passes = PASSING if passing is None else _codes("--pass", passing)
    fails = FAILING if failing is None else _codes("--fail", failing)
    if both := passes & fails:
        option, other = ("--fail", "--pass") if passing is None else ("--pass", "--fail")
        rule = f"{codes_text(both)} is in {other} {codes_text(fails if other == '--fail' else passes)} too"
        raise InvalidInput(
            option, failing if passing is None else passing, rule, "put each code into only one of the two"
        )
    return passes, fails


def _codes(option: str, text: str) -> frozenset[int]:
    """Exit codes written like 0,5-7."""
    codes: set[int] = set()
    for part in text.split(","):
        ends = re.fullmatch(r"\s*([0-9]{1,9})\s*(?:-\s*([0-9]{1,9})\s*)?", part)
        if ends is None:
            raise InvalidInput(option, text, "must be numbers or ranges", f"write them like {option} 0,5-7")
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if last > 255:
            remedy = f"write codes from 0 to 255, as in {option} 0,5-7"
            raise InvalidInput(option, text, f"{last} is not an exit code", remedy)
        if last < first:
            raise InvalidInput(option, text, f"{part.strip()} runs backwards", f"write {option} {last}-{first}")
        codes.update(range(first, last + 1))
    return frozenset(codes)


def check_run_resources(texts: Sequence[str]) -> dict[str, float] | None:
    """The resources of a pull, such as GPU=1, by name; None if there are none.

    >>> check_run_resources(["GPU=1", "licence=0.5"])
    {'GPU': 1.0, 'licence': 0.5}
    """
    amounts: dict[str, float] = {}
    for text in texts:
        name, _, amount = text.partition("=")
        try:
            amounts[name] = float(amount)
            if not math.isfinite(amounts[name]):
                raise ValueError
        except ValueError:
            raise InvalidInput("--resource", text, "must be a name and a number", "write it like GPU=1") from None
    return read_resources(amounts) or None


def check_run_open_files(workers: int) -> None:
    """Raise the limit of open files if necessary: a command takes three, and the default is often 1,024."""
    needed = 4 * workers + 64
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            rule = f"they need {needed:,} open files, and this system allows {hard:,}"
            raise InvalidInput("--workers", workers, rule, f"use at most {(hard - 64) // 4:,}, or raise the limit")
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


# Warnings about a run that looks wrong although nothing failed. Each is said once.

ENOUGH = 20  # rewards; a pattern in that many is hardly chance
WIDE = 10.0  # times the range of the rewards: bounds that are wider than this multiply the number of pulls
LARGEST = 1_000_000  # bytes of a script that is searched for THRESHER_ARM and THRESHER_CASE


def check_run_arms(names: Sequence[str]) -> str | None:
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


def check_run_words(argv: Sequence[str], arms: Mapping[str, Params], *, cases: bool = False) -> Iterator[str]:
    """Warnings if the command seems to do the same for every arm, or for every case."""
    used = checked_run_placeholders(*argv)
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


class RunCheckCautions:
    """Watches a run, and warns when there are enough rewards to see a pattern, and again at the end.

    If the rewards are times that are ``measured`` on this machine, it also warns when the machine is busy.
    """

    def __init__(self, study: Study, *, measured: bool = False, workers: int = 0) -> None:
        self._study, self._said = study, set[str]()  # the kinds of warnings that were said
        self._is_checked, self._measured = False, measured
        self._say(dict(check_run_cores(workers)) if measured else {})

    def __call__(self, progress: Progress) -> None:
        """Check how busy the machine is, and the rewards once there are enough of them."""
        if self._measured:
            self._say(dict(check_run_cores()))
        if progress.told >= ENOUGH and not self._is_checked:
            self._is_checked = True
            self._say(dict(peek_study(self._study, lambda ledger: list(check_run_rewards(ledger)))))

    def at_the_end(self) -> None:
        """Check all rewards and answers."""
        self._say(dict(peek_study(self._study, lambda ledger: [*check_run_rewards(ledger), *check_run_bounds(ledger)])))

    def _say(self, cautions: dict[str, str]) -> None:
        for kind, text in cautions.items():
            if kind not in self._said:
                self._said.add(kind)
                log.warning(f"warning: {text}")


def check_run_rewards(ledger: State) -> Iterator[tuple[str, str]]:
    """Warnings about the rewards so far, each with its kind."""
    rewards, asked = _rewards(ledger), sentence_wording(ledger.spec)
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


def check_run_cores(workers: int = 0) -> Iterator[tuple[str, str]]:
    """A warning if more programs want to run than the machine has cores; ``workers`` of them have yet to start."""
    with suppress(OSError):
        load, cores = os.getloadavg()[0], os.cpu_count() or 1
        if load + workers > cores:
            more = f" and {plural(workers, 'more worker')}" if workers else ""
            busy = f"the machine is busy (a load of {load:.1f}{more} on {plural(cores, 'core')}), so times are longer"
            yield "busy", f"{busy}; run again when nothing else is running, or with fewer --workers"


def check_run_bounds(ledger: State) -> Iterator[tuple[str, str]]:
    """A warning at the end if the bounds are far wider than the range of the rewards and the bar.

    There is none if rewards are all equal, or near a bound: an arm that passed every test so far may fail the next.
    """
    spec, rewards, asked = ledger.spec, _rewards(ledger), sentence_wording(ledger.spec)
    if len(rewards) < ENOUGH or spec.bounds is None or not ledger.certifies:
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


def _rewards(ledger: State) -> list[float]:
    """The rewards that were told; of pairs, also the baseline's."""
    told = [pull for pull, state in enumerate(ledger.pull_state) if state in (TOLD, LATE)]
    rewards = [ledger.pull_reward[pull] for pull in told]
    return rewards + [ledger.pull_other[pull] for pull in told] if ledger.spec.pairs else rewards
