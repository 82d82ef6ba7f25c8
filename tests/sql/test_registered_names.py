"""Names and object ids: regclass, regtype and their kin, and what rests on pg_catalog's arrays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (id INT4, line INT8, v TEXT, PRIMARY KEY (id, line))")
            await node.sql("CREATE SCHEMA shop")
            await node.sql("CREATE TABLE shop.items (id INT8 PRIMARY KEY)")
            await node.sql("CREATE TYPE mood AS ENUM ('sad', 'ok')")
            await node.sql("CREATE TYPE shop.\"Kind\" AS ENUM ('new')")
            await scenario(node)

    sim = Simulation(43)
    sim.run(whole())


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("'t'::regclass", "t"), ("'public.t'::regclass", "t"), ("'\"t\"'::regclass", "t"),
        ("'\"shop\" . \"items\"'::regclass", "shop.items"),  # as ADBC writes it
        ("'shop.\"Kind\"'::regtype", 'shop."Kind"'),
        ("'shop.\"Kind\"[]'::regtype", 'shop."Kind"[]'),
        ("'SHOP.items'::regclass", "shop.items"), ("'pg_catalog.pg_class'::regclass", "pg_class"),
        ("'1259'::regclass", "pg_class"), ("'int8'::regtype", "bigint"),
        ("'mood'::regtype", "mood"), ("'mood[]'::regtype", "mood[]"),
        ("'_mood'::regtype", "mood[]"), ("'character varying[]'::regtype", "character varying[]"),
        ("'int4'::regtype::oid", 23), ("to_regtype('text')", 25), ("to_regtype('nothing')", None),
        ("to_regclass('nothing')", None), ("'pg_class'::regclass::oid", 1259),
        ("'public'::regnamespace", "public"),
    ],
)  # fmt: skip
def test_names_are_ids_and_are_shown_as_names(query: str, shown: object) -> None:
    async def scenario(node: SqlNode) -> None:
        assert await node.rows(f"SELECT {query}") == [(shown,)]

    run(scenario)


@pytest.mark.parametrize(
    ("cast", "sqlstate", "message"),
    [
        ("'nothing'::regclass", "42P01", 'relation "nothing" does not exist'),
        ("'items'::regclass", "42P01", 'relation "items" does not exist'),
        ("'nothing'::regtype", "42704", 'type "nothing" does not exist'),
        ("'nowhere'::regnamespace", "3F000", 'schema "nowhere" does not exist'),
    ],
)
def test_unknown_names_are_errors(cast: str, sqlstate: str, message: str) -> None:
    async def scenario(node: SqlNode) -> None:
        error = await node.error(f"SELECT {cast}")
        assert (error.sqlstate, error.message) == (sqlstate, message)

    run(scenario)


def test_parameters_name_relations() -> None:
    async def scenario(node: SqlNode) -> None:
        named = "SELECT relname FROM pg_class WHERE oid = $1::regclass"
        assert await node.rows(named, "shop.items") == [("items",)]
        typed = "SELECT typname FROM pg_type WHERE oid = to_regtype($1)"
        assert await node.rows(typed, "mood") == [("mood",)]

    run(scenario)


def test_expanded_arrays_are_elements_with_their_places() -> None:
    async def scenario(node: SqlNode) -> None:
        keys = (
            "SELECT (r.k).n, a.attname FROM (SELECT indrelid, "
            "information_schema._pg_expandarray(indkey) AS k, "
            "(information_schema._pg_expandarray(indkey)).n AS place FROM pg_index) r "
            "JOIN pg_attribute a ON a.attrelid = r.indrelid AND a.attnum = (r.k).x "
            "WHERE r.indrelid = 't'::regclass AND place = (r.k).n ORDER BY 1"
        )
        assert await node.rows(keys) == [(1, "id"), (2, "line")]
        vectors = await node.sql("SELECT indkey FROM pg_index WHERE indrelid = 't'::regclass")
        assert [column.type.sql_name for column in vectors.columns] == ["int2vector"]
        assert vectors.fetch_rows() == [([1, 2],)]

    run(scenario)


def test_columns_of_a_result_say_where_they_are_from() -> None:
    async def scenario(node: SqlNode) -> None:
        async def origins(query: str) -> list[str | None]:
            found: list[str | None] = []
            for column in (await node.sql(query)).columns:
                if column.origin is None:
                    found.append(None)
                    continue
                asked = (
                    "SELECT attrelid::regclass || '.' || attname FROM pg_attribute "
                    "WHERE attrelid = $1 AND attnum = $2"
                )
                ((name,),) = await node.rows(asked, *column.origin)
                found.append(str(name))
            return found

        assert await origins("SELECT v, id AS n FROM t WHERE id = 1 AND line = 2") == [
            "t.v",
            "t.id",
        ]
        assert await origins("SELECT id + 1, max(v) FROM t GROUP BY 1") == [None, None]
        assert await origins("SELECT a.id, b.* FROM t a JOIN shop.items b ON a.id = b.id") == [
            "t.id", "shop.items.id",
        ]  # fmt: skip
        merged = await origins("SELECT * FROM t JOIN shop.items USING (id)")
        assert merged == [None, "t.line", "t.v"]
        assert await origins("SELECT x FROM (SELECT id AS x FROM t) s") == [None]
        assert await origins("INSERT INTO t VALUES (1, 1) RETURNING line, id * 2") == [
            "t.line", None,
        ]  # fmt: skip
        assert await origins("SELECT nspname FROM pg_namespace") == ["pg_namespace.nspname"]

    run(scenario)


def test_names_without_quotes_are_folded() -> None:
    async def scenario(node: SqlNode) -> None:
        async def names(query: str) -> list[str]:
            return [column.name for column in (await node.sql(query)).columns]

        assert await names('SELECT 1 AS ABC, 2 AS "Def"') == ["abc", "Def"]
        assert await names("SELECT * FROM (SELECT ID AS Key, V FROM T) S") == ["key", "v"]
        assert await names("SELECT S.KEY FROM (SELECT max(ID) AS Key FROM t) s") == ["key"]

    run(scenario)


def test_a_result_that_is_sent_in_parts_says_where_it_is_from() -> None:
    async def scenario(node: SqlNode) -> None:
        (result,) = await node.first.execute("SELECT v, id + 1 FROM t", streamed=True)
        assert [column.origin is not None for column in result.columns] == [True, False]
        assert result.fetch_rows() == []

    run(scenario)
