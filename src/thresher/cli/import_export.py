"""Export and import of studies, as CSV or as their whole log, and of results that users already have."""

import csv
import io
import json
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import click

from ..core import evidence
from ..core import ledger as ledgers
from ..core.checks import MAX_NAME, checked_finite, checked_number, checked_whole, percent_remedy
from ..core.checks import checked_name as checked_name
from ..core.events import (
    DROPPED,
    IMPORTED,
    LATE,
    NO_EVENT,
    ONCE,
    OUTSIDE,
    STATES,
    TOLD,
    Event,
    EventRemarks,
    event_remarks,
    event_to_json,
)
from ..core.pulls import pull_of
from ..core.results import (
    CANCELLED,
    LOST,
    OF_ONE_ARM,
    ORIGINS,
    SHAPES,
    SPARE,
    WITH_REWARD,
    Result,
    Row,
    checked_result,
    read_json_results,
    read_results,
)
from ..core.spec import Spec
from ..core.state import State
from ..errors import Conflict, InvalidInput, StudyExists, ThresherError, shown
from ..log.journal import storable_in_journal, storable_journal_reason
from ..log.store import START, Head, chained_in_store
from ..study import Study, import_into_study, peek_study
from ..text.escapes import escaped_csv_cell, escaped_csv_remark
from ..text.files import read_text
from ..text.phrasing import plural
from .error_wording import error_in_options
from .options import (
    address_in_storage_option,
    option,
    storage_option,
    store_of_option,
    study_of_option,
    with_revision_options,
)
from .output import put_output, say, say_done

LINES = 1000  # of CSV, written at once


@click.command()
@with_revision_options
@click.argument("style", type=click.Choice(["csv", "json"]), metavar="csv|json")
def export(study: Study, style: str) -> None:
    """Write study NAME to standard output: csv has one line per pull, json has the whole log. import reads both.

    csv has the pulls that count in the present revision. The seed of a result that an earlier revision evaluated is
    left out if its arm has a new order of cases.

    If every pull evaluates an arm and the baseline, csv has a column baseline, and import reads only json.

    The state of a pull is pending, told, dropped, late (told after it was charged to the certificate), outside (the
    reward lies outside the bounds) or cancelled (it does not count in the certificate). The cause of a reward, if one
    has any, is repeatable (it may have been evaluated more than once) or failed (a failure that counts as this number).

    Examples:
      thresher export prompts csv
      thresher export prompts json --storage postgresql://me@server/lab
      thresher export prompts csv --revision 2
    """
    if style == "json":
        _print_log(study)
    else:
        peek_study(study, _print_pulls)


def _print_log(study: Study) -> None:
    """Write the log up to its current head. The head comes first, so that a truncated file still has it."""
    seq, digest = peek_study(study, lambda ledger: (ledger.seq, ledger.head))
    head = json.dumps({"seq": seq, "digest": digest})
    put_output(f'{{"format": 1, "study": {json.dumps(study.name)}, "head": {head}, "events": [', end="")
    for event in islice(chain.from_iterable(study.pages()), seq):
        put_output(("," if event.seq > 1 else "") + f"\n{json.dumps(event_to_json(event))}", end="")
    put_output("\n]}")


def _print_pulls(ledger: State) -> None:
    """Write the pulls as CSV, some lines at a time: all of them would take more memory than the study."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    has_cases, pairs = ledger.spec.cases is not None, ledger.spec.pairs
    has_origins = any(origin & ~IMPORTED for origin in ledger.pull_origin)
    has_remarks = bool(ledger.remarks)
    columns = ["case"] if has_cases else ["baseline"] if pairs else []
    columns += ["cause"] if has_origins else []
    columns += ["note", "cost"] if has_remarks else []
    table.writerow(("pull", "arm", "number", "seed", "state", "reward", *columns))
    for count, (pull, row) in enumerate(_numbered_rows(ledger), start=1):
        extra: list[object] = (
            [escaped_csv_cell(str(row.case))] if has_cases else [_baseline_reward(ledger, pull)] if pairs else []
        )
        if has_origins:
            extra.append(" ".join(name for name, value in ORIGINS.items() if row.origin & value))
        if has_remarks:
            remarks = event_remarks(Event(0, "told", reason=ledger.remarks.get(pull))) or EventRemarks()
            extra += [escaped_csv_remark(remarks.note or ""), remarks.cost]
        issued = pull_of(ledger, pull)
        seed = None if _is_taken_over(ledger, pull) else issued.seed
        table.writerow((pull, escaped_csv_cell(row.arm), issued.number, seed, row.state, row.reward, *extra))
        if not count % LINES:
            put_output(text.getvalue(), end="")
            text.seek(0)
            text.truncate()
    put_output(text.getvalue(), end="")


def _baseline_reward(ledger: State, pull: int) -> float | None:
    """The baseline's reward in a pair that was told."""
    return ledger.pull_other[pull - 1] if ledger.pull_state[pull - 1] in (TOLD, LATE) else None


