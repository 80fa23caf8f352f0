"""Other people's text, where it could be taken for commands: in a terminal, a spreadsheet, Markdown or a path."""

import csv
import io
import re
from collections.abc import Iterable

SPACES = frozenset("\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000")
KEPT = SPACES | frozenset("\n\t")

# A formula can begin where a cell begins, and after marks at which a spreadsheet may split the cell
_BEGIN, _FORMULA = r"(?:\A|(?<=[;\t\r\n]))", r"[\"']*[=+@\t\r\uff1d\uff0b\uff0d\uff20-]"
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![^;\t\r\n])"
_EVALUATED = re.compile(f"{_BEGIN}(?!{_NUMBER})(?={_FORMULA})")
_QUOTED = re.compile(f"{_BEGIN}'(?={_FORMULA})")
# What a terminal obeys; line ends and tabs stay, and so do joiners and other marks that belong to words
_COMMANDS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
_MARKS = re.compile(r"([\\`*_\[\]()!#|~$])|([<>&@])|(:(?=//)|(?<=www)\.)", re.IGNORECASE)
_LIST = re.compile(r"\A(\s*)(?:([-+])|(\d{1,9})(?=[.)]))(?=[.)]?(?:\s|$))")
# hosting sites look for @ after resolving all escapes: only a zero-width character after it stops them
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "\\@&#8203;"}


def escaped_visible(text: str) -> str:
    r"""Text for a terminal: control characters are shown as codes; line ends and tabs stay.

    >>> print(escaped_visible("a\x1b[31mb\r\u202e"))
    a\x1b[31mb\r\u202e
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in KEPT else repr(char)[1:-1] for char in text)


def escaped_csv_cell(text: str) -> str:
    """Text for CSV that a spreadsheet takes for text, not for a formula; `unescaped_csv_cell` reads it back.

    >>> escaped_csv_cell("=1+1"), escaped_csv_cell("'=1+1"), escaped_csv_cell("-0.5")
    ("'=1+1", "''=1+1", '-0.5')
    >>> escaped_csv_cell("it's"), escaped_csv_cell("a;=1")
    ("it's", "a;'=1")
    """
    return _EVALUATED.sub("'", text)


def unescaped_csv_cell(cell: str) -> str:
    """The text that `escaped_csv_cell` wrote.

    >>> unescaped_csv_cell("'=1+1"), unescaped_csv_cell("''=1+1")
    ('=1+1', "'=1+1")
    >>> unescaped_csv_cell("-0.5"), unescaped_csv_cell("it's")
    ('-0.5', "it's")
    """
    return _QUOTED.sub("", cell)


def escaped_csv_remark(text: str) -> str:
    r"""A note or a reason for CSV, which nothing reads back: as `escaped_csv_cell`, with terminal commands as codes.

    >>> print(escaped_csv_remark("a\x1b[31mb"), escaped_csv_remark("=1+1"))
    a\x1b[31mb '=1+1
    """
    return escaped_csv_cell(_COMMANDS.sub(lambda match: repr(match[0])[1:-1], text))


def escaped_csv_line(cells: Iterable[object]) -> str:
    r"""A line of CSV; a carriage return within a cell does not end it.

    >>> escaped_csv_line(["a\rb", 0.5, None])
    '"a\rb",0.5,\n'
    """
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)  # then cells with either of these are quoted
    return f"{line.getvalue()[:-2]}\n"


def escaped_markdown(text: str) -> str:
    r"""Text for Markdown that is shown as it is: no link, picture, emphasis, list, HTML or mention.

    >>> print(escaped_markdown("[a](http://b) *c* <d> zlib-6"), escaped_markdown("1. e"))
    \[a\]\(http\://b\) \*c\* &lt;d&gt; zlib-6 1\. e
    """
    text = _MARKS.sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), " ".join(text.splitlines()))
    return _LIST.sub(r"\1\3\\\2", text)


def escape_slashes(segment: str) -> str:
    """A segment as part of a path in which its own slashes do not separate.

    >>> escape_slashes("50%/x"), unescape_slashes(escape_slashes("50%/x"))
    ('50%25%2Fx', '50%/x')
    """
    return segment.replace("%", "%25").replace("/", "%2F")


def unescape_slashes(segment: str) -> str:
    """The segment that `escape_slashes` encoded."""
    return segment.replace("%2F", "/").replace("%25", "%")
