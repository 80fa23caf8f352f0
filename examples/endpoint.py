"""A local stub of a language-model endpoint: real HTTP, with the latency, failures and rate limits of a real one.

It answers ``POST /v1/chat/completions``, on connections that are kept open. How often it is right depends on the
prompt; the same prompt and question always get the same answer.
"""

import asyncio
import collections
import hashlib
import json
import math
import random
import re
import threading
import time
from dataclasses import dataclass, field

# The log-odds of a right answer, and what each phrase of the prompt adds to them.
BASE = 1.3
HELP = {
    "calculator": 0.5,
    "mathematician": 0.9,
    "pirate": -0.8,
    "step by step": 1.0,
    "Explain": 0.3,
    "Check": 0.7,
    "Example": 0.3,
}


def skill(prompt: str) -> float:
    """The chance of a right answer to a question."""
    odds = BASE + sum(worth * prompt.count(phrase) for phrase, worth in HELP.items())
    return 1 / (1 + math.exp(-odds))


def answer(prompt: str, question: str) -> str:
    """The model: it multiplies. A hash of the prompt and the question decides whether it errs."""
    right = math.prod(int(number) for number in re.findall(r"\d+", question))
    digest = hashlib.blake2b(f"{prompt}\n{question}".encode(), digest_size=8).digest()
    return str(right if int.from_bytes(digest) < skill(prompt) * 2**64 else right + 1)


async def message(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes]:
    """One HTTP message, a request or a response: its first line, its headers and its body."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    return first, headers, await reader.readexactly(int(headers.get("content-length", 0)))


@dataclass
class Stub:
    """The server. It runs in its own thread while the context is open."""

    latency: float = 0.05  # seconds, the median
    rate: float = 800.0  # requests a second; more are refused for a second
    failing: float = 0.01  # share of requests answered with status 500
    hanging: float = 0.0005  # share of requests that are never answered
    counts: collections.Counter[int] = field(default_factory=collections.Counter)  # of each status; 0: no answer
    port: int = 0

    def __enter__(self) -> "Stub":
        self._chance = random.Random(0)  # noqa: S311 - not for secrets
        self._allowed, self._refilled = self.rate / 10, time.monotonic()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="endpoint", daemon=True)
        self._thread.start()
        opening = asyncio.start_server(self._talk, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(opening, self._loop).result()
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._hang_up(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _hang_up(self) -> None:
        """End all conversations."""
        self._server.close()
        talks = asyncio.all_tasks() - {asyncio.current_task()}
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A conversation: request after request, until the client closes it."""
        try:
            while True:
                _, _, body = await message(reader)
                status, more, reply = await self._reply(body)
                self.counts[status] += 1
                head = (
                    f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {len(reply)}\r\n{more}"
                )
                writer.write(f"{head}\r\n".encode() + reply)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the conversation is over
        finally:
            writer.close()

    async def _reply(self, body: bytes) -> tuple[int, str, bytes]:
        """Status, further headers and body."""
        if not self._admitted():
            return 429, "Retry-After: 1\r\n", b"{}"
        fate = self._chance.random()
        if fate < self.hanging:
            self.counts[0] += 1
            await asyncio.sleep(3600)
        await asyncio.sleep(self.latency * math.exp(0.5 * self._chance.gauss()))
        if fate < self.hanging + self.failing:
            return 500, "", b"{}"
        prompt, question = (each["content"] for each in json.loads(body)["messages"])
        choice = {"message": {"role": "assistant", "content": answer(prompt, question)}}
        return 200, "", json.dumps({"choices": [choice]}).encode()

    def _admitted(self) -> bool:
        """Whether the request is within the rate; a tenth of a second's worth may come at once."""
        now = time.monotonic()
        self._allowed = min(self.rate / 10, self._allowed + self.rate * (now - self._refilled))
        self._refilled = now
        if self._allowed < 1:
            return False
        self._allowed -= 1
        return True
