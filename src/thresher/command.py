"""A program as an evaluator: run it once a pull, and read the reward from what it prints or how it exits."""

import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .errors import InvalidInput, NoReward, shown
from .spec import Params
from .study import Pull

TAIL = 64 * 1024  # bytes of output that count, from the end
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan\b|inf(?:inity)?\b)", re.IGNORECASE)
PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_-]*)\}")
PULL_FIELDS = ("arm", "seed", "number", "pull")


class CommandFailed(Exception):
    """The command gave no reward; the text says why."""


@dataclass(frozen=True)
class Command:
    """Calls a program with the pull's values in its arguments and environment.

    >>> study_pull = Pull(1, "7", 1, {}, 5)
    >>> Command(("echo", "the answer is {arm}"), "last-float")(study_pull)
    7.0
    """

    argv: tuple[str, ...]  # never a shell's line
    reward: str = "last-float"  # or exit-code, json:KEY, regex:RE
    timeout: float | None = None
    _running: set[int] = field(default_factory=set, compare=False, repr=False)  # process groups

    def __call__(self, pull: Pull) -> float:
        """The reward of one run."""
        values = pull_values(pull)
        argv = [fill(part, values) for part in self.argv]
        environment = {**os.environ, **{f"THRESHER_{name.upper()}": values[name] for name in PULL_FIELDS}}
        environment["THRESHER_PARAMS"] = json.dumps(pull.params)
        code, out, err = self._run(argv, environment)
        return read_reward(self.reward, code, out, err)

    def kill_all(self) -> None:
        """End every run that is under way."""
        for group in list(self._running):
            _kill(group)

    def _run(self, argv: Sequence[str], environment: Mapping[str, str]) -> tuple[int, bytes, bytes]:
        """Exit code and the tails of both outputs. The run is over when the program exits, whoever holds its pipes."""
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise CommandFailed(f"cannot start {shown(argv[0])}: {error.strerror}") from None
        self._running.add(process.pid)
        try:
            tails = _follow(process, self.timeout)
        except TimeoutError:
            _kill(process.pid)
            raise CommandFailed(f"timed out after {self.timeout:g} s and was killed") from None
        finally:
            self._running.discard(process.pid)
            process.stdout.close()  # type: ignore[union-attr]
            process.stderr.close()  # type: ignore[union-attr]
            process.wait()
        return process.returncode, *tails


def _follow(process: "subprocess.Popen[bytes]", timeout: float | None) -> tuple[bytes, bytes]:
    """Read both pipes until the program exits; keep the ends."""
    end = None if timeout is None else time.monotonic() + timeout
    tails = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for pipe in tails:
            os.set_blocking(pipe.fileno(), False)  # type: ignore[union-attr]
            selector.register(pipe, selectors.EVENT_READ)  # type: ignore[arg-type]
        exited = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else None
        try:
            if exited is not None:
                selector.register(exited, selectors.EVENT_READ)
            while process.poll() is None:
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError
                poll = left if exited is not None else min(0.02, left or 0.02)
                for key, _ in selector.select(poll):
                    if key.fileobj in tails and not _read(key.fileobj, tails[key.fileobj]):
                        selector.unregister(key.fileobj)
        finally:
            if exited is not None:
                os.close(exited)
    for pipe, tail in tails.items():
        for _ in range(64):  # what is left in the pipe; a daemon may go on writing, and is not waited for
            if not _read(pipe, tail):
                break
    return bytes(tails[process.stdout]), bytes(tails[process.stderr])


def _read(pipe: object, tail: bytearray) -> bool:
    """Take what is there; False at the end, or if there is nothing."""
    try:
        data = os.read(pipe.fileno(), TAIL)  # type: ignore[attr-defined]
    except BlockingIOError:
        return False
    tail += data
    del tail[:-TAIL]
    return bool(data)


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


# -- arguments ---------------------------------------------------------------------------------------------------


