"""Which names mean that a secret follows, which values are not secrets, what well-known tokens look like, the mask."""

import functools
import re
import zlib
from urllib.parse import unquote

MASK = "***"
SURE, HEADER = "sure", "header"
PERHAPS = "perhaps"  # unless the value shows that the name means something else
UNSURE = "unsure"  # the same, and a value that may be anything keeps a checksum
METHOD = "method"  # the same, and a word is the name of a method, as in --auth ldap
PATH = "path"  # the name of a folder is not a password

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_VENDORS = (
    "ai21|algolia|anthropic|aws|azure|claude|cloudflare|cohere|datadog|dd|deepinfra|deepl|deepseek|elevenlabs|fireworks"
    "|gcp|gemini|gh|github|gitlab|google|groq|heroku|hf|huggingface|jina|langchain|langfuse|langsmith|mailgun|maps"
    "|mistral|nvidia|openai|openrouter|perplexity|pinecone|replicate|sendgrid|sentry|serpapi|slack|stripe|supabase"
    "|tavily|together|twilio|voyage|wandb|weaviate|xai"
)
_SURE = re.compile(
    r"password|passwd|passwort|passphrase|passcode|pass_phrase|secret(?!ar)|credential"
    r"|(?:^|_)(?:api|access|account|app|auth|client|consumer|encryption|master|pass|private|service|session|shared"
    rf"|signing|ssh|storage|subscription|{_VENDORS})_?keys?(?:$|_(?!id|count|func))"
    r"|(?:^|_)(?:bearer|jwt)$|(?:^|_)(?:ado|azure|devops|gh|git|github|gitlab)_pat$"
)
_HEADER = re.compile(r"(?:^|_)(?:authorization|cookie)$")
_PERHAPS = re.compile(r"token$|(?:^|_)(?:access|api|app|auth|bearer|bot|client|deploy|refresh|service|user)_tokens$")
_UNSURE = re.compile(
    r"(?:^|_)(?:pass|pw|(?:php|j)?sess(?:ion)?_?id)$|(?:^|_)(?:admin|db|ftp|key|ldap|login|mail|mongo|mqtt|my|mysql|pg"
    r"|proxy|redis|root|smtp|ssh|store|sudo|trust|user|vnc|wifi)_?pass$"
)
_METHOD = re.compile(r"(?:^|_)auth$")
_PATH = re.compile(r"(?:^|_)\w*pwd$")
_ABOUT = re.compile(r"_(?:stdin|file|path|prompt|policy|length|env|type|field|column|name)$")  # not the secret itself
_OTHER = re.compile(  # tokens of language models, passes over data
    r"(?:^|_)(?:eos|bos|pad|unk|cls|sep|mask|stop|start|end|special|per|next|first|last|image)_token$"
    r"|(?:^|_)(?:first|second|last|one|two|single|multi|num|n|max|min|by)_pass$"
)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_(?:[A-Z0-9]+_)*KEY")  # an environment variable: often a vendor's name and KEY
_OF_DATA = re.compile(
    r"(?:cache|column|dict|foreign|group|hash|index|join|lookup|map|partition|primary|public|row|sort)_"
)
_KINDS = {SURE: _SURE, HEADER: _HEADER, PERHAPS: _PERHAPS, UNSURE: _UNSURE, METHOD: _METHOD, PATH: _PATH}
_OPTION = re.compile(r"--?[\w%.-]+")
_SWITCH = re.compile(r"(?:no|not|use|skip|show|with|without|disable|enable|ask|prompt|require|allow|print)_")
_IN_QUERIES = re.compile(r"(?:^|_)(?:key|sig|signature)$")  # names that mean a secret in the query of a URL alone
_HARMLESS = re.compile(  # values that show that a name meant something else
    r"(?:~|\.{0,2})/\S*\.[a-z]{1,5}|\{\w*\}|\d{1,4}|\d*\.\d+%?|\d{1,3}%|\d{1,3}(?:[,-] ?\w{0,3})+"
    r"|true|false|yes|no|ok|on|off|none|null|basic|digest|oauth2",
    re.IGNORECASE,
)
PROSE = re.compile(
    "an?|and|as|at|be|by|can(?:not)?|denied|empty|expected|expired|failed|for|has|if|in|invalid|is|missing|must|needs"
    "|not|of|on|option|or|rejected|required|that|the|to|unexpected|was|were|when|which|with|without|wrong"
    "|CODES|FILE|NAME|PATH|TEXT|URL"  # what help shows in place of a value
)
_MASKED = re.compile(r"\*\*\*(?:[0-9a-f]{2})?")
_ANYTHING = re.compile(r"[A-Za-z_-]{1,15}|\d{1,15}|\w{1,5}")  # no more like a secret than like anything else

TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(sk-)(?<![\w-]sk-)(?=[\w-]*\d)[\w-]{10,}"
    r"|((?:sk|rk|pk)_(?:live|test)_|whsec_|gh[oprsu]_|github_pat_|glpat-|dop_v1_|xapp-|xox[a-z]-)"
    r"[\w-]{8,}"
    r"|(hf_|gsk_|npm_)[A-Za-z0-9]{20,}|(pypi-)[\w-]{40,}"
    r"|(A(?:KIA|SIA))[0-9A-Z]{12,}|(AIza)[\w-]{20,}|(ya29\.)[\w.-]{10,}|(SG\.)[\w-]{8,}\.[\w-]{8,}"
    r"|(eyJ)[\w-]{10,}(?:\.[\w-]*){0,4}"
    r")"
)


@functools.lru_cache(maxsize=1000)
def meaning(name: str) -> str:
    """What a name says about the value that follows: one of the words above, or nothing.

    >>> meaning("AWS_SECRET_ACCESS_KEY"), meaning("--max-tokens"), meaning("githubToken"), meaning("monkey")
    ('sure', '', 'perhaps', '')
    """
    plain = spelled(name)
    if _ABOUT.search(plain) or _OTHER.search(plain):
        return ""
    for kind, pattern in _KINDS.items():
        if pattern.search(plain):
            return kind
    return UNSURE if _VARIABLE.fullmatch(name) and not _OF_DATA.search(plain) else ""


def in_query(name: str) -> str:
    """What a name in the query of a URL says about its value, if it says nothing elsewhere.

    >>> in_query("X-Amz-Signature"), in_query("page")
    ('sure', '')
    """
    return SURE if _IN_QUERIES.search(spelled(name)) else ""


def takes(option: str) -> str:
    """What an option says about the next word; nothing if it is a switch, which takes none.

    >>> takes("--password"), takes("--no-password"), takes("-HX-Token: 5")
    ('sure', '', '')
    """
    is_switch = not _OPTION.fullmatch(option) or _SWITCH.match(spelled(option))
    return "" if is_switch else meaning(option)


def spelled(name: str) -> str:
    """A name in one spelling.

    >>> spelled("apiKey"), spelled("X-Api-Key"), spelled("pass%77ord2")
    ('api_key', 'x_api_key', 'password')
    """
    words = _WORDS.findall(unquote(name) if "%" in name else name)
    return "_".join(word.lower() for word in words if not word.isdigit())


def is_harmless(value: str, kind: str, between: str) -> bool:
    """Whether a value shows that it is no secret; ``between`` is what stands between the name and the value."""
    if _MASKED.fullmatch(value) or ("=" not in between and PROSE.fullmatch(value)):
        return True
    if kind == METHOD and value.isalpha():
        return True
    return kind in (PERHAPS, UNSURE, METHOD) and _HARMLESS.fullmatch(value) is not None


def mask(value: str, kind: str) -> str:
    """The mask for a value. One that may not be secret keeps a checksum, so that different commands stay different."""
    return marked(value) if kind == UNSURE and _ANYTHING.fullmatch(value) else MASK


def marked(value: str) -> str:
    """The mask with a checksum of two digits.

    >>> marked("5")
    '***ae'
    """
    return f"{MASK}{zlib.crc32(value.encode('utf-8', 'replace')) & 255:02x}"
