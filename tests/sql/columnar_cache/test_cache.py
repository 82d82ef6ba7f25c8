"""A query reads from the cache what a scan by the same transaction would have read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random

import pytest

from tailrace.catalog.store.cluster_settings import set_setting
from tailrace.catalog.store.garbage_collector import GarbageCollector
from tailrace.catalog.values.errors import SQLError
from tailrace.sql import Session
from tailrace.sql.execute.columnar_cache import cache as caching
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

QUERY = "SELECT count(*), sum(v), min(note), max(note) FROM t"


@pytest.fixture(autouse=True)
def small_tables_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "ROWS_MIN", 1)


@asynccontextmanager
async def hot_node(sim: Simulation, rows: int = 50) -> AsyncIterator[SqlNode]:
    """A node whose table t is in the cache."""
    async with sql_node(sim) as node:
        await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v INT8, note STRING)")
        values = ", ".join(f"({key}, {key * 10}, 'n{key}')" for key in range(rows))
        await node.sql(f"INSERT INTO t VALUES {values}")
        await node.rows(QUERY)
        await node.rows(QUERY)
        assert await source(node) == "columnar cache"
        yield node


async def source(node: SqlNode, query: str = QUERY) -> str:
    """Where EXPLAIN says that a query's rows will come from."""
    rows = await node.rows(f"EXPLAIN {query}")
    return str(next(value for name, value in rows if name == "read"))


async def read(node: SqlNode, query: str = QUERY) -> str:
    """How EXPLAIN ANALYZE says that a query's rows came."""
    rows = await node.rows(f"EXPLAIN ANALYZE {query}")
    return str(next(value for name, value in rows if name == "read"))


async def both(session: Session, query: str = QUERY) -> tuple[object, object]:
    """What a session is told, and what it is told where nothing is cached."""
    cached = (await session.execute(query))[-1].fetch_rows()
    services = session._services
    session._services = replace(services, images=None)
    try:
        plain = (await session.execute(query))[-1].fetch_rows()
    finally:
        session._services = services
    return cached, plain


def test_the_second_scan_is_kept() -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v INT8, note STRING)")
            await node.sql("INSERT INTO t VALUES (1, 10, 'a')")
            sources = []
            for _ in range(4):
                sources.append(await source(node))
                await node.rows(QUERY)
            assert sources == ["full scan", "full scan", "columnar cache", "columnar cache"]

    sim.run(main())


def test_a_commit_is_seen_at_once() -> None:
    sim = Simulation(2)

    async def main() -> None:
        async with hot_node(sim) as node:
            for step in range(20):
                await node.sql(f"UPDATE t SET v = {step} WHERE k = {step}")
                await node.sql(f"DELETE FROM t WHERE k = {40 - step}")
                await node.sql(f"UPSERT INTO t VALUES ({100 + step}, 7, 'z{step:02}')")
                cached, plain = await both(node.first)
                assert cached == plain, step
            assert await source(node) == "columnar cache"

    sim.run(main())


def test_own_writes_are_seen_and_others_are_not() -> None:
    sim = Simulation(3)

    async def main() -> None:
        async with hot_node(sim) as node:
            mine, other = node.session(), node.session()
            await mine.execute("BEGIN")
            await mine.execute("UPDATE t SET v = 1000000 WHERE k = 3; DELETE FROM t WHERE k = 4")
            await other.execute("INSERT INTO t VALUES (900, 9, 'later')")
            cached, plain = await both(mine)
            assert cached == plain
            assert (await mine.execute("SELECT v FROM t WHERE v > 99999"))[0].fetch_rows() == [
                (1000000,)
            ]
            await mine.execute("ROLLBACK")
            cached, plain = await both(other)
            assert cached == plain, "what was rolled back left nothing"
            for session in (mine, other):
                await session.close()

    sim.run(main())


def test_an_old_transaction_does_not_see_new_rows() -> None:
    sim = Simulation(4)

    async def main() -> None:
        async with hot_node(sim) as node:
            old = node.session()
            await old.execute("BEGIN")
            before = (await old.execute(QUERY))[0].fetch_rows()
            await node.sql("INSERT INTO t VALUES (900, 9, 'later')")
            await asyncio.sleep(1)
            assert (await old.execute(QUERY))[0].fetch_rows() == before
            assert await node.rows(QUERY) != before
            assert (await old.execute(QUERY))[0].fetch_rows() == before
            await old.close()

    sim.run(main())


