r"""CSV as people write it, row by row, each with its location in the file.

>>> columns, rows = read_csv("arm,reward\na,1\n\nb,0\n", "results.csv")
>>> columns, list(rows)
(['arm', 'reward'], [('line 2 of results.csv', ['a', '1']), ('line 4 of results.csv', ['b', '0'])])
"""

import csv
import io
from collections.abc import Iterator

from ..errors import InvalidInput

QUOTING = "put cells that hold commas, quotes or line breaks in double quotes"


def read_csv(text: str, file: str) -> tuple[list[str], Iterator[tuple[str, list[str]]]]:
    """The names of the columns, and the rows that are not blank. An error names the line; the header is line 1."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)

    def lines() -> Iterator[list[str]]:
        try:
            yield from reader
        except csv.Error as error:
            location = f"line {reader.line_num} of {file}"
            raise InvalidInput(location, rule=f"is not CSV ({error})", remedy=QUOTING) from None

    found = lines()
    columns = [column.strip() for column in next(found, [])]

    def rows() -> Iterator[tuple[str, list[str]]]:
        for cells in found:
            if not any(cell.strip() for cell in cells):
                continue
            location = f"line {reader.line_num} of {file}"
            if len(cells) != len(columns):
                rule = f"has {len(cells)} cells, and the first line has {len(columns)} columns"
                raise InvalidInput(f"{location}:", ",".join(cells), rule, QUOTING)
            yield location, cells

    return columns, rows()
