"""Answers and refusals that are PostgreSQL's: each was looked at beside PostgreSQL 15."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

TABLE = "CREATE TABLE t (k INT8 PRIMARY KEY, n INT8, s STRING)"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT string_agg(y, NULL) FROM (VALUES ('a'), ('b')) AS v(y)", [("ab",)]),
        ("SELECT string_agg(y, NULL ORDER BY y DESC) FROM (VALUES ('a'), ('b')) v(y)", [("ba",)]),
        ("SELECT string_agg('a', NULL)", [("a",)]),
        ("SELECT b, column3 FROM (VALUES (1, 2, 3)) AS foo(a, b)", [(2, 3)]),
        ("SELECT count(*) FROM t GROUP BY GROUPING SETS ((), (k))", [(0,)]),
    ],
)  # fmt: skip
def test_answer_is_postgres_own(text: str, rows: list[tuple[object, ...]]) -> None:
    async def scenario(node: SqlNode) -> None:
        assert await node.rows(text) == rows

    run(scenario)


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("SELECT NULL NOT IN ()", "42601"),
        ("SELECT 1 IN ()", "42601"),
        ("INSERT INTO t VALUES (99, count(1))", "42803"),
        ("INSERT INTO t VALUES (1, 2, 'a'), (max(1), 2, 'b')", "42803"),
        ("INSERT INTO t VALUES (99, row_number() OVER ())", "42P20"),
        ("VALUES (count(1))", "42803"),
        ("ALTER TABLE t ALTER n TYPE INT8 USING s", "42804"),
        ("ALTER TABLE t ALTER n TYPE INT8 USING 'x'::text", "42804"),
        ("ALTER TABLE t ALTER n TYPE DATE USING s", "42804"),
        ("SELECT '2020-01-01 00:00:00+16'::timestamptz", "22009"),
        ("SELECT '2020-01-01 00:00:00-7:60'::timestamptz", "22009"),
    ],
)
def test_refusal_is_postgres_own(text: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        assert (await node.error(text)).sqlstate == sqlstate

    run(scenario)


def test_date_takes_the_day_of_a_moment() -> None:
    """By assignment: as a default, and of what is inserted."""

    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE d (k INT8 PRIMARY KEY, d DATE DEFAULT now())")
        await node.sql("INSERT INTO d (k) VALUES (1)")
        await node.sql("INSERT INTO d VALUES (2, '2020-02-03 11:22:33'::timestamp)")
        await node.sql("UPDATE d SET d = now() WHERE k = 2")
        assert await node.rows("SELECT DISTINCT d = current_date FROM d") == [(True,)]
        # TypeORM's pages of a query with relations
        paged = "SELECT DISTINCT a.d AS ids_d FROM (SELECT d FROM d) AS a ORDER BY d LIMIT 2"
        assert len(await node.rows(paged)) == 1

    run(scenario)


@pytest.mark.parametrize(
    ("text", "hours", "minutes"),
    [
        ("2020-01-01 00:00:00+4", -4, 0),
        ("2020-01-01T00:00:00.5 +4", -4, 0),
        ("2020-01-01 00:00-04:3", 4, 3),
        ("2020-01-01 00:00:00+430", -4, -30),
        ("2020-01-01 00:00:00+0430", -4, -30),
        ("2020-01-01+4", -4, 0),
    ],
)
def test_offset_may_be_short(text: str, hours: int, minutes: int) -> None:
    async def scenario(node: SqlNode) -> None:
        [(found,)] = await node.rows(f"SELECT '{text}'::timestamptz")
        assert isinstance(found, datetime)
        behind = found.replace(microsecond=0) - datetime(2020, 1, 1, tzinfo=UTC)
        assert behind.total_seconds() == 60 * (60 * hours + minutes)

    run(scenario)


@pytest.mark.parametrize(
    "query", ["SELECT * FROM t", "INSERT INTO t VALUES (1, 2, 'a') RETURNING *"]
)
def test_execute_is_held_to_the_columns_of_its_prepare(query: str) -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(f"PREPARE p AS {query}")
        await node.sql("ALTER TABLE t ADD COLUMN z INT8")
        failed = await node.error("EXECUTE p")
        assert (failed.sqlstate, failed.message) == (
            "0A000",
            "cached plan must not change result type",
        )
        assert await node.rows("SELECT * FROM t") == []

    run(scenario)


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    sim = Simulation(seed=3)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql(TABLE)
            await scenario(node)

    sim.run(main())


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT to_date('05 Dec 2000', 'DD Mon YYYY')", "::DATE"),
        ("SELECT make_date(2000, 12, 5)", "::DATE"),
        ("SELECT make_timestamp(2000, 12, 5, 1, 2, 3.5)", "::TIMESTAMP"),
        ("SELECT to_timestamp('2000 12 5', 'YYYY MM DD')", "::TIMESTAMP"),
        ("SELECT to_char(k, '999') FROM t", "lpad()"),
        ("UPDATE t SET s[1] = 'x'", "jsonb_set("),
        ("INSERT INTO t VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET s['a'] = '1'", "jsonb_set("),
        ("SELECT to_char(INTERVAL '1 day', 'DD')", "extract("),
        ("SELECT make_interval(days => 1)", "INTERVAL '1 day'"),
        ("SELECT justify_days(INTERVAL '35 days')", "extract("),
        ("SELECT INTERVAL '1-2' YEAR TO MONTH", "'1 year 2 mons'"),
        ("SELECT INTERVAL '1 year 5 mons' YEAR", "'1 year 2 mons'"),
        ("SELECT INTERVAL '1.5' HOUR", "'1 year 2 mons'"),
        ("SELECT INTERVAL '2' DAY", "'1 year 2 mons'"),
        ("SELECT '1 day'::INTERVAL DAY TO HOUR", "'1 year 2 mons'"),
        ("SELECT date_trunc('day', INTERVAL '1 day 02:00')", "extract("),
        ("SELECT @ -5", "abs(x)"),
        ("SELECT hashtextextended('a', 1)", "Advisory locks"),
        ("SELECT trim_scale(1.50)", "round("),
        ("SELECT format('%5s', 'x')", "||"),
        ("SELECT format(s, 'x') FROM t", "||"),
        ("SELECT * FROM generate_series(0.0, 1.0, 0.1)", "generate_series("),
        ("SELECT mode() WITHIN GROUP (ORDER BY k) FROM t", "ORDER BY count(*)"),
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY k) FROM t", "a row's place"),
        ("SELECT rank(1) WITHIN GROUP (ORDER BY k) FROM t", "a row's place"),
        ("SELECT lag(k) IGNORE NULLS OVER (ORDER BY k) FROM t", "FILTER"),
    ],
)
def test_function_that_no_client_asks_for_is_refused_with_a_hint(text: str, hint: str) -> None:
    async def scenario(node: SqlNode) -> None:
        error = await node.error(text)
        assert error.sqlstate == "0A000"
        assert hint in (error.hint or "")

    run(scenario)
