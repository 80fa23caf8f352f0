"""Passwords and tokens in URLs."""

import re

from .maskprograms import MASK, mask
from .secretnames import UNSURE

_ACCOUNT = re.compile(r"(?<=[\w+.-]):/{1,3}[^\s/:\"'<>]{0,300}+:")
_LONE = re.compile(r"(https?://)(?!git@)([^\s/:@?#\"'<>{}*\\]{1,300}+)@(?![^\s/]{0,300}@)(?=[\w\[])", re.IGNORECASE)
_PORT = re.compile(r"\d{1,5}(?![^\s/?#,;'\"`)\]}>])")
_WEB = re.compile(r"https?\Z", re.IGNORECASE)
_RUN = re.compile(r"\S*")
_SLIP = re.compile(  # a port that is none: the host, or the @ before it, was forgotten
    r"((?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|mssql|oracle)(?:\+\w{1,30})?:/++[^\s/@:?]*+)"
    r":(?!\d*+(?:[/?,;\s'\")\]}>]|$))(?!\*\*\*)[^/?\s]+",
    re.IGNORECASE,
)


def without_accounts(text: str) -> str:
    if ":/" not in text:
        return text
    return _SLIP.sub(rf"\1:{MASK}", "\n".join(map(_without_accounts, text.split("\n"))))


def _without_accounts(line: str) -> str:
    """Passwords of accounts: from the user's name to the last @ on the line, or before the next such URL."""
    if "@" not in line:
        return line
    line = _LONE.sub(lambda found: f"{found[1]}{mask(found[2], UNSURE)}@", line)
    found = list(_ACCOUNT.finditer(line))
    parts, done = [], 0
    for place, start in enumerate(found):
        begin, end = start.end(), found[place + 1].start() if place + 1 < len(found) else len(line)
        if (port := _PORT.match(line, begin, end)) and (run := _RUN.match(line, begin, end)):
            is_web = _WEB.search(line, max(0, start.start() - 5), start.start())  # paths there may hold an @
            end = port.end() if is_web else run.end()  # a port, unless an @ follows in the same word
        at = line.rfind("@", begin, end)
        if at >= 0:
            parts += [line[done:begin], MASK]
            done = at
    return "".join([*parts, line[done:]])
