"""The anomalies of Hermitage at each isolation level: prevented exactly where the level says so.

Each anomaly is a script of numbered clients over `test = {1: 10, 2: 20}`. A statement that has to
wait is left waiting while the others go on; what it answers is known when its client speaks again.
Whether the anomaly happened is told from what the clients saw and what was committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from tailrace.catalog.column_types import Datum
from tailrace.catalog.errors import SQLError
from tailrace.sql import Session
from tests.harness.simulation import Simulation
from tests.harness.sql_node import sql_node

LEVELS = ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
RC, RR, NEVER = LEVELS[:2], LEVELS[:3], ()


@dataclass
class Client:
    session: Session
    answers: list[object] = field(default_factory=list)
    """Per statement its rows, or its tag where it has none, or the SQLSTATE of its error."""
    waiting: asyncio.Task[None] | None = None

    async def say(self, text: str) -> None:
        if self.waiting is not None:
            await self.waiting
        self.waiting = asyncio.create_task(self._run(text))
        await asyncio.sleep(0.05)

    async def _run(self, text: str) -> None:
        try:
            result = (await self.session.execute(text))[-1]
            self.answers.append(result.fetch_rows() if result.columns else result.tag)
        except SQLError as error:
            self.answers.append(error.sqlstate)

    @property
    def committed(self) -> bool:
        return self.answers[-1] == "COMMIT"


@dataclass(frozen=True)
class Anomaly:
    name: str
    script: str
    happened: Callable[[list[Client], Mapping[Datum, Datum]], bool]
    allowed: tuple[str, ...]


def seen(client: Client, *rows: tuple[int, int]) -> bool:
    """Whether the client was shown one of the rows."""
    shown = [row for answer in client.answers if isinstance(answer, list) for row in answer]
    return any(row in shown for row in rows)


ANOMALIES = [
    Anomaly(
        "G0 dirty write",
        """1 UPDATE test SET value = 11 WHERE id = 1
           2 UPDATE test SET value = 12 WHERE id = 1
           1 UPDATE test SET value = 21 WHERE id = 2
           1 COMMIT
           2 UPDATE test SET value = 22 WHERE id = 2
           2 COMMIT""",
        lambda clients, left: left not in ({1: 11, 2: 21}, {1: 12, 2: 22}),
        NEVER,
    ),
    Anomaly(
        "G1a aborted read",
        """1 UPDATE test SET value = 101 WHERE id = 1
           2 SELECT * FROM test
           1 ROLLBACK
           2 SELECT * FROM test
           2 COMMIT""",
        lambda clients, left: seen(clients[1], (1, 101)),
        NEVER,
    ),
    Anomaly(
        "G1b intermediate read",
        """1 UPDATE test SET value = 101 WHERE id = 1
           2 SELECT * FROM test
           1 UPDATE test SET value = 11 WHERE id = 1
           1 COMMIT
           2 SELECT * FROM test
           2 COMMIT""",
        lambda clients, left: seen(clients[1], (1, 101)),
        NEVER,
    ),
    Anomaly(
        "G1c circular information flow",
        """1 UPDATE test SET value = 11 WHERE id = 1
           2 UPDATE test SET value = 22 WHERE id = 2
           1 SELECT * FROM test WHERE id = 2
           2 SELECT * FROM test WHERE id = 1
           1 COMMIT
           2 COMMIT""",
        lambda clients, left: seen(clients[0], (2, 22)) and seen(clients[1], (1, 11)),
        NEVER,
    ),
    Anomaly(
        "OTV observed transaction vanishes",
        """1 UPDATE test SET value = 11 WHERE id = 1
           1 UPDATE test SET value = 19 WHERE id = 2
           2 UPDATE test SET value = 12 WHERE id = 1
           1 COMMIT
           3 SELECT * FROM test WHERE id = 1
           2 UPDATE test SET value = 18 WHERE id = 2
           3 SELECT * FROM test WHERE id = 2
           2 COMMIT
           3 SELECT * FROM test WHERE id = 2
           3 SELECT * FROM test WHERE id = 1
           3 COMMIT""",
        lambda clients, left: clients[2].answers[-3:-1] == [[(2, 18)], [(1, 11)]],
        NEVER,
    ),
    Anomaly(
        "PMP predicate-many-preceders",
        """1 SELECT * FROM test WHERE value = 30
           2 INSERT INTO test VALUES (3, 30)
           2 COMMIT
           1 SELECT * FROM test WHERE value % 3 = 0
           1 COMMIT""",
        lambda clients, left: seen(clients[0], (3, 30)),
        RC,
    ),
    Anomaly(
        "P4 lost update",
        """1 SELECT * FROM test WHERE id = 1
           2 SELECT * FROM test WHERE id = 1
           1 UPDATE test SET value = 11 WHERE id = 1
           2 UPDATE test SET value = 11 WHERE id = 1
           1 COMMIT
           2 COMMIT""",
        lambda clients, left: clients[0].committed and clients[1].committed,
        RC,
    ),
    Anomaly(
        "G-single read skew",
        """1 SELECT * FROM test WHERE id = 1
           2 UPDATE test SET value = 12 WHERE id = 1
           2 UPDATE test SET value = 18 WHERE id = 2
           2 COMMIT
           1 SELECT * FROM test WHERE id = 2
           1 COMMIT""",
        lambda clients, left: seen(clients[0], (1, 10)) and seen(clients[0], (2, 18)),
        RC,
    ),
    Anomaly(
        "G2-item write skew",
        """1 SELECT * FROM test WHERE id IN (1, 2)
           2 SELECT * FROM test WHERE id IN (1, 2)
           1 UPDATE test SET value = 11 WHERE id = 1
           2 UPDATE test SET value = 21 WHERE id = 2
           1 COMMIT
           2 COMMIT""",
        lambda clients, left: clients[0].committed and clients[1].committed,
        RR,
    ),
    Anomaly(
        "G2 anti-dependency cycle",
        """1 SELECT * FROM test WHERE value % 3 = 0
           2 SELECT * FROM test WHERE value % 3 = 0
           1 INSERT INTO test VALUES (3, 30)
           2 INSERT INTO test VALUES (4, 42)
           1 COMMIT
           2 COMMIT""",
        lambda clients, left: clients[0].committed and clients[1].committed,
        RR,
    ),
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("anomaly", ANOMALIES, ids=lambda anomaly: anomaly.name.split()[0])
def test_anomaly_happens_only_where_the_level_lets_it(anomaly: Anomaly, level: str) -> None:
    sim = Simulation(seed=11)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE test (id INT8 PRIMARY KEY, value INT8)")
            await node.sql("INSERT INTO test VALUES (1, 10), (2, 20)")
            clients = [Client(node.session()) for _ in range(3)]
            begun: set[str] = set()
            for line in anomaly.script.splitlines():
                number, _, text = line.strip().partition(" ")
                client = clients[int(number) - 1]
                if number not in begun:
                    begun.add(number)
                    await client.say(f"BEGIN ISOLATION LEVEL {level}")
                await client.say(text)
            for client in clients:
                await client.say("ROLLBACK")
                assert client.waiting is not None
                await client.waiting
                client.answers.pop()
            rows = await node.rows("SELECT id, value FROM test ORDER BY id")
            left = {row[0]: row[1] for row in rows}
            happened = anomaly.happened(clients, left)
            assert happened == (level in anomaly.allowed), [c.answers for c in clients]
            if level.startswith("READ"):
                answers = [answer for client in clients for answer in client.answers]
                assert "40001" not in answers, "READ COMMITTED does not fail for a plain conflict"

    sim.run(main())
