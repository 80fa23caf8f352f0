"""Many agents over HTTP."""

import asyncio
from pathlib import Path

import httpx
import pytest
from running import TOKEN, WRITE_TOKEN, served
from running import WRITER as SENT

import thresher


@pytest.mark.alone
def test_200_agents_over_http_count_exactly(tmp_path: Path) -> None:
    storage, budget = f"sqlite:///{tmp_path}/s.db?durability=normal", 600
    arms = [f"arm {k}" for k in range(10)]

    async def agent(client: httpx.AsyncClient, number: int) -> int:
        made = 0
        while True:
            reply = await client.post("/api/studies/many/ask", headers={"idempotency-key": f"{number}-{made}"})
            pulls = reply.raise_for_status().json()["pulls"]
            if not pulls:
                return made
            data = {"pull": pulls[0]["pull"], "reward": 0.5}
            (await client.post("/api/studies/many/tell", json=data)).raise_for_status()
            made += 1

    async def crowd(url: str) -> list[int]:
        limits = httpx.Limits(max_connections=200)
        async with httpx.AsyncClient(base_url=url, headers=SENT, timeout=60, limits=limits) as client:
            new = {"name": "many", "arms": arms, "threshold": 0.6, "budget": budget, "confidence": None}
            (await client.post("/api/studies", json=new)).raise_for_status()
            return await asyncio.gather(*(agent(client, number) for number in range(200)))

    log = tmp_path / "log"
    with served(storage, "--write", log=log) as server:
        made = asyncio.run(crowd(server.url))
    study = thresher.open_study("many", storage=storage)
    verdict = study.verdict()
    assert (sum(made), verdict.issued, verdict.told, verdict.pending) == (budget, budget, budget, 0)
    assert sum(row.seen for row in verdict.rows) == budget
    assert sorted(event.pull for event in study.events() if event.kind == "told") == list(range(1, budget + 1))  # type: ignore[type-var]
    assert TOKEN not in log.read_text()
    assert WRITE_TOKEN not in log.read_text()
