"""``--baseline-results``: results of the baseline that exist already, on the cases of the study."""

from collections.abc import Sequence
from typing import Any

from ..core.ledger import Ledger
from ..core.results import OF_ONE_ARM
from ..core.spec import Spec
from ..errors import InvalidInput, shown
from ..log.commands import Result
from ..study import Study, import_pulls, peek
from ..text.phrasing import plural
from . import say
from .importing import checked, results_in, with_cases

OPTION = "--baseline-results"


class BaselineResults:
    """What a file says about the baseline, checked. Nothing is written until `bring`."""

    def __init__(self, file: str, spec: Spec) -> None:
        self.file, self.spec = file, spec
        if spec.baseline is None:
            raise InvalidInput(OPTION, file, "there is no baseline", "name one of the arms with --baseline")
        if spec.cases is None:
            rule = "only results on the same cases can be compared"
            raise InvalidInput(OPTION, file, rule, "give the cases with --cases, or leave the results out")
        rows = list(results_in(file, arm=spec.baseline)[0])
        results = list(checked(rows, spec))
        for row, result in zip(rows, results, strict=True):
            if result.arm != spec.baseline:
                rule = f"is not the baseline, which is {shown(spec.baseline)}"
                raise InvalidInput(f"{row.location}: arm", result.arm, rule, "keep the results of the baseline alone")
        self.results: Sequence[Result] = list(with_cases(zip(rows, results, strict=True), spec, {}))
        if not self.results:
            raise InvalidInput(OPTION, file, "has no rewards", OF_ONE_ARM)

    def check(self, study: Study) -> bool:
        """Whether the results are still to be imported; raises if the study began with others, or without them."""
        known, begun = peek(study, self._known)
        wanted = {self.spec.case(result.case): self.spec.reward(result.reward) for result in self.results}
        if known == wanted:
            return False
        if known or begun:
            has = f"began with {'other' if known else 'no'} results of the baseline"
            remedy = "start over with --fresh, name another --study, or give what it began with"
            raise InvalidInput(OPTION, self.file, f"study {shown(study.name)} {has}", remedy)
        return True

    def bring(self, study: Study) -> None:
        """Import the results, all or none, unless the study has them."""
        if not self.check(study):
            return
        try:
            import_pulls(study, self.results)
        except InvalidInput:  # another agent was first
            if self.check(study):
                raise
            return
        missing = self.spec.case_count - len(self.results)
        rest = f"; it is pulled first on the {plural(missing, 'other case')}" if missing else ""
        say(f"imported {plural(len(self.results), 'reward')} of the baseline{rest}")

    def _known(self, ledger: Ledger) -> tuple[dict[int, float], bool]:
        """The rewards of the baseline that were imported, by case, and whether a pull was handed out."""
        cases = ledger.cases.imported.get(ledger.base, set()) if ledger.cases else set()
        return {case: ledger.table[case] for case in cases if case in ledger.table}, ledger.issued > ledger.imported


def baseline_results(given: dict[str, Any], spec: Spec) -> BaselineResults | None:
    """The results in the file of ``--baseline-results``, checked; None without the option."""
    file = given["baseline_results"]
    return None if file is None else BaselineResults(file, spec)
