"""The anomalies of Hermitage: scripts of numbered clients, and at which levels each may happen.

Each anomaly is a script over `test = {1: 10, 2: 20}`. A statement that has to wait is left waiting
while the others go on; what it answers is known when its client speaks again. Whether the anomaly
happened is told from what the clients saw and what was committed. Whoever plays a script brings the
clients: sessions in a simulation, or connections.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

LEVELS = ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
RC, RR, NEVER = LEVELS[:2], LEVELS[:3], ()

SETUP = (
    "CREATE TABLE test (id INT8 PRIMARY KEY, value INT8)",
    "INSERT INTO test VALUES (1, 10), (2, 20)",
)


class Client(Protocol):
    """Someone who says statements."""

    answers: list[object]
    """Per statement its rows, or its tag where it has none, or the SQLSTATE of its error."""

    async def say(self, text: str) -> None:
        """Returns when the statement is answered, or waits for another client."""
        ...

    async def finished(self) -> None:
        """Returns when nothing of it is waiting."""
        ...


@dataclass(frozen=True)
class Anomaly:
    name: str
    script: str
    happened: Callable[[Sequence[Client], Mapping[object, object]], bool]
    allowed: tuple[str, ...]


async def play(anomaly: Anomaly, level: str, clients: Sequence[Client]) -> None:
    """Says the script at a level, and rolls back whatever it left open."""
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
        await client.finished()
        client.answers.pop()


def check(
    anomaly: Anomaly, level: str, clients: Sequence[Client], left: Mapping[object, object]
) -> None:
    """That it happened where the level lets it, and nowhere else."""
    happened = anomaly.happened(clients, left)
    assert happened == (level in anomaly.allowed), [client.answers for client in clients]
    if level.startswith("READ"):
        answers = [answer for client in clients for answer in client.answers]
        assert "40001" not in answers, "READ COMMITTED does not fail for a plain conflict"


def committed(client: Client) -> bool:
    return client.answers[-1] == "COMMIT"


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
        lambda clients, left: committed(clients[0]) and committed(clients[1]),
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
        lambda clients, left: committed(clients[0]) and committed(clients[1]),
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
        lambda clients, left: committed(clients[0]) and committed(clients[1]),
        RR,
    ),
]
