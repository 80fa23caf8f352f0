"""Texts that name parameters: each surface, such as the command line, writes the names in its own words."""

import re
from collections.abc import Callable, Mapping
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