def _is_taken_over(ledger: State, pull: int) -> bool:
    """Whether the pull is of an earlier history, and only its result holds: its seed is another one."""
    is_known = ledger.cases is not None and ledger.sheet.place[pull] < 0
    return is_known and not ledger.pull_origin[pull - 1] & IMPORTED


def exported_rows(ledger: State) -> Iterator[Row]:
    """The rows of all pulls of the present revision. A charged pull has a state that an import charges too."""
    return (row for _, row in _numbered_rows(ledger))


def _numbered_rows(ledger: State) -> Iterator[tuple[int, Row]]:
    for pull, state in enumerate(_states(ledger), start=1):
        arm = ledger.arm_of(pull)
        if arm is None:
            continue
        reward = ledger.pull_reward[pull - 1] if state in WITH_REWARD else None
        case = ledger.case_of(pull)
        name = None if case is None else ledger.spec.case_name(case)
        origin = ONCE if reward is None else ledger.pull_origin[pull - 1]
        yield pull, Row(f"pull {pull}", ledger.spec.arms[arm], state, reward, name, origin)


def _states(ledger: State) -> list[str]:
    """The state of each pull in the export."""
    states = [STATES[state] for state in ledger.pull_state]
    if ledger.cases:  # a case that is tried again is not charged, and a late pull still has its reward
        for pull in ledger.cases.spare:
            states[pull - 1] = SPARE
    for at, state in enumerate(ledger.pull_state if ledger.spec.pairs else ()):
        if state == OUTSIDE and not ledger.has_reward(at + 1):
            states[at] = STATES[DROPPED]
    if not ledger.certifies or ledger.cases:
        return states
    followed = set[int]()  # arms with a later pull that was told: cancelled pulls before it are charged
    for pull in range(ledger.last_pull, 0, -1):
        state, outcome, arm = ledger.pull_state[pull - 1], ledger.docket.outcome[pull], ledger.pull_arm[pull - 1]
        if outcome == evidence.TOLD or state == OUTSIDE:  # the study that imports a reward outside decides about it
            followed.add(arm)
        elif state == TOLD:  # charged while it was pending, because too many rewards waited for it
            states[pull - 1] = "late"
        elif state == DROPPED and outcome == evidence.CANCELLED and arm not in followed:
            states[pull - 1] = CANCELLED
    return states


# Import: studies and results, into a store.

WRITE_REWARD = "write a number, or true, pass, false or fail"


