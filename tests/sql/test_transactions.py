"""Transactions as a client sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.keys import table_span
from tailrace.sql import Session, SessionState
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    sim = Simulation(seed=5)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v INT8)")
            await node.sql("INSERT INTO t VALUES (1, 10), (2, 20)")
            await scenario(node)

    sim.run(main())


async def outcome(session: Session, text: str) -> str:
    """The last tag, or the SQLSTATE."""
    try:
        return (await session.execute(text))[-1].tag
    except SQLError as error:
        return error.sqlstate


async def sqlstate(session: Session, text: str, *parameters: object) -> str:
    with pytest.raises(SQLError) as caught:
        await session.execute(text, parameters)
    return caught.value.sqlstate


def test_transaction_sees_its_own_writes_both_ways() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; UPDATE t SET v = 11 WHERE k = 1; INSERT INTO t VALUES (3, 30)")
        await node.sql("DELETE FROM t WHERE k = 2")
        assert await node.rows("SELECT v FROM t WHERE k = 1") == [(11,)]
        assert await node.rows("SELECT sum(v), count(*) FROM t") == [(41, 2)]
        await node.sql("COMMIT")
        assert await node.rows("SELECT k, v FROM t ORDER BY k") == [(1, 11), (3, 30)]

    run(scenario)


def test_two_open_transactions_create_tables() -> None:
    """The counter of ids is no row that one of them holds until its end."""

    async def scenario(node: SqlNode) -> None:
        first, second = node.session(), node.session()
        assert await outcome(first, "BEGIN; CREATE TABLE a (k INT8 PRIMARY KEY)") == "CREATE TABLE"
        assert await outcome(second, "BEGIN; CREATE TEMP TABLE b AS SELECT 1 AS k") == "SELECT 1"
        assert await outcome(node.first, "CREATE VIEW c AS SELECT k FROM t") == "CREATE VIEW"
        assert [await outcome(each, "COMMIT") for each in (second, first)] == ["COMMIT"] * 2

    run(scenario)


def test_rollback_leaves_nothing() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; DELETE FROM t; CREATE TABLE u (k INT8 PRIMARY KEY)")
        await node.sql("INSERT INTO u VALUES (1); ROLLBACK")
        assert await node.rows("SELECT count(*) FROM t") == [(2,)]
        assert (await node.error("SELECT * FROM u")).sqlstate == "42P01"

    run(scenario)


def test_table_can_be_used_in_the_transaction_that_creates_it() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; CREATE TABLE u (k INT8 PRIMARY KEY, v STRING)")
        await node.sql("INSERT INTO u VALUES (1, 'a'); UPDATE u SET v = 'b' WHERE v = 'a'")
        assert await node.rows("SELECT * FROM u") == [(1, "b")]
        await node.sql("COMMIT")
        assert await node.rows("SELECT * FROM u") == [(1, "b")]

    run(scenario)


@pytest.mark.parametrize("unique", ["", "UNIQUE "])
def test_table_is_made_filled_and_indexed_in_one_text(unique: str) -> None:
    """The index is built when the rows are committed; where it cannot be, it is not there."""

    async def scenario(node: SqlNode) -> None:
        make = (
            "CREATE TABLE {0} (k INT8 PRIMARY KEY, v INT8); INSERT INTO {0} VALUES (1, 5), (2, 6)"
        )
        index = f"CREATE {unique}INDEX ON {{0}} (v)"
        await node.sql(f"{make}; {index}".format("w"))
        assert await node.rows("SELECT k FROM w WHERE v = 6") == [(2,)]
        assert "w_v_" in str(await node.rows("SELECT indexname FROM pg_indexes"))
        text = f"{make}; INSERT INTO {{0}} VALUES (3, 5); {index}".format("x")
        if not unique:
            await node.sql(text)
        else:
            assert (await node.error(text)).sqlstate == "23505"
            assert "x_v_" not in str(await node.rows("SELECT indexname FROM pg_indexes"))
        assert await node.rows("SELECT k FROM x WHERE v = 5 ORDER BY k") == [(1,), (3,)]

    run(scenario)


def test_error_fails_the_transaction_until_rollback() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; INSERT INTO t VALUES (3, 30)")
        assert (await node.error("INSERT INTO t VALUES (1, 0)")).sqlstate == "23505"
        assert (await node.error("SELECT 1")).sqlstate == "25P02"
        assert (await node.sql("COMMIT")).tag == "ROLLBACK"
        assert node.first.state is SessionState.IDLE
        assert await node.rows("SELECT count(*) FROM t") == [(2,)]

    run(scenario)


def test_syntax_error_fails_the_transaction_too() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN")
        assert (await node.error("SELEC")).sqlstate == "42601"
        assert node.first.state is SessionState.FAILED
        await node.sql("ROLLBACK")

    run(scenario)


def test_begin_does_not_nest() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN")
        assert (await node.error("BEGIN")).sqlstate == "25001"
        assert (await node.sql("ROLLBACK")).notice is None
        assert (await node.sql("COMMIT")).notice == "there is no transaction in progress"
        assert (await node.sql("ROLLBACK")).notice == "there is no transaction in progress"

    run(scenario)


def test_failed_transaction_holds_no_locks() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; UPDATE t SET v = 0 WHERE k = 1")
        await node.error("SELECT nope FROM t")
        other = node.session()
        await other.execute("UPDATE t SET v = 12 WHERE k = 1")
        await node.sql("ROLLBACK")
        assert await node.rows("SELECT v FROM t WHERE k = 1") == [(12,)]

    run(scenario)


def test_lost_update_is_refused() -> None:
    async def scenario(node: SqlNode) -> None:
        first, second = node.first, node.session()
        await first.execute("BEGIN; SELECT v FROM t WHERE k = 1")
        await second.execute("UPDATE t SET v = v + 1 WHERE k = 1")
        await first.execute("UPDATE t SET v = 0 WHERE k = 2")
        assert await sqlstate(first, "UPDATE t SET v = 11 WHERE k = 1; COMMIT") == "40001"
        await first.execute("ROLLBACK")
        assert await node.rows("SELECT v FROM t ORDER BY k") == [(11,), (20,)]

    run(scenario)


def test_analytic_read_is_part_of_the_transaction() -> None:
    """Write skew through DuckDB's reads is caught as any other."""

    async def scenario(node: SqlNode) -> None:
        first, second = node.first, node.session()
        for session in (first, second):
            await session.execute("BEGIN; SELECT sum(v) FROM t")
        await first.execute("UPDATE t SET v = 0 WHERE k = 1")
        await second.execute("UPDATE t SET v = 0 WHERE k = 2")
        outcomes = [await outcome(session, "COMMIT") for session in (first, second)]
        assert sorted(outcomes) == ["40001", "COMMIT"]
        assert [first.state, second.state] == [SessionState.IDLE] * 2

    run(scenario)


