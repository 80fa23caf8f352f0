"""How names are written: those of parameters in the words of each surface, long names broken or shortened."""

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any

PLACEHOLDER = re.compile(r"\{([\w.]+)(?:=([^{}]*))?\}")
Spell = Callable[[str, str | None], str]  # how to write a parameter; with a value, how to give it that value


class Naming(str):
    """Text with a placeholder for each parameter, such as ``{budget}``, or ``{clip=True}`` for one with a value.

    As a string it is in Python's words. ``texts`` fill other placeholders; braces in them are plain braces.

    >>> naming = Naming("{why}; give a larger {budget}, or {clip=True}", why="{arm} is out")
    >>> str(naming)
    '{arm} is out; give a larger budget, or clip=True'
    >>> worded_naming(naming, lambda name, value: f"--{name}")
    '{arm} is out; give a larger --budget, or --clip'
    """

    template: str
    texts: Mapping[str, str]

    def __new__(cls, template: str, **texts: str) -> "Naming":
        naming = super().__new__(cls, _filled(template, texts, _in_python))
        naming.template, naming.texts = template, texts
        return naming

    def __getnewargs_ex__(self) -> tuple[Any, Any]:  # for pickle
        return (self.template,), self.texts


def worded_naming(text: str, spell: Spell) -> str:
    """The text in the words of another surface. Only a `Naming` has placeholders."""
    return _filled(text.template, text.texts, spell) if isinstance(text, Naming) else text


def _filled(template: str, texts: Mapping[str, str], spell: Spell) -> str:
    def fill(placeholder: re.Match[str]) -> str:
        name, value = placeholder.groups()
        return worded_naming(texts[name], spell) if name in texts else spell(name, value)

    return PLACEHOLDER.sub(fill, template)


def _in_python(name: str, value: str | None) -> str:
    return name if value is None else f"{name}={value}"


# How names are written: where one may be broken, and how it fits a narrow terminal, or an axis, and still differs.

# web/static/tools.js has the same rule; a piece has at least four characters, so that no line but the last is shorter
_PIECES = re.compile(r".{3,}?[-/_\[,=:\\]+(?=.{2})|.+", re.DOTALL)


def name_pieces(name: str) -> list[str]:
    """The pieces of a name: it may be broken after ``/``, ``::``, ``-``, ``_``, ``[`` and the like.

    >>> name_pieces("tests/test_run.py::test_late[a-1]")
    ['tests/', 'test_', 'run.py::', 'test_', 'late[', 'a-1]']
    """
    return _PIECES.findall(name)


def breakable_name(name: str) -> str:
    """A name as HTML that a browser may break between its pieces, and need not break between two letters.

    >>> breakable_name("tests/test_run.py"), breakable_name("a <b>")
    ('tests/<wbr>test_<wbr>run.py', 'a &lt;b&gt;')
    """
    return "<wbr>".join(html.escape(piece) for piece in name_pieces(name))


def folded_name(name: str, width: int, measure: Callable[[str], int] = len) -> list[str]:
    """A name in lines of at most that width, broken between its pieces where possible.

    >>> folded_name("tests/test_run.py::test_late", 12), folded_name("abcde", 3)
    (['tests/test_', 'run.py::', 'test_late'], ['abc', 'de'])
    """
    if measure(name) <= width:
        return [name]
    lines = [""]
    for piece in name_pieces(name):
        for part in [piece] if measure(piece) <= width else piece:  # a piece that is too long is broken anywhere
            if lines[-1] and measure(lines[-1] + part) > width:
                lines.append("")
            lines[-1] += part
    return lines


_WORDS = re.compile(r"[^\W_]+|[\W_]")


def _cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    from rich.cells import cell_len  # here: every error imports this module

    return cell_len(text)


def shortened_name(name: str, width: int) -> str:
    """A name that fits, without its middle: paths and test ids often begin alike and differ at the end.

    >>> shortened_name("tests/test_run.py::test_a_reward_is_read", 20)
    'tests/…eward_is_read'
    """
    if _cells(name) <= width:
        return name
    head, tail = "", ""
    for letter in name:
        if _cells(head + letter) > (width - 1) // 3:
            break
        head += letter
    for letter in reversed(name):
        if _cells(head + letter + tail) > width - 1:
            break
        tail = letter + tail
    return f"{head}…{tail}"


@lru_cache(maxsize=16)  # the table is drawn again and again
def distinct_names(names: tuple[str, ...], width: int) -> dict[str, str]:
    """Names as texts that fit and differ: without their middle, otherwise without what all have, otherwise folded.

    >>> distinct_names(("test_refund[eur-visa-1]", "test_refund[usd-visa-1]", "test_refund[usd-visa-2]"), 10).values()
    dict_values(['…eur…1…', '…usd…1…', '…usd…2…'])
    """
    texts = [shortened_name(name, width) for name in names]
    if len({*texts}) < len(names):
        texts = [shortened_name(name, width) for name in _different(names)]
    if len({*texts}) < len(names):
        texts = ["\n".join(folded_name(name, width, _cells)) for name in names]
    return dict(zip(names, texts, strict=True))


def _different(names: Sequence[str]) -> list[str]:
    """Only the words in which names differ."""
    words = [_WORDS.findall(name) for name in names]
    shortest = min(map(len, words))
    if shortest == max(map(len, words)):
        differs = [len({*column}) > 1 for column in zip(*words, strict=True)]
        return [
            _joined(word if keep else None for word, keep in zip(sequence, differs, strict=True)) for sequence in words
        ]
    before = _shared(words)
    after = min(_shared([sequence[::-1] for sequence in words]), shortest - before)
    return [
        _joined(word if before <= at < len(sequence) - after else None for at, word in enumerate(sequence))
        for sequence in words
    ]


def _shared(words: Sequence[Sequence[str]]) -> int:
    """How many words all begin with.

    >>> _shared(["abc", "abd"])
    2
    """
    return sum(1 for _ in takewhile(lambda column: len({*column}) == 1, zip(*words, strict=False)))


def _joined(words: Iterable[str | None]) -> str:
    """Words, with an ellipsis wherever some are left out.

    >>> _joined(["a", None, None, "b"])
    'a…b'
    """
    return re.sub("…+", "…", "".join("…" if word is None else word for word in words))
