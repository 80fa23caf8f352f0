"""Many agents over HTTP."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from running import TOKEN, WRITE_TOKEN, Served, served
from sockets import head

import thresher


class Client:
    """A connection that stays open. Libraries that pool connections take longer than the server."""

    def __init__(self, server: Served, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server, self._reader, self._writer = server, reader, writer

    @classmethod
    async def of(cls, server: Served) -> "Client":
        host, _, port = server.url.removeprefix("http://").partition(":")
        return cls(server, *await asyncio.open_connection(host, int(port)))

    async def post(self, path: str, data: object = None, *lines: str) -> Any:
        body = b"" if data is None else json.dumps(data).encode()
        lines = ("Content-Type: application/json", f"Content-Length: {len(body)}", *lines)
        self._writer.write(head(self._server, path, *lines, method="POST", token=WRITE_TOKEN) + body)
        reply = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        assert reply.startswith("http/1.1 20"), reply
        return json.loads(await self._reader.readexactly(int(reply.partition("content-length: ")[2].split()[0])))

    def close(self) -> None:
        self._writer.close()


@pytest.mark.alone
def test_200_agents_over_http_count_exactly(tmp_path: Path) -> None:
    storage, budget = f"sqlite:///{tmp_path}/s.db?durability=normal", 400
    arms = [f"arm {k}" for k in range(10)]

    async def agent(server: Served, number: int) -> int:
        client, made = await Client.of(server), 0
        while pulls := (await client.post("/api/studies/many/ask", None, f"Idempotency-Key: {number}-{made}"))["pulls"]:
            await client.post("/api/studies/many/tell", {"pull": pulls[0]["pull"], "reward": 0.5})
            made += 1
        client.close()
        return made

    async def crowd(server: Served) -> list[int]:
        client = await Client.of(server)
        new = {"name": "many", "arms": arms, "at_least": 0.6, "budget": budget, "confidence": None}
        await client.post("/api/studies", new)
        client.close()
        async with asyncio.timeout(240):
            return await asyncio.gather(*(agent(server, number) for number in range(200)))

    log = tmp_path / "log"
    with served(storage, "--write", log=log) as server:
        made = asyncio.run(crowd(server))
    study = thresher.open_study("many", storage=storage)
    verdict = study.verdict()
    assert (sum(made), verdict.issued, verdict.told, verdict.pending) == (budget, budget, budget, 0)
    assert sum(row.seen for row in verdict.rows) == budget
    assert sorted(event.pull for event in study.events() if event.kind == "told") == list(range(1, budget + 1))  # type: ignore[type-var]
    assert TOKEN not in log.read_text()
    assert WRITE_TOKEN not in log.read_text()