def test_statements_alone_retry_by_themselves() -> None:
    async def scenario(node: SqlNode) -> None:
        sessions = [node.session() for _ in range(5)]
        text = "UPDATE t SET v = v + 1 WHERE v >= 10 AND v < 1000 AND k < 3 OR v < 0"
        await asyncio.gather(*(session.execute(text) for session in sessions))
        assert await node.rows("SELECT v FROM t ORDER BY k") == [(15,), (25,)]

    run(scenario)


def test_read_only_transaction_writes_nothing() -> None:
    async def scenario(node: SqlNode) -> None:
        for text in ("INSERT INTO t VALUES (5, 5)", "DROP TABLE t", "DELETE FROM t"):
            await node.sql("BEGIN READ ONLY")
            assert (await node.error(text)).sqlstate == "25006"
            await node.sql("ROLLBACK")
        assert await node.rows("SELECT count(*) FROM t") == [(2,)]

    run(scenario)


def test_transaction_as_of_reads_one_past() -> None:
    async def scenario(node: SqlNode) -> None:
        await asyncio.sleep(20)
        await node.sql("DELETE FROM t")
        await node.sql("BEGIN AS OF SYSTEM TIME '-10s'")
        assert await node.rows("SELECT count(*) FROM t") == [(2,)]
        assert await node.rows("SELECT v FROM t WHERE k = 2") == [(20,)]
        assert (await node.error("SELECT 1 AS OF SYSTEM TIME '-1s'")).sqlstate == "0A000"
        await node.sql("ROLLBACK")

    run(scenario)


def test_past_below_the_garbage_threshold_is_refused() -> None:
    async def scenario(node: SqlNode) -> None:
        await asyncio.sleep(60)
        table = (await node.rows("SELECT id FROM system.namespace WHERE name = 't'"))[0][0]
        assert isinstance(table, int)
        await node.sql("INSERT INTO t VALUES (3, 3)")
        await node.store.collect_garbage(table_span(table), node.store.clock.now())
        error = await node.error("SELECT * FROM t AS OF SYSTEM TIME '-30s'")
        assert error.sqlstate == "22023"
        assert await node.rows("SELECT count(*) FROM t") == [(3,)]

    run(scenario)


