"""Users beside root, and what they are told who may not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql import Result, Row, Session
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

ORDERS = "CREATE TABLE orders (k INT8 PRIMARY KEY, v STRING); INSERT INTO orders VALUES (1, 'a')"


class People:
    """Root's node, and sessions of ada and bo."""

    def __init__(self, node: SqlNode) -> None:
        self.node = node
        self.ada = node.session("ada")
        self.bo = node.session("bo")

    async def root(self, text: str) -> list[Row]:
        return await self.node.rows(text)

    async def close(self) -> None:
        await self.ada.close()
        await self.bo.close()


async def sql(session: Session, text: str, *parameters: object) -> Result:
    return (await session.execute(text, parameters))[-1]


async def rows(session: Session, text: str) -> list[Row]:
    return (await sql(session, text)).fetch_rows()


async def refused(session: Session, text: str, sqlstate: str = "42501") -> str:
    with pytest.raises(SQLError) as caught:
        await session.execute(text)
    assert caught.value.sqlstate == sqlstate, caught.value
    return caught.value.message


def run(scenario: Callable[[People], Awaitable[None]], *set_up: str) -> None:
    sim = Simulation(seed=1)

    async def main() -> None:
        async with sql_node(sim) as node:
            for text in ("CREATE USER ada; CREATE USER bo", ORDERS, *set_up):
                await node.sql(text)
            people = People(node)
            try:
                await scenario(people)
            finally:
                await people.close()

    sim.run(main())
