"""What is hidden, and how it is found. `masking` is the door: nothing else imports this module.

The rules, in this order: private keys; passwords in URLs; values behind names that mean a secret; options of programs
that take a password; tokens of well-known shapes. Rather too much is hidden than too little. But a command, with its
secrets hidden, is part of a study's identity: two commands that measure different things should stay different.

Every pattern looks at a character a bounded number of times: a megabyte of anything takes a few seconds at most.
"""

import re
import zlib
from typing import NamedTuple

from .secretnames import HEADER, IN_QUERIES, PATH, PERHAPS, SURE, TOKEN, meaning, spelled

MASK = "***"
MOST_PASSES = 10


def hidden(text: str) -> str:
    """A text without secrets. Hiding again changes nothing."""
    for _ in range(MOST_PASSES):  # what is hidden may uncover the beginning of something else
        again = _once(text)
        if again == text:
            break
        text = again
    return text


def hidden_in_words(words: list[str]) -> list[str]:
    """The words of a command without secrets."""
    found: list[str] = []
    before, flags = "", None
    for word in words:
        found.append(_hidden_in_word(word, before, flags))
        flags, before = _flags_of(word) or flags, word
    return found


def _once(text: str) -> str:
    text = _PRIVATE_KEY.sub(rf"\1{MASK}\2", text)
    if ":/" in text:
        text = "\n".join(map(_without_accounts, text.split("\n")))
        text = _SLIP.sub(rf"\1:{MASK}", text)
    text = _BEARER.sub(rf"\1{MASK}", text)
    text = _without_settings(text)
    text = _COMMAND.sub(_without_flags, text)
    text = _TAG.sub(_without_content, text)
    return TOKEN.sub(lambda found: f"{next(filter(None, found.groups()))}{MASK}", text)


_PRIVATE_KEY = re.compile(
    r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----).*?"
    r"(-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----|\Z)",
    re.DOTALL,
)
_BEARER = re.compile(
    r"(\bbearer[ \t]{1,9})(?!(?:tokens?|auth\w*|scheme|header|format|of|is|and|or|in|for)\b|realm=)[^\s\"'\\,;)\]}]+",
    re.IGNORECASE,
)
_TAG = re.compile(r"<([\w:.-]{1,100}+)>([^<>\n]{1,1000}+)(?=</)")


def _without_content(found: "re.Match[str]") -> str:
    kind = meaning(found[1])
    return f"<{found[1]}>{MASK}" if kind and not _is_harmless(found[2].strip(), kind, "=") else found[0]


# -- URLs --------------------------------------------------------------------------------------------------------

_ACCOUNT = re.compile(r"(?<=[\w+.-]):/{1,3}[^\s/:\"'<>]{0,300}+:")
_PORT = re.compile(r"\d{1,5}(?![^\s/?#,;'\"`)\]}>])")
_RUN = re.compile(r"\S*")
_SLIP = re.compile(  # a port that is none: the host, or the @ before it, was forgotten
    r"((?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|mssql|oracle)(?:\+\w{1,30})?:/++[^\s/@:?]*+)"
    r":(?!\d*+(?:[/?,;\s'\")\]}>]|$))(?!\*\*\*)[^/?\s]+",
    re.IGNORECASE,
)


def _without_accounts(line: str) -> str:
    """Passwords of accounts: from the user's name to the last @ on the line, or before the next such URL."""
    if "@" not in line:
        return line
    found = list(_ACCOUNT.finditer(line))
    parts, done = [], 0
    for place, start in enumerate(found):
        begin, end = start.end(), found[place + 1].start() if place + 1 < len(found) else len(line)
        if _PORT.match(line, begin, end) and (run := _RUN.match(line, begin, end)):
            end = run.end()  # a port, unless an @ follows in the same word
        at = line.rfind("@", begin, end)
        if at >= 0:
            parts += [line[done:begin], MASK]
            done = at
    return "".join([*parts, line[done:]])


# -- names and values --------------------------------------------------------------------------------------------