@click.command("import")
@click.argument("file", metavar="FILE")
@option("--study NAME", "The study that the results belong to, or a new name for an exported study.", to="name")
@option("--again", "Count results that the study already has once more.")
@storage_option
def import_(file: str, name: str | None, again: bool, storage: str | None) -> None:
    """Read FILE (- is standard input): a study that export json wrote, or results that you already have.

    Results are CSV, such as export csv writes, or a JSON list, with arm, reward and optionally state. The study must
    not have handed out a pull yet. All rows are imported or none, and they count towards the budget. Their order does
    not matter: the certificate weighs them all together, once, at the first ask. A file with results that the study
    already has is refused, unless you say --again.

    Pulls whose state is dropped, pending, cancelled or late are charged to the certificate at their worst, or as the
    study's --failure says. A column cause, as export writes it, marks rewards that may have been evaluated more than
    once (repeatable), which the guarantee then says, and failures that counted as a number (failed), which are charged
    unless this study's --failure is the same.

    If the study has cases, every row needs its case, in a column case. These rewards are known values, not samples:
    a case of an arm may have only one, and pulls without a reward use up no case.

    Examples:
      thresher import prompts.json
      thresher import results.csv --study prompts
    """
    text, data, log = contents_to_import(file)
    if log is not None:
        _restore(log[0], name or data.get("study"), storage)
        return
    rows = list(read_results(data, text, file))
    if name is None:
        raise InvalidInput("--study", rule="is missing: results belong to a study", remedy="name it with --study NAME")
    study = study_of_option(name, storage, remedy=f"create it first: thresher create {shlex.quote(name)} …")
    if study.spec.pairs:
        rule = "compares every arm with its baseline in pairs, and results of pairs cannot be imported"
        raise InvalidInput("study", name, rule, "results of a study with --cases can")
    pulls = list(checked_import(rows, study.spec))
    states = Counter("dropped" if pull.reward is None else row.state for row, pull in zip(rows, pulls, strict=True))
    if study.spec.cases is not None:
        known = peek_study(study, _imported_cases)
        pulls = list(import_with_cases(zip(rows, pulls, strict=True), study.spec, known))
        again = True  # no case is counted twice anyway
    if not rows:
        raise InvalidInput("file", file, "has no rows", SHAPES)
    budget, left = peek_study(study, lambda ledger: (ledger.budget, (ledger.budget or 0) - ledger.issued))
    if budget is not None and len(pulls) > left:
        rule = f"has {plural(len(pulls), 'pull')}, and the study has {left:,} left of its budget of {budget:,}"
        raise InvalidInput("file", file, rule, "results count towards the budget: create the study with a larger one")
    if not again:
        peek_study(study, lambda ledger: _check_is_new(pulls, ledger, file))
    import_into_study(study, pulls)
    say_done(name, peek_study(study, lambda ledger: _import_sentence(states, ledger)))


def _imported_cases(ledger: State) -> dict[int, set[int]]:
    """The cases of each arm that were imported before."""
    return {arm: set(cases) for arm, cases in ledger.cases.imported.items()} if ledger.cases else {}


def _check_is_new(pulls: list[Result], ledger: State, file: str) -> None:
    """Raise if the study already has these results, in this order, or if they begin with all that it has."""
    before = []
    for arm, reward, state in zip(ledger.pull_arm, ledger.pull_reward, ledger.pull_state, strict=True):
        if arm >= 0:
            before.append((ledger.spec.arms[arm], None if state == DROPPED else reward, state == LATE))
    known, new = "".join(map(repr, before)), "".join(repr(tuple(pull[:3])) for pull in pulls)
    if known and ledger.issued == ledger.imported and (new in known or new.startswith(known)):
        rows = "these rows" if len(pulls) <= len(before) else f"the first {len(before):,} of its rows"
        rule = f"the study already has {rows}, and would count them twice"
        raise InvalidInput("file", file, rule, "import only new results, or say --again if these are new")


def contents_to_import(file: str) -> tuple[str, Any, tuple[list[Event], State] | None]:
    """The text of a file, the JSON in it, and the log in that if it is an exported study."""
    text = read_text(file)
    data = read_json_results(text, file)
    return text, data, folded_export(data, file) if isinstance(data, dict) and "events" in data else None


def results_to_import(file: str, *, arm: str | None = None) -> tuple[Iterator[Row], int | None]:
    """The pulls in a file of results or an exported log, and the number of cases, None if the file does not say it.

    Rows without an arm are pulls of ``arm``.
    """
    text, data, log = contents_to_import(file)
    if log is None:
        return read_results(data, text, file, arm=arm), None
    _, ledger = log
    return exported_rows(ledger), ledger.spec.case_count


def checked_import(rows: Iterable[Row], spec: Spec) -> Iterator[Result]:
    """The results in rows, for `import_into_study`. An error names the row."""
    for location, name, state, reward, case, origin in rows:
        try:
            arm = name.strip() if isinstance(name, str) and name not in spec.index else name
            late = state in ("late", SPARE)
            if spec.cases is not None and (case is None or case == ""):
                rule = f"is {'missing' if case is None else 'empty'}: every result of this study needs its case"
                raise InvalidInput("column", "case", rule, "name the case of each result there")
            result = Result(arm, reward, late, _case_of_row(case, spec), origin)
            _, reward, late, number, origin = checked_result(spec, result)
            yield Result(arm, reward, late, None if number is None else spec.case_name(number), origin)
        except ThresherError as error:
            remedy = "" if error.remedy or error.what != "reward" else percent_remedy(error.value) or WRITE_REWARD
            raise InvalidInput(f"{location}: {error_in_options(error)}", remedy=remedy) from None


