"""Results that come in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pyarrow as pa
import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.span import Span
from tailrace.sql import Result, Session
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

ROWS = 40_000
"""More than two parts of a table, and than two batches."""

ENDLESS = "SELECT i FROM generate_series(1, 100000000000) AS s(i)"
"""What nobody could hold."""

Scenario = Callable[[SqlNode, Session], Awaitable[None]]


def run(scenario: Scenario) -> None:
    sim = Simulation(seed=5)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v INT8)")
            await node.sql(f"INSERT INTO t SELECT g, g % 7 FROM generate_series(1, {ROWS}) AS s(g)")
            session = node.session()
            await scenario(node, session)
            await session.close()
            assert node.store.metrics.get("sql_results_waiting") == 0

    sim.run(main())


async def ask(session: Session, text: str) -> Result:
    return (await session.execute(text, streamed=True))[-1]


async def rows_of(session: Session, result: Result) -> list[tuple[object, ...]]:
    assert result.batches is not None, "the result is whole"
    rows: list[tuple[object, ...]] = []
    async with session.sending(result):
        while (table := await result.batches.next()) is not None:
            rows += result.batch(table).fetch_rows()
    return rows


# What comes in batches, and what whole results of the same statements say.
QUERIES = [
    "SELECT * FROM t",
    "SELECT k, v * 2 AS w FROM t WHERE v <> 3",
    "SELECT * FROM t ORDER BY k",
    "SELECT v, k FROM t AS o WHERE o.k > 10 ORDER BY o.k LIMIT 30000",
    "SELECT k FROM t LIMIT 20000",
    "SELECT x.w FROM (SELECT k * 2 AS w, v FROM t WHERE v <> 3) AS x WHERE x.v <> 4",
    "SELECT w FROM (SELECT k AS w FROM t LIMIT 30000) AS x LIMIT 20000",
    "SELECT k FROM (SELECT k FROM t WHERE k IN (SELECT k FROM t)) AS x ORDER BY 1",
    "SELECT * FROM t ORDER BY v, k",
    "SELECT a.k, b.v FROM t a JOIN t b ON a.k = b.k ORDER BY 1",
    "SELECT v, count(*) OVER (PARTITION BY v), k FROM t ORDER BY k DESC",
    "SELECT DISTINCT k FROM t ORDER BY 1",
]


@pytest.mark.parametrize("query", QUERIES)
def test_batches_say_what_the_whole_says(query: str) -> None:
    async def scenario(node: SqlNode, session: Session) -> None:
        result = await ask(session, query)
        rows = await rows_of(session, result)
        whole = await node.sql(query)
        assert rows == whole.fetch_rows()
        assert result.full_tag == whole.tag
        assert result.columns == whole.columns

    run(scenario)


def test_a_short_result_is_whole() -> None:
    async def scenario(node: SqlNode, session: Session) -> None:
        for query, count in (("SELECT * FROM t WHERE v = 1 AND k < 10", 2), ("SELECT 1", 1)):
            result = await ask(session, query)
            assert (result.tag, result.batches) == (f"SELECT {count}", None)

    run(scenario)


@pytest.mark.parametrize("query", ["SELECT k, v FROM wide WHERE v <> ''", "SELECT * FROM seen"])
def test_a_part_of_the_table_is_held_at_a_time(query: str) -> None:
    async def scenario(node: SqlNode, session: Session) -> None:
        await node.sql("CREATE TABLE wide (k INT8 PRIMARY KEY, v STRING)")
        rows = "SELECT g, repeat('x', 1000) FROM generate_series(1, 20000) AS s(g)"
        await node.sql(f"INSERT INTO wide {rows}")
        await node.sql("CREATE VIEW seen AS SELECT k, v FROM wide WHERE k > 0")
        before = most = pa.total_allocated_bytes()
        result = await ask(session, query)
        assert result.batches is not None
        async with session.sending(result):
            while await result.batches.next() is not None:
                most = max(most, pa.total_allocated_bytes())
        assert result.batches.row_count == 20_000
        assert most - before < 8_000_000, "of twenty million bytes"

    run(scenario)


def test_only_what_is_asked_for_is_computed() -> None:
    async def scenario(node: SqlNode, session: Session) -> None:
        result = await ask(session, ENDLESS)
        assert result.batches is not None
        async with session.sending(result):
            first = await result.batches.next()
        assert first is not None
        assert first.column(0).to_pylist() == list(range(1, first.num_rows + 1))
        await result.close()

    run(scenario)


def test_a_reader_blocks_neither_queries_nor_writers_nor_schema_changes() -> None:
    async def scenario(node: SqlNode, session: Session) -> None:
        readers = [node.session() for _ in range(5)]
        results = [await ask(reader, "SELECT * FROM t") for reader in readers]
        results += [await ask(session, ENDLESS)]
        await node.sql("UPDATE t SET v = -1")
        await node.sql("ALTER TABLE t ADD COLUMN note STRING DEFAULT 'new'")
        await node.sql("DELETE FROM t WHERE k > 10")
        assert await node.rows("SELECT count(*), min(v) FROM t") == [(10, -1)]
        for reader, result in zip(readers, results, strict=False):
            rows = await rows_of(reader, result)
            assert rows == [(k, k % 7) for k in range(1, ROWS + 1)]
            await reader.close()
        await results[-1].close()

    run(scenario)


def test_an_error_in_a_later_batch_is_the_statements() -> None:
    async def scenario(node: SqlNode, session: Session) -> None:
        for query in (
            "SELECT 1000 / (35000 - k) FROM t",
            "SELECT 9 / (150000 - i), repeat('x', 200) FROM generate_series(1, 200000) AS s(i)",
        ):
            await session.execute("BEGIN")
            result = await ask(session, query)
            with pytest.raises(SQLError, match="division by zero") as raised:
                await rows_of(session, result)
            assert raised.value.sqlstate == "22012"
            with pytest.raises(SQLError, match="transaction is aborted"):
                await session.execute("SELECT 1")
            await session.execute("ROLLBACK")

    run(scenario)


def test_a_transaction_goes_on_beside_its_result() -> None:
    async def scenario(node: SqlNode, session: Session) -> None:
        await session.execute("BEGIN; UPDATE t SET v = 100 WHERE k = 39999")
        result = await ask(session, "SELECT k, v FROM t")
        await session.execute("SAVEPOINT s; UPDATE t SET v = 0; DELETE FROM t WHERE k > 5")
        await session.execute("ROLLBACK TO s; UPDATE t SET v = 5 WHERE k = 40000; COMMIT")
        expected = [(k, 100 if k == 39_999 else k % 7) for k in range(1, ROWS + 1)]
        assert await rows_of(session, result) == expected

    run(scenario)


def test_statement_timeout_counts_to_the_last_row() -> None:
    async def scenario(node: SqlNode, session: Session) -> None:
        await session.execute("SET statement_timeout = '2s'")
        result = await ask(session, ENDLESS)
        with pytest.raises(SQLError, match="statement timeout") as raised:
            await rows_of_slowly(session, result)
        assert raised.value.sqlstate == "57014"
        assert await node.rows("SELECT 1") == [(1,)]

    run(scenario)


async def rows_of_slowly(session: Session, result: Result) -> None:
    assert result.batches is not None
    async with session.sending(result):
        while await result.batches.next() is not None:
            pass


def test_a_result_that_nobody_reads_is_let_go() -> None:
    async def scenario(node: SqlNode, session: Session) -> None:
        await node.sql("SET CLUSTER SETTING sql.result.idle_timeout = '1m'")
        result = await ask(session, "SELECT * FROM t")
        await asyncio.sleep(59)
        assert node.store.metrics.get("sql_results_waiting") == 1
        await asyncio.sleep(2)
        assert node.store.metrics.get("sql_results_waiting") == 0
        with pytest.raises(SQLError, match="not taken for 60 seconds") as raised:
            await rows_of(session, result)
        assert raised.value.sqlstate == "57014"

    run(scenario)


def test_versions_that_were_collected_are_an_error() -> None:
    async def scenario(node: SqlNode, session: Session) -> None:
        result = await ask(session, "SELECT * FROM t")
        await node.sql("DELETE FROM t")
        everything = Span(b"", b"\xff")
        await node.store.collect_garbage(everything, await node.store.now())
        with pytest.raises(SQLError, match="snapshot too old") as raised:
            await rows_of(session, result)
        assert raised.value.sqlstate == "72000"

    run(scenario)


def test_rows_of_several_spans_are_those_of_one_moment() -> None:
    async def scenario(node: SqlNode, session: Session) -> None:
        await node.sql("CREATE TABLE p (a INT8, b INT8, v STRING, PRIMARY KEY (a, b))")
        wide = "SELECT g % 3, g, repeat('x', 1000) FROM generate_series(1, 9000) AS s(g)"
        await node.sql(f"INSERT INTO p {wide}")
        await session.execute("BEGIN")
        result = await ask(session, "SELECT a, b, v FROM p WHERE a IN (0, 1, 2) AND v <> ''")
        await session.execute("DELETE FROM p WHERE b > 100; COMMIT")
        rows = await rows_of(session, result)
        assert sorted(rows) == sorted((g % 3, g, "x" * 1000) for g in range(1, 9001))

    run(scenario)