@pytest.mark.parametrize(
    "other",
    [
        "INSERT INTO t VALUES (9, 9)",
        "CREATE TABLE u (k INT8 PRIMARY KEY)",
        "ALTER TABLE w SET (changefeed_optimized)",
        "DROP TABLE w",
        "ALTER TABLE t SET (gc.ttlseconds = 90)",
    ],
)
@pytest.mark.parametrize("lock_first", [True, False])
def test_lock_change_is_alone_in_its_transaction(other: str, lock_first: bool) -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE w (k INT8 PRIMARY KEY)")
        lock = "ALTER TABLE t SET (changefeed_optimized = true)"
        both = [lock, other] if lock_first else [other, lock]
        await node.sql("BEGIN")
        error = await node.error(f"{both[0]}; {both[1]}; COMMIT")
        assert error.sqlstate == "25001"
        await node.sql("ROLLBACK")
        assert await node.rows("SHOW TABLES") == [
            ("public", "t", "table", False),
            ("public", "w", "table", False),
        ]
        assert await node.rows("SELECT count(*) FROM t") == [(2,)]

    run(scenario)


@pytest.mark.parametrize("text", ["DROP TABLE w, x", "BEGIN; DROP TABLE x, w; COMMIT"])
def test_locked_tables_are_dropped_together(text: str) -> None:
    """Each is unlocked on behalf of a job of its own; one refers to the other."""

    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE w (k SERIAL PRIMARY KEY)")
        await node.sql("CREATE TABLE x (k INT8 PRIMARY KEY, w INT8 REFERENCES w)")
        await node.sql("INSERT INTO w VALUES (1); INSERT INTO x VALUES (1, 1)")
        for table in "wx":
            await node.sql(f"ALTER TABLE {table} SET (changefeed_optimized = true)")
        beside = await node.error("BEGIN; DROP TABLE x, w; INSERT INTO t VALUES (9, 9); COMMIT")
        assert beside.sqlstate == "25001"
        await node.sql("ROLLBACK")
        assert len(await node.rows("SHOW TABLES")) == 3
        await node.sql(text)
        assert await node.rows("SHOW TABLES") == [("public", "t", "table", False)]
        await node.sql("CREATE TABLE w (k INT8 PRIMARY KEY)")

    run(scenario)


@pytest.mark.parametrize("names", ["w, x", "x, w", "x, t, w"])
def test_locked_table_is_dropped_with_others(names: str) -> None:
    """The others have a job each, which begins beside the unlocking and changes nothing yet."""

    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE w (k SERIAL PRIMARY KEY)")
        await node.sql("CREATE TABLE x (k SERIAL PRIMARY KEY, w INT8 REFERENCES w)")
        await node.sql("INSERT INTO w VALUES (1); INSERT INTO x VALUES (1, 1)")
        await node.sql("ALTER TABLE w SET (changefeed_optimized = true)")
        for other in ("INSERT INTO t VALUES (9, 9)", "ALTER TABLE t ADD COLUMN x INT8"):
            for both in (f"DROP TABLE w, x; {other}", f"{other}; DROP TABLE x, w"):
                assert (await node.error(f"BEGIN; {both}; COMMIT")).sqlstate == "25001"
                await node.sql("ROLLBACK")
        assert len(await node.rows("SHOW TABLES")) == 3
        await node.sql(f"DROP TABLE {names}")
        left = [] if "t" in names else [("public", "t", "table", False)]
        assert await node.rows("SHOW TABLES") == left
        assert await node.rows("SELECT * FROM pg_sequences") == []
        await node.sql("CREATE TABLE w (k SERIAL PRIMARY KEY)")

    run(scenario)


def test_canceled_drop_beside_a_locked_table_leaves_its_table() -> None:
    """A reader holds the drop back, and nothing has been changed yet but the locked table's."""

    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE w (k INT8 PRIMARY KEY) WITH (changefeed_optimized = true)")
        tables = await node.services.catalog.list_tables(
            node.store.snapshot(node.store.clock.now()), "defaultdb"
        )
        [reads] = [table.id for table in tables if table.name == "t"]
        lease = await node.services.leases.acquire(reads, node.store.clock.now())
        dropping = asyncio.create_task(node.error("DROP TABLE t, w"))
        await asyncio.sleep(1)
        [held] = [job for job in await node.registry.list() if not job.state.final]
        await node.registry.request_cancel(held.id)
        await asyncio.sleep(1)
        lease.release()
        assert "canceled" in str(await dropping)
        assert await node.rows("SHOW TABLES") == [("public", "t", "table", False)]
        await node.sql("ALTER TABLE t ADD COLUMN x INT8 DEFAULT 3")
        assert await node.rows("SELECT k, x FROM t") == [(1, 3), (2, 3)]

    run(scenario)


