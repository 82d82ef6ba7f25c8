"""Plans live exactly as long as the versions of their tables."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.runtime.plan_cache import (
    STEP_SECONDS,
    TEXT_LENGTH_MAX,
    TEXTS_MAX,
    PlanCache,
    planned,
)
from tests.harness.simulation import Simulation
from tests.harness.sql_node import sql_node, sql_services


def test_second_run_reuses_the_plan() -> None:
    sim = Simulation(seed=1)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
            text = "INSERT INTO t VALUES ($1, $2)"
            await node.sql(text, 1, "a")
            plan = node.services.plans.prepare(text).kept(0, "defaultdb")
            await node.sql(text, "2", "b")
            assert node.services.plans.prepare(text).kept(0, "defaultdb") is plan
            assert await node.rows("SELECT * FROM t") == [(1, "a"), (2, "b")]

    sim.run(main())


def test_new_version_replaces_the_plan() -> None:
    sim = Simulation(seed=1)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
            text = "SELECT * FROM t"
            assert await node.rows(text) == []
            before = node.services.plans.prepare(text).kept(0, "defaultdb")
            await node.sql("ALTER TABLE t SET (changefeed_optimized)")
            assert await node.rows(text) == []
            after = node.services.plans.prepare(text).kept(0, "defaultdb")
            assert before is not None
            assert after is not None
            assert [table.version for table in before[0].relations + after[0].relations] == [1, 2]

    sim.run(main())


def test_name_may_come_to_mean_another_table() -> None:
    sim = Simulation(seed=1)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY); INSERT INTO t VALUES (1)")
            for text in ("SELECT * FROM t", "SELECT * FROM t WHERE k = 1"):
                assert await node.rows(text) == [(1,)]
            await node.sql("DROP TABLE t")
            assert (await node.error("SELECT * FROM t")).sqlstate == "42P01"
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, w STRING DEFAULT 'x')")
            await node.sql("INSERT INTO t (k) VALUES (1)")
            for text in ("SELECT * FROM t", "SELECT * FROM t WHERE k = 1"):
                assert await node.rows(text) == [(1, "x")]

    sim.run(main())


def test_other_node_learns_of_a_drop() -> None:
    sim = Simulation(seed=1)

    async def main() -> None:
        async with sql_node(sim) as first, sql_services(sim, first.store, 2) as second:
            await first.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
            await second.sql("INSERT INTO t VALUES (1)")
            await first.sql("DROP TABLE t; CREATE TABLE t (k INT8 PRIMARY KEY, v INT8)")
            await second.sql("INSERT INTO t VALUES (1, 2)")
            assert await first.rows("SELECT * FROM t") == [(1, 2)]

    sim.run(main())


def test_typed_texts_and_shapes_are_bounded() -> None:
    cache = PlanCache()
    for number in range(2 * TEXTS_MAX):
        cache.keep_typed((f"SELECT ${number}", (), "defaultdb"), number)
        cache.prepare(f"SELECT a{number} FROM t WHERE k = 1")
    cache.keep_typed(("x" * (TEXT_LENGTH_MAX + 1), (), "defaultdb"), 0)
    assert len(cache.typed) == len(cache._templates) == TEXTS_MAX
    assert len(cache._texts) <= TEXTS_MAX


def test_cache_is_bounded_and_keeps_no_errors() -> None:
    cache = PlanCache()
    first = cache.prepare("SELECT 0")
    for number in range(TEXTS_MAX):
        cache.prepare(f"SELECT {number}")
    assert cache.prepare("SELECT 0") is first
    cache.prepare("SELECT 'one more'")
    assert cache.prepare("SELECT 0") is not first
    long = f"SELECT '{'x' * TEXT_LENGTH_MAX}'"
    assert cache.prepare(long) is not cache.prepare(long)
    for _ in range(2):
        try:
            cache.prepare("SELEC")
        except SQLError as error:
            assert error.sqlstate == "42601"


@pytest.mark.parametrize(("steps", "turns"), [(0.5, 0), (1.0, 1)])
def test_work_that_took_long_ends_its_step(
    steps: float, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    others: list[str] = []

    def work() -> str:
        nonlocal now
        now += steps * STEP_SECONDS
        return "planned"

    async def main() -> None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda: now)
        loop.call_soon(others.append, "another task")
        assert await planned(work, lengthy=False) == "planned"
        assert len(others) == turns

    asyncio.run(main())
