"""Sessions seen from others: shown, their statements cancelled, themselves ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql import Result, Session
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode, Session], Awaitable[None]]) -> None:
    sim = Simulation(seed=1)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY); INSERT INTO t VALUES (1)")
            await node.sql("CREATE USER ada")
            other = node.session("ada")
            try:
                await scenario(node, other)
            finally:
                await other.close()

    sim.run(main())


async def blocked(node: SqlNode) -> tuple[Session, asyncio.Task[list[Result]]]:
    """A session that waits for a row which the node's first session holds."""
    await node.sql("BEGIN; UPDATE t SET k = 1 WHERE k = 1; SELECT 1")
    waiting = node.session()
    await waiting.execute("BEGIN")
    task = asyncio.create_task(waiting.execute("DELETE FROM t WHERE k = 1"))
    await asyncio.sleep(0.1)
    return waiting, task


def test_a_cancelled_query_leaves_its_session() -> None:
    async def scenario(node: SqlNode, _: Session) -> None:
        waiting, task = await blocked(node)
        shown = await node.rows("SELECT pid FROM pg_stat_activity WHERE query LIKE 'DELETE%'")
        await node.sql(f"SELECT pg_cancel_backend({shown[0][0]!r})")
        with pytest.raises(SQLError) as caught:
            await task
        assert caught.value.sqlstate == "57014"
        await node.sql("COMMIT")
        await waiting.execute("ROLLBACK; SELECT k FROM t")
        await waiting.close()

    run(scenario)


def test_a_cancelled_session_is_over() -> None:
    async def scenario(node: SqlNode, _: Session) -> None:
        waiting, task = await blocked(node)
        await node.sql(f"SELECT pg_terminate_backend({waiting.activity.process_id})")
        with pytest.raises(SQLError):
            await task
        with pytest.raises(SQLError) as caught:
            await waiting.execute("SELECT 1")
        assert caught.value.sqlstate == "57P01"
        await waiting.close()
        await node.sql("COMMIT")

    run(scenario)


def test_sessions_of_others_need_viewactivity() -> None:
    async def scenario(node: SqlNode, ada: Session) -> None:
        async def users() -> set[object]:
            text = "SELECT usename FROM pg_stat_activity WHERE state IS NOT NULL"
            return {row[0] for row in (await ada.execute(text))[0].fetch_rows()}

        assert await users() == {"ada"}
        await node.sql("GRANT SYSTEM VIEWACTIVITY, CANCELQUERY TO ada")
        assert await users() == {"ada", "root"}
        with pytest.raises(SQLError) as caught:
            await ada.execute(f"SELECT pg_terminate_backend({node.first.activity.process_id})")
        assert caught.value.sqlstate == "42501"  # root is an admin

    run(scenario)


@pytest.mark.parametrize(
    "what",
    [
        "INDEXES FROM t",
        "KEYS FROM t",
        "CONSTRAINTS FROM t",
        "SCHEMAS",
        "SEQUENCES",
        "TYPES",
        "ENUMS",
        "SESSIONS",
        "QUERIES",
    ],
)
def test_what_catalogs_tell_is_shown_by_no_statement(what: str) -> None:
    async def scenario(node: SqlNode, _: Session) -> None:
        error = await node.error(f"SHOW {what}")
        assert error.sqlstate == "0A000"
        assert "list" in str(error.hint)

    run(scenario)


def test_indexes_and_constraints_are_in_catalogs() -> None:
    async def scenario(node: SqlNode, _: Session) -> None:
        await node.sql(
            "CREATE TABLE u (a INT8 PRIMARY KEY, b INT8 UNIQUE REFERENCES t (k), c STRING, "
            "CONSTRAINT small CHECK (b < 10), INDEX by_c (c) STORING (b))"
        )
        shown = await node.rows("SELECT indexdef FROM pg_indexes WHERE indexname = 'by_c'")
        assert shown == [("CREATE INDEX by_c ON public.u USING btree (c) INCLUDE (b)",)]
        kinds = await node.rows(
            "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE conrelid = 'u'::regclass"
        )
        assert ("small", 'CHECK ("b" < 10)') in kinds
        assert len(kinds) == 4

    run(scenario)


def test_unknown_statements_name_the_nearest_form() -> None:
    async def scenario(node: SqlNode, _: Session) -> None:
        error = await node.error("CREATE TABEL t (k INT8)")
        assert error.hint == "Did you mean TABLE?"
        error = await node.error("SHOW TABELS")
        assert str(error.hint) == "Did you mean SHOW TABLES?"

    run(scenario)


def test_pg_stat_activity_tells_of_sessions() -> None:
    async def scenario(node: SqlNode, ada: Session) -> None:
        query = (
            "SELECT pid, usename, state, query, xact_start IS NULL, datname "
            "FROM pg_stat_activity ORDER BY pid"
        )
        waiting, task = await blocked(node)
        (seen,) = await ada.execute(query)
        mine = ada.activity.process_id
        rows = {row[0]: row[1:] for row in seen.fetch_rows()}
        assert rows[mine] == ("ada", "active", query, True, "defaultdb")
        assert rows[waiting.activity.process_id][1:3] == (None, "<insufficient privilege>")

        await node.sql("COMMIT")
        await task
        rows = {row[0]: row[1:] for row in await node.rows(query)}
        assert rows[waiting.activity.process_id] == (
            "root", "idle in transaction", "DELETE FROM t WHERE k = 1", False, "defaultdb",
        )  # fmt: skip
        assert rows[mine][1:3] == ("idle", query)
        (pid,) = await ada.execute("SELECT pg_backend_pid(), pg_catalog.pg_backend_pid() + 0")
        assert pid.fetch_rows() == [(mine, mine)]
        await waiting.close()

    run(scenario)


@pytest.mark.parametrize(
    "text",
    [
        "ALTER USER ada PASSWORD 's3cret'",
        "ALTER USER ada WITH ENCRYPTED PASSWORD\n  's3''cret'",
        "ALTER USER ada PASSWORD /* now */ E's3cret\\''",
        "ALTER USER ada PASSWORD $$s3cret$$",
        "ALTER USER ada PASSWORD $x$s3cret$x$",
        "CREATE USER eve PASSWORD 's3cret' CREATEDB",
        "ALTER USER nobody PASSWORD 's3cret'",
    ],
)
def test_passwords_are_shown_to_nobody(text: str) -> None:
    """Neither while the statement runs, nor behind it, nor where it failed."""

    async def scenario(node: SqlNode, other: Session) -> None:
        try:
            await other.execute(text)
        except SQLError:
            pass
        rows = str(await node.rows("SELECT * FROM pg_stat_activity"))
        assert "********" in rows
        assert "s3" not in rows
        assert "USER" in rows

    run(scenario)
