"""VALIDATE CONSTRAINT: rows that were never looked at satisfy it, or it stays NOT VALID."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

SET_UP = (
    "CREATE TABLE p (k INT8 PRIMARY KEY)",
    "CREATE TABLE t (k INT8 PRIMARY KEY, v INT8)",
    "INSERT INTO p VALUES (20)",
    "INSERT INTO t VALUES (1, 10), (2, 20)",
)
CHECK = "ALTER TABLE t ADD CONSTRAINT few CHECK (v > 10) NOT VALID"
KEY = "ALTER TABLE t ADD CONSTRAINT few FOREIGN KEY (v) REFERENCES p NOT VALID"
LOCK = "ALTER TABLE t SET (changefeed_optimized = true)"
VALIDATE = "ALTER TABLE t VALIDATE CONSTRAINT few"
VALIDATED = "SELECT convalidated FROM pg_constraint WHERE conname = 'few'"


def run(scenario: Callable[[SqlNode], Awaitable[None]], *more: str) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            for text in (*SET_UP, *more):
                await node.sql(text)
            await scenario(node)

    sim = Simulation(seed=11)
    sim.run(whole())


@pytest.mark.parametrize("constraint", [CHECK, KEY], ids=["check", "foreign key"])
@pytest.mark.parametrize("more", [(), (LOCK,)], ids=["unlocked", "locked"])
def test_it_is_proven_when_its_rows_are_mended(constraint: str, more: tuple[str, ...]) -> None:
    async def scenario(node: SqlNode) -> None:
        wrong = await node.error(VALIDATE)
        assert wrong.sqlstate in ("23514", "23503")
        assert await node.rows(VALIDATED) == [(False,)]
        assert (await node.error("INSERT INTO t VALUES (3, 3)")).sqlstate == wrong.sqlstate
        await node.sql("UPDATE t SET v = 20 WHERE k = 1")
        await node.sql(VALIDATE)
        assert await node.rows(VALIDATED) == [(True,)]
        await node.sql(VALIDATE)  # has nothing left to do
        assert (await node.error("INSERT INTO t VALUES (3, 3)")).sqlstate == wrong.sqlstate

    run(scenario, constraint, *more)


def test_a_failed_validation_still_guards_the_referenced_rows() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.error(VALIDATE)
        assert (await node.error("DELETE FROM p")).sqlstate == "23503"

    run(scenario, KEY)


@pytest.mark.parametrize("constraint", [CHECK, KEY], ids=["check", "foreign key"])
def test_what_a_transaction_adds_is_validated_by_another(constraint: str) -> None:
    async def scenario(node: SqlNode) -> None:
        assert (await node.error(f"{constraint}, VALIDATE CONSTRAINT few")).sqlstate == "0A000"
        assert await node.rows(VALIDATED) == []

    run(scenario)
