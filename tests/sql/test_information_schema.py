"""information_schema beyond tables and columns; tableoid; what pg_settings says of a session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

SCHEMA = (
    "CREATE TABLE p (id INT8 PRIMARY KEY)",
    "CREATE TYPE mood AS ENUM ('sad', 'ok')",
    "CREATE TABLE t (id INT4 PRIMARY KEY, p INT8 REFERENCES p, n DECIMAL(5,2) CHECK (n > 0), "
    "m mood, ms mood[], at TIMESTAMPTZ, name VARCHAR(3))",
    "CREATE VIEW v AS SELECT id, n FROM t",
    "CREATE USER ada",
    "GRANT SELECT ON t TO ada",
)


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            for text in SCHEMA:
                await node.sql(text)
            await scenario(node)

    sim = Simulation(47)
    sim.run(whole())


def test_columns_are_described_as_the_standard_has_it() -> None:
    async def scenario(node: SqlNode) -> None:
        described = (
            "SELECT column_name, data_type, udt_schema, udt_name, numeric_precision_radix, "
            "character_octet_length, datetime_precision FROM information_schema.columns "
            "WHERE table_name = 't' ORDER BY ordinal_position"
        )
        assert await node.rows(described) == [
            ("id", "integer", "pg_catalog", "int4", 2, None, None),
            ("p", "bigint", "pg_catalog", "int8", 2, None, None),
            ("n", "numeric", "pg_catalog", "numeric", 10, None, None),
            ("m", "USER-DEFINED", "public", "mood", None, None, None),
            ("ms", "ARRAY", "public", "_mood", None, None, None),
            ("at", "timestamp with time zone", "pg_catalog", "timestamptz", None, None, 6),
            ("name", "character varying", "pg_catalog", "varchar", None, 12, None),
        ]

    run(scenario)


def test_constraints_name_the_columns_that_they_use() -> None:
    async def scenario(node: SqlNode) -> None:
        used = (
            "SELECT constraint_name, table_name, column_name "
            "FROM information_schema.constraint_column_usage ORDER BY 1, 3"
        )
        assert await node.rows(used) == [
            ("p_pkey", "p", "id"), ("t_n_check", "t", "n"), ("t_p_fkey", "p", "id"),
            ("t_pkey", "t", "id"),
        ]  # fmt: skip

    run(scenario)


def test_rows_tell_their_table() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO p VALUES (1)")
        assert await node.rows("SELECT tableoid::regclass, id FROM p") == [("p", 1)]
        assert await node.rows("SELECT x.tableoid = 'p'::regclass FROM p x") == [(True,)]
        catalog = "SELECT DISTINCT c.tableoid FROM pg_class c"
        assert await node.rows(catalog) == [(1259,)]

    run(scenario)


def test_settings_say_where_their_values_are_from() -> None:
    async def scenario(node: SqlNode) -> None:
        asked = (
            "SELECT setting, source, boot_val, reset_val, context FROM pg_settings "
            "WHERE name = 'lock_timeout'"
        )
        assert await node.rows(asked) == [("0", "default", "0", "0", "user")]
        await node.sql("SET lock_timeout = '5s'")
        assert await node.rows(asked) == [("5s", "session", "0", "0", "user")]
        each = "SELECT current_setting(s.name) FROM pg_settings s WHERE s.name = 'lock_timeout'"
        assert await node.rows(each) == [("5s",)]

    run(scenario)
