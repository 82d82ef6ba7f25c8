"""INT2, INT4, VARCHAR(n) and CHAR(n): stored within their limits, computed in broad types."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

TABLE = "CREATE TABLE t (id INT4 PRIMARY KEY, s INT2, v VARCHAR(3), c CHAR(5), w VARCHAR)"
ANALYTIC = "SELECT {} FROM t AS a WHERE id + 0 = id"  # not a shape of the native engine


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            await node.sql(TABLE)
            await node.sql("INSERT INTO t VALUES (1, 2, 'abc', 'ab   ', 'text')")
            await scenario(node)

    sim = Simulation(5)
    sim.run(whole())


@pytest.mark.parametrize("query", ["SELECT {} FROM t", ANALYTIC], ids=["native", "duckdb"])
def test_columns_keep_their_types_in_results(query: str) -> None:
    async def scenario(node: SqlNode) -> None:
        for items in ("*", "id, s, v, c, w"):
            result = await node.sql(query.format(items))
            types = [column.type.sql_name for column in result.columns]
            assert types == ["INT4", "INT2", "VARCHAR(3)", "CHAR(5)", "VARCHAR"]
            assert result.fetch_rows() == [(1, 2, "abc", "ab", "text")]
            assert str(result.fetch_arrow().schema.types[0]) == "int32"

    run(scenario)


@pytest.mark.parametrize(
    "source",
    [
        "t JOIN t AS u USING (id, s, v)",
        "t, LATERAL (SELECT t.id, t.s, t.v) AS u",
        "(SELECT id, s, v FROM t UNION SELECT id, s, v FROM t) AS u",
        "(SELECT * FROM t) AS u",
    ],
)
def test_columns_that_are_passed_on_keep_their_types(source: str) -> None:
    async def scenario(node: SqlNode) -> None:
        query = f"SELECT * FROM {source}"
        if "LATERAL" in source:
            query = f"SELECT u.* FROM {source}"
        result = await node.sql(query)
        types = [column.type.sql_name for column in result.columns]
        assert types[:3] == ["INT4", "INT2", "VARCHAR(3)"]

    run(scenario)


def test_both_engines_compute_in_broad_types() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO t VALUES (2147483647, 32767, NULL, NULL, NULL)")
        item = "s + s, id * 2, c || 'x'"
        query = ANALYTIC.format(item) + " AND id = $1"
        assert await node.rows(query, 2147483647) == [(65534, 4294967294, None)]
        returned = await node.rows(f"UPDATE t SET w = 'y' WHERE id = 1 RETURNING {item}")
        assert returned == [(4, 2, "abx")]

    run(scenario)


def test_float4_keeps_what_32_bits_hold() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE f (k FLOAT4 PRIMARY KEY, v REAL)")
        await node.sql("INSERT INTO f VALUES (0.1, 1.5), (16777217, -0.25)")
        for tail in ("", " AS a WHERE v + 0 = v"):
            result = await node.sql(f"SELECT k, v FROM f{tail}")
            assert [column.type.sql_name for column in result.columns] == ["FLOAT4", "FLOAT4"]
            assert sorted(result.fetch_rows()) == [
                (0.10000000149011612, 1.5),
                (16777216.0, -0.25),
            ]
        assert await node.rows("SELECT v FROM f WHERE k = 0.1") == []
        assert await node.rows("SELECT v FROM f WHERE k = 0.1::FLOAT4") == [(1.5,)]
        assert await node.rows("SELECT v FROM f WHERE k > 1") == [(-0.25,)]
        assert (await node.error("UPDATE f SET v = 1e39")).sqlstate == "22003"

    run(scenario)


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("INSERT INTO t (id) VALUES (2147483648)", "22003"),
        ("INSERT INTO t (id, s) VALUES (2, '32768')", "22003"),
        ("INSERT INTO t (id, v) VALUES (2, 'abcd')", "22001"),
        ("INSERT INTO t (id, c) SELECT 2, 'abcdefg'", "22001"),
        ("UPDATE t SET s = s + 32766 WHERE id = 1", "22003"),
        ("UPDATE t SET v = upper(v) || 'd'", "22001"),
        ("CREATE TABLE u (v VARCHAR(0) PRIMARY KEY)", "22023"),
        ("CREATE TABLE u (v INT2 PRIMARY KEY DEFAULT 40000)", "22003"),
        ("SELECT 70000::INT2", "22003"),
    ],
)
def test_nothing_is_stored_beyond_the_limits(statement: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        assert (await node.error(statement)).sqlstate == sqlstate

    run(scenario)


def test_a_constant_beyond_the_limits_equals_no_value() -> None:
    async def scenario(node: SqlNode) -> None:
        for condition in ("id = 2147483648", "v = 'abcd'", "s > 100000"):
            assert await node.rows(f"SELECT id FROM t WHERE {condition}") == []
            assert await node.rows(f"{ANALYTIC.format('id')} AND {condition}") == []
        assert await node.rows("SELECT id FROM t WHERE id < 2147483648") == [(1,)]

    run(scenario)


@pytest.mark.parametrize("tail", ["", " FROM t AS a WHERE id + 0 = id"])
def test_an_explicit_cast_cuts_text(tail: str) -> None:
    async def scenario(node: SqlNode) -> None:
        result = await node.sql(f"SELECT 'abcdef'::VARCHAR(3) AS v, 'a  x'::CHAR(3) AS c{tail}")
        assert result.fetch_rows() == [("abc", "a")]

    run(scenario)


def test_a_narrow_type_becomes_broad_and_back() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("ALTER TABLE t ALTER COLUMN s SET DATA TYPE INT8")
        await node.sql("ALTER TABLE t ALTER COLUMN v SET DATA TYPE STRING")
        await node.sql("UPDATE t SET s = 1099511627776, v = 'longer'")
        assert (
            await node.error("ALTER TABLE t ALTER COLUMN v TYPE VARCHAR(3)")
        ).sqlstate == "22001"
        await node.sql("ALTER TABLE t ALTER COLUMN v TYPE VARCHAR(6)")
        assert await node.rows("SELECT s, v FROM t") == [(1 << 40, "longer")]

    run(scenario)


def test_arrays_of_int4_are_cast_and_viewed() -> None:
    async def scenario(node: SqlNode) -> None:
        assert await node.rows("SELECT '{1,2}'::INT4[], ARRAY[3]::int4[]") == [([1, 2], [3])]
        chosen = "SELECT id FROM t WHERE id = ANY({}::INT4[])"
        assert await node.rows(chosen.format("'{1,7}'")) == [(1,)]
        assert await node.rows(chosen.format("$1"), [1, 7]) == [(1,)]
        await node.sql(f"CREATE VIEW chosen AS {chosen.format('ARRAY[1]')}")
        assert await node.rows("SELECT id FROM chosen") == [(1,)]
        unknown = await node.error("SELECT '1.2.3.4'::inet")
        assert (unknown.sqlstate, unknown.message) == ("42704", 'type "inet" does not exist')

    run(scenario)