_SETTING = re.compile(
    r"(?<![\w%.-])(?:(--?[A-Za-z][\w%.-]*+)([ \t]{1,9})(?=[^\s-])"
    r"|([\w%.-]++)((?:\\{0,8}[\"'])?\]?[ \t]{0,9}(?:=>|:=|={1,3}|:)[ \t]{0,9}))"
)
_OPENING = re.compile(r"[bBrRuU]{0,2}(\\{0,8})(\"\"\"|'''|[\"'`])")
_INSIDE = {quote: re.compile(rf"(?:[^{quote}\\\n]|\\.)*+") for quote in "\"'`"}
_BARE = re.compile(r"(?:[^\s&;]++|[&;](?!\s{0,9}[\w%.\[\]-]++=))++")
_ENDING = ",;)]}>\"'`"  # marks that stand behind a value, not in it
_HARMLESS = re.compile(  # values that show that a name meant something else
    r"\d{1,4}|\d*\.\d+%?|\d{1,3}%|\d{1,3}(?:[,-] ?\w{0,3})+|true|false|yes|no|ok|on|off|none|null|basic|digest",
    re.IGNORECASE,
)
_PROSE = re.compile(
    "an?|and|as|at|be|by|can(?:not)?|denied|empty|expected|expired|failed|for|has|if|in|invalid|is|missing|must|needs"
    "|not|of|on|option|or|rejected|required|that|the|to|unexpected|was|were|when|which|with|without|wrong"
)
_SCHEME = re.compile(r"(?:basic|bearer|token|apikey|api-key|key|negotiate|ntlm)[ \t]{1,9}", re.IGNORECASE)
_BRACKETS = {"{": re.compile(r"[{}]"), "[": re.compile(r"[\[\]]")}


def _without_settings(text: str) -> str:
    """Values behind names, as in ``password=X``, ``"password": "X"``, ``password: X`` and ``--password X``."""
    parts, done, at, end_of_line = [], 0, 0, -1
    while found := _SETTING.search(text, at):
        at = found.end()
        name, between = found[1] or found[3], found[2] or found[4]
        before = text[found.start() - 1] if found.start() else ""
        kind = _kind(name, between, before)
        if not kind or (kind == PATH and text.startswith("/", at)):
            continue
        if at > end_of_line:  # once a line
            end_of_line = text.find("\n", at)
            end_of_line = len(text) if end_of_line < 0 else end_of_line
        around = before if before in _INSIDE and not set(between) & set(_INSIDE) else ""
        begin, end = _value(text, at, end_of_line, around, is_header=kind == HEADER and "=" not in between)
        if end > begin and not _is_harmless(text[begin:end], kind, between):
            parts += [text[done:begin], MASK]
            done = at = end
    return "".join([*parts, text[done:]]) if parts else text


def _kind(name: str, between: str, before: str) -> str:
    kind = meaning(name)
    if kind == PERHAPS and between.strip() == ":" and not spelled(name).endswith("token"):
        return ""  # as in PASS: test_login
    if not kind and before in ("?", "&") and IN_QUERIES.search(spelled(name)):
        return SURE
    return kind


def _is_harmless(value: str, kind: str, between: str) -> bool:
    if "=" not in between and _PROSE.fullmatch(value):
        return True
    return kind == PERHAPS and _HARMLESS.fullmatch(value) is not None


def _value(text: str, at: int, end_of_line: int, around: str, *, is_header: bool) -> tuple[int, int]:
    """Where a value begins and ends; ``around`` is the quote before its name, if there is one."""
    if opening := _OPENING.match(text, at):
        return opening.end(), _end_of_quoted(text, opening, end_of_line)
    scheme = _SCHEME.match(text, at) if is_header else None
    at = scheme.end() if scheme else at
    if around:
        end = text.find(around, at, end_of_line)
        return at, end_of_line if end < 0 else end
    if is_header and scheme is None:
        return at, end_of_line
    if (bracket := text[at : at + 1]) in _BRACKETS:
        return at, _end_of_bracketed(text, at, bracket)
    bare = _BARE.match(text, at)
    return at, at + len(bare[0].rstrip(_ENDING)) if bare else at


