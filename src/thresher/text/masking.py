"""Secrets are hidden wherever text leaves the program or enters the log. `masked` is the one function that does it."""

from .escapes import visible


def masked(text: str) -> str:
    """Text without secrets. Masking it again changes nothing.

    >>> masked("postgresql://me:p@ss@host/db?pass%77ord=secret"), masked("postgresql://host:5432/db")
    ('postgresql://me:***@host/db?pass%77ord=***', 'postgresql://host:5432/db')
    >>> masked("password='my secret' --api-key X passed=3"), masked('{"token": "secret", "tokens": 512}')
    ("password='***' --api-key *** passed=3", '{"token": "***", "tokens": 512}')
    """
    from .maskrules import hidden  # here: its patterns take milliseconds to compile, and most commands need none

    return hidden(text)


def masked_words(words: list[str]) -> list[str]:
    """The words of a command without secrets, including those that follow an option such as --password.

    >>> masked_words(["eval.sh", "--password", "my secret", "PGPASSWORD=my secret", "{arm}"])
    ['eval.sh', '--password', '***', 'PGPASSWORD=***', '{arm}']
    >>> masked_words(["mysql", "-psecret"]), masked_words(["eval.sh", "-phunter2", "-p8080", "-print"])
    (['mysql', '-p***'], ['eval.sh', '-p***56', '-p8080', '-print'])
    """
    from .maskrules import hidden_in_words

    return hidden_in_words(words)


def one_line(text: str) -> str:
    r"""Other people's text on one line for people: what a failing program printed may hold anything.

    >>> print(one_line("out of\n memory\x1b[31m, password=secret"))
    out of memory\x1b[31m, password=***
    """
    return visible(" ".join(masked(text).split()))