def test_what_was_read_from_the_cache_is_refreshed() -> None:
    sim = Simulation(5)

    async def main() -> None:
        async with hot_node(sim) as node:
            mine = node.session()
            await mine.execute("BEGIN")
            await mine.execute(QUERY)
            await node.sql("INSERT INTO t VALUES (900, 9, 'phantom')")
            await node.sql("SELECT * FROM t WHERE k = 901")
            with pytest.raises(SQLError) as caught:
                await mine.execute("INSERT INTO t VALUES (901, 1, 'x')")
                await mine.execute("COMMIT")
            assert caught.value.sqlstate == "40001"
            await mine.close()

    sim.run(main())


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE t ADD COLUMN w INT8 DEFAULT 5",
        "ALTER TABLE t DROP COLUMN note",
        "ALTER TABLE t RENAME COLUMN note TO v2",
        "ALTER TABLE t SET (schema_locked = true)",
        "TRUNCATE t",
        "CREATE INDEX ON t (v)",
    ],
)
def test_a_schema_change_is_followed(change: str) -> None:
    sim = Simulation(6)

    async def main() -> None:
        async with hot_node(sim) as node:
            await node.sql(change)
            await node.sql("INSERT INTO t (k, v) VALUES (900, 9)")
            query = "SELECT * FROM t WHERE v + 0 >= 0 ORDER BY k"
            for _ in range(4):
                cached, plain = await both(node.first, query)
                assert cached == plain

    sim.run(main())


def test_memory_is_bounded() -> None:
    sim = Simulation(7)

    async def main() -> None:
        async with hot_node(sim) as node:
            await node.sql("CREATE TABLE u (k INT8 PRIMARY KEY, v INT8, note STRING)")
            await node.sql("INSERT INTO u SELECT * FROM t")
            images = node.services.images
            assert isinstance(images, caching.ColumnarCache)
            limit = images.byte_count * 3 // 2
            await set_setting(node.store, "sql.columnar_cache.size", str(limit))
            query = QUERY.replace(" t", " u")
            for _ in range(3):
                await node.rows(query)
            assert await source(node, query) == "columnar cache"
            assert await source(node) == "full scan", "the table read longest ago has gone"
            assert images.byte_count <= limit
            await set_setting(node.store, "sql.columnar_cache.size", "100")
            for _ in range(3):
                await node.rows(query)
            assert await source(node, query) == "full scan", "it does not fit at all"
            await set_setting(node.store, "sql.columnar_cache.size", "0")
            await node.rows(query)
            assert images.byte_count == 0

    sim.run(main())


def test_a_table_of_which_most_has_changed_is_scanned_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(caching, "CHANGES_MIN", 30)
    sim = Simulation(8)

    async def main() -> None:
        async with hot_node(sim) as node:
            for step in range(40):
                await node.sql(f"UPDATE t SET v = {step} WHERE k = 1")
            assert (await read(node)).startswith("full scan, kept as columns: 50 rows")
            assert await source(node) == "columnar cache"

    sim.run(main())


def test_keys_of_an_old_image_are_read_behind_what_was_written_since() -> None:
    """A query of some keys first has the image brought up to some seconds ago."""
    sim = Simulation(11)

    async def main() -> None:
        async with hot_node(sim) as node:
            images = node.services.images
            assert isinstance(images, caching.ColumnarCache)
            made = next(iter(images._images.values())).at
            await node.sql("UPDATE t SET v = 1 WHERE k >= 10")
            await asyncio.sleep(2 * caching.RECENT_SECONDS)
            await node.sql("UPDATE t SET v = 2 WHERE k = 20")
            some = "SELECT count(*), sum(v) FROM t WHERE k >= 10 AND k < 30"
            cached, plain = await both(node.first, some)
            assert cached == plain == [(20, 21)]
            assert next(iter(images._images.values())).at > made
            assert (await read(node, some)).endswith("1 changed")

    sim.run(main())