def pull_values(pull: Pull) -> dict[str, str]:
    """What a placeholder may name: the pull's fields and the arm's parameters."""
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in pull.params.items()}
    return {**texts, "arm": pull.arm, "seed": str(pull.seed), "number": str(pull.number), "pull": str(pull.id)}


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with its placeholders filled in.

    >>> fill('{arm}: {"depth": 1} {{arm}}', {"arm": "a"})
    'a: {"depth": 1} {arm}'
    """
    return PLACEHOLDER.sub(lambda found: values[found[1]] if found[1] else found[0][0], template)


def check_command(argv: Sequence[str], arms: Mapping[str, Params]) -> tuple[str, ...]:
    """The command, if it can be run and every placeholder has a value for every arm."""
    if not argv:
        raise InvalidInput(
            "command", "", "there is none", "put it behind --, as in: thresher run … -- ./evaluate.sh {arm}"
        )
    for name in {found[1] for part in argv for found in PLACEHOLDER.finditer(part) if found[1]} - set(PULL_FIELDS):
        lacking = next((arm for arm, params in arms.items() if name not in params), None)
        if lacking is not None:
            known = ", ".join(f"{{{key}}}" for key in [*PULL_FIELDS, *arms[lacking]])
            raise InvalidInput(
                "placeholder", f"{{{name}}}", f"arm {shown(lacking)} has no such value", f"there are {known}"
            )
    if not PLACEHOLDER.search(argv[0]) and shutil.which(argv[0]) is None:
        found = os.path.exists(argv[0])  # noqa: PTH110 - a name given on the command line
        rule = "is not executable" if found else "was not found"
        raise InvalidInput(
            "command", argv[0], rule, f"try chmod +x {argv[0]}" if found else "give its path, or mend PATH"
        )
    return tuple(argv)


# -- rewards -----------------------------------------------------------------------------------------------------


def check_reader(reward: str) -> str:
    """The way to read a reward, if there is such a way."""
    kind, _, rest = reward.partition(":")
    if reward not in ("last-float", "exit-code") and not (kind in ("json", "regex") and rest):
        raise InvalidInput("reward", reward, "must be last-float, exit-code, json:KEY or regex:RE")
    if kind == "regex":
        try:
            re.compile(rest)
        except re.error as error:
            raise InvalidInput("regex", rest, f"is not a regular expression ({error})") from None
    return reward


def read_reward(reward: str, code: int, out: bytes, err: bytes) -> float:
    """The number that a run gave.

    >>> read_reward("exit-code", 1, b"", b""), read_reward("json:score", 0, b'{"score": 0.5}', b"")
    (0.0, 0.5)
    """
    if code < 0:
        raise CommandFailed(f"was ended by {signal.Signals(-code).name}{_last_words(err)}")
    if reward == "exit-code":
        if code in (126, 127):
            raise CommandFailed(f"exited with {code}: its program was not found or cannot be run{_last_words(err)}")
        return 1.0 if code == 0 else 0.0
    if code != 0:
        raise CommandFailed(f"exited with {code}{_last_words(err)}")
    kind, _, rest = reward.partition(":")
    text = out.decode("utf-8", "replace")
    return {"last-float": _last_float, "json": _json, "regex": _regex}[kind](text, rest)


def _last_words(err: bytes) -> str:
    lines = err.decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {shown(last, 200)}" if last else ""


def _last_line(text: str) -> str:
    line = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    if not line:
        raise NoReward("printed nothing on standard output, where the reward is read")
    return line


def _last_float(text: str, _: str) -> float:
    line = _last_line(text)
    numbers = NUMBER.findall(line)
    if not numbers:
        raise NoReward(f"printed no number on its last line, {shown(line.strip())}")
    return float(numbers[-1])


def _json(text: str, path: str) -> float:
    value = _first_parsed([text, _last_line(text)])
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            raise NoReward(f"printed JSON without {shown(path)}: {shown(value)}")
        value = value[key]
    if not isinstance(value, int | float):
        raise NoReward(f"printed {shown(value)} for {shown(path)}, which is no number")
    return float(value)


def _first_parsed(texts: Sequence[str]) -> object:
    for text in texts:
        try:
            return json.loads(text)
        except ValueError:
            continue
    raise NoReward(f"printed no JSON: {shown(texts[-1].strip())}")


def _regex(text: str, pattern: str) -> float:
    found = list(re.finditer(pattern, text))
    if not found:
        raise NoReward(f"printed nothing that matches {shown(pattern)}")
    value = found[-1][1] if found[-1].re.groups else found[-1][0]
    try:
        return float(value)
    except (TypeError, ValueError):
        raise NoReward(f"printed {shown(value)} where {shown(pattern)} looks for a number") from None
