"""Passwords are nobody's to see: not in URLs, not in settings, not in what other programs say about them."""

import re
from urllib.parse import unquote

LONGEST = 10_000  # characters that are looked at and kept: searching takes the square of it, at worst
_ACCOUNT = re.compile(r"((?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,30}:/{1,3}[^\s/@:]{0,1000}):.*@", re.IGNORECASE | re.DOTALL)
_PORT = re.compile(r"(postgres(?:ql)?:/+[^\s/@:?]*):(?!\d*(?:[/?,\s]|$)|\*\*\*)[^/?\s]*", re.IGNORECASE)  # none: a slip
_PAIR = re.compile(r"((?<![\w%.-])[\w%.-]{1,100})(\s{0,9}=\s{0,9})('(?:[^'\\]|\\.)*'|\"[^\"]*\"|[^\s&]*)")
_OPTION = re.compile(r"--?pass(word|wd|phrase)?", re.IGNORECASE)


def masked(text: str) -> str:
    """A URL, settings or a message without passwords; rather too much is hidden than too little.

    >>> masked("postgresql://me:secret@host/db?pass%77ord=secret"), masked("postgresql://host:5432/db")
    ('postgresql://me:***@host/db?pass%77ord=***', 'postgresql://host:5432/db')
    >>> masked("host=h password='my secret' user=me"), masked("postgresql://me:secret/db")
    ('host=h password=*** user=me', 'postgresql://me:***/db')
    """
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    text = _PORT.sub(r"\1:***", _ACCOUNT.sub(r"\1:***@", text))
    return _PAIR.sub(_setting, text)


def _setting(found: "re.Match[str]") -> str:
    secret = "pass" in unquote(found[1]).lower()
    return f"{found[1]}{found[2]}***" if secret else found[0]


def masked_words(words: list[str]) -> list[str]:
    """The words of a command, each without passwords, nor those behind an option of that name.

    >>> masked_words(["eval.sh", "--password", "secret", "PGPASSWORD=secret", "{arm}"])
    ['eval.sh', '--password', '***', 'PGPASSWORD=***', '{arm}']
    """
    before = ["", *words]
    return ["***" if _OPTION.fullmatch(last) else masked(word) for last, word in zip(before, words, strict=False)]