def _case_of_row(case: object, spec: Spec) -> object:
    """The case of a row as the study names it; None in a study without cases."""
    if spec.cases is None:
        return None
    return case.strip() if isinstance(case, str) and case not in spec.case_index else case


def import_with_cases(
    pairs: Iterable[tuple[Row, Result]], spec: Spec, known: Mapping[int, set[int]]
) -> Iterator[Result]:
    """The results with a reward that counts. An error names a row whose case already has a reward."""
    locations: dict[tuple[int, int], str] = {}
    for row, result in pairs:
        if result.reward is None or row.state == SPARE:
            continue
        at = arm, case = spec.arm(result.arm), spec.case(result.case)
        if at in locations or case in known.get(arm, ()):
            first = locations.get(at, "an earlier import")
            rule = f"already has a reward of arm {shown(result.arm)}, from {first}"
            raise InvalidInput(f"{row.location}: case", result.case, rule, "give each case of an arm once")
        locations[at] = row.location
        yield result


def _import_sentence(states: Counter[str], ledger: State) -> str:
    """A sentence about the numbers of imported rewards and pulls."""
    if ledger.cases:
        told = states["told"] + states["late"] + states["outside"]
        rest = sum(states.values()) - told
        left_out = f"; {plural(rest, 'pull')} without a reward that counts used up no case" if rest else ""
        return f"imported {plural(told, 'reward')}{left_out}"
    charged, late = sum(states[state] for state in LOST), states["late"]
    sentence = f"imported {plural(sum(states.values()) - charged, 'reward')}"
    if charged:
        treated = "charged" if ledger.certifies and ledger.spec.failure != "ignore" else "left out"
        sentence += f" and {plural(charged, 'pull')} to be {treated}"
        sentence += f", {late:,} of them with a late reward" if late else ""
    if ledger.unweighed:
        sentence += "; they are weighed all together at the first ask"
    return sentence


def _restore(events: list[Event], name: object, storage: str | None) -> None:
    """Store a whole log under its own name or a new one."""
    study, store = checked_name("study", name), store_of_option(storage)
    with store.turn(study):
        try:
            store.append(study, events, before=START, lease=3600.0)
        except Conflict:
            rule = f"already exists in {address_in_storage_option(store)}"
            raise StudyExists("study", study, rule, "give another name: --study NAME") from None
    store.flush(study, events[-1])
    say_done(study, f"imported into {address_in_storage_option(store)}, with {plural(len(events), 'event')}")


def folded_export(data: dict[str, Any], file: str) -> tuple[list[Event], State]:
    """The events of an exported log, and its ledger. Raises if the log is not valid."""
    if data.get("format") != 1:
        format_ = f"format {shown(data['format'])}" if "format" in data else "no format"
        rule = f"has {format_}, not the format 1 of an export"
        raise InvalidInput("file", file, rule, "export it again, or update thresher")
    location = "its list of events"
    try:
        events = []
        for count, item in enumerate(data["events"], start=1):
            location = f"event {count}"
            events.append(_event(item))
        location = "its events"
        ledger = ledgers.fold_ledger(events)
        _check_digests(events)
        location = "its end"
        _check_head(data.get("head"), events[-1])
        return events, ledger
    except (ThresherError, *NO_EVENT) as error:
        raise InvalidInput("file", file, f"is not the log of a study, {location}: {error}", "export it again") from None


def _check_digests(events: list[Event]) -> None:
    """Raise unless every event has its digest, which shows that it was not changed after the export."""
    for event, right in zip(events, chained_in_store(events), strict=True):
        if event.digest != right.digest:
            rule = "does not match its digest: it was changed after the export"
            raise InvalidInput("event", event.seq, rule)


