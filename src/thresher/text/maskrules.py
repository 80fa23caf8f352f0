"""What is hidden, and how it is found. Only `masking` imports this module.

The rules, in this order: private keys; passwords in URLs; values behind names that mean a secret; options of programs
that take a password; tokens of well-known shapes. When in doubt, a value is hidden. But a command, with its secrets
hidden, is part of a study's identity: two commands that measure different things should stay different. So a value that
may not be a secret keeps a checksum of two digits.

Every pattern looks at a character a bounded number of times: a megabyte of anything takes a few seconds at most.
"""

import re
from typing import NamedTuple

from .masksettings import INSIDE, without_settings
from .secretnames import MASK, PROSE, SURE, TOKEN, UNSURE, is_harmless, marked, mask, meaning, takes

MOST_PASSES = 10


def hidden(text: str) -> str:
    """Text without secrets. Hiding again changes nothing."""
    for _ in range(MOST_PASSES):  # hiding one secret may uncover the beginning of another
        again = _once(text)
        if again == text:
            break
        text = again
    return text


def _once(text: str) -> str:
    lower = text.lower()
    if "private key" in lower:
        text = _PRIVATE_KEY.sub(rf"\1{MASK}\2", text)
    text = _without_accounts(text)
    if "bearer" in lower:
        text = _BEARER.sub(rf"\1{MASK}", text)
    text = without_settings(text)
    if "passw" in lower or "identified" in lower:
        text = _STATEMENT.sub(_without_word, text)
    text = _without_flags(text)
    if "'," in text or '",' in text:
        text = _LIST.sub(_without_items, text)
    if "</" in text:
        text = _TAG.sub(_without_content, text)
    return TOKEN.sub(lambda found: f"{next(filter(None, found.groups()))}{MASK}", text)


_PRIVATE_KEY = re.compile(
    r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----).*?"
    r"(-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----|\Z)",
    re.DOTALL,
)
_BEARER = re.compile(
    r"(\bbearer[ \t]{1,9})(?!(?:tokens?|auth\w*|scheme|header|format|of|is|and|or|in|for|do|may|can)\b|realm=)"
    r"[^\s\"'\\,;)\]}]+",
    re.IGNORECASE,
)
_TAG = re.compile(r"(<([\w:.-]{1,100}+)(?:\s[^<>]{0,300}+)?>)([^<>]{1,1000}+)(?=</)")
_STATEMENT = re.compile(  # of SQL, and of a netrc file
    r"(\b(?:password[ \t(]{1,9}(?=[Ee]?['\"])|identified\s{1,9}(?:with\s{1,9}\S{1,99}\s{1,9})?(?:by|as)\s{1,9}"
    r"|(?:machine|login)\s{1,9}\S{1,300}+\s{1,9}password\s{1,9}"
    r"|(?:setenv|env)[ \t]{1,9}\w{0,99}passw\w{0,99}[ \t]{1,9}))"
    r"([Ee]?'(?:[^'\\\n]|\\.|'')*+'?|\"(?:[^\"\\\n]|\\.)*+\"?|[^\s;,]++)",
    re.IGNORECASE,
)


_ITEM = re.compile(r"([bruBRU]{0,2}[\"'])((?<=')(?:[^'\\\n]|\\.)*+(?=')|(?<=\")(?:[^\"\\\n]|\\.)*+(?=\"))[\"']")
_STRING = r"[bruBRU]{0,2}(?:'(?:[^'\\\n]|\\.)*+'|\"(?:[^\"\\\n]|\\.)*+\")"
_LIST = re.compile(rf"[\[(]\s{{0,9}}{_STRING}(?:\s{{0,9}},\s{{0,99}}{_STRING}){{1,999}}+")


def _without_items(found: "re.Match[str]") -> str:
    """A list of words, as Python and JSON print a command, without secrets."""
    items = [item[2] for item in _ITEM.finditer(found[0])]
    words = iter(zip(items, hidden_in_words(items), strict=True))

    def item_without(item: "re.Match[str]") -> str:
        before, after = next(words)
        return item[0] if MASK in before else f"{item[1]}{after}{item[1][-1]}"

    return _ITEM.sub(item_without, found[0])


def _without_content(found: "re.Match[str]") -> str:
    kind = meaning(found[2])
    is_secret = kind and found[3].strip() and not is_harmless(found[3].strip(), kind, "=")
    return f"{found[1]}{mask(found[3], kind)}" if is_secret else found[0]


