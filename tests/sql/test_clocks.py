"""now(), statement_timestamp() and clock_timestamp(), each of its own time."""

from __future__ import annotations

import asyncio
from datetime import datetime

from tailrace.sql import Session
from tests.harness.simulation import Simulation
from tests.harness.sql_node import sql_node

ALL = "SELECT now(), statement_timestamp(), clock_timestamp()"


async def _told(session: Session) -> tuple[datetime, ...]:
    (result,) = await session.execute(ALL)
    return tuple(each for each in result.fetch_rows()[0] if isinstance(each, datetime))


def test_each_clock_goes_on_in_its_own_steps() -> None:
    async def run() -> None:
        async with sql_node(sim) as node:
            session = Session(node.services)
            await session.execute("BEGIN")
            began, asked, _ = await _told(session)
            await asyncio.sleep(2)
            began_again, asked_again, clock = await _told(session)
            await session.execute("COMMIT")
            assert began == began_again, "now() is the transaction's"
            assert (asked_again - asked).total_seconds() >= 2, "a plan that is kept asks again"
            assert began <= asked <= asked_again <= clock
            await session.close()

    sim = Simulation(1)
    sim.run(run())


def test_the_clock_is_never_before_the_statement() -> None:
    async def run() -> None:
        async with sql_node(sim) as node:
            text = (
                "SELECT bool_and(clock_timestamp() >= statement_timestamp()), "
                "bool_and(statement_timestamp() >= now()) FROM generate_series(1, 100)"
            )
            assert await node.rows(text) == [(True, True)]

    sim = Simulation(1)
    sim.run(run())
