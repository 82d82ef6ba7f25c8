"""The anomalies of Hermitage at each isolation level: prevented exactly where the level says so."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql import Session
from tests.harness.hermitage import ANOMALIES, LEVELS, SETUP, Anomaly, check, play
from tests.harness.simulation import Simulation
from tests.harness.sql_node import sql_node


@dataclass
class SessionClient:
    session: Session
    answers: list[object] = field(default_factory=list)
    waiting: asyncio.Task[None] | None = None

    async def say(self, text: str) -> None:
        await self.finished()
        self.waiting = asyncio.create_task(self._run(text))
        await asyncio.sleep(0.05)

    async def finished(self) -> None:
        if self.waiting is not None:
            await self.waiting

    async def _run(self, text: str) -> None:
        try:
            result = (await self.session.execute(text))[-1]
            self.answers.append(result.fetch_rows() if result.columns else result.tag)
        except SQLError as error:
            self.answers.append(error.sqlstate)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("anomaly", ANOMALIES, ids=lambda anomaly: anomaly.name.split()[0])
def test_anomaly_happens_only_where_the_level_lets_it(anomaly: Anomaly, level: str) -> None:
    sim = Simulation(seed=11)

    async def main() -> None:
        async with sql_node(sim) as node:
            for statement in SETUP:
                await node.sql(statement)
            clients = [SessionClient(node.session()) for _ in range(3)]
            await play(anomaly, level, clients)
            rows = await node.rows("SELECT id, value FROM test ORDER BY id")
            check(anomaly, level, clients, {row[0]: row[1] for row in rows})

    sim.run(main())
