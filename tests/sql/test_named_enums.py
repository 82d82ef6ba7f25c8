"""Enumerations that a statement names without a table that has them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.results.client_types import DeclaredType, user_type_oid
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TYPE mood AS ENUM ('sad', 'ok')")
            await node.sql("CREATE TABLE t (id INT8 PRIMARY KEY, m mood)")
            await node.sql("INSERT INTO t VALUES (1, 'ok')")
            await scenario(node)

    sim = Simulation(53)
    sim.run(whole())


def test_a_type_is_found_by_its_name() -> None:
    async def scenario(node: SqlNode) -> None:
        result = await node.sql("SELECT 'ok'::mood, mood 'sad', '{ok}'::public.mood[]")
        assert result.fetch_rows() == [("ok", "sad", ["ok"])]
        assert [column.type.sql_name for column in result.columns] == ["mood", "mood", "mood[]"]
        assert await node.rows("SELECT 'sad'::mood < 'ok'::mood") == [(True,)]
        assert await node.rows("SELECT id FROM t WHERE m = mood 'ok'") == [(1,)]
        await node.sql("EXPLAIN SELECT 'ok'::mood")

    run(scenario)


@pytest.mark.parametrize(
    ("query", "sqlstate", "position"),
    [
        ("SELECT 'ok'::moody", "42704", 14),
        ("SELECT 'glad'::mood", "22P02", 8),
        ("SELECT x::mood FROM (VALUES ('glad')) v(x)", "22P02", None),
        ("SELECT moody 'ok'", "42704", 8),
    ],
)
def test_what_is_no_type_or_label_is_refused(
    query: str, sqlstate: str, position: int | None
) -> None:
    async def scenario(node: SqlNode) -> None:
        error = await node.error(query)
        assert (error.sqlstate, error.position) == (sqlstate, position)

    run(scenario)


def test_a_statement_follows_the_type() -> None:
    async def scenario(node: SqlNode) -> None:
        session = node.session()
        prepared = await session.prepare("SELECT $1::mood, 'ok'::mood")
        assert (await session.run(prepared, ("ok",))).fetch_rows() == [("ok", "ok")]
        await node.sql("ALTER TYPE mood ADD VALUE 'glad'")
        assert (await session.run(prepared, ("glad",))).fetch_rows() == [("glad", "ok")]
        assert await node.rows("SELECT 'glad'::mood") == [("glad",)]
        again = await session.prepare("SELECT $1::mood, 'ok'::mood")
        (type,) = again.parameter_types
        assert type.enum is not None and type.enum.labels == ("sad", "ok", "glad")
        await node.sql("DROP TABLE t")
        await node.sql("DROP TYPE mood")
        assert (await node.error("SELECT 'ok'::mood")).sqlstate == "42704"

    run(scenario)


def test_a_declared_type_is_one_of_the_catalog() -> None:
    async def scenario(node: SqlNode) -> None:
        ((oid,),) = await node.rows("SELECT oid FROM pg_type WHERE typname = 'mood'")
        assert isinstance(oid, int)
        type_id = oid ^ user_type_oid(0)
        session = node.session()
        declared = (DeclaredType(type_id, False), DeclaredType(type_id, True))
        prepared = await session.prepare("SELECT $1, $2", declared)
        assert [type.sql_name for type in prepared.parameter_types] == ["mood", "mood[]"]
        result = await session.run(prepared, ("ok", ["sad", None]))
        assert result.fetch_rows() == [("ok", ["sad", None])]
        assert [column.type.sql_name for column in result.columns] == ["mood", "mood[]"]
        with pytest.raises(SQLError) as caught:
            await session.prepare("SELECT $1", (DeclaredType(type_id + 999, False),))
        assert caught.value.sqlstate == "42704"

    run(scenario)


def test_block_that_creates_a_type_lets_it_be() -> None:
    """Sequelize and Drizzle create their enumerations in blocks; other blocks are refused."""

    async def scenario(node: SqlNode) -> None:
        create = "BEGIN CREATE TYPE enum_moods AS ENUM ('a', 'b')"
        block = f"{create}; EXCEPTION WHEN duplicate_object THEN null; END"
        quoted = block.replace("'", "''")
        await node.sql(f"DO '{quoted}'")
        await node.sql(f"DO $$ {block} $$")
        labels = "SELECT enumlabel FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid"
        rows = await node.rows(f"{labels} WHERE t.typname = 'enum_moods'")
        assert sorted(rows) == [("a",), ("b",)]
        assert (await node.error("DO $$ BEGIN RAISE NOTICE 'x'; END $$")).sqlstate == "0A000"

    run(scenario)


def test_checks_and_computed_columns_name_the_types_of_their_columns() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(
            "CREATE TABLE c (id INT8 PRIMARY KEY, m mood, ms mood[], word STRING, "
            "good BOOL AS (m = 'ok'::mood) STORED, CHECK (m <> 'sad'::public.mood), "
            "CHECK (ms = ARRAY['ok']::mood[]), CHECK (word::mood = m))"
        )
        await node.sql("INSERT INTO c VALUES (1, 'ok', ARRAY['ok'], 'ok')")
        assert await node.rows("SELECT good FROM c") == [(True,)]
        for row in ("(2, 'sad', NULL, NULL)", "(3, 'ok', '{sad}', 'ok')", "(4, 'ok', NULL, 'sad')"):
            assert (await node.error(f"INSERT INTO c VALUES {row}")).sqlstate == "23514"
        await node.sql("ALTER TYPE mood ADD VALUE 'happy'")
        await node.sql("INSERT INTO c VALUES (5, 'happy', NULL, 'happy')")
        await node.sql("ALTER TABLE t ADD CHECK (m IN ('ok'::mood))")
        assert (await node.error("INSERT INTO t VALUES (2, 'sad')")).sqlstate == "23514"

    run(scenario)


def test_a_check_names_no_type_of_another_column() -> None:
    """It would outlive the column, and with it the type."""

    async def scenario(node: SqlNode) -> None:
        for type in ("mood", "moody"):
            error = await node.error(
                f"CREATE TABLE c (id INT8 PRIMARY KEY, m mood, w STRING, CHECK (w::{type} = 'ok'))"
            )
            assert (error.sqlstate, error.message) == ("42704", f'type "{type}" does not exist')
            assert error.hint is not None and "that it names" in error.hint

    run(scenario)
