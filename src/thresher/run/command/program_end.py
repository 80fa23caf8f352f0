"""How a program ended, in words: its exit code or signal, and the last lines of its output."""

import signal

from ...errors import shown
from ...text.masking import masked_printable

LINES, WIDTH = 10, 500  # lines of the output that a failure keeps for people, and the characters of each


def program_end_in_words(code: int) -> str:
    """How a program ended.

    >>> program_end_in_words(-9), program_end_in_words(3), program_end_in_words(137), program_end_in_words(255)
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


def last_lines_at_program_end(data: bytes) -> str:
    return "\n".join(_lines(data)[-LINES:])


def last_words_at_program_end(err: bytes) -> str:
    lines = _lines(err)
    return f": {shown(lines[-1].strip(), 200)}" if lines else ""


def _lines(data: bytes) -> list[str]:
    """The last lines that are not blank."""
    lines = masked_printable(data.decode("utf-8", "replace")).splitlines()[-5 * LINES :]
    return [line[:WIDTH] for line in lines if line.strip()]
