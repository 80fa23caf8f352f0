"""What is hidden, and how it is found. Only `masking` imports this module.

The rules, in this order: private keys; passwords in URLs; values behind names that mean a secret; options of programs
that take a password; tokens of well-known shapes. Rather too much is hidden than too little. But a command, with its
secrets hidden, is part of a study's identity: two commands that measure different things should stay different. So
what is perhaps no secret keeps a checksum of two digits.

Every pattern looks at a character a bounded number of times: a megabyte of anything takes a few seconds at most.
"""

import re

from .maskprograms import MASK, Flags, flags_of, marked, mask, without_flags
from .maskurls import without_accounts
from .secretnames import HEADER, IN_QUERIES, METHOD, PATH, PERHAPS, SURE, TOKEN, UNSURE, meaning, spelled, takes

MOST_PASSES = 10


def hidden(text: str) -> str:
    """Text without secrets. Hiding again changes nothing."""
    for _ in range(MOST_PASSES):  # hiding one secret may uncover the beginning of another
        again = _once(text)
        if again == text:
            break
        text = again
    return text


def hidden_in_words(words: list[str]) -> list[str]:
    found: list[str] = []
    before, flags = "", None
    for word in words:
        found.append(_hidden_in_word(word, before, flags))
        flags, before = flags_of(word) or flags, word
    return found


def _once(text: str) -> str:
    lower = text.lower()
    if "private key" in lower:
        text = _PRIVATE_KEY.sub(rf"\1{MASK}\2", text)
    text = without_accounts(text)
    if "bearer" in lower:
        text = _BEARER.sub(rf"\1{MASK}", text)
    text = _without_settings(text)
    if "passw" in lower or "identified" in lower:
        text = _STATEMENT.sub(_without_word, text)
    text = without_flags(text)
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
_LIST = re.compile(
    r"[\[(]\s{0,9}[bruBRU]{0,2}(?:'(?:[^'\\\n]|\\.)*+'|\"(?:[^\"\\\n]|\\.)*+\")"
    r"(?:\s{0,9},\s{0,99}[bruBRU]{0,2}(?:'(?:[^'\\\n]|\\.)*+'|\"(?:[^\"\\\n]|\\.)*+\")){1,999}+"
)


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
    is_secret = kind and found[3].strip() and not _is_harmless(found[3].strip(), kind, "=")
    return f"{found[1]}{mask(found[3], kind)}" if is_secret else found[0]


def _without_word(found: "re.Match[str]") -> str:
    quote = found[2].lstrip("eE")[:1]
    quote = quote if quote in _INSIDE else ""
    return found[0] if _PROSE.fullmatch(found[2]) else f"{found[1]}{quote}{MASK}{quote}"


# -- names and values --------------------------------------------------------------------------------------------

_SETTING = re.compile(
    r"(?<![\w%.-])(?:(--?[A-Za-z][\w%.-]*+)([ \t]{1,9})(?=[^\s-])"
    r"|([\w%.-]++)((?:\\{0,8}[\"'])?\]?[ \t]{0,9}(?:=>|:=|\+?={1,3}|:)[ \t]{0,9}))"
)
_OPENING = re.compile(r"[bBrRuU$]{0,2}(\\{0,8})(\"\"\"|'''|[\"'`])")
_INSIDE = {quote: re.compile(rf"(?:[^{quote}\\\n]|\\.)*+") for quote in "\"'`"}
_BARE = re.compile(r"(?:\\[^\n]|[^\s&;\\]++|[&;](?!\s{0,9}[\w%.\[\]-]++=))++")
_JOINED = re.compile(  # quoted texts as a shell joins them
    r"[\"'](?=[\w$\\])(?:\\[^\n]|'[^'\n]*+'|\"(?:[^\"\\\n]|\\.)*+\"|[^\s'\"\\;&|<>(),\]}]++)++"
)
_ENDING = ",;)]}>\"'`"  # marks that stand behind a value, not in it
_HARMLESS = re.compile(  # values that show that a name meant something else
    r"(?:~|\.{0,2})/\S*\.[a-z]{1,5}|\{\w*\}|\d{1,4}|\d*\.\d+%?|\d{1,3}%|\d{1,3}(?:[,-] ?\w{0,3})+"
    r"|true|false|yes|no|ok|on|off|none|null|basic|digest|oauth2",
    re.IGNORECASE,
)
_MASKED = re.compile(r"\*\*\*(?:[0-9a-f]{2})?")
_SPOKEN = re.compile(r"([A-Za-z]{1,30})[ \t](?:(key|keys|phrase)[ \t])?\Z", re.IGNORECASE)  # as in: api key
_SENTENCE = re.compile(r"[A-Za-z] \Z")
_NAMED = re.compile(  # a name and a value as two settings
    r"(?:name|key|id|variable|header)[\\\"']{0,9}\s{0,9}[:=]\s{0,9}[\\\"']{0,9}([\w%.-]{1,100}+)[\\\"']{0,9}[\s,]{1,40}"
    r"[\\\"']{0,9}\Z",
    re.IGNORECASE,
)
_BLOCK = re.compile(r"(?:[|>][0-9+-]{0,2}[ \t]{0,9})?\r?\n(([ \t]{1,99}+)[^\n]*+(?:\n\2[^\n]*+)*+)")
_CONTINUED = re.compile(r"\\\r?\n[ \t]*+")
_PROSE = re.compile(
    "an?|and|as|at|be|by|can(?:not)?|denied|empty|expected|expired|failed|for|has|if|in|invalid|is|missing|must|needs"
    "|not|of|on|option|or|rejected|required|that|the|to|unexpected|was|were|when|which|with|without|wrong"
    "|CODES|FILE|NAME|PATH|TEXT|URL"  # what help shows in place of a value
)
_SCHEME = re.compile(r"(?:basic|bearer|token|apikey|api-key|key|negotiate|ntlm)[ \t]{1,9}", re.IGNORECASE)
_BRACKETS = {"{": re.compile(r"[{}]"), "[": re.compile(r"[\[\]]")}


