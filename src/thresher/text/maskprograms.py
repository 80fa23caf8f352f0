"""Programs whose flags take a password, in the words of a command and in a script."""

import re
import zlib
from typing import NamedTuple

from .secretnames import UNSURE

MASK = "***"
_ANYTHING = re.compile(r"[A-Za-z_-]{1,15}|\d{1,15}|\w{1,5}")  # no more like a secret than like anything else
_QUOTES = ("'", '"')


def mask(value: str, kind: str) -> str:
    """The mask for a value. One that may not be secret keeps a checksum, so that different commands stay different."""
    return marked(value) if kind == UNSURE and _ANYTHING.fullmatch(value) else MASK


def marked(value: str) -> str:
    """The mask with a checksum of two digits.

    >>> marked("5")
    '***ae'
    """
    return f"{MASK}{zlib.crc32(value.encode('utf-8', 'replace')) & 255:02x}"


class Flags(NamedTuple):
    """The flags of a program that are followed by a password, in the same word or the next."""

    programs: str
    flags: str
    in_the_next_word: bool = True
    is_account: bool = False  # a user's name and a colon may come first

    def without_value(self, word: str, before: str) -> str | None:
        """A word without its password; None if it has none."""
        if self.in_the_next_word and re.fullmatch(self.flags, before):
            return self._value(word)
        if re.fullmatch(self.flags, word):
            return None
        found = re.fullmatch(rf"((?:{self.flags})=?)(.+)", word, re.DOTALL)
        return found and f"{found[1]}{self._value(found[2])}"

    def _value(self, value: str) -> str:
        user, colon, _ = value.partition(":")
        if self.is_account and colon:
            return value if user in ("env", "file", "fd") else f"{user}:{_masked(value, user)}"
        return _masked(value)


def _masked(value: str, user: str = "") -> str:
    """The mask, inside the quotes that begin or end a value."""
    begin, end = value[:1] if not user else "", value[1:][-1:]
    return f"{begin if begin in _QUOTES else ''}{MASK}{end if end in _QUOTES else ''}"


_PROGRAMS = (
    Flags(r"(?:mysql|mariadb|mycli)[\w-]*", "-p", in_the_next_word=False),  # -p alone lets the program ask
    Flags(r"login|sshpass|mongo\w*|7z\w*|clickhouse-client", "-p"),  # as in docker login
    Flags(r"(?:redis|valkey)-cli", "-a"),
    Flags(r"sqlcmd|bcp", "-P"),
    Flags(r"(?:un)?zip", "-[a-zA-Z]*P"),
    Flags(r"ldap\w+", "-w"),
    Flags(r"openssl", "-pass(?:in|out)?", is_account=True),
    Flags(r"curl", "-[0-9aBfgGiIjklLMnNOpqRsSvVZ#]*[uU]|--user|--proxy-user", is_account=True),
    Flags(r"https?|xhs?", "-a|--auth", is_account=True),
)
_NAMES = "|".join(flags.programs for flags in _PROGRAMS)
_COMMAND = re.compile(rf"(?<![\w.-])(?:{_NAMES})[ \t][^\n]*")
_WORD = re.compile(r"[|;&]++|(?:\\.|\"(?:[^\"\\]|\\.){0,1000}+\"|'[^']{0,1000}+'|[^\s|;&])++")


def flags_of(word: str) -> Flags | None:
    """The flags of a program, if the word names one."""
    program = word.rpartition("/")[2]
    return next((flags for flags in _PROGRAMS if re.fullmatch(flags.programs, program)), None)


def without_flags(text: str) -> str:
    """Text without the passwords of the commands in it, such as a shell script."""
    return _COMMAND.sub(_without_values, text) if " -" in text or "\t-" in text else text


def _without_values(command: "re.Match[str]") -> str:
    flags, before = None, ""

    def word_without(found: "re.Match[str]") -> str:
        nonlocal flags, before
        word, last = found[0], before
        before = word
        if word[0] in "|;&":
            flags = None
            return word
        flags = flags_of(word) or flags
        rest = flags.without_value(word, last) if flags else None
        return (without_flags(word) if " " in word else word) if rest is None else rest

    return _WORD.sub(word_without, command[0])
