"""SELECT … FOR UPDATE and FOR SHARE, natively and through DuckDB."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql import Session
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

LEVELS = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]
NATIVE = "SELECT v FROM t WHERE k = 1 FOR UPDATE"
THROUGH_DUCKDB = "SELECT v FROM t WHERE v % 10 = 0 AND v < 15 ORDER BY v FOR UPDATE"


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    sim = Simulation(seed=5)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v INT8)")
            await node.sql("CREATE TABLE u (k INT8 PRIMARY KEY, t INT8)")
            await node.sql(
                "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30); INSERT INTO u VALUES (7, 1)"
            )
            await scenario(node)

    sim.run(main())


async def outcome(session: Session, text: str) -> object:
    """The rows, the tag where there are none, or the SQLSTATE."""
    try:
        result = (await session.execute(text))[-1]
        return result.fetch_rows() if result.columns else result.tag
    except SQLError as error:
        return error.sqlstate


async def later(session: Session, text: str) -> asyncio.Task[object]:
    """A statement that has to wait."""
    task = asyncio.create_task(outcome(session, text))
    await asyncio.sleep(0.05)
    assert not task.done(), task.result()
    return task


@pytest.mark.parametrize("query", [NATIVE, THROUGH_DUCKDB])
@pytest.mark.parametrize("level", ["READ COMMITTED", "SERIALIZABLE"])
def test_increments_behind_for_update_do_not_conflict(query: str, level: str) -> None:
    async def scenario(node: SqlNode) -> None:
        async def increment(session: Session) -> None:
            await session.execute(f"BEGIN ISOLATION LEVEL {level}")
            rows = (await session.execute(query))[0].fetch_rows()
            if rows:
                value = rows[0][0]
                assert isinstance(value, int)
                await session.execute("UPDATE t SET v = $1 WHERE k = 1", [value + 1])
            await session.execute("COMMIT")

        await asyncio.gather(*(increment(node.session()) for _ in range(5)))
        expected = 15 if query is NATIVE else 11
        assert await node.rows("SELECT v FROM t WHERE k = 1") == [(expected,)]

    run(scenario)


def test_repeatable_read_fails_where_the_row_has_changed() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t")
        await node.session().execute("UPDATE t SET v = 11 WHERE k = 1")
        error = await node.error(NATIVE)
        assert error.sqlstate == "40001"
        assert "concurrent update" in error.message

    run(scenario)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("key", ["k = 1", "k >= 1 AND k < 2", "v = 10"])
def test_nowait_says_so_at_once(level: str, key: str) -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; SELECT * FROM t WHERE k = 1 FOR UPDATE")
        other = node.session()
        query = f"BEGIN ISOLATION LEVEL {level}; SELECT v FROM t WHERE {key}"
        with pytest.raises(SQLError) as caught:
            await other.execute(f"{query} FOR SHARE NOWAIT")
        assert caught.value.sqlstate == "55P03"
        assert caught.value.message == 'could not obtain lock on row in relation "t"'
        await other.execute("ROLLBACK")
        assert await outcome(other, query) == [(10,)], "who only reads does not wait for locks"
        await other.execute("ROLLBACK")

    run(scenario)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("order", ["k", "v"])
@pytest.mark.parametrize(
    "how", ["SELECT * FROM t WHERE k = 1 FOR UPDATE", "DELETE FROM t WHERE k = 1"]
)
def test_workers_skip_what_others_have(level: str, order: str, how: str) -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(f"BEGIN; {how}")
        take = f"SELECT k FROM t WHERE k > 0 ORDER BY {order} LIMIT 1 FOR UPDATE SKIP LOCKED"
        workers = [node.session() for _ in range(3)]
        got = []
        for worker in workers:
            await worker.execute(f"BEGIN ISOLATION LEVEL {level}")
            got.append(await outcome(worker, take))
        assert got == [[(2,)], [(3,)], []]
        await workers[1].execute("ROLLBACK")
        assert await outcome(workers[2], take) == [(3,)]
        await workers[0].execute("DELETE FROM t WHERE k = 2; COMMIT")
        await workers[0].execute(f"BEGIN ISOLATION LEVEL {level}")
        assert await outcome(workers[0], take) == []
        assert await outcome(workers[2], "COMMIT") == "COMMIT"

    run(scenario)


def test_share_locks_are_shared_and_upgraded() -> None:
    async def scenario(node: SqlNode) -> None:
        first, second, writer = node.first, node.session(), node.session()
        share = "BEGIN; SELECT v FROM t WHERE k = 1 FOR SHARE"
        assert await outcome(first, share) == await outcome(second, share) == [(10,)]
        waiting = await later(writer, "UPDATE t SET v = v + 1 WHERE k = 1")
        # The upgrade goes before the writer, which waits for both sharers anyway.
        upgrade = await later(first, "UPDATE t SET v = 100 WHERE k = 1")
        await second.execute("COMMIT")
        assert await upgrade == "UPDATE 1"
        await first.execute("COMMIT")
        assert await waiting == "UPDATE 1"
        assert await node.rows("SELECT v FROM t WHERE k = 1") == [(101,)]

    run(scenario)


def test_two_upgrades_are_a_deadlock() -> None:
    async def scenario(node: SqlNode) -> None:
        first, second = node.first, node.session()
        for session in (first, second):
            await session.execute("BEGIN; SELECT v FROM t WHERE k = 1; SAVEPOINT s")
            await session.execute("SELECT v FROM t WHERE k = 1 FOR KEY SHARE")
        upgrade = await later(first, "UPDATE t SET v = 0 WHERE k = 1")
        with pytest.raises(SQLError) as caught:
            await second.execute("UPDATE t SET v = 0 WHERE k = 1")
        assert (caught.value.sqlstate, caught.value.hint) == (
            "40P01",
            "Run the transaction again from its BEGIN.",
        )
        assert await upgrade == "UPDATE 1"

    run(scenario)


def test_join_locks_the_tables_that_it_names() -> None:
    async def scenario(node: SqlNode) -> None:
        query = "BEGIN; SELECT t.v, x.k FROM t JOIN u AS x ON x.t = t.k FOR NO KEY UPDATE OF x"
        assert await outcome(node.first, query) == [(10, 7)]
        other = node.session()
        await other.execute("UPDATE t SET v = 0")
        waiting = await later(other, "DELETE FROM u")
        await node.sql("COMMIT")
        assert await waiting == "DELETE 1"

    run(scenario)


def test_locking_alone_waits_and_lets_go() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; UPDATE t SET v = 11 WHERE k = 1")
        other = node.session()
        waiting = await later(other, NATIVE)
        await node.sql("COMMIT")
        assert await waiting == [(11,)]
        await node.sql("UPDATE t SET v = 12 WHERE k = 1")

    run(scenario)


def test_insert_behind_an_insert_is_a_duplicate() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; INSERT INTO t VALUES (4, 40)")
        other = node.session()
        await other.execute("BEGIN; SELECT 1")
        waiting = await later(other, "INSERT INTO t VALUES (4, 41)")
        await node.sql("COMMIT")
        assert await waiting == "23505"

    run(scenario)


@pytest.mark.parametrize("level", ["READ COMMITTED", "SERIALIZABLE"])
def test_rows_are_locked_beside_a_virtual_table(level: str) -> None:
    async def scenario(node: SqlNode) -> None:
        query = "SELECT k, relname FROM t, pg_class WHERE relname = 't' AND k = 1 FOR UPDATE OF t"
        begun = f"BEGIN ISOLATION LEVEL {level}; {query}"
        assert await outcome(node.first, begun) == [(1, "t")]
        assert await outcome(node.session(), "SELECT k FROM t FOR UPDATE NOWAIT") == "55P03"

    run(scenario)


@pytest.mark.parametrize("how", ["", " SKIP LOCKED"])
def test_an_array_of_many_keys_is_locked(how: str) -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN")
        every = f"SELECT k FROM t WHERE k = ANY ($1::INT8[]) ORDER BY k LIMIT 1 FOR UPDATE{how}"
        assert (await node.sql(every, list(range(1500)))).fetch_rows() == [(1,)]
        assert await outcome(node.session(), "SELECT k FROM t FOR UPDATE NOWAIT") == "55P03"

    run(scenario)


@pytest.mark.parametrize("how", ["", " SKIP LOCKED"])
def test_clauses_of_one_kind_are_one(how: str) -> None:
    """postgres_fdw writes a clause for each table of a join; here both are one, and one row."""

    async def scenario(node: SqlNode) -> None:
        clauses = f"FOR UPDATE OF t{how} FOR UPDATE OF u{how}"
        query = f"SELECT t.k FROM t JOIN t AS u ON t.k = u.k AND t.k = 1 {clauses}"
        assert await outcome(node.first, f"BEGIN; {query}") == [(1,)]
        assert await outcome(node.session(), "SELECT k FROM t FOR UPDATE NOWAIT") == "55P03"

    run(scenario)


@pytest.mark.parametrize(
    ("query", "sqlstate"),
    [
        ("SELECT count(*) FROM t FOR UPDATE", "0A000"),
        ("SELECT DISTINCT v FROM t FOR UPDATE", "0A000"),
        ("SELECT v FROM t GROUP BY v FOR SHARE", "0A000"),
        ("SELECT * FROM (SELECT * FROM t FOR UPDATE) AS s", "0A000"),
        ("SELECT v FROM t FOR UPDATE OF w", "42P01"),
        ("SELECT t.v FROM t, t AS u FOR UPDATE OF t FOR SHARE OF u", "0A000"),
        ("SELECT t.v FROM t, t AS u FOR UPDATE OF t FOR UPDATE OF u NOWAIT", "0A000"),
        ("SELECT * FROM system.descriptor FOR UPDATE", "42501"),
        ("SELECT v FROM t AS OF SYSTEM TIME '-1s' FOR UPDATE", "25006"),
        ("BEGIN READ ONLY; SELECT v FROM t FOR UPDATE", "25006"),
    ],
)
def test_what_cannot_be_locked(query: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        await asyncio.sleep(2)
        assert (await node.error(query)).sqlstate == sqlstate

    run(scenario)
