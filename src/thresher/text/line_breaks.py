"""Where a long name may be broken."""

import html
import re
from collections.abc import Callable

# web/static/tools.js has the same rule; a piece has at least four characters, so that no line but the last is shorter
_PIECES = re.compile(r".{3,}?[-/_\[,=:\\]+(?=.{2})|.+", re.DOTALL)


def pieces(name: str) -> list[str]:
    """The pieces of a name: it may be broken after ``/``, ``::``, ``-``, ``_``, ``[`` and the like.

    >>> pieces("tests/test_run.py::test_late[a-1]")
    ['tests/', 'test_', 'run.py::', 'test_', 'late[', 'a-1]']
    """
    return _PIECES.findall(name)


def breakable(name: str) -> str:
    """A name as HTML that a browser may break between its pieces, and need not break between two letters.

    >>> breakable("tests/test_run.py"), breakable("a <b>")
    ('tests/<wbr>test_<wbr>run.py', 'a &lt;b&gt;')
    """
    return "<wbr>".join(html.escape(piece) for piece in pieces(name))


def folded(name: str, width: int, measure: Callable[[str], int] = len) -> list[str]:
    """A name in lines of at most that width, broken between its pieces where possible.

    >>> folded("tests/test_run.py::test_late", 12), folded("abcde", 3)
    (['tests/test_', 'run.py::', 'test_late'], ['abc', 'de'])
    """
    if measure(name) <= width:
        return [name]
    lines = [""]
    for piece in pieces(name):
        for part in [piece] if measure(piece) <= width else piece:  # a piece that is too long is broken anywhere
            if lines[-1] and measure(lines[-1] + part) > width:
                lines.append("")
            lines[-1] += part
    return lines