def _check_head(data: Any, last: Event) -> None:
    """Raise unless the last event is the head that the export names."""
    if not (isinstance(data, dict) and data.keys() >= {"seq", "digest"}):
        raise InvalidInput("head", data, "must be an object with seq and digest")
    head = Head(data["seq"], bytes.fromhex(data["digest"]))
    if head != (last.seq, last.digest):
        rule = f"is not the log's head, which was event {head.seq} when it was exported"
        raise InvalidInput("event", last.seq, rule)


def _event(item: dict[str, Any]) -> Event:
    """An event whose fields every store can hold. The ledger checks whether it may follow the events before it."""
    event, stored = Event(**item), dict[str, Any]()  # as every store returns them: 1 becomes 1.0, and -0.0 0.0
    for field, value in item.items():
        if value is None:
            continue
        if field in ("reason", "cause", "key", "agent"):
            # JSON with a note is longer
            as_stored = storable_in_journal if field == "reason" and event.kind == "told" else storable_journal_reason
            if not isinstance(value, str) or as_stored(value) != value:
                raise InvalidInput(field, value, "must be text")
        if field == "key" and len(value) > MAX_NAME:
            raise InvalidInput("key", value, f"must not be longer than {MAX_NAME} characters")
        if field in ("seq", "pull", "arm", "budget"):
            checked_whole(field, value, least=0)
        if field in ("reward", "time"):
            stored[field] = checked_finite(checked_number(field, value))
        if field == "late":
            if value not in (False, True):
                raise InvalidInput("late", value, "must be true, false or null")
            stored["late"] = bool(value)
        if field == "digest":
            stored["digest"] = bytes.fromhex(value)
    return event._replace(**stored)


# ``--baseline-results``: results of the baseline that users already have, on the cases of the study.

OPTION = "--baseline-results"


class ImportedBaseline:
    """The results of the baseline in a file, checked. Nothing is written until `bring`."""

    def __init__(self, file: str, spec: Spec) -> None:
        self.file, self.spec = file, spec
        if spec.baseline is None:
            raise InvalidInput(OPTION, file, "there is no baseline", "name one of the arms with --baseline")
        if spec.cases is None:
            rule = "only results on the same cases can be compared"
            raise InvalidInput(OPTION, file, rule, "give the cases with --cases, or leave the results out")
        rows = list(results_to_import(file, arm=spec.baseline)[0])
        results = list(checked_import(rows, spec))
        for row, result in zip(rows, results, strict=True):
            if result.arm != spec.baseline:
                rule = f"is not the baseline, which is {shown(spec.baseline)}"
                raise InvalidInput(f"{row.location}: arm", result.arm, rule, "keep the results of the baseline alone")
        self.results: Sequence[Result] = list(import_with_cases(zip(rows, results, strict=True), spec, {}))
        if not self.results:
            raise InvalidInput(OPTION, file, "has no rewards", OF_ONE_ARM)

    def check(self, study: Study) -> bool:
        """Whether the results are still to be imported. Raises if the study has others."""
        known, begun = peek_study(study, self._known)
        rewards = {self.spec.case(result.case): self.spec.reward(result.reward) for result in self.results}
        is_other = any(known[case] != reward for case, reward in rewards.items() if case in known)
        if is_other or (begun and not known):
            has = f"began with {'other' if known else 'no'} results of the baseline"
            remedy = "start over with --fresh, name another --study, or give what it began with"
            raise InvalidInput(OPTION, self.file, f"study {shown(study.name)} {has}", remedy)
        return not begun and not known

    def bring(self, study: Study) -> None:
        """Import the results, all or none, unless the study has them."""
        if not self.check(study):
            return
        try:
            import_into_study(study, self.results)
        except InvalidInput:  # another agent was first
            if self.check(study):
                raise
            return
        missing = self.spec.case_count - len(self.results)
        rest = f"; it is pulled first on the {plural(missing, 'other case')}" if missing else ""
        say(f"imported {plural(len(self.results), 'reward')} of the baseline{rest}")

    def _known(self, ledger: State) -> tuple[dict[int, float], bool]:
        """The rewards of the baseline by case, and whether the study has handed out a pull."""
        return dict(ledger.table), ledger.issued > ledger.imported


def import_of_baseline_results(options: Mapping[str, Any], spec: Spec) -> ImportedBaseline | None:
    """The results of ``--baseline-results``; None without the option."""
    file = options["baseline_results"]
    return None if file is None else ImportedBaseline(file, spec)
