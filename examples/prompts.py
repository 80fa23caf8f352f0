"""Find which of 48 prompts for a language model get 90 % of 500 questions right, give or take 2 points.

The questions are the cases of an eval set: what is certified is the score on exactly these 500. A pull sends one of
them to a language-model endpoint, with one prompt. The endpoint is a local stub, started here: a real HTTP server with
latency, failures and rate limits. The evaluator is a coroutine, and 64 run at once. The study ends when every prompt
is settled at a confidence of 95 %, after 24,000 answers at the latest.

  python examples/prompts.py
  python examples/prompts.py --workers 16 --storage sqlite:///prompts.db
  thresher cases prompts --storage sqlite:///prompts.db       the hardest questions first
"""

import asyncio
import functools
import itertools
import json
import random

import telling
from endpoint import Stub, message

import thresher

BAR, TOLERANCE = 0.9, 0.02
QUESTIONS = 500
TIMEOUT = 2.0

ROLES = {
    "plain": "",
    "calculator": "You are a calculator.",
    "expert": "You are a careful mathematician.",
    "pirate": "You are a pirate.",
}
MANNERS = {
    "number": "Answer with the number alone.",
    "steps": "Think step by step, then give the number.",
    "explain": "Explain your answer, then give the number.",
    "check": "Check your answer, then give the number.",
}
EXAMPLES = {"0-shot": 0, "1-shot": 1, "3-shot": 3}


def prompts() -> dict[str, dict[str, str]]:
    """The arms: every role with every manner and every number of examples."""
    shots = ["Example: 12 times 12 is 144.", "Example: 17 times 3 is 51.", "Example: 25 times 8 is 200."]
    return {
        f"{role} {manner} {count}": {"prompt": "\n".join([ROLES[role], MANNERS[manner], *shots[: EXAMPLES[count]]])}
        for role, manner, count in itertools.product(ROLES, MANNERS, EXAMPLES)
    }


def questions() -> dict[str, dict[str, str]]:
    """The cases: the questions of the eval set, with their answers."""
    chance = random.Random(0)  # noqa: S311 - not for secrets
    found: dict[str, dict[str, str]] = {}
    while len(found) < QUESTIONS:
        one, two = chance.randrange(100, 1000), chance.randrange(100, 1000)
        found[f"What is {one} times {two}?"] = {"answer": str(one * two)}
    return found


class Client:
    """Talks to the endpoint; connections are kept for the next request."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def passes(self, pull: thresher.Pull) -> bool:
        """The evaluator: whether the arm's prompt leads to the right answer to the case."""
        right: str = pull.case_params["answer"]
        return await self.complete(pull.params["prompt"], str(pull.case)) == right

    async def complete(self, prompt: str, asked: str) -> str:
        """What the model says."""
        messages = [{"role": "system", "content": prompt}, {"role": "user", "content": asked}]
        status, headers, body = await self._post(json.dumps({"model": "stub", "messages": messages}).encode())
        if status == 429:  # not a failure: the same pull is tried again, and nothing is charged
            raise thresher.Busy(after=float(headers.get("retry-after", 1)))
        if status != 200:
            raise RuntimeError(f"the endpoint answered with status {status}")
        return str(json.loads(body)["choices"][0]["message"]["content"])

    async def _post(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        reader, writer = self._idle.pop() if self._idle else await asyncio.open_connection(self._host, self._port)
        try:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {self._host}\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            first, headers, reply = await message(reader)
        except BaseException:  # also a timeout: a late answer would be taken for the answer to the next request
            writer.close()
            raise
        self._idle.append((reader, writer))
        return int(first.split()[1]), headers, reply

    async def close(self) -> None:
        """Close the connections that are kept."""
        while self._idle:
            _, writer = self._idle.pop()
            writer.close()
            await writer.wait_closed()


def main() -> int:
    """Run the example."""
    options = telling.options(__doc__)
    options.add_argument("--workers", type=int, default=64, metavar="N", help="requests at once; 64 by default")
    given = options.parse_args()
    arms, cases = prompts(), questions()
    if given.quick:
        arms, cases = dict(list(arms.items())[::7]), dict(list(cases.items())[::5])
    study = thresher.create_study(
        "prompts-quick" if given.quick else "prompts",
        arms=arms,
        cases=cases,
        at_least=BAR,
        tolerance=TOLERANCE,
        unit="%",
        budget=given.budget,
        seed=given.seed,
        storage=given.storage,
        if_exists="join",
    )
    with Stub() as stub:
        evaluate = Client("127.0.0.1", stub.port).passes
        # A question whose request failed is asked again later, up to three times. The same prompt and question always
        # get the same answer, so this does not change what is measured.
        work = functools.partial(thresher.run, study, evaluate, workers=given.workers, timeout=TIMEOUT)
        status = telling.carry_out(study, work, given.format)
        words = {200: "answers", 429: "refused by the rate limit", 500: "failures", 0: "never answered"}
        telling.say(f"the endpoint: {', '.join(f'{stub.counts[code]:,} {word}' for code, word in words.items())}")
    return status


if __name__ == "__main__":
    telling.end(main)
