"""Savepoints, transaction modes and automatic retries, as a client sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql import Session, SessionState
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

COUNT = "SELECT count(*) FROM t"


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


def test_rollback_to_undoes_a_part() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; UPDATE t SET v = 11 WHERE k = 1; SAVEPOINT a")
        await node.sql("UPDATE t SET v = 12 WHERE k = 1; DELETE FROM t WHERE k = 2; SAVEPOINT b")
        await node.sql("INSERT INTO t VALUES (3, 30)")
        assert (await node.sql("ROLLBACK TO SAVEPOINT a")).tag == "ROLLBACK"
        assert await node.rows("SELECT k, v FROM t ORDER BY k") == [(1, 11), (2, 20)]
        assert (await node.error("ROLLBACK TO b")).sqlstate == "3B001"
        await node.sql("ROLLBACK TO a; COMMIT")
        assert await node.rows("SELECT k, v FROM t ORDER BY k") == [(1, 11), (2, 20)]

    run(scenario)


def test_savepoint_hides_one_of_its_name() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(
            "BEGIN; INSERT INTO t VALUES (3, 3); SAVEPOINT s; INSERT INTO t VALUES (4, 4)"
        )
        await node.sql("SAVEPOINT s; INSERT INTO t VALUES (5, 5); ROLLBACK TO s")
        assert await node.rows(COUNT) == [(4,)]
        await node.sql("RELEASE s; ROLLBACK TO s")
        assert await node.rows(COUNT) == [(3,)]
        await node.sql("RELEASE SAVEPOINT s")
        assert (await node.error("RELEASE s")).sqlstate == "3B001"

    run(scenario)


def test_rollback_to_cures_a_failed_transaction() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(
            "BEGIN; INSERT INTO t VALUES (3, 3); SAVEPOINT s; INSERT INTO t VALUES (4, 4)"
        )
        assert (await node.error("INSERT INTO t VALUES (1, 1)")).sqlstate == "23505"
        error = await node.error("SELECT 1")
        assert (error.sqlstate, error.hint) == ("25P02", "Run ROLLBACK TO SAVEPOINT, or ROLLBACK.")
        assert node.first.state is SessionState.FAILED
        # What was done since the savepoint is given up already: nobody waits for the client.
        await node.session().execute("INSERT INTO t VALUES (4, 44)")
        await node.sql("ROLLBACK TO s")
        assert node.first.state.value == "idle in transaction"
        await node.sql("INSERT INTO t VALUES (5, 5); COMMIT")
        assert await node.rows("SELECT k FROM t ORDER BY k") == [(1,), (2,), (3,), (4,), (5,)]

    run(scenario)


def test_savepoints_are_for_transactions() -> None:
    async def scenario(node: SqlNode) -> None:
        for text in ("SAVEPOINT s", "RELEASE s", "ROLLBACK TO s"):
            assert (await node.error(text)).sqlstate == "25P01"

    run(scenario)


def test_rollback_to_undoes_ddl() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; CREATE TABLE u (k INT8 PRIMARY KEY); SAVEPOINT s")
        await node.sql("CREATE TABLE w (k INT8 PRIMARY KEY); ROLLBACK TO s")
        await node.sql("CREATE TABLE x (k INT8 PRIMARY KEY); COMMIT")
        assert [row[1] for row in await node.rows("SHOW TABLES")] == ["t", "u", "x"]

    run(scenario)


def test_schema_change_that_was_rolled_back_to_does_not_come_back() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE u (k INT8 PRIMARY KEY)")
        await node.sql("BEGIN; ALTER TABLE u ADD COLUMN a INT8; SAVEPOINT s")
        await node.sql("ALTER TABLE t ADD COLUMN gone INT8 DEFAULT 1; ROLLBACK TO s")
        await node.sql("ALTER TABLE t ADD COLUMN stays UUID DEFAULT gen_random_uuid(); COMMIT")
        names = [row[0] for row in await node.rows("SHOW COLUMNS FROM t")]
        assert "stays" in names
        assert "gone" not in names

    run(scenario)


def test_commit_does_not_wait_for_a_job_that_was_rolled_back_to() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE u (k INT8 PRIMARY KEY)")
        await node.sql("BEGIN; ALTER TABLE u ADD COLUMN a INT8; SAVEPOINT s")
        await node.sql("DROP TABLE t; ROLLBACK TO s; COMMIT")
        assert [row[1] for row in await node.rows("SHOW TABLES")] == ["t", "u"]

    run(scenario)


def test_the_savepoint_of_cockroachdbs_retries_is_refused() -> None:
    async def scenario(node: SqlNode) -> None:
        error = await node.error("BEGIN; SAVEPOINT cockroach_restart")
        assert (error.sqlstate, "40001" in str(error.hint)) == ("0A000", True)

    run(scenario)


def test_transaction_in_one_text_is_retried() -> None:
    """Nothing of it was shown, so nobody hears of conflicts."""

    async def scenario(node: SqlNode) -> None:
        text = "BEGIN; SELECT v FROM t; UPDATE t SET v = v + 1 WHERE v > 0; COMMIT"
        sessions = [node.session() for _ in range(4)]
        results = await asyncio.gather(*(session.execute(text) for session in sessions))
        assert [[r.tag for r in found] for found in results] == [
            ["BEGIN", "SELECT 2", "UPDATE 2", "COMMIT"]
        ] * 4
        assert await node.rows("SELECT v FROM t ORDER BY k") == [(14,), (24,)]

    run(scenario)


def test_first_statement_of_a_transaction_is_retried() -> None:
    async def scenario(node: SqlNode) -> None:
        first, second = node.first, node.session()
        await first.execute("BEGIN")
        await first.execute("SAVEPOINT s")
        await second.execute("BEGIN; UPDATE t SET v = 0")
        update = asyncio.create_task(first.execute("UPDATE t SET v = v + 1 WHERE v < 100"))
        await asyncio.sleep(0.1)
        await second.execute("COMMIT")
        await update
        assert await outcome(first, "ROLLBACK TO s") == "ROLLBACK"
        await first.execute("UPDATE t SET v = v + 2; COMMIT")
        assert await node.rows("SELECT v FROM t") == [(2,), (2,)]

    run(scenario)


def test_conflict_after_a_result_is_for_the_client() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; SELECT v FROM t WHERE k = 1")
        await node.session().execute("UPDATE t SET v = 0 WHERE k = 1")
        error = await node.error("UPDATE t SET v = 5 WHERE k = 1; COMMIT")
        assert error.sqlstate == "40001"
        assert error.message.startswith("restart transaction")
        assert error.hint == "Run the transaction again from its BEGIN."

    run(scenario)


def test_read_committed_looks_again_at_changed_rows() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("SET default_transaction_isolation = 'read committed'")
        first, second = node.first, node.session()
        await first.execute("BEGIN")
        await second.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        await first.execute("UPDATE t SET v = v + 1")
        # A reader does not wait for a writer, and a writer sees what it waited for.
        assert (await second.execute("SELECT sum(v) FROM t"))[0].fetch_rows() == [(30,)]
        update = asyncio.create_task(second.execute("UPDATE t SET v = v * 2 WHERE v > 10"))
        await asyncio.sleep(0.1)
        await first.execute("COMMIT")
        await update
        await second.execute("COMMIT")
        assert await node.rows("SELECT v FROM t ORDER BY k") == [(22,), (42,)]

    run(scenario)


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ"])
def test_ddl_is_serializable_at_every_level(level: str) -> None:
    async def scenario(node: SqlNode) -> None:
        sessions = [node.session() for _ in range(2)]
        for number, session in enumerate(sessions):
            await session.execute(f"BEGIN ISOLATION LEVEL {level}; SELECT 1")
            await session.execute("CREATE TABLE twice (k INT8 PRIMARY KEY)") if not number else None
        late = asyncio.create_task(outcome(sessions[1], "CREATE TABLE twice (k INT8 PRIMARY KEY)"))
        await asyncio.sleep(0.1)
        await sessions[0].execute("COMMIT")
        told = await late
        if told == "CREATE TABLE":
            told = await outcome(sessions[1], "COMMIT")
        assert told in ("40001", "42P07")
        assert [row[1] for row in await node.rows("SHOW TABLES")] == ["t", "twice"]
        ddl = node.session()
        await ddl.execute(f"BEGIN ISOLATION LEVEL {level}; SELECT * FROM t")
        opened = ddl._open
        assert opened is not None
        assert opened.transaction.untouched, "it tracks no reads"
        await ddl.execute("ALTER TABLE t SET (gc.ttlseconds = 90)")
        assert opened.transaction._record.read_spans, "the catalog's are tracked"  # type: ignore[attr-defined]
        await ddl.execute("COMMIT")

    run(scenario)


def test_modes_are_set_before_the_first_statement() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED, DEFERRABLE")
        assert await node.rows("SHOW transaction_isolation") == [("read committed",)]
        assert await node.rows("SHOW transaction_deferrable") == [("on",)]
        await node.sql("SELECT * FROM t")
        await node.sql("ROLLBACK; BEGIN; SET TRANSACTION READ ONLY")
        assert (await node.error("DELETE FROM t")).sqlstate == "25006"
        await node.sql("ROLLBACK")
        for before in ("SELECT 1", "SAVEPOINT s"):
            for modes in ("ISOLATION LEVEL REPEATABLE READ", "READ ONLY"):
                await node.sql(f"BEGIN; {before}; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
                assert (await node.error(f"SET TRANSACTION {modes}")).sqlstate == "25001"
                await node.sql("ROLLBACK")

    run(scenario)


def test_transaction_can_be_set_into_the_past() -> None:
    async def scenario(node: SqlNode) -> None:
        await asyncio.sleep(20)
        await node.sql("DELETE FROM t")
        await node.sql("BEGIN; SET TRANSACTION AS OF SYSTEM TIME '-10s'")
        assert await node.rows(COUNT) == [(2,)]
        assert (await node.error("INSERT INTO t VALUES (7, 7)")).sqlstate == "25006"
        await node.sql("ROLLBACK")
        behind = "SELECT count(*) FROM t AS OF SYSTEM TIME '-4s'"
        assert await node.rows(behind) == [(2,)]
        await asyncio.sleep(5)
        assert await node.rows(behind) == [(0,)]
        future = await node.error("SELECT * FROM t AS OF SYSTEM TIME '2031-01-01'")
        assert future.sqlstate == "22023"

    run(scenario)


def test_variables_follow_their_transaction() -> None:
    async def scenario(node: SqlNode) -> None:
        async def shown() -> object:
            return (await node.rows("SHOW lock_timeout"))[0][0]

        await node.sql("SET lock_timeout = 500")
        assert await shown() == "500ms"
        await node.sql("BEGIN; SET LOCAL lock_timeout = '2s'; SET statement_timeout = '1min'")
        assert await shown() == "2s"
        await node.sql("SAVEPOINT s; SET lock_timeout = 0; ROLLBACK TO s")
        assert await shown() == "2s"
        await node.sql("ROLLBACK")
        assert await shown() == "500ms"
        assert await node.rows("SHOW statement_timeout") == [("0",)]
        await node.sql("RESET lock_timeout")
        assert await shown() == "0"
        settings = "SELECT setting FROM pg_settings WHERE name = 'lock_timeout'"
        assert await node.rows(settings) == [("0",)]

    run(scenario)


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("SET lock_timout = 1", "42704"),
        ("SET lock_timeout = 'soon'", "22023"),
        ("SET default_transaction_isolation = 'chaos'", "22023"),
        ("SHOW nothing", "42704"),
        ("BEGIN ISOLATION LEVEL CHAOS", "42601"),
        ("BEGIN PRIORITY HIGH", "42601"),
        ("BEGIN READ WRITE, AS OF SYSTEM TIME '-1s'", "25006"),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION AS OF SYSTEM TIME '-1s'", "42601"),
        ("SELECT 1 AS OF SYSTEM TIME follower_read_timestamp()", "42601"),
    ],
)
def test_what_is_wrong_with_modes_and_variables(text: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        assert (await node.error(text)).sqlstate == sqlstate

    run(scenario)


def test_session_characteristics_are_defaults() -> None:
    async def scenario(node: SqlNode) -> None:
        modes = "ISOLATION LEVEL REPEATABLE READ, READ ONLY, DEFERRABLE"
        await node.sql(f"SET SESSION CHARACTERISTICS AS TRANSACTION {modes}")
        assert (await node.error("INSERT INTO t VALUES (9, 9)")).sqlstate == "25006"
        await node.sql("BEGIN READ WRITE")
        assert await node.rows("SHOW transaction_isolation") == [("repeatable read",)]
        assert await node.rows("SHOW transaction_deferrable") == [("on",)]
        await node.sql("INSERT INTO t VALUES (9, 9); COMMIT")

    run(scenario)


def test_lock_timeout_of_the_session_counts() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; UPDATE t SET v = 0 WHERE k = 1")
        other = node.session()
        await other.execute("SET lock_timeout = '200ms'")
        loop = asyncio.get_running_loop()
        for prefix in ("", "BEGIN; "):
            began = loop.time()
            assert await outcome(other, f"{prefix}UPDATE t SET v = 1 WHERE k = 1") == "55P03"
            assert loop.time() - began == pytest.approx(0.2, abs=0.05)

    run(scenario)


def test_statement_timeout_cancels() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; UPDATE t SET v = 0 WHERE k = 1")
        other = node.session()
        await other.execute("SET statement_timeout = '300ms'; BEGIN; SAVEPOINT s")
        assert await outcome(other, "UPDATE t SET v = 1") == "57014"
        await node.sql("COMMIT")
        await other.execute("ROLLBACK TO s; UPDATE t SET v = 1; COMMIT")
        assert await node.rows("SELECT v FROM t") == [(1,), (1,)]

    run(scenario)


def test_idle_transaction_ends_its_session() -> None:
    async def scenario(node: SqlNode) -> None:
        idler = node.session()
        await idler.execute("SET idle_in_transaction_session_timeout = '5s'")
        await asyncio.sleep(10)  # not in a transaction
        await idler.execute("BEGIN; UPDATE t SET v = 0 WHERE k = 1")
        await asyncio.sleep(4)
        await idler.execute("SELECT 1")
        await asyncio.sleep(6)
        await node.sql("UPDATE t SET v = 7 WHERE k = 1")
        assert await outcome(idler, "COMMIT") == "25P03"
        assert idler.terminated is not None
        await idler.close()

    run(scenario)
