"""Statements from end to end, on one node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from tailrace.kvlayer.clock import format_timestamp
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

ORDERS = "CREATE TABLE orders (k INT8 PRIMARY KEY, v STRING, n INT8 NOT NULL DEFAULT 7)"


def run(scenario: Callable[[SqlNode], Awaitable[None]], *set_up: str) -> None:
    sim = Simulation(seed=1)

    async def main() -> None:
        async with sql_node(sim) as node:
            for text in set_up:
                await node.sql(text)
            await scenario(node)

    sim.run(main())


def test_every_type_round_trips() -> None:
    row = (
        1,
        True,
        1.5,
        Decimal("2.50"),
        "ü'x",
        b"\x00\xff",
        date(2020, 2, 29),
        datetime(2020, 1, 1, 12, 30, 0, 5),
        datetime(2020, 1, 1, 12, 30, tzinfo=UTC),
        UUID(int=7),
    )

    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO t VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10)", *row)
        assert await node.rows("SELECT * FROM t WHERE k = 1") == [row]
        assert await node.rows("SELECT * FROM t") == [row]
        assert (
            (await node.sql("SELECT * FROM t WHERE k = 1"))
            .fetch_arrow()
            .equals((await node.sql("SELECT * FROM t")).fetch_arrow())
        )

    run(
        scenario,
        "CREATE TABLE t (k INT8 PRIMARY KEY, a BOOL, b FLOAT8, c DECIMAL(10,2), d STRING, e BYTES, "
        "f DATE, g TIMESTAMP, h TIMESTAMPTZ, i UUID)",
    )


def test_insert_fills_in_defaults() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO orders (v, k) VALUES ('a', 1)")
        await node.sql("INSERT INTO orders VALUES (2)")
        await node.sql("INSERT INTO orders VALUES (3, DEFAULT, 5)")
        assert await node.rows("SELECT * FROM orders") == [(1, "a", 7), (2, None, 7), (3, None, 5)]

    run(scenario, ORDERS)


@pytest.mark.parametrize("count", [1, 2, 100])
def test_values_behind_columns_may_stand_in_parentheses(count: int) -> None:
    async def scenario(node: SqlNode) -> None:
        rows = ", ".join(f"({k}, 'a', {k % 3})" for k in range(count))
        into = "INSERT INTO orders (k, v, n)"
        result = await node.sql(f"{into} (VALUES {rows}) ON CONFLICT DO NOTHING")
        assert result.row_count == count
        stored = await node.rows("SELECT * FROM orders WHERE k < 1000 ORDER BY k")
        assert stored == [(k, "a", k % 3) for k in range(count)]
        assert (await node.error(f"{into} (VALUES (1), 2")).sqlstate == "42601"
        for bare in (f"(VALUES {rows})", f"AS o (VALUES {rows})"):
            assert (await node.error(f"INSERT INTO orders {bare}")).sqlstate == "0A000"

    run(scenario, ORDERS)


def test_insert_from_query_reads_before_it_writes() -> None:
    async def scenario(node: SqlNode) -> None:
        result = await node.sql("INSERT INTO orders (k, v) SELECT k + 10, v FROM orders")
        assert (result.tag, result.row_count) == ("INSERT 0 2", 2)
        assert await node.rows("SELECT count(*) FROM orders") == [(4,)]

    run(scenario, ORDERS, "INSERT INTO orders VALUES (1, 'a'), (2, 'b')")


@pytest.mark.parametrize(
    ("upsert", "row"),
    [
        ("(k, v) VALUES (1, 'b')", (1, "b", 99)),
        ("(v, k) SELECT 'b', 1", (1, "b", 99)),
        ("(k, n) VALUES (1, DEFAULT)", (1, "a", 7)),
        ("(k) VALUES (1)", (1, "a", 99)),
        ("(k, v, n) VALUES (1, 'b', DEFAULT)", (1, "b", 7)),
        ("VALUES (1, 'b')", (1, "b", 7)),
        ("(k, v) VALUES (2, 'b')", (2, "b", 7)),
    ],
)
def test_upsert_changes_the_columns_that_it_lists(upsert: str, row: tuple[object, ...]) -> None:
    """All of them where it lists none. A row that was not there gets its defaults."""

    async def scenario(node: SqlNode) -> None:
        returned = await node.rows(f"UPSERT INTO orders {upsert} RETURNING *")
        assert returned == [row]
        assert await node.rows("SELECT * FROM orders WHERE k = $1", row[0]) == [row]

    run(scenario, ORDERS, "INSERT INTO orders VALUES (1, 'a', 99)")


def test_upsert_that_keeps_columns_changes_a_row_once() -> None:
    async def scenario(node: SqlNode) -> None:
        error = await node.error("UPSERT INTO orders (k, v) VALUES (1, 'b'), (1, 'c')")
        assert error.sqlstate == "21000"
        await node.sql("UPSERT INTO orders VALUES (1, 'b', 1), (1, 'c', 2)")
        assert await node.rows("SELECT * FROM orders") == [(1, "c", 2)]

    run(scenario, ORDERS)


def test_upsert_keeps_what_computed_columns_and_checks_are_about() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("UPSERT INTO t (k, a) VALUES (1, 5)")
        assert await node.rows("SELECT * FROM t") == [(1, 5, 10, 15)]
        assert (await node.error("UPSERT INTO t (k, a) VALUES (1, 11)")).sqlstate == "23514"
        await node.sql("ALTER TABLE t ADD COLUMN d INT8 DEFAULT 4")
        await node.sql("ALTER TABLE t ALTER COLUMN d SET DEFAULT 5")
        await node.sql("UPSERT INTO t (k, a) VALUES (1, 6)")
        assert await node.rows("SELECT * FROM t") == [(1, 6, 10, 16, 4)]

    table = "k INT8 PRIMARY KEY, a INT8, b INT8, s INT8 AS (a + b) STORED, CHECK (a <= b)"
    run(scenario, f"CREATE TABLE t ({table})", "INSERT INTO t VALUES (1, 2, 10)")


def test_update_by_key_computes_from_the_old_row() -> None:
    async def scenario(node: SqlNode) -> None:
        rows = await node.rows(
            "UPDATE orders SET n = n * $2 - 1, v = v || '!' WHERE k = $1 RETURNING n, v", 1, 3
        )
        assert rows == [(20, "a!")]
        assert (await node.sql("UPDATE orders SET n = 0 WHERE k = 9")).tag == "UPDATE 0"

    run(scenario, ORDERS, "INSERT INTO orders VALUES (1, 'a')")


def test_update_may_swap_keys() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("UPDATE orders SET k = 3 - k WHERE k IN (1, 2)")
        assert await node.rows("SELECT k, v FROM orders ORDER BY k") == [(1, "b"), (2, "a")]
        error = await node.error("UPDATE orders SET k = 5 WHERE k < 9")
        assert error.sqlstate == "23505"
        assert await node.rows("SELECT k, v FROM orders ORDER BY k") == [(1, "b"), (2, "a")]

    run(scenario, ORDERS, "INSERT INTO orders VALUES (1, 'a'), (2, 'b')")


def test_update_takes_any_condition_and_expression() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(
            "UPDATE orders SET v = upper(v), n = (SELECT max(k) FROM orders) WHERE v LIKE 'a%'"
        )
        assert await node.rows("SELECT * FROM orders WHERE k = 1") == [(1, "AB", 2)]
        assert await node.rows("SELECT v FROM orders WHERE k = 2") == [("b",)]

    run(scenario, ORDERS, "INSERT INTO orders VALUES (1, 'ab'), (2, 'b')")


def test_delete_returns_the_old_rows() -> None:
    async def scenario(node: SqlNode) -> None:
        text = "DELETE FROM orders WHERE v = 'b' OR k = 1 RETURNING k, n + 1 AS more"
        result = await node.sql(text)
        assert [column.name for column in result.columns] == ["k", "more"]
        assert sorted(result.fetch_rows()) == [(1, 8), (2, 8)]
        assert await node.rows("SELECT k FROM orders") == [(3,)]

    run(scenario, ORDERS, "INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (3, 'c')")


def test_int8_overflow_changes_nothing() -> None:
    async def scenario(node: SqlNode) -> None:
        text = "UPDATE orders SET n = n + 9223372036854775807 WHERE k = 1"
        assert (await node.error(text)).sqlstate == "22003"
        assert (await node.error("UPDATE orders SET n = n / 0 WHERE k = 1")).sqlstate == "22012"
        assert await node.rows("SELECT n FROM orders") == [(7,)]
        least = "INSERT INTO orders VALUES (-9223372036854775808)"
        assert (await node.sql(least)).row_count == 1

    run(scenario, ORDERS, "INSERT INTO orders VALUES (1)")


def test_joins_and_aggregates_run() -> None:
    async def scenario(node: SqlNode) -> None:
        rows = await node.rows(
            "SELECT a.v, count(*), sum(b.n) FROM orders a JOIN orders AS b ON a.n = b.n "
            "WHERE a.k <= $1 GROUP BY a.v ORDER BY 1",
            1,
        )
        assert rows == [("a", 2, Decimal(14))]
        assert await node.rows("SELECT 1 / 2, 7 % -2, 1.0 / 4") == [(0, 1, 0.25)]

    run(scenario, ORDERS, "INSERT INTO orders VALUES (1, 'a'), (2, 'b')")


def test_columns_bear_postgres_names() -> None:
    async def scenario(node: SqlNode) -> None:
        result = await node.sql(
            "SELECT k, count(*), max(v) AS top, 1 + 1, now(), k::text, upper(v) "
            "FROM orders GROUP BY k, v"
        )
        names = [column.name for column in result.columns]
        assert names == ["k", "count", "top", "?column?", "now", "k", "upper"]

    run(scenario, ORDERS)


def test_now_is_the_statements_time_on_the_stores_clock() -> None:
    async def scenario(node: SqlNode) -> None:
        ((first, second, day),) = await node.rows("SELECT now(), now(), current_date")
        assert first == second
        assert isinstance(first, datetime)
        assert (first.date(), day) == (date(2026, 1, 1), date(2026, 1, 1))

    run(scenario)


def test_as_of_reads_the_past() -> None:
    async def scenario(node: SqlNode) -> None:
        first = await node.sql("INSERT INTO orders VALUES (1, 'old')")
        await node.sql("UPDATE orders SET v = 'new' WHERE k = 1")
        assert first.commit_timestamp is not None
        at = format_timestamp(first.commit_timestamp)
        past = f"SELECT v FROM orders AS OF SYSTEM TIME '{at}'"
        assert await node.rows(past) == [("old",)]
        assert await node.rows(f"{past} WHERE k = 1") == [("old",)]
        for given in (at, first.commit_timestamp):
            text = "SELECT v FROM orders AS OF SYSTEM TIME $1"
            assert await node.rows(text, given) == [("old",)]
        assert await node.rows("SELECT v FROM orders") == [("new",)]

    run(scenario, ORDERS)


def test_as_of_uses_the_table_of_that_time() -> None:
    async def scenario(node: SqlNode) -> None:
        written = await node.sql("INSERT INTO orders VALUES (1, 'old')")
        assert written.commit_timestamp is not None
        at = format_timestamp(written.commit_timestamp)
        await node.sql("DROP TABLE orders")
        await node.sql("CREATE TABLE orders (k INT8 PRIMARY KEY)")
        assert await node.rows("SELECT * FROM orders") == []
        past = await node.rows(f"SELECT * FROM orders AS OF SYSTEM TIME '{at}'")
        assert past == [(1, "old", 7)]
        assert await node.rows("SELECT * FROM orders") == []

    run(scenario, ORDERS)


def test_databases_hold_their_own_tables() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE DATABASE shop; USE shop")
        await node.sql("CREATE TABLE orders (k INT8 PRIMARY KEY); INSERT INTO orders VALUES (5)")
        assert await node.rows("SELECT * FROM orders") == [(5,)]
        assert await node.rows("SELECT * FROM shop.orders") == [(5,)]
        assert await node.rows("SELECT * FROM defaultdb.public.orders") == []
        assert await node.rows("SHOW TABLES FROM defaultdb") == [
            ("public", "orders", "table", False)
        ]

    run(scenario, ORDERS)


def test_show_create_can_be_run_again() -> None:
    async def scenario(node: SqlNode) -> None:
        ((_, text),) = await node.rows("SHOW CREATE TABLE orders")
        before = await node.rows("SHOW COLUMNS FROM orders")
        await node.sql("DROP TABLE orders")
        await node.sql(str(text))
        assert await node.rows("SHOW COLUMNS FROM orders") == before

    run(scenario, ORDERS)


def test_lock_and_unlock_publish_versions() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO orders VALUES (1)")
        await node.sql("ALTER TABLE orders SET (changefeed_optimized = true)")
        assert await node.rows("SHOW TABLES") == [("public", "orders", "table", True)]
        await node.sql("ALTER TABLE orders RESET (schema_locked)")
        await node.sql("ALTER TABLE orders SET (changefeed_optimized)")
        await node.sql("ALTER TABLE orders SET (schema_locked = false)")
        await node.sql("INSERT INTO orders VALUES (2)")
        assert await node.rows("SHOW TABLES") == [("public", "orders", "table", False)]

    run(scenario, ORDERS)


def test_settings_are_set_shown_and_reset() -> None:
    async def scenario(node: SqlNode) -> None:
        name = "kv.closed_timestamp.target_duration"
        await node.sql(f"SET CLUSTER SETTING {name} = '250ms'")
        assert await node.rows(f"SHOW CLUSTER SETTING {name}") == [("0.25s",)]
        await node.sql(f"RESET CLUSTER SETTING {name}")
        assert await node.rows(f"SHOW CLUSTER SETTING {name}") == [("3s",)]
        assert (await node.error(f"SET CLUSTER SETTING {name} = 'x'")).sqlstate == "22023"
        error = await node.error("SET CLUSTER SETTING kv.closed_timestamp.duration = 1")
        assert error.hint == f'Did you mean "{name}"?'

    run(scenario)


def test_changefeeds_and_jobs_are_handed_on() -> None:
    async def scenario(node: SqlNode) -> None:
        text = "CREATE CHANGEFEED FOR TABLE orders INTO 'duckdb:///m' WITH updated, resolved = '1s'"
        assert await node.rows(f"SELECT 1; {text}; -- made") == [(1,)]
        request, sink = node.feeds.requests[0]
        assert (request.names, sink) == (["defaultdb.public.orders"], "duckdb:///m")
        assert request.options == {"updated": None, "resolved": "1s"}
        assert len(await node.rows("SHOW CHANGEFEED JOBS")) == 1
        await node.sql("CANCEL JOB 1")
        assert [(job, action.name) for job, action in node.jobs.controlled] == [(1, "CANCEL")]
        assert (await node.error("SHOW JOB 9")).sqlstate == "42704"

    run(scenario, ORDERS)


def test_sinkless_changefeed_is_a_stream() -> None:
    async def scenario(node: SqlNode) -> None:
        result = await node.sql("CREATE CHANGEFEED FOR orders")
        assert [column.name for column in result.columns] == ["table", "key", "value"]
        assert result.stream is not None
        assert [row async for row in result.stream] == [("defaultdb.public.orders", b"[1]", b"{}")]

    run(scenario, ORDERS)


def test_thousands_of_rows_fit_one_insert() -> None:
    async def scenario(node: SqlNode) -> None:
        values = ", ".join(f"({number}, 'x')" for number in range(2500))
        assert (await node.sql(f"INSERT INTO orders VALUES {values}")).row_count == 2500
        assert await node.rows("SELECT count(*), sum(k) FROM orders") == [(2500, Decimal(3123750))]

    run(scenario, ORDERS)


def test_explain_names_the_engine() -> None:
    async def scenario(node: SqlNode) -> None:
        async def engine(text: str) -> object:
            return (await node.rows(f"EXPLAIN {text}"))[0][1]

        assert await engine("SELECT v FROM orders WHERE k = 1") == "native: point reads"
        assert await engine("SELECT 1 AS one FROM orders WHERE k = 1") == "native: point reads"
        assert await engine("SELECT v FROM orders WHERE k > 1") == "native: key range scan"
        assert await engine("SELECT v FROM orders LIMIT 5") == "native: key range scan"
        assert await engine("SELECT v FROM orders WHERE v = 'x'") == "duckdb over a snapshot"
        assert await engine("DELETE FROM orders WHERE k = 1") == "native: point reads"

    run(scenario, ORDERS)