def _end_of_quoted(text: str, opening: "re.Match[str]", end_of_line: int) -> int:
    """Before the closing quote, or where the line, or a text in three quotes, ends."""
    at, mark = opening.end(), opening[1] + opening[2]
    if mark not in _INSIDE:  # three quotes, or quotes in quotes
        last = len(text) if len(opening[2]) == 3 else end_of_line
        end = text.find(mark, at, last)
        return last if end < 0 else end
    end = _end_of(_INSIDE[mark], text, at)
    while text.startswith(mark * 2, end):  # how SQL writes a quote
        end = _end_of(_INSIDE[mark], text, end + 2)
    return end if text.startswith(mark, end) else end_of_line


def _end_of(pattern: "re.Pattern[str]", text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _end_of_bracketed(text: str, at: int, bracket: str) -> int:
    """Behind the bracket that closes the one there, or where the text ends."""
    depth = 0
    for found in _BRACKETS[bracket].finditer(text, at):
        depth += 1 if found[0] == bracket else -1
        if depth == 0:
            return found.end()
    return len(text)


# -- commands ----------------------------------------------------------------------------------------------------


class _Flags(NamedTuple):
    """The flags of a program behind which a password comes, in the same word or in the next."""

    programs: str
    flags: str
    in_the_next_word: bool = True
    is_account: bool = False  # a user's name may come first, and a colon

    def without_value(self, word: str, before: str) -> str | None:
        """A word without its password; None if it has none."""
        if self.in_the_next_word and re.fullmatch(self.flags, before):
            return self._value(word)
        found = re.fullmatch(rf"((?:{self.flags})=?)(.+)", word, re.DOTALL)
        return found and f"{found[1]}{self._value(found[2])}"

    def _value(self, value: str) -> str:
        user, colon, _ = value.partition(":")
        return f"{user}:{MASK}" if self.is_account and colon else MASK


_PROGRAMS = (
    _Flags(r"(?:mysql|mariadb|mycli)[\w-]*", "-p", in_the_next_word=False),  # -p alone lets the program ask
    _Flags(r"sshpass|mongo\w*|7z\w*|clickhouse-client", "-p"),
    _Flags(r"(?:redis|valkey)-cli", "-a"),
    _Flags(r"sqlcmd|bcp", "-P"),
    _Flags(r"ldap\w+", "-w"),
    _Flags(r"curl", "-[uU]|--user|--proxy-user", is_account=True),
)
_COMMAND = re.compile(rf"(?<![\w.-])(?:{'|'.join(flags.programs for flags in _PROGRAMS)})[ \t][^\n|;&]*")
_UNSURE = re.compile(r"-p(?=\S*\d)(?=\S*[A-Za-z])([^\s/{}:=,.*-][^\s/{}:=,*]{5,})")
_SCRIPT = re.compile(r"-\w*c")  # as in sh -c
_EQUALS = re.compile(r"(-{0,2}[\w%.-]+)=(.+)", re.DOTALL)


def _flags_of(word: str) -> _Flags | None:
    program = word.rpartition("/")[2]
    return next((flags for flags in _PROGRAMS if re.fullmatch(flags.programs, program)), None)


def _hidden_in_word(word: str, before: str, flags: _Flags | None) -> str:
    if before.startswith("-") and "=" not in before and (kind := meaning(before)):
        return word if _is_harmless(word, kind, "=") else MASK
    is_script = _SCRIPT.fullmatch(before) is not None
    if not is_script and (setting := _EQUALS.fullmatch(word)) and (kind := meaning(setting[1])):
        is_plain = kind != SURE and hidden(word) == word
        return word if is_plain else f"{setting[1]}={MASK}"  # with all blanks: they may be part of the secret
    if flags is not None and (rest := flags.without_value(word, before)) is not None:
        return rest
    if found := _UNSURE.fullmatch(word):
        # Perhaps a password, perhaps not: two digits of a checksum keep commands apart that differ here
        return f"-p{MASK}{zlib.crc32(found[1].encode('utf-8', 'replace')) & 255:02x}"
    return hidden(word)


def _without_flags(found: "re.Match[str]") -> str:
    """A command in a text, as in a script for sh."""
    words = re.split(r"([ \t]+)", found[0])
    flags, before = _flags_of(words[0]), ""
    for place in range(2, len(words), 2):
        rest = flags.without_value(words[place], before) if flags and words[place] else None
        before, words[place] = words[place], words[place] if rest is None else rest
    return "".join(words)