def _without_word(found: "re.Match[str]") -> str:
    quote = found[2].lstrip("eE")[:1]
    quote = quote if quote in INSIDE else ""
    return found[0] if PROSE.fullmatch(found[2]) else f"{found[1]}{quote}{MASK}{quote}"


# -- URLs ------------------------------------------------------------------------------------------------------

_ACCOUNT = re.compile(r"(?<=[\w+.-]):/{1,3}[^\s/:\"'<>]{0,300}+:")
_LONE = re.compile(r"(https?://)(?!git@)([^\s/:@?#\"'<>{}*\\]{1,300}+)@(?![^\s/]{0,300}@)(?=[\w\[])", re.IGNORECASE)
_PORT = re.compile(r"\d{1,5}(?![^\s/?#,;'\"`)\]}>])")
_WEB = re.compile(r"https?\Z", re.IGNORECASE)
_RUN = re.compile(r"\S*")
_SLIP = re.compile(  # not a valid port: the host, or the @ before it, was forgotten
    r"((?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|mssql|oracle)(?:\+\w{1,30})?:/++[^\s/@:?]*+)"
    r":(?!\d*+(?:[/?,;\s'\")\]}>]|$))(?!\*\*\*)[^/?\s]+",
    re.IGNORECASE,
)


def _without_accounts(text: str) -> str:
    if ":/" not in text:
        return text
    return _SLIP.sub(rf"\1:{MASK}", "\n".join(map(_without_passwords, text.split("\n"))))


def _without_passwords(line: str) -> str:
    """Passwords of accounts: from the user's name to the last @ on the line, or before the next such URL."""
    if "@" not in line:
        return line
    line = _LONE.sub(lambda found: f"{found[1]}{mask(found[2], UNSURE)}@", line)
    found = list(_ACCOUNT.finditer(line))
    parts, done = [], 0
    for index, start in enumerate(found):
        begin, end = start.end(), found[index + 1].start() if index + 1 < len(found) else len(line)
        if (port := _PORT.match(line, begin, end)) and (run := _RUN.match(line, begin, end)):
            is_web = _WEB.search(line, max(0, start.start() - 5), start.start())  # paths there may hold an @
            end = port.end() if is_web else run.end()  # a port, unless an @ follows in the same word
        at = line.rfind("@", begin, end)
        if at >= 0:
            parts += [line[done:begin], MASK]
            done = at
    return "".join([*parts, line[done:]])


# -- programs whose flags take a password, in the words of a command and in a script ---------------------------

_QUOTES = ("'", '"')


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


def _flags_of(word: str) -> Flags | None:
    """The flags of a program, if the word names one."""
    program = word.rpartition("/")[2]
    return next((flags for flags in _PROGRAMS if re.fullmatch(flags.programs, program)), None)


def _without_flags(text: str) -> str:
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
        flags = _flags_of(word) or flags
        rest = flags.without_value(word, last) if flags else None
        return (_without_flags(word) if " " in word else word) if rest is None else rest

    return _WORD.sub(word_without, command[0])


# -- the words of a command ------------------------------------------------------------------------------------

_UNCLEAR = re.compile(r"-p(?=\S*\d)(?=\S*[A-Za-z])([^\s/{}:=,.*-][^\s/{}:=,*]{5,})")
_SCRIPT = re.compile(r"-\w*c")  # as in sh -c
_EQUALS = re.compile(r"(-{0,2}[\w%.-]+)=(.+)", re.DOTALL)


def hidden_in_words(words: list[str]) -> list[str]:
    found: list[str] = []
    before, flags = "", None
    for word in words:
        found.append(_hidden_in_word(word, before, flags))
        flags, before = _flags_of(word) or flags, word
    return found


def _hidden_in_word(word: str, before: str, flags: Flags | None) -> str:
    if flags is not None and (rest := flags.without_value(word, before)) is not None:
        return rest
    if kind := takes(before):
        return word if is_harmless(word, kind, "=") else mask(word, kind)
    is_script = _SCRIPT.fullmatch(before) is not None
    if not is_script and (setting := _EQUALS.fullmatch(word)) and (kind := meaning(setting[1])):
        is_plain = is_harmless(setting[2], kind, "=") or (kind != SURE and hidden(word) == word)
        return word if is_plain else f"{setting[1]}={mask(setting[2], kind)}"  # with all blanks: they may be part of it
    if found := _UNCLEAR.fullmatch(word):
        return f"-p{marked(found[1])}"
    return hidden(word)
