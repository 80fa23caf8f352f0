"""Names as HTML: a browser may break a long one after a separator, and need not do so between two letters."""

import html

from ..text.pieces import pieces


def breakable(name: str) -> str:
    """A name as HTML that may be broken between its pieces.

    >>> breakable("tests/test_run.py"), breakable("a <b>")
    ('tests/<wbr>test_<wbr>run.py', 'a &lt;b&gt;')
    """
    return "<wbr>".join(html.escape(piece) for piece in pieces(name))
