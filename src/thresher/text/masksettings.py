"""Values that follow names, as in ``password=X``, ``"password": "X"``, ``password: X`` and ``--password X``."""

import re

from .secretnames import HEADER, METHOD, PATH, PERHAPS, UNSURE, in_query, is_harmless, mask, meaning, takes

_SETTING = re.compile(
    r"(?<![\w%.-])(?:(--?[A-Za-z][\w%.-]*+)([ \t]{1,9})(?=[^\s-])"
    r"|([\w%.-]++)((?:\\{0,8}[\"'])?\]?[ \t]{0,9}(?:=>|:=|\+?={1,3}|:)[ \t]{0,9}))"
)
_OPENING = re.compile(r"[bBrRuU$]{0,2}(\\{0,8})(\"\"\"|'''|[\"'`])")
INSIDE = {quote: re.compile(rf"(?:[^{quote}\\\n]|\\.)*+") for quote in "\"'`"}
_BARE = re.compile(r"(?:\\[^\n]|[^\s&;\\]++|[&;](?!\s{0,9}[\w%.\[\]-]++=))++")
_JOINED = re.compile(  # quoted texts as a shell joins them
    r"[\"'](?=[\w$\\])(?:\\[^\n]|'[^'\n]*+'|\"(?:[^\"\\\n]|\\.)*+\"|[^\s'\"\\;&|<>(),\]}]++)++"
)
_ENDING = ",;)]}>\"'`"  # marks that stand behind a value, not in it
_SPOKEN = re.compile(r"([A-Za-z]{1,30})[ \t](?:(key|keys|phrase)[ \t])?\Z", re.IGNORECASE)  # as in: api key
_SENTENCE = re.compile(r"[A-Za-z] \Z")
_NAMED = re.compile(  # a name and a value as two settings
    r"(?:name|key|id|variable|header)[\\\"']{0,9}\s{0,9}[:=]\s{0,9}[\\\"']{0,9}([\w%.-]{1,100}+)[\\\"']{0,9}[\s,]{1,40}"
    r"[\\\"']{0,9}\Z",
    re.IGNORECASE,
)
_BLOCK = re.compile(r"(?:[|>][0-9+-]{0,2}[ \t]{0,9})?\r?\n(([ \t]{1,99}+)[^\n]*+(?:\n\2[^\n]*+)*+)")
_CONTINUED = re.compile(r"\\\r?\n[ \t]*+")
_SCHEME = re.compile(r"(?:basic|bearer|token|apikey|api-key|key|negotiate|ntlm)[ \t]{1,9}", re.IGNORECASE)
_BRACKETS = {"{": re.compile(r"[{}]"), "[": re.compile(r"[\[\]]")}


def without_settings(text: str) -> str:
    """Text without the secrets that follow names."""
    parts, done, at, end_of_line = [], 0, 0, -1
    while found := _SETTING.search(text, at):
        at = found.end()
        name, between = found[1] or found[3], found[2] or found[4]
        kind = takes(name) if found[1] else _kind(name, between, text, found.start())
        if not kind or (kind == PATH and text.startswith("/", at)):
            continue
        if continued := _CONTINUED.match(text, at):
            at = continued.end()
        if at > end_of_line:  # once a line
            end_of_line = text.find("\n", at)
            end_of_line = len(text) if end_of_line < 0 else end_of_line
        before = text[found.start() - 1] if found.start() else ""
        around = before if before in INSIDE and not set(between) & set(INSIDE) else ""
        if not around and (block := _BLOCK.match(text, at)) and _is_deeper(text, found.start(), block[2]):
            begin, end = block.end(2), block.end(1)
        else:
            begin, end = _value(text, at, end_of_line, around, is_header=kind == HEADER and "=" not in between)
        if end > begin and not is_harmless(text[begin:end], kind, between):
            parts += [text[done:begin], mask(text[begin:end], kind)]
            done = at = end
    return "".join([*parts, text[done:]]) if parts else text


def _is_deeper(text: str, at: int, indent: str) -> bool:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return len(indent) > len(line) - len(line.lstrip(" \t-"))


def _kind(name: str, between: str, text: str, at: int) -> str:
    kind, before = meaning(name), text[at - 1 : at]
    if not kind:
        lower = name.lower()
        if before in ("?", "&") and (kind := in_query(name)):
            return kind
        if lower in ("key", "keys", "phrase", "provided") and (spoken := _SPOKEN.search(text, max(0, at - 40), at)):
            return meaning(f"{spoken[1]}_{spoken[2] or lower}")
        if lower in ("value", "val", "content") and (named := _NAMED.search(text, max(0, at - 250), at)):
            return meaning(named[1])
        return ""
    is_weak = kind in (UNSURE, METHOD) or (kind == PERHAPS and _SENTENCE.search(text, max(0, at - 2), at))
    return "" if is_weak and between.strip() == ":" else kind  # as in PASS: test_login and in Unexpected token: x


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
    if mark not in INSIDE:  # three quotes, or quotes in quotes
        last = len(text) if len(opening[2]) == 3 else end_of_line
        end = text.find(mark, at, last)
        return last if end < 0 else end
    end = _end_of(INSIDE[mark], text, at)
    while text.startswith(mark * 2, end):  # an escaped quote in SQL
        end = _end_of(INSIDE[mark], text, end + 2)
    if joined := _JOINED.match(text, end):
        return joined.end()
    return end if text.startswith(mark, end) else end_of_line


def _end_of(pattern: "re.Pattern[str]", text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _end_of_bracketed(text: str, at: int, bracket: str) -> int:
    """After the bracket that closes this one, or at the end of the text."""
    depth = 0
    for found in _BRACKETS[bracket].finditer(text, at):
        depth += 1 if found[0] == bracket else -1
        if depth == 0:
            return found.end()
    return len(text)