def _without_settings(text: str) -> str:
    """Values that follow names, as in ``password=X``, ``"password": "X"``, ``password: X`` and ``--password X``."""
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
        around = before if before in _INSIDE and not set(between) & set(_INSIDE) else ""
        if not around and (block := _BLOCK.match(text, at)) and _is_deeper(text, found.start(), block[2]):
            begin, end = block.end(2), block.end(1)
        else:
            begin, end = _value(text, at, end_of_line, around, is_header=kind == HEADER and "=" not in between)
        if end > begin and not _is_harmless(text[begin:end], kind, between):
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
        if before in ("?", "&") and IN_QUERIES.search(spelled(name)):
            return SURE
        if lower in ("key", "keys", "phrase", "provided") and (spoken := _SPOKEN.search(text, max(0, at - 40), at)):
            return meaning(f"{spoken[1]}_{spoken[2] or lower}")
        if lower in ("value", "val", "content") and (named := _NAMED.search(text, max(0, at - 250), at)):
            return meaning(named[1])
        return ""
    is_weak = kind in (UNSURE, METHOD) or (kind == PERHAPS and _SENTENCE.search(text, max(0, at - 2), at))
    return "" if is_weak and between.strip() == ":" else kind  # as in PASS: test_login and in Unexpected token: x


def _is_harmless(value: str, kind: str, between: str) -> bool:
    if _MASKED.fullmatch(value) or ("=" not in between and _PROSE.fullmatch(value)):
        return True
    if kind == METHOD and value.isalpha():
        return True
    return kind in (PERHAPS, UNSURE, METHOD) and _HARMLESS.fullmatch(value) is not None


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
    while text.startswith(mark * 2, end):  # an escaped quote in SQL
        end = _end_of(_INSIDE[mark], text, end + 2)
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


# -- commands ----------------------------------------------------------------------------------------------------

_UNCLEAR = re.compile(r"-p(?=\S*\d)(?=\S*[A-Za-z])([^\s/{}:=,.*-][^\s/{}:=,*]{5,})")
_SCRIPT = re.compile(r"-\w*c")  # as in sh -c
_EQUALS = re.compile(r"(-{0,2}[\w%.-]+)=(.+)", re.DOTALL)


def _hidden_in_word(word: str, before: str, flags: Flags | None) -> str:
    if flags is not None and (rest := flags.without_value(word, before)) is not None:
        return rest
    if kind := takes(before):
        return word if _is_harmless(word, kind, "=") else mask(word, kind)
    is_script = _SCRIPT.fullmatch(before) is not None
    if not is_script and (setting := _EQUALS.fullmatch(word)) and (kind := meaning(setting[1])):
        is_plain = _is_harmless(setting[2], kind, "=") or (kind != SURE and hidden(word) == word)
        return word if is_plain else f"{setting[1]}={mask(setting[2], kind)}"  # with all blanks: they may be part of it
    if found := _UNCLEAR.fullmatch(word):
        return f"-p{marked(found[1])}"
    return hidden(word)
