"""How programs end, and what they print last: why a command gave no reward."""

import errno
import re
import signal

from ...errors import EvaluationFailed, NoReward, shown
from ...text.escapes import visible
from ...text.masking import masked

LINES, WIDTH = 10, 500  # how much of the output a failure keeps, for people
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
TOO_MANY = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY)  # a start that may work later


class CommandFailed(EvaluationFailed):
    """The command gave no reward; the text says why."""


def cannot_start(program: str, error: OSError | ValueError) -> CommandFailed:
    """The failure of a pull whose program cannot be started."""
    why, transient = str(error), False
    if isinstance(error, OSError):
        hint = "; does it begin with a line such as #!/bin/sh?" if error.errno == errno.ENOEXEC else ""
        why, transient = f"{error.strerror}{hint}", error.errno in TOO_MANY
    return CommandFailed(f"cannot start {shown(program)}: {why}", kind=f"cannot start: {why}", transient=transient)


def no_reward(problem: str, *printed: object) -> NoReward:
    """Failures that differ only in what was found are the same error."""
    seen = "".join(f" {shown(text)}" for text in printed)
    return NoReward(
        f"{problem}{seen}; print the reward on the last line, or say with --reward where it is", kind=problem
    )


def ending(code: int) -> str:
    """How a program ended.

    >>> ending(-9), ending(3), ending(137), ending(255)
    ('was ended by SIGKILL', 'exited with 3', 'exited with 137, perhaps ended by SIGKILL', 'exited with 255')
    """
    if code < 0:
        return f"was ended by {_signal(-code) or f'signal {-code}'}"
    if code in (126, 127):
        return f"exited with {code}: a program was not found or cannot be run"
    perhaps = _signal(code - 128)  # how shells report a death by a signal
    return f"exited with {code}, perhaps ended by {perhaps}" if perhaps else f"exited with {code}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


# -- the last lines ----------------------------------------------------------------------------------------------


def printable(text: str) -> str:
    r"""Other people's text, safe to show: without secrets, colours and control characters.

    >>> print(printable("\x1b[31muser=me password=secret \a\x1b[0m"))
    user=me password=*** \x07
    """
    lines = masked(COLOURS.sub("", text)).replace("\t", " ").splitlines()  # masked as a whole: a key has many lines
    return "\n".join(visible(line).rstrip() for line in lines)


def _lines(data: bytes) -> list[str]:
    """The last lines that are not blank."""
    lines = printable(data.decode("utf-8", "replace")).splitlines()[-5 * LINES :]
    return [line[:WIDTH] for line in lines if line.strip()]


def last_lines(data: bytes) -> str:
    return "\n".join(_lines(data)[-LINES:])


def last_words(err: bytes) -> str:
    lines = _lines(err)
    return f": {shown(lines[-1].strip(), 200)}" if lines else ""
