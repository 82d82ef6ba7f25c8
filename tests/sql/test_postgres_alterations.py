"""ALTER TABLE and CREATE TABLE as dumps and migrations of PostgreSQL write them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

TABLE = (
    "CREATE TABLE t (id INT8 PRIMARY KEY NOT DEFERRABLE INITIALLY IMMEDIATE, "
    "v STRING UNIQUE NOT DEFERRABLE, twice INT8 GENERATED ALWAYS AS (id * 2) STORED)"
)


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            await node.sql(TABLE)
            await node.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
            await scenario(node)

    sim = Simulation(2)
    sim.run(whole())


@pytest.mark.parametrize(
    "command",
    [
        "ALTER COLUMN v SET STATISTICS -1",
        "ALTER v SET STORAGE EXTERNAL",
        "ALTER v SET COMPRESSION default",
        "CLUSTER ON t_pkey",
        "REPLICA IDENTITY FULL",
        "REPLICA IDENTITY USING INDEX t_v_key",
    ],
)
def test_what_postgres_keeps_its_pages_by_is_told_to_be_ignored(command: str) -> None:
    async def scenario(node: SqlNode) -> None:
        before = await node.rows("SHOW CREATE TABLE t")
        result = await node.sql(f"ALTER TABLE ONLY t {command}")
        assert (result.notice or "").startswith("ignored, for it means nothing here")
        assert await node.rows("SHOW CREATE TABLE t") == before

    run(scenario)


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("CREATE TABLE x (id INT8 PRIMARY KEY DEFERRABLE)", "0A000"),
        ("CREATE TABLE x (id INT8, UNIQUE (id) INITIALLY DEFERRED)", "0A000"),
        ("ALTER TABLE t ADD PRIMARY KEY (id) DEFERRABLE", "0A000"),
        ("BEGIN; SET CONSTRAINTS t_v_key DEFERRED", "42704"),
        ("ALTER TABLE t DROP CONSTRAINT t_pkey", "0A000"),
        ("ALTER TABLE t SET LOGGED", "0A000"),
        ("ALTER TABLE t ADD CONSTRAINT x UNIQUE USING INDEX t_v_key", "42601"),
        ("ALTER TABLE t DISABLE TRIGGER ALL", "0A000"),
        ("ALTER TABLE t DISABLE TRIGGER ALL", "0A000"),
        ("ALTER TABLE t ENABLE ROW LEVEL SECURITY", "0A000"),
        ("ALTER TABLE t SET UNLOGGED", "0A000"),
        ("ALTER TABLE t ALTER twice DROP EXPRESSION", "42601"),
        ("SELECT id INTO UNLOGGED x FROM t", "0A000"),
        ("SELECT id INTO x FROM t", "0A000"),
    ],
)
def test_what_is_understood_and_not_offered_is_told(text: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        error = await node.error(text)
        assert error.sqlstate == sqlstate, error

    run(scenario)


def test_column_that_is_there_gets_no_constraints() -> None:
    async def scenario(node: SqlNode) -> None:
        before = await node.rows("SHOW CREATE TABLE t")
        again = "ADD COLUMN IF NOT EXISTS v STRING UNIQUE CHECK (v > '') REFERENCES t (v)"
        await node.sql(f"ALTER TABLE t {again}")
        assert await node.rows("SHOW CREATE TABLE t") == before
        await node.sql(f"ALTER TABLE t {again.replace(' v STRING', ' w STRING')}")
        (row,) = await node.rows("SHOW CREATE TABLE t")
        assert all(word in str(row[1]) for word in ("t_w_key", "t_v_check", "t_w_fkey"))

    run(scenario)


def test_using_may_say_what_the_type_says() -> None:
    """Knex, GORM and Sequelize write USING of each column that they change, one of an index too."""

    async def scenario(node: SqlNode) -> None:
        await node.sql('ALTER TABLE "t" ALTER COLUMN "v" TYPE TEXT USING ("v"::TEXT)')
        await node.sql("ALTER TABLE t ADD COLUMN w VARCHAR(5); CREATE INDEX ON t (w)")
        await node.sql("ALTER TABLE t ALTER COLUMN w TYPE varchar(9) USING w::varchar(9)")
        await node.sql('CREATE TYPE "enum_M" AS ENUM (\'a\'); ALTER TABLE t ADD m "enum_M"')
        enum = '"public"."enum_M"'
        await node.sql(f'ALTER TABLE "t" ALTER COLUMN "m" TYPE {enum} USING ("m"::{enum})')
        refused = await node.error("ALTER TABLE t ALTER COLUMN w TYPE TEXT USING upper(w)::TEXT")
        assert refused.sqlstate == "2BP01"
        assert await node.rows("SELECT id, v FROM t ORDER BY id") == [(1, "a"), (2, "b")]

    run(scenario)


def test_unique_index_is_no_constraint() -> None:
    """GORM drops a unique constraint that a column without its tag has, at each start."""

    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE UNIQUE INDEX of_id ON t (id)")
        standard = (
            "SELECT constraint_name FROM information_schema.table_constraints "
            "WHERE table_name = 't' AND constraint_type = 'UNIQUE'"
        )
        catalog = (
            "SELECT conname FROM pg_constraint WHERE conrelid = 't'::regclass AND contype = 'u'"
        )
        assert await node.rows(standard) == await node.rows(catalog) == [("t_v_key",)]
        [(_, text)] = await node.rows("SHOW CREATE TABLE t")
        assert "CONSTRAINT t_v_key UNIQUE (v),\n    UNIQUE INDEX of_id (id)" in str(text)
        indexes = "SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass AND indisunique"
        assert await node.rows(indexes) == [(3,)]
        assert (await node.error("INSERT INTO t VALUES (1, 'c')")).sqlstate == "23505"

    run(scenario)


def test_identity_has_the_sequence_that_it_names() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(
            "CREATE TABLE x (id INT8 GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME ids START 5), "
            "v STRING)"
        )
        assert await node.rows("INSERT INTO x (v) VALUES ('a') RETURNING id") == [(5,)]
        await node.sql(
            "ALTER TABLE x ADD COLUMN n INT8 GENERATED BY DEFAULT AS IDENTITY "
            "(SEQUENCE NAME public.ns START 9)"
        )
        assert await node.rows("SELECT n, nextval('ids'), nextval('ns') FROM x") == [(9, 6, 10)]

    run(scenario)


def test_default_may_be_cast_to_its_enumeration() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TYPE mood AS ENUM ('sad', 'ok')")
        await node.sql("ALTER TABLE t ADD COLUMN m mood DEFAULT 'ok'::public.mood")
        assert await node.rows("SELECT DISTINCT m FROM t") == [("ok",)]
        await node.sql("ALTER TABLE t ALTER m SET DEFAULT 'sad'::mood")
        assert await node.rows("INSERT INTO t (id) VALUES (9) RETURNING m") == [("sad",)]

    run(scenario)


def test_a_renamed_table_is_found_by_later_statements_of_its_transaction() -> None:
    """Django renames a model, and adds a column that is NOT NULL, in one migration."""
    sim = Simulation(8)

    async def scenario() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE author (id INT8 PRIMARY KEY)")
            await node.sql("INSERT INTO author VALUES (1)")
            await node.sql(
                "BEGIN; ALTER TABLE author RENAME TO writer;"
                "ALTER TABLE writer ADD COLUMN pen INT8 DEFAULT 7 NOT NULL;"
                "ALTER TABLE writer ALTER COLUMN pen DROP DEFAULT;"
                "ALTER TABLE writer ADD UNIQUE (pen); SELECT id FROM writer; COMMIT"
            )
            assert await node.rows("SELECT id, pen FROM writer") == [(1, 7)]
            with pytest.raises(SQLError, match='relation "author" does not exist'):
                await node.sql("SELECT 1 FROM author")

    sim.run(scenario())


def test_a_new_name_stays_where_the_rest_of_its_transaction_cannot_be_done() -> None:
    sim = Simulation(9)

    async def scenario() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE author (id INT8 PRIMARY KEY)")
            await node.sql("INSERT INTO author VALUES (1), (2)")
            with pytest.raises(SQLError) as failed:
                await node.sql(
                    "BEGIN; ALTER TABLE author RENAME TO writer;"
                    "ALTER TABLE writer ADD COLUMN pen INT8 DEFAULT 7 UNIQUE; COMMIT"
                )
            assert failed.value.sqlstate == "23505"
            assert await node.rows("SELECT * FROM writer ORDER BY id") == [(1,), (2,)]
            await node.sql("ALTER TABLE writer ADD COLUMN ink INT8")

    sim.run(scenario())


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE t ADD COLUMN at TIMESTAMPTZ DEFAULT now(), ALTER COLUMN at SET NOT NULL",
        "BEGIN; ALTER TABLE t ADD COLUMN at TIMESTAMPTZ DEFAULT now();"
        "ALTER TABLE t ALTER COLUMN at SET NOT NULL; COMMIT",
    ],
)
def test_a_column_that_is_filled_may_be_not_null_at_once(text: str) -> None:
    """Liquibase adds the constraint in a statement of its own."""

    async def scenario(node: SqlNode) -> None:
        await node.sql(text)
        assert await node.rows("SELECT count(*), count(at) FROM t") == [(2, 2)]
        with pytest.raises(SQLError, match='null value in column "at"'):
            await node.sql("INSERT INTO t (id, at) VALUES (3, NULL)")

    run(scenario)


def test_a_drawn_default_is_of_the_columns_type_behind_a_change_of_it() -> None:
    """A row that leaves the column out could not be written any more."""

    async def scenario(node: SqlNode) -> None:
        await node.sql("ALTER TABLE t ADD COLUMN u UUID DEFAULT gen_random_uuid()")
        with pytest.raises(SQLError, match='default for column "u" cannot be cast') as caught:
            await node.sql("ALTER TABLE t ALTER COLUMN u TYPE STRING")
        assert caught.value.sqlstate == "42804"
        await node.sql("ALTER TABLE t ALTER COLUMN u DROP DEFAULT")
        await node.sql("ALTER TABLE t ALTER COLUMN u TYPE STRING")
        await node.sql("INSERT INTO t (id, v) VALUES (3, 'c')")

    run(scenario)


def test_a_table_that_its_transaction_filled_is_indexed_and_renamed() -> None:
    """dbt makes a model's table, and its indexes, before it renames it into its place."""
    sim = Simulation(10)

    async def scenario() -> None:
        async with sql_node(sim) as node:
            await node.sql(
                "BEGIN; CREATE TABLE tmp AS "
                "SELECT g AS id, g % 7 AS n FROM generate_series(1, 1200) g;"
                "CREATE UNIQUE INDEX ON tmp (id); CREATE INDEX ON tmp (n);"
                "ALTER TABLE tmp RENAME TO model;"
                "UPDATE model SET n = 9 WHERE id = 1200; COMMIT"
            )
            assert await node.rows("SELECT n FROM model WHERE id = 1200") == [(9,)]
            assert await node.rows("SELECT count(*) FROM model WHERE n = 6") == [(171,)]
            with pytest.raises(SQLError) as failed:
                await node.sql(
                    "BEGIN; CREATE TABLE twice AS SELECT 1 AS id FROM model;"
                    "CREATE UNIQUE INDEX ON twice (id); COMMIT"
                )
            assert failed.value.sqlstate == "23505"
            await node.sql("ROLLBACK")

    sim.run(scenario())