def test_lock_change_may_be_a_transaction_of_a_driver() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; SELECT * FROM t WHERE k = 1")
        await node.sql("ALTER TABLE t SET (changefeed_optimized = true); COMMIT")
        assert await node.rows("SHOW TABLES") == [("public", "t", "table", True)]

    run(scenario)


@pytest.mark.parametrize("change", ["SET (schema_locked = false)", "RESET (changefeed_optimized)"])
def test_hard_lock_is_opened_by_a_transaction_of_its_own(change: str) -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("ALTER TABLE t SET (changefeed_optimized = true)")
        await node.sql("SET CLUSTER SETTING sql.schema.auto_unlock.enabled = false")
        both = f"BEGIN; ALTER TABLE t {change}; ALTER TABLE t ADD COLUMN w INT8; COMMIT"
        assert (await node.error(both)).sqlstate == "25001"
        await node.sql("ROLLBACK")
        assert await node.rows("SHOW TABLES") == [("public", "t", "table", True)]
        await node.sql(f"BEGIN; ALTER TABLE t {change}; COMMIT")
        assert await node.rows("SHOW TABLES") == [("public", "t", "table", False)]

    run(scenario)


def test_transaction_across_a_lock_change_still_commits() -> None:
    """Versions that are neighbours may be used side by side."""

    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; UPDATE t SET v = 1 WHERE k = 1")
        await asyncio.sleep(0.1)
        locking = asyncio.create_task(
            node.session().execute("ALTER TABLE t SET (changefeed_optimized = true)")
        )
        await asyncio.sleep(0.5)
        await node.sql("COMMIT")
        await locking
        assert await node.rows("SELECT v FROM t WHERE k = 1") == [(1,)]
        assert await node.rows("SHOW TABLES") == [("public", "t", "table", True)]

    run(scenario)


def test_cancelled_statement_rolls_its_transaction_back() -> None:
    async def scenario(node: SqlNode) -> None:
        holder, waiter = node.first, node.session()
        await holder.execute("BEGIN; UPDATE t SET v = 0 WHERE k = 1")
        await waiter.execute("BEGIN; UPDATE t SET v = 0 WHERE k = 2")
        waiting = asyncio.create_task(waiter.execute("UPDATE t SET v = 1 WHERE k = 1"))
        await asyncio.sleep(0.1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert waiter.state is SessionState.FAILED
        await holder.execute("UPDATE t SET v = 21 WHERE k = 2; COMMIT")
        assert await node.rows("SELECT v FROM t ORDER BY k") == [(0,), (21,)]

    run(scenario)


def test_lock_wait_ends_in_a_timeout() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; UPDATE t SET v = 0 WHERE k = 1")
        other = node.session()
        assert await sqlstate(other, "UPDATE t SET v = 1 WHERE k = 1") == "55P03"
        await node.sql("COMMIT")
        await other.execute("UPDATE t SET v = 1 WHERE k = 1")

    run(scenario)


def test_deadlock_has_a_victim() -> None:
    async def scenario(node: SqlNode) -> None:
        first, second = node.first, node.session()
        await first.execute("BEGIN; UPDATE t SET v = 0 WHERE k = 1")
        await second.execute("BEGIN; UPDATE t SET v = 0 WHERE k = 2")
        crossing = asyncio.create_task(first.execute("UPDATE t SET v = 0 WHERE k = 2"))
        await asyncio.sleep(0.01)
        outcomes = await asyncio.gather(
            crossing,
            second.execute("UPDATE t SET v = 0 WHERE k = 1"),
            return_exceptions=True,
        )
        errors = [outcome for outcome in outcomes if isinstance(outcome, SQLError)]
        assert [error.sqlstate for error in errors] == ["40P01"]
        await second.close()

    run(scenario)


def test_closed_store_says_so() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.store.close()
        assert (await node.error("SELECT 1")).sqlstate == "57P03"
        assert (await node.error("INSERT INTO t VALUES (5, 5)")).sqlstate == "57P03"

    sim = Simulation(seed=6)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v INT8)")
            await scenario(node)

    sim.run(main())
