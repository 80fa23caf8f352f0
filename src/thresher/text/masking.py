r"""Hides secrets wherever text leaves the program or enters the log.

It knows passwords in URLs, values of names that mean a secret, private keys, and tokens of well-known shapes. No rules
find every secret. Put secrets into the environment, because what stands in a command is recorded.

A command, with its secrets hidden, is part of a study's identity, and two commands that measure different things must
stay different. So nothing but a value is hidden, and a value without quotes ends at the first sign that could end it.
Each pattern looks at a character a bounded number of times: the time grows with the text's length, whatever it holds.
"""

import re

from .escapes import escaped_visible

MASK = "***"
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

# In the path of a web page, an @ follows no password; elsewhere, people forget to write %40 and %2F in passwords.
_WEB_PASSWORD = re.compile(r"(\b(?:http|ws)s?://[^\s:/?#\"'<>]*+:)[^\s/?#\"'<>]+(?=@)", re.IGNORECASE)
_URL_PASSWORD = re.compile(
    r"((?<!http)(?<!https)(?<!ws)(?<!wss)://[^\s:/?#\"'<>]*+:)(?:(?!://)[^\s\"'<>])+(?=@)", re.IGNORECASE
)
_SIGNATURE = re.compile(r"([?&](?:sig|[\w-]{0,40}signature)=)[^\s&#\"'<>]+", re.IGNORECASE)
_COOKIE = re.compile(r"(\bcookie:[ \t]?)[^\r\n\"']+", re.IGNORECASE)
_PRIVATE_KEY = re.compile(r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----).*?(?=-----END|\Z)", re.DOTALL)
_BEARER = re.compile(r"(\bbearer[ \t]{1,9})(?=[^\s\"',;]*?\d)[^\s\"'\\,;)]+", re.IGNORECASE)
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(sk-)(?<![\w-]sk-)(?=[\w-]*\d)[\w-]{10,}"
    r"|((?:sk|rk|pk)_(?:live|test)_|whsec_|gh[oprsu]_|github_pat_|glpat-|xapp-|xox[a-z]-)[\w-]{8,}"
    r"|(hf_|gsk_|npm_)[A-Za-z0-9]{20,}|(pypi-)[\w-]{40,}"
    r"|(A(?:KIA|SIA))[0-9A-Z]{12,}|(AIza)[\w-]{20,}|(ya29\.)[\w.-]{10,}|(eyJ)[\w-]{10,}(?:\.[\w-]*){0,4}"
    r")"
)

_NAMED = re.compile(  # a name, and what stands between it and its value
    r"(?<![\w.-])(?:(--?[A-Za-z][\w.-]*+)(?:[ \t]{1,9}|\\{0,3}[\"'],[ \t]?)(?=[^\s-])"  # --name X, '--name', 'X'
    r"|(-{0,2}[\w.-]++)\\{0,3}[\"']?\]?[ \t]{0,9}[:=+]=?[=>]?[ \t]{0,9})"  # name=X, "name": "X", x["name"] = X
)
_VALUE = re.compile(
    r"[bru]?(\\{0,3}[\"'`])((?:(?!(?<!\\)\1).)+)\1"
    r"|\\{0,3}[\"'`]?(?:(?:(?<=:)|(?<=:[ ]))(?:basic|bearer)[ \t]{1,9})?([^\s\"'`,;&|<>()\[\]{}]+)",
    re.IGNORECASE,
)
_SECRET_NAME = re.compile(
    r"(?:password|passwd|passwort|passphrase|passcode|secret|credentials?|authorization|jwt|token"
    r"|(?:^|_)(?:access|account|api|auth|client|encryption|master|private|secret|service|signing|ssh|storage)_?keys?"
    r"|(?:^|_)(?:admin|db|mail|mysql|pg|redis|root|smtp|user)_?pass)\d*$"
)
_OTHER_NAME = re.compile(  # tokens of language models; switches, which take no value
    r"(?:^|_)(?:bos|cls|end|eos|first|image|last|mask|next|pad|per|sep|special|start|stop|unk)_token$"
    r"|^(?:allow|ask|disable|enable|no|not|print|prompt|require|show|skip|use|with|without)_"
)
_WORD_BEGINS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_OPTION = re.compile(r"(--?[A-Za-z][\w.-]*)(?:=(.+))?", re.DOTALL)
_PLAIN = re.compile(r"\*\*\*|\{\w*\}|true|false|yes|no|none|null", re.IGNORECASE)


