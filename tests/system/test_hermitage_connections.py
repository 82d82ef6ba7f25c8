"""The anomalies of Hermitage over real connections: psycopg, a server, and two or three clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.harness.hermitage import ANOMALIES, LEVELS, SETUP, Anomaly, check, play
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

PATIENCE_SECONDS = 0.4
"""A statement without an answer for so long waits for another client. Only those wait so long."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder: Path = tmp_path_factory.mktemp("hermitage")
    with ServerProcess(folder / "data", "--insecure") as process:
        yield process


@dataclass
class ConnectionClient:
    connection: psycopg.AsyncConnection[Any]
    answers: list[object] = field(default_factory=list)
    waiting: asyncio.Task[None] | None = None

    async def say(self, text: str) -> None:
        await self.finished()
        self.waiting = asyncio.create_task(self._run(text))
        await asyncio.wait({self.waiting}, timeout=PATIENCE_SECONDS)

    async def finished(self) -> None:
        if self.waiting is not None:
            await self.waiting

    async def _run(self, text: str) -> None:
        try:
            cursor = await self.connection.execute(text)
            returned = cursor.description is not None
            self.answers.append(await cursor.fetchall() if returned else cursor.statusmessage)
        except psycopg.Error as error:
            self.answers.append(error.sqlstate)


@asynccontextmanager
async def connected(server: ServerProcess, count: int) -> AsyncIterator[list[ConnectionClient]]:
    connections = [
        await psycopg.AsyncConnection.connect(
            host="127.0.0.1", port=server.pg_port, user="root", dbname="defaultdb", autocommit=True
        )
        for _ in range(count)
    ]
    try:
        yield [ConnectionClient(connection) for connection in connections]
    finally:
        for connection in connections:
            await connection.close()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("anomaly", ANOMALIES, ids=lambda anomaly: anomaly.name.split()[0])
def test_anomaly_happens_over_connections_only_where_the_level_lets_it(
    server: ServerProcess, anomaly: Anomaly, level: str
) -> None:
    async def main() -> None:
        async with connected(server, 4) as (observer, *clients):
            for statement in ("DROP TABLE IF EXISTS test", *SETUP):
                await observer.connection.execute(statement)
            await play(anomaly, level, clients)
            cursor = await observer.connection.execute("SELECT id, value FROM test")
            check(anomaly, level, clients, dict(await cursor.fetchall()))

    asyncio.run(main())
