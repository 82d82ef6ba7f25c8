"""Queries, writes and locks by secondary indexes: the oracle is the same statement without them."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.descriptors.elements import ElementState
from tailrace.catalog.values.column_types import Datum
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.clock import format_timestamp
from tailrace.sql.access.key_access import readable_indexes
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

TABLE = """CREATE TABLE t (k INT8 PRIMARY KEY, a INT8, b STRING, c INT8, u INT8)"""
INDEXES = (
    "CREATE INDEX by_a ON t (a)",
    "CREATE INDEX by_b_a ON t (b, a) STORING (c)",
    "CREATE UNIQUE INDEX by_u ON t (u)",
)
SCANNED = "native: index scan"
JOINED = "native: index scan, then rows by primary key"
ROWS = [
    (k, None if k % 7 == 0 else k % 5, "xyz"[k % 3], k * 10, None if k % 4 == 0 else 100 - k)
    for k in range(40)
]


async def prepare(node: SqlNode, *indexes: str) -> None:
    await node.sql(TABLE)
    await node.sql("INSERT INTO t VALUES " + ", ".join(map(literal, ROWS)))
    for index in indexes or INDEXES:
        await node.sql(index)


def literal(row: tuple[Datum, ...]) -> str:
    told = ["NULL" if value is None else repr(value) for value in row]
    return f"({', '.join(told)})"


async def explain(node: SqlNode, statement: str) -> dict[object, object]:
    return {row[0]: row[1] for row in await node.rows("EXPLAIN " + statement)}


@pytest.fixture
def sim() -> Simulation:
    return Simulation(seed=11)


@pytest.mark.parametrize(
    ("statement", "engine", "index"),
    [
        ("SELECT a, k FROM t WHERE a = 3", SCANNED, "by_a"),
        ("SELECT * FROM t WHERE a = 3", JOINED, "by_a"),
        ("SELECT c FROM t WHERE b = 'x' AND a > 1", SCANNED, "by_b_a"),
        ("SELECT u FROM t WHERE b IN ('x', 'z')", JOINED, "by_b_a"),
        ("SELECT * FROM t WHERE u = 99 AND a = 1", JOINED, "by_u"),
        ("SELECT k FROM t WHERE a IS NULL", SCANNED, "by_a"),
        ("SELECT a FROM t WHERE a BETWEEN 1 AND 2 ORDER BY a DESC", SCANNED, "by_a"),
        ("SELECT k FROM t WHERE a = 2 ORDER BY k DESC LIMIT 2", SCANNED, "by_a"),
        ("SELECT a, k FROM t ORDER BY a NULLS FIRST, k LIMIT 3", SCANNED, "by_a"),
        ("SELECT * FROM t WHERE a = 3 AND k = 3", "native: point reads", None),
        ("SELECT * FROM t WHERE c = 30", "duckdb over a snapshot", None),
        ("SELECT a, k FROM t ORDER BY a LIMIT 3", "duckdb over a snapshot", None),
        ("UPDATE t SET c = 0 WHERE u = 99", JOINED, "by_u"),
        ("DELETE FROM t WHERE b = 'x'", JOINED, "by_b_a"),
        ("SELECT * FROM t WHERE a = 3 FOR UPDATE", JOINED, "by_a"),
    ],
)
def test_explain_names_the_index(
    sim: Simulation, statement: str, engine: str, index: str | None
) -> None:
    async def main() -> None:
        async with sql_node(sim) as node:
            await prepare(node)
            told = await explain(node, statement)
            assert (told["engine"], told.get("index")) == (engine, index)

    sim.run(main())


# The same answers


STATEMENTS = st.sampled_from(
    [
        "SELECT {columns} FROM t WHERE {where} ORDER BY k",
        "SELECT {columns} FROM t WHERE {where} ORDER BY a, k",
        "SELECT {columns} FROM t WHERE {where} ORDER BY a DESC, k DESC",
        "SELECT {columns} FROM t WHERE {where} ORDER BY a NULLS FIRST, k LIMIT 5 OFFSET 1",
        "SELECT {columns} FROM t WHERE {where} ORDER BY u, k LIMIT 4",
        "SELECT count(*), sum(c) FROM t WHERE {where}",
        "SELECT {columns} FROM t WHERE {where} ORDER BY k FOR UPDATE",
        "UPDATE t SET a = a + 1, c = -k WHERE {where}",
        "UPDATE t SET u = NULL WHERE {where}",
        "UPDATE t SET b = lower(b) || b WHERE {where}",
        "UPDATE t SET k = k + 1000 WHERE {where}",
        "DELETE FROM t WHERE {where}",
        "INSERT INTO t SELECT k + 2000, a, b, c, NULL FROM t WHERE {where} ON CONFLICT DO NOTHING",
    ]
)


NUMBERS = st.integers(-1, 6).map(str) | st.just("NULL")
CONJUNCTS = st.one_of(
    st.tuples(st.sampled_from("au"), st.sampled_from(["=", "<", "<=", ">", ">="]), NUMBERS).map(
        " ".join
    ),
    st.tuples(st.sampled_from(["u =", "u <", "u >="]), st.integers(60, 101).map(str)).map(" ".join),
    st.lists(NUMBERS, min_size=1, max_size=3).map(lambda found: f"a IN ({', '.join(found)})"),
    st.lists(st.sampled_from(["'x'", "'y'", "'w'"]), min_size=1, max_size=3).map(
        lambda found: f"b IN ({', '.join(found)})"
    ),
    st.sampled_from(["a IS NULL", "u IS NULL", "b IS NOT NULL", "a IS NOT NULL"]),
    st.sampled_from(["k < 20", "c % 20 = 0", "b = 'x'", "b > 'x'", "b BETWEEN 'w' AND 'y'"]),
)
CONDITIONS = st.lists(CONJUNCTS, min_size=1, max_size=3).map(" AND ".join)
COLUMNS = st.sampled_from(["*", "k, a", "k, a, b, c", "u"])


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(STATEMENTS, CONDITIONS, COLUMNS), min_size=3, max_size=8))
def test_statements_do_the_same_with_indexes_as_without(
    statements: list[tuple[str, str, str]],
) -> None:
    """In one transaction each, so that reads see its own writes; and the table is the same."""

    async def answers(node: SqlNode) -> list[object]:
        found: list[object] = []
        session = node.session()
        await session.execute("BEGIN")
        for text, where, columns in statements:
            (result,) = await session.execute(text.format(where=where, columns=columns))
            found.append(result.fetch_rows() if result.returns_rows else result.row_count)
        await session.execute("COMMIT")
        await session.close()
        return [*found, await node.rows("SELECT * FROM t ORDER BY k")]

    def told(*indexes: str) -> list[object]:
        sim = Simulation(seed=3)

        async def main() -> list[object]:
            async with sql_node(sim) as node:
                await prepare(node, "CREATE INDEX other ON t (c)", *indexes)
                return await answers(node)

        return sim.run(main())

    assert told(*INDEXES) == told()


def test_the_past_is_read_by_the_index_of_then(sim: Simulation) -> None:
    async def main() -> None:
        async with sql_node(sim) as node:
            await prepare(node)
            at = await node.store.now()
            await node.sql("UPDATE t SET a = 99")
            before = len([row for row in ROWS if row[1] == 3])
            then = f"AS OF SYSTEM TIME '{format_timestamp(at)}'"
            assert await node.rows(f"SELECT count(*) FROM t WHERE a = 3 {then}") == [(before,)]
            assert await node.rows("SELECT count(*) FROM t WHERE a = 3") == [(0,)]

    sim.run(main())


def test_an_index_is_not_read_before_it_is_public_nor_when_it_goes(sim: Simulation) -> None:
    """Every answer while it comes and goes is that of a full scan."""

    async def main() -> None:
        async with sql_node(sim) as node:
            await prepare(node, "CREATE INDEX other ON t (c)")
            wanted = sorted(row[0] for row in ROWS if row[1] == 3)
            engines = set()
            for statement in ("CREATE INDEX by_a ON t (a)", "DROP INDEX by_a", "TRUNCATE t"):
                change = asyncio.create_task(node.sql(statement))
                while not change.done():
                    rows = await node.rows("SELECT k FROM t WHERE a = 3 ORDER BY k")
                    if statement != "TRUNCATE t":
                        assert [row[0] for row in rows] == wanted, statement
                    await asyncio.sleep(0.0005)
                    engines.add((await explain(node, "SELECT k FROM t WHERE a = 3"))["engine"])
                await change
            assert engines == {SCANNED, "duckdb over a snapshot"}
            assert await node.rows("SELECT k FROM t WHERE a = 3") == []

    sim.run(main())


def test_of_every_version_only_public_indexes_are_read(sim: Simulation) -> None:
    async def main() -> None:
        async with sql_node(sim) as node:
            await prepare(node, "CREATE INDEX other ON t (c)")
            began = await node.store.now()
            for statement in ("CREATE INDEX by_a ON t (a)", "DROP INDEX by_a", "TRUNCATE t"):
                await node.sql(statement)
            catalog = node.services.catalog
            (table,) = await catalog.list_tables(node.store.snapshot(began), "defaultdb")
            now = await node.store.now()
            states = set()
            for version in await catalog.descriptors.versions([table.id], began, now):
                assert isinstance(version, TableDescriptor)
                read = {index.id for index in readable_indexes(version)}
                for index in version.indexes:
                    states.add(index.state)
                    assert (index.id in read) == (index.state is ElementState.PUBLIC), version
            assert states == set(ElementState)

    sim.run(main())


def test_a_locking_read_by_index_skips_what_others_hold(sim: Simulation) -> None:
    """The queue of many workers: each takes another row."""
    take = "SELECT k FROM t WHERE b = 'x' ORDER BY a, k LIMIT 1 FOR UPDATE SKIP LOCKED"

    async def main() -> None:
        async with sql_node(sim) as node:
            await prepare(node)
            first, second = node.session(), node.session()
            for session in (first, second):
                await session.execute("BEGIN")
            mine = (await first.execute(take))[0].fetch_rows()
            theirs = (await second.execute(take))[0].fetch_rows()
            assert mine and theirs and mine != theirs
            await second.execute(f"UPDATE t SET b = 'done' WHERE k = {theirs[0][0]!r}")
            for session in (first, second):
                await session.execute("COMMIT")
                await session.close()

    sim.run(main())


def test_a_row_that_would_match_is_not_missed(sim: Simulation) -> None:
    """Write skew over an index: of two transactions that each saw none, one has to retry."""

    async def main() -> None:
        async with sql_node(sim) as node:
            await prepare(node)
            sessions = [node.session(), node.session()]
            for session in sessions:
                await session.execute("BEGIN")
                (seen,) = await session.execute("SELECT * FROM t WHERE a = 77")
                assert seen.fetch_rows() == []
            for number, session in enumerate(sessions):
                await session.execute(f"INSERT INTO t VALUES ({900 + number}, 77, 'x', 0, NULL)")
            outcomes = []
            for session in sessions:
                try:
                    await session.execute("COMMIT")
                    outcomes.append("committed")
                except SQLError as error:
                    outcomes.append(error.sqlstate)
            assert sorted(outcomes) == ["40001", "committed"]
            for session in sessions:
                await session.close()

    sim.run(main())


def test_long_ranges_of_an_index_are_left_to_duckdb(sim: Simulation) -> None:
    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, a INT8, v STRING, INDEX by_a (a))")
            await node.sql(
                "INSERT INTO t SELECT i, i % 2, 'v' FROM generate_series(1, 3000) AS g(i)"
            )
            assert (await node.rows("SELECT count(v) FROM t WHERE a = 1")) == [(1500,)]
            found = await node.rows("SELECT k, v FROM t WHERE a = 1")
            assert sorted(found) == [(k, "v") for k in range(1, 3001, 2)]

    sim.run(main())