def test_an_image_whose_past_was_collected_is_made_anew() -> None:
    sim = Simulation(12)

    async def main() -> None:
        async with hot_node(sim) as node:
            await node.sql("ALTER TABLE t SET (gc.ttlseconds = 60)")
            for _ in range(2):
                await node.rows(QUERY)
            await node.sql("DELETE FROM t WHERE k >= 10")
            await asyncio.sleep(300)
            collector = GarbageCollector(node.store, node.services.catalog.descriptors)
            await collector.collect()
            assert (await read(node)).startswith("full scan, kept as columns: 10 rows")
            cached, plain = await both(node.first)
            assert cached == plain

    sim.run(main())


def test_what_is_written_behind_the_scan_is_seen() -> None:
    """A transaction may commit at the very timestamp at which it read."""
    sim = Simulation(10)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v INT8, note STRING)")
            await node.sql("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b')")
            for step in range(5):
                await node.sql("UPDATE t SET v = v + 1 WHERE v + 0 > 0")
                cached, plain = await both(node.first)
                assert cached == plain == [(2, 32 + 2 * step, "a", "b")], step
            assert await source(node) == "columnar cache"

    sim.run(main())


def test_every_type_is_held() -> None:
    sim = Simulation(9)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql(
                "CREATE TABLE t (a INT4, b FLOAT4, c DECIMAL(8,2), d VARCHAR(9), e BYTES, f DATE,"
                " g TIME, h TIMESTAMPTZ, i INTERVAL, j UUID, l JSONB, m INT8[], n STRING[])"
            )
            row = (
                "(1, 1.5, 2.25, 'x', 'y', '2020-01-01', '10:00', '2020-01-01 00:00:00+00', '1 day',"
                " '00000000-0000-0000-0000-000000000001', '{\"a\": 1}', ARRAY[1, 2], ARRAY['p'])"
            )
            nulls = f"({', '.join(['NULL'] * 13)})"
            for step in range(4):
                await node.sql(f"INSERT INTO t VALUES {row}, {nulls}")
                cached, plain = await both(node.first, "SELECT * FROM t ORDER BY a, b")
                assert cached == plain, step
                await node.sql("UPDATE t SET m = ARRAY[7], a = a + 1 WHERE c > 1")
            assert await source(node, "SELECT * FROM t ORDER BY a") == "columnar cache"

    sim.run(main())


@pytest.mark.parametrize("seed", range(4))
def test_cached_and_plain_agree_under_load(seed: int) -> None:
    """Readers at every isolation level beside writers, one query each way in one transaction."""
    sim = Simulation(seed)

    async def main() -> None:
        random = Random(seed)
        async with hot_node(sim) as node:
            ended = asyncio.Event()

            async def write() -> None:
                session = node.session()
                for _ in range(40):
                    key = random.randrange(70)
                    text = random.choice(
                        (
                            f"UPSERT INTO t VALUES ({key}, {key}, 'w{random.randrange(99)}')",
                            f"DELETE FROM t WHERE k = {key}",
                            f"BEGIN; UPDATE t SET v = v + 1 WHERE k < {key}; COMMIT",
                            f"BEGIN; DELETE FROM t WHERE k = {key}; ROLLBACK",
                        )
                    )
                    try:
                        await session.execute(text)
                    except SQLError as error:
                        assert error.sqlstate == "40001", error
                        await session.execute("ROLLBACK")
                    await asyncio.sleep(random.random() * 0.01)
                await session.close()

            async def read() -> int:
                session = node.session()
                count = 0
                while not ended.is_set():
                    try:
                        await session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                        if random.random() < 0.4:
                            key = random.randrange(70)
                            await session.execute(f"UPSERT INTO t VALUES ({key}, 5, 'mine')")
                        cached, plain = await both(session)
                        assert cached == plain, seed
                        count += 1
                        await session.execute("ROLLBACK")
                    except SQLError as error:
                        assert error.sqlstate == "40001", error
                        await session.execute("ROLLBACK")
                    await asyncio.sleep(random.random() * 0.01)
                await session.close()
                return count

            readers = [asyncio.create_task(read()) for _ in range(2)]
            await asyncio.gather(*[write() for _ in range(3)])
            ended.set()
            assert min(await asyncio.gather(*readers)) > 5
            assert await source(node) == "columnar cache"
            assert node.store.metrics.get("sql_columnar_cache_hits_total") > 10

    sim.run(main())