def masked(text: str) -> str:
    """Text without secrets.

    >>> masked("postgresql://me:p@ss@host/db?password=secret"), masked("postgresql://host:5432/db")
    ('postgresql://me:***@host/db?password=***', 'postgresql://host:5432/db')
    >>> masked("password='my secret' --api-key X passed=3"), masked('{"token": "secret", "tokens": 512}')
    ("password='***' --api-key *** passed=3", '{"token": "***", "tokens": 512}')
    """
    if "://" in text:
        for pattern in (_WEB_PASSWORD, _URL_PASSWORD):
            text = pattern.sub(rf"\1{MASK}", text)
    for pattern in (_SIGNATURE, _COOKIE, _PRIVATE_KEY, _BEARER):
        text = pattern.sub(rf"\1{MASK}", text)
    text = _without_named(text)
    return _TOKEN.sub(lambda token: f"{next(filter(None, token.groups()))}{MASK}", text)


def masked_words(words: list[str]) -> list[str]:
    """The words of a command without secrets, including those that follow an option such as --password.

    >>> masked_words(["eval.sh", "--password", "my secret", "--token=my secret", "PGPASSWORD=secret", "{arm}"])
    ['eval.sh', '--password', '***', '--token=***', 'PGPASSWORD=***', '{arm}']
    """
    shown = []
    for before, word in zip(["", *words], words, strict=False):
        option, option_before = _OPTION.fullmatch(word), _OPTION.fullmatch(before)
        if option and option[2] and means_secret(option[1]):
            shown.append(word if _PLAIN.fullmatch(option[2]) else f"{option[1]}={MASK}")
        elif option_before and not option_before[2] and word[:1] != "-" and means_secret(before):
            shown.append(word if _PLAIN.fullmatch(word) else MASK)
        else:
            shown.append(masked(word))
    return shown


def means_secret(name: str) -> bool:
    """Whether what follows a name is a secret.

    >>> means_secret("AWS_SECRET_ACCESS_KEY"), means_secret("githubToken"), means_secret("--max-tokens")
    (True, True, False)
    """
    plain = _WORD_BEGINS.sub("_", name).replace("-", "_").replace(".", "_").lower().strip("_")
    return _SECRET_NAME.search(plain) is not None and not _OTHER_NAME.search(plain)


def masked_line(text: str) -> str:
    r"""Other people's text on one line for people: what a failing program printed may hold anything.

    >>> print(masked_line("out of\n memory\x1b[31m, password=secret"))
    out of memory\x1b[31m, password=***
    """
    return escaped_visible(" ".join(masked(text).split()))


def masked_printable(text: str) -> str:
    r"""Other people's text, safe to show: without secrets, colours and control characters.

    >>> print(masked_printable("\x1b[31muser=me password=secret \a\x1b[0m"))
    user=me password=*** \x07
    """
    lines = masked(COLOURS.sub("", text)).replace("\t", " ").splitlines()  # masked as a whole: a key has many lines
    return "\n".join(escaped_visible(line).rstrip() for line in lines)


def _without_named(text: str) -> str:
    """Text without the values of names that mean a secret."""
    parts, done = [], 0
    for named in _NAMED.finditer(text):
        name, between = named[1] or named[2], named[0][len(named[1] or named[2]) :]
        before = text[named.start() - 1 : named.start()]
        is_closed = before in ("'", '"') and before not in between and text.startswith(before, named.end())
        if named.start() < done or is_closed or not means_secret(name):  # closed: "password=" holds no value
            continue
        value = _VALUE.match(text, named.end())
        if value is None or _PLAIN.fullmatch(value[2] or value[3]):
            continue
        begin, end = value.span(2 if value[2] else 3)
        parts += [text[done:begin], MASK]
        done = end
    return "".join([*parts, text[done:]])
