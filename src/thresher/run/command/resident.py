"""One running persistent evaluator, which any number of threads may share.

Of the threads that wait for an answer, one reads for all of them. When it has its own, it lets another continue: no
answer needs a thread of its own to arrive.
"""

import os
import select
import threading
import time
from collections.abc import Callable, Sequence

from ...study import Pull
from ...text.logs import log
from ..lost import EvaluatorLost
from .endings import CommandFailed, last_lines, last_words
from .lines import LONGEST, Greeting, NotAnAnswer, line_of, quoted, read_line
from .program import CHUNK, Program
from .timing import TimedOut
from .waiting import Gone, Waiter

FIRST_WORD = 10.0  # seconds in which a program that cannot start usually ends; until then it gets a single pull
LEFT = 32  # chunks that a pipe can hold after the exit; what it has started may print without end
SILENT = 20.0  # seconds without a first line, after which a warning says what the reason may be
LOOK = 0.01  # seconds between two looks at what is pending

_HINTED = set[tuple[str, ...]]()  # commands about which a hint was given: one for all their processes


class Resident:
    """A process that answers pulls. ``greeted`` is called with what it says before its first answer, and may raise."""

    def __init__(self, argv: Sequence[str], greeted: Callable[[Greeting], None]) -> None:
        self._greeted = greeted
        self._lock = threading.Lock()
        self._may_enter = threading.Condition(self._lock)
        self._writing = threading.Lock()
        self._pending: dict[int, Waiter] = {}  # by id, the oldest first
        self._users = 0  # threads in `evaluate`
        self._led = False  # whether a thread reads for all
        self._last = 0  # the largest id that was written
        self._buffer = b""
        self._warned = False
        self._fault: CommandFailed | None = None  # what it did wrong while it was idle
        self._argv = tuple(argv)
        self._hint_at: float | None = time.monotonic() + SILENT
        self._open_at = time.monotonic() + FIRST_WORD  # until then, or its first line, it gets one pull
        self.spoke = False  # whether it has printed a line
        self.answered = False  # whether it has answered a pull: it can start, and is replaced if it dies while idle
        self.gone = False
        self._program = Program(argv)
        self._poll = select.poll()
        self._poll.register(self._program.output, select.POLLIN)
        if self._program.exit >= 0:  # what it has started may keep its output open
            self._poll.register(self._program.exit, select.POLLIN)

    # -- evaluating ---------------------------------------------------------------------------------------------

    def evaluate(self, pull: Pull, key: int, timeout: float | None) -> float:
        """The answer to a pull, which has the id ``key`` here. Raises `Gone` if the pull has not begun."""
        line, waiter = line_of(pull, key), Waiter(pull, timeout)
        with self._lock:
            while self._pending and not (self.spoke or self.gone) and (left := self._open_at - time.monotonic()) > 0:
                self._may_enter.wait(left)
            while key in self._pending:  # another study's pull has the same id
                self._may_enter.wait(LOOK)
            leads = not self._led
            if not (leads and self.answered):
                self._register(key, waiter)  # before anything changes, for it may raise
            self._users += 1
            self._led = True
        try:
            if leads and self.answered:
                self._listen(0)  # it may have died while it was idle
                with self._lock:
                    self._register(key, waiter)
            if not self._write(line, waiter) and self.answered:
                with self._lock:
                    self._pending.pop(key, None)
                leads = leads or waiter.asleep.acquire(blocking=False)
                raise Gone
            if not leads:
                waiter.asleep.acquire()
            leads = leads or waiter.outcome is None
            while waiter.outcome is None:
                self._listen(self._patience())
            return waiter.result()
        finally:
            if leads:
                self._hand_over()
            self._leave()

    def _register(self, key: int, waiter: Waiter) -> None:
        """Make a pull pending, while the lock is held."""
        if self.gone:
            fault, self._fault = self._fault, None
            raise fault or Gone
        waiter.begin()
        self._pending[key] = waiter
        self._last = max(self._last, abs(key))

    def _hand_over(self) -> None:
        """Let another thread read, if one waits."""
        with self._lock:
            following = next(iter(self._pending.values()), None)
            self._led = following is not None
        if following is not None:
            following.wake()

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            last = self.gone and not self._users
        if last:
            self._program.close()

    def _write(self, line: bytes, waiter: Waiter) -> bool:
        """Write a line. False if not even its first byte could be written."""
        with self._writing:
            sent = 0
            while sent < len(line):
                try:
                    sent += os.write(self._program.input, line[sent:])
                except BlockingIOError:
                    room = select.poll()
                    room.register(self._program.input, select.POLLOUT)
                    left = None if waiter.end is None else waiter.end - time.monotonic()
                    if not room.poll(None if left is None else max(0.0, 1000 * left)):
                        self._time_out()
                        return True
                except OSError:
                    return sent > 0
        return True

    # -- reading ------------------------------------------------------------------------------------------------

    def _patience(self) -> float | None:
        """Seconds until the oldest pull is due, or a hint."""
        with self._lock:
            oldest = next(iter(self._pending.values()), None)
        due = [] if oldest is None or oldest.end is None else [oldest.end]
        if not self.spoke and self._hint_at is not None:
            due.append(self._hint_at)
        return min(due) - time.monotonic() if due else None

    def _listen(self, seconds: float | None) -> None:
        """Wait for output, and deliver what comes."""
        ready = dict(self._poll.poll(None if seconds is None else max(0, int(1000 * seconds) + (seconds > 0))))
        left = LEFT if self._program.exit in ready else 1
        while ready and left and self._read():
            left -= 1
        if ready and (left or self._program.exit in ready):
            self._died()
        elif seconds is not None and seconds <= 0:  # also if it prints without end
            self._hint()
            self._time_out()

    def _hint(self) -> None:
        """Say what may be wrong with a program that is silent: by default, its pulls take an hour to time out."""
        if self.spoke or self._hint_at is None or time.monotonic() < self._hint_at:
            return
        self._hint_at = None
        if self._argv not in _HINTED:
            _HINTED.add(self._argv)
            advice = "it must read line by line, flush after each line and, without --arms, first name its arms"
            log.warning(f"the evaluator has printed nothing in {SILENT:g} s; unless it is still busy: {advice}")

    def _read(self) -> bool:
        """Take in what there is; False if there is nothing."""
        try:
            data = os.read(self._program.output, CHUNK)
        except BlockingIOError:
            return False
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            if line.strip() and not self.gone:
                self._heard(line)
        if len(self._buffer) > LONGEST:
            self._lose(f"printed a line of more than {LONGEST:,} bytes", "printed a line that is too long")
        return bool(data)

    def _heard(self, line: bytes) -> None:
        try:
            found = read_line(line)
            if isinstance(found, Greeting):
                self._welcome(found, line)
                return
        except NotAnAnswer as error:
            self._lose(str(error), str(error).partition(": ")[0])
            return
        if not self.spoke:
            self._open()
        with self._lock:
            waiter = self._pending.pop(found.pull, None)
        if waiter is not None:
            self.answered = True
            waiter.outcome = found
            waiter.wake()
        elif abs(found.pull) > self._last:
            what = "answered a pull that it was not given"
            self._lose(f"{what}: {quoted(line)}", what)
        elif not self._warned:
            self._warned = True
            words = "answered a pull that was not pending, which is ignored: the first answer counts"
            log.warning(f"the evaluator {words}: {quoted(line)}")

    def _welcome(self, greeting: Greeting, line: bytes) -> None:
        if self.spoke:
            raise NotAnAnswer(f"printed a greeting after its first line: {quoted(line)}")
        try:
            self._greeted(greeting)
        except BaseException as error:
            self._lose(str(error), "", error)
        else:
            self._open()

    def _open(self) -> None:
        with self._lock:
            self.spoke = True
            self._may_enter.notify_all()

    def greeting(self, seconds: float) -> None:
        """Wait until it has greeted, before anybody else uses it. Raises what is wrong with it."""
        nobody = Waiter(Pull(0, "", 0, {}, 0), seconds)
        with self._lock:
            self._register(0, nobody)
        try:
            while nobody.outcome is None and not self.spoke:
                self._listen(self._patience())
            if nobody.outcome is not None:
                nobody.result()
        finally:
            with self._lock:
                self._pending.pop(0, None)

    # -- the end ------------------------------------------------------------------------------------------------

    def _time_out(self) -> None:
        """Kill it because a pull takes too long.

        Whatever hangs, all pulls that were written at about the same time are overdue together. So a pull has timed out
        only if it was pending alone; otherwise all of them are lost, and nobody knows which one is to blame.
        """
        now = time.monotonic()
        with self._lock:
            overdue = [each for each in self._pending.values() if each.end is not None and each.end <= now]
            if not overdue:
                return
            lost = self._clear()
        self._program.reap(at_once=True)
        timed_out = TimedOut(overdue[0].timeout or 0.0)
        together = [waiter.pull for waiter in lost]
        for waiter in lost:
            alone = len(lost) == 1
            waiter.outcome = timed_out if alone else EvaluatorLost(f"its evaluator {timed_out}", together)
            waiter.wake()

    def _clear(self) -> list[Waiter]:
        """Let nobody use it any more; the lock is held. Returns the waiters whose pulls have no outcome."""
        self.gone = True
        self._may_enter.notify_all()
        lost = list(self._pending.values())
        self._pending.clear()
        return lost

    def _died(self) -> None:
        self._program.reap(at_once=False)
        how = self._program.ended
        self._lose(f"{how}{last_words(self._program.errors)}", how, fault=False)

    def _lose(self, text: str, kind: str, error: BaseException | None = None, *, fault: bool = True) -> None:
        """It is gone or useless, and its pulls are lost. If it has only one, that pull is to blame."""
        with self._lock:
            lost = self._clear()
        self._program.reap(at_once=True)
        output = last_lines(self._program.errors)
        alone = CommandFailed(f"the evaluator {text}", kind=f"the evaluator {kind}", output=output)
        together = [waiter.pull for waiter in lost]
        if fault and not lost:
            self._fault = alone
        for waiter in lost:
            one = alone if len(lost) == 1 else EvaluatorLost(f"the evaluator {text}", together)
            waiter.outcome = error or one
            waiter.wake()

    def hang_up(self) -> bool:
        """Close its input if it is idle: then it ends itself, and gets no further pull."""
        with self._lock:
            if self._users:
                return False
            self._clear()
        self._program.hang_up()
        return True

    def end(self, seconds: float) -> None:
        """End it, after so many seconds if it does not end itself."""
        self._program.exits_within(seconds)
        self._lose("was stopped", "was stopped")
        if not self._users:
            self._program.close()
