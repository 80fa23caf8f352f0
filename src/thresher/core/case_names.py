"""The cases of a specification, by name and by number."""

import numbers
from functools import cached_property

from ..errors import InvalidInput
from ..text.phrasing import MOST_NAMED


class CaseNames:
    """The part of a specification that looks up cases. Inside, a case is a number; users see its name if it has one."""

    cases: tuple[str, ...] | int | None  # names, or how many; None: rewards have no cases

    @property
    def case_count(self) -> int:
        """How many cases there are; 0: rewards have none."""
        return len(self.cases) if isinstance(self.cases, tuple) else self.cases or 0

    def case_name(self, case: int) -> str | int:
        """A case as users see it: its name, or its number from 0 if cases have none."""
        return self.cases[case] if isinstance(self.cases, tuple) else case

    @cached_property
    def case_index(self) -> dict[str, int]:
        """The number of each case, by its name; empty if cases are numbers."""
        return {name: case for case, name in enumerate(self.cases)} if isinstance(self.cases, tuple) else {}

    def case(self, name: object) -> int:
        """The number of the case of that name."""
        count = self.case_count
        if not count:
            raise InvalidInput("case", name, "this study has no cases", "give results without a case")
        found = None
        if isinstance(name, str | numbers.Integral) and not isinstance(name, bool):
            found = self.case_index.get(str(name)) if isinstance(self.cases, tuple) else _numbered(str(name), count)
        if found is None:
            first = ", ".join(str(self.case_name(case)) for case in range(min(count, MOST_NAMED)))
            many = f"{count:,} cases, such as {first}" if count > MOST_NAMED else f"the cases {first}"
            remedy = f"there are {many}" if count > 1 else f"there is only the case {first}"
            raise InvalidInput("case", name, "is not a case of this study", remedy)
        return found


def _numbered(text: str, count: int) -> int | None:
    """The case of that number. There may be more cases than a dict of them would hold."""
    if not text.isdecimal() or len(text) > len(str(count)) or str(int(text)) != text:
        return None
    return int(text) if int(text) < count else None
