"""Where a long name may be broken."""

import re

# web/static/tools.js has the same rule; a piece has at least four characters, so that no line but the last is shorter
_PIECES = re.compile(r".{3,}?[-/_\[,=:\\]+(?=.{2})|.+", re.DOTALL)


def pieces(name: str) -> list[str]:
    """The pieces of a name: it may be broken after ``/``, ``::``, ``-``, ``_``, ``[`` and the like.

    >>> pieces("tests/test_run.py::test_late[a-1]")
    ['tests/', 'test_', 'run.py::', 'test_', 'late[', 'a-1]']
    """
    return _PIECES.findall(name)
