"""Lanes of analytical queries: nobody has all of them, and none is had for ever."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.parse import parse
from tailrace.sql.runtime.analytic_lanes import (
    ANALYTICAL_TIMEOUT,
    USER_LANES_MAX,
    Asker,
    Lanes,
    QueryTime,
)
from tailrace.sql.syntax.statements import CopyTo
from tests.harness.people import People, refused, rows, run
from tests.harness.simulation import Simulation

ADA, BO, CY = (Asker(name, admin=False) for name in ("ada", "bo", "cy"))
ROOT = Asker("root", admin=True)


class Held:
    """Lanes that are had until they are let go."""

    def __init__(self, count: int) -> None:
        self.lanes = Lanes(count)
        self.having: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def ask(self, *askers: Asker | None) -> list[str]:
        """Asks for a lane for each in turn. Who has had one, in the order in which they got it."""
        for who in askers:
            self.tasks.append(asyncio.create_task(self._hold(who)))
            await asyncio.sleep(1)
        return self.having

    async def _hold(self, who: Asker | None) -> None:
        async with self.lanes.one(who):
            self.having.append("node" if who is None else who.user)
            await asyncio.Event().wait()

    async def end(self, place: int) -> list[str]:
        self.tasks[place].cancel()
        await asyncio.wait([self.tasks[place]])
        await asyncio.sleep(1)
        return self.having


def test_a_user_has_a_share_of_the_lanes() -> None:
    async def scenario() -> None:
        held = Held(4)
        assert await held.ask(ADA, ADA, ADA) == ["ada"] * USER_LANES_MAX
        assert await held.ask(BO) == ["ada", "ada", "bo"]
        assert await held.ask(CY) == ["ada", "ada", "bo"], "the last lane is kept for admins"
        assert await held.ask(ROOT) == ["ada", "ada", "bo", "root"]

    Simulation(seed=1).run(scenario())


def test_who_waits_longest_is_next_of_those_with_a_share_left() -> None:
    async def scenario() -> None:
        held = Held(4)
        await held.ask(ADA, ADA, ADA, BO, CY)
        assert await held.end(3) == ["ada", "ada", "bo", "cy"], "ada has her share"
        assert await held.end(0) == ["ada", "ada", "bo", "cy", "ada"]

    Simulation(seed=1).run(scenario())


def test_who_gives_up_waiting_leaves_no_lane_behind() -> None:
    async def scenario() -> None:
        held = Held(1)
        await held.ask(ADA, BO, CY)
        await held.end(1)
        assert await held.end(0) == ["ada", "cy"]
        assert await held.end(2) == ["ada", "cy"]
        assert await held.ask(None) == ["ada", "cy", "node"]

    Simulation(seed=1).run(scenario())


def test_a_querys_time_is_what_it_computes() -> None:
    """Of the batches of one query together; what lies between them is its client's."""

    async def scenario() -> None:
        time = QueryTime(Asker("ada", admin=False, seconds=10.0))
        for _ in range(2):
            async with time.running():
                await asyncio.sleep(4)
            await asyncio.sleep(100)
        with pytest.raises(SQLError) as caught:
            async with time.running():
                await asyncio.sleep(4)
        assert caught.value.sqlstate == "57014"
        async with QueryTime(None).running():
            await asyncio.sleep(1_000)

    Simulation(seed=1).run(scenario())


MANY = "SELECT k, count(*) FROM orders, generate_series(1, 5000) n GROUP BY k, n"


def test_select_is_timed_and_copy_and_fetch_are_not() -> None:
    """The simulation's DuckDB answers after a while of virtual time, which is more than none."""

    async def scenario(people: People) -> None:
        await people.root("SET CLUSTER SETTING sql.analytics.statement_timeout = '1us'")
        ada = people.ada
        assert "statement timeout" in await refused(ada, MANY, "57014")
        copied = await ada.copy_out(parsed(f"COPY ({MANY}) TO STDOUT"), "COPY")
        assert copied.batches is not None or copied.row_count
        await copied.close()
        await ada.execute(f"BEGIN; DECLARE c CURSOR FOR {MANY}")
        assert len(await rows(ada, "FETCH 10 FROM c")) == 10
        await ada.execute("ROLLBACK; SET statement_timeout = '1h'")
        assert await rows(ada, MANY), "a session that says so itself has that time"

    run(scenario, "GRANT SELECT ON orders TO ada")


def test_a_query_has_half_an_hour_unless_somebody_says_otherwise() -> None:
    async def scenario(people: People) -> None:
        assert people.ada.asker.seconds == ANALYTICAL_TIMEOUT.default == 30 * 60
        await people.root("SET CLUSTER SETTING sql.analytics.statement_timeout = '0s'")
        assert people.ada.asker.seconds == 0, "for ever"

    run(scenario)


def parsed(text: str) -> CopyTo:
    [statement] = parse(text).statements
    assert isinstance(statement, CopyTo)
    return statement
