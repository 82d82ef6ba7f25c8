"""What a table's definition may say: wrong ones are told of at once, and not by rows later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

SET_UP = (
    "CREATE TABLE r (k INT8 PRIMARY KEY, u INT8 UNIQUE, n INT8, m INT8, CHECK (n < m))",
    "CREATE TABLE keyless (n INT8)",
)


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            for text in SET_UP:
                await node.sql(text)
            await scenario(node)

    sim = Simulation(seed=3)
    sim.run(whole())


def test_a_table_has_as_many_columns_as_in_postgres() -> None:
    async def scenario(node: SqlNode) -> None:
        columns = [f"c{number} INT8" for number in range(1599)]
        await node.sql(f"CREATE TABLE widest (k INT8 PRIMARY KEY, {', '.join(columns)})")
        wider = f"CREATE TABLE wider (k INT8 PRIMARY KEY, z INT8, {', '.join(columns)})"
        for text in (wider, "ALTER TABLE widest ADD COLUMN z INT8"):
            assert (await node.error(text)).sqlstate == "54011"
        several = ", ".join(f"ADD COLUMN {column}" for column in columns)
        assert (await node.error(f"ALTER TABLE r {several}")).sqlstate == "54011"
        await node.sql("ALTER TABLE widest DROP COLUMN c1")
        await node.sql("ALTER TABLE widest ADD COLUMN z INT8")

    run(scenario)


@pytest.mark.parametrize(
    ("element", "sqlstate"),
    [
        ("CHECK (missing(n) > 1)", "42883"),
        ("CHECK (n + length('x'))", "42804"),
        ("b INT8 GENERATED ALWAYS AS (missing(n)) STORED", "42883"),
        ("b INT8 GENERATED ALWAYS AS (n || 'x') STORED", "42804"),
        ("b STRING GENERATED ALWAYS AS (n * 2) STORED", "42804"),
        ("b BOOL GENERATED ALWAYS AS (reverse(n::TEXT)) STORED", "42804"),
    ],
)
def test_an_expression_is_of_the_type_that_it_must_be(element: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        assert (await node.error(f"CREATE TABLE t (n INT8, {element})")).sqlstate == sqlstate
        assert (await node.error(f"ALTER TABLE r ADD {element}")).sqlstate == sqlstate

    run(scenario)


def test_expressions_that_duckdb_evaluates_are_taken() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(
            "CREATE TABLE t (n INT8, d JSONB, CHECK (d -> 'a' IS NOT NULL), CHECK (NULL), "
            "b STRING AS (reverse(n::STRING)) STORED, c JSONB AS (d -> 'a') STORED, "
            "e INT4 AS (sqrt(n)) STORED)"
        )
        await node.sql("INSERT INTO t VALUES (16, '{\"a\": 1}')")
        assert await node.rows("SELECT b, e FROM t") == [("61", 4)]

    run(scenario)


@pytest.mark.parametrize(
    "change",
    [
        "DROP INDEX r_u_key",
        "ALTER TABLE r DROP CONSTRAINT r_u_key",
        "ALTER TABLE r DROP COLUMN u CASCADE",
    ],
)
def test_what_a_foreign_key_refers_to_stays(change: str) -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE q (k INT8 PRIMARY KEY, x INT8 REFERENCES r (u))")
        assert (await node.error(change)).sqlstate == "2BP01"
        assert (await node.error("INSERT INTO q VALUES (1, 1)")).sqlstate == "23503"
        await node.sql("CREATE UNIQUE INDEX another ON r (u)")
        await node.sql("DROP INDEX r_u_key")  # the other one serves
        assert (await node.error("INSERT INTO q VALUES (1, 1)")).sqlstate == "23503"
        await node.sql("DROP TABLE q")
        await node.sql("ALTER TABLE r DROP COLUMN u")

    run(scenario)


def test_a_hidden_key_is_nothing_to_refer_to() -> None:
    async def scenario(node: SqlNode) -> None:
        error = await node.error("CREATE TABLE q (k INT8 PRIMARY KEY, x INT8 REFERENCES keyless)")
        assert error.sqlstate == "42704"

    run(scenario)


def test_indexes_and_constraints_go_with_their_column() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE INDEX by_n ON r (n)")
        await node.sql("ALTER TABLE r DROP COLUMN n")
        await node.sql("INSERT INTO r VALUES (1, 1, 1)")
        shown = str(await node.rows("SHOW CREATE TABLE r"))
        assert "by_n" not in shown
        assert "CHECK" not in shown

    run(scenario)


def test_a_primary_key_has_the_name_that_it_is_given() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE t (k INT8, v INT8, CONSTRAINT t_key PRIMARY KEY (k))")
        upsert = "INSERT INTO t VALUES (1, 1) ON CONFLICT ON CONSTRAINT {} DO UPDATE SET v = 2"
        await node.sql(upsert.format("t_key"))
        await node.sql("ALTER INDEX t_key RENAME TO other_key")
        await node.sql(upsert.format("other_key"))
        error = await node.error("INSERT INTO t VALUES (1, 1)")
        assert 'unique constraint "other_key"' in str(error)
        await node.sql("ALTER INDEX other_key RENAME TO t_key")
        await node.sql("ALTER TABLE t RENAME TO t2")
        assert "CONSTRAINT t_key PRIMARY KEY (k)" in str(await node.rows("SHOW CREATE TABLE t2"))
        assert (await node.error("DROP INDEX t_key")).sqlstate == "2BP01"

    run(scenario)


def test_a_key_that_is_added_has_its_name() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE t (k INT8 CONSTRAINT of_column PRIMARY KEY)")
        await node.sql("CREATE TABLE u (k INT8 NOT NULL)")
        await node.sql("ALTER TABLE u ADD CONSTRAINT added PRIMARY KEY (k)")
        names = (
            "SELECT conname FROM pg_constraint WHERE contype = 'p' AND conrelid = '{}'::REGCLASS"
        )
        assert await node.rows(names.format("t")) == [("of_column",)]
        assert await node.rows(names.format("u")) == [("added",)]

    run(scenario)


@pytest.mark.parametrize(
    "element",
    [
        "b INT8 CHECK (b > 0) NO INHERIT",
        "b INT8 UNIQUE NULLS DISTINCT",
    ],
)
def test_what_says_nothing_new_is_read(element: str) -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE UNIQUE INDEX both ON r (u, k)")
        await node.sql(f"CREATE TABLE t (n INT8, m INT8, {element})")

    run(scenario)


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("CREATE TABLE t (n INT8 UNIQUE NULLS NOT DISTINCT)", "0A000"),
        ("CREATE UNIQUE INDEX ON r (n) NULLS NOT DISTINCT", "0A000"),
        ("ALTER TABLE r ADD FOREIGN KEY (n, m) REFERENCES r (u, k) MATCH FULL", "0A000"),
        ("ALTER TABLE r ADD FOREIGN KEY (n) REFERENCES r (u) MATCH SIMPLE", "0A000"),
        ("CREATE INDEX ON r (n COLLATE \"C\")", "0A000"),
        ("CREATE TABLE t (n INT8, a INT8 AS (n) STORED AS (n + 1) STORED)", "42601"),
        ("ALTER TABLE r ADD COLUMN a INT8 DEFAULT 1, ADD COLUMN b INT8 AS (a) STORED", "0A000"),
        ("ALTER TABLE r ALTER missing SET STATISTICS 100", "42703"),
        ("DROP INDEX missing.by_n", "3D000"),
        ("CREATE TABLE t (n INT8, a INT8 AS (generate_series(1, n)) STORED)", "0A000"),
        ("ALTER TABLE keyless ADD COLUMN id UUID PRIMARY KEY DEFAULT gen_random_uuid()", "0A000"),
        ("INSERT INTO keyless SELECT 1 INTO t", "42601"),
        ("DROP SCHEMA public", "42501"),
        ("DROP SCHEMA public CASCADE", "42501"),
    ],
)  # fmt: skip
def test_what_is_not_offered_is_told(text: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        assert (await node.error(text)).sqlstate == sqlstate
        assert await node.rows("SELECT count(*) FROM r") == [(0,)]

    run(scenario)


def test_an_index_has_one_order() -> None:
    async def scenario(node: SqlNode) -> None:
        made = await node.sql("CREATE INDEX by_n ON r (n DESC NULLS LAST, m)")
        assert made.notice == 'ignored, for indexes are ascending, NULLs last: DESC of "n"'
        await node.sql("INSERT INTO r VALUES (1, 1, NULL, 5), (2, 2, 1, 5), (3, 3, 2, 5)")
        assert await node.rows("SELECT k FROM r ORDER BY n DESC NULLS LAST") == [(3,), (2,), (1,)]
        made = await node.sql("CREATE TABLE t (n INT8, INDEX (n DESC))")
        assert 'DESC of "n"' in str(made.notice)
        await node.sql("CREATE TABLE u (s STRING)")
        made = await node.sql("CREATE INDEX ON u (s varchar_pattern_ops ASC)")
        assert made.notice is None

    run(scenario)


def test_what_is_dropped_if_it_exists_may_lack_its_schema() -> None:
    async def scenario(node: SqlNode) -> None:
        for text in ("DROP TABLE", "DROP VIEW", "DROP SEQUENCE", "DROP TYPE", "DROP INDEX"):
            await node.sql(f"{text} IF EXISTS missing.thing")
        await node.sql("ALTER TABLE IF EXISTS missing.thing ADD COLUMN n INT8")

    run(scenario)


def test_an_index_is_named_with_its_schema() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE SCHEMA shop; CREATE TABLE shop.orders (k INT8 PRIMARY KEY, n INT8)")
        await node.sql("CREATE INDEX by_n ON shop.orders (n); CREATE INDEX by_n ON r (n)")
        await node.sql("DROP INDEX shop.by_n; DROP INDEX public.by_n")
        assert (await node.error("DROP INDEX shop.by_n")).sqlstate == "42704"

    run(scenario)


def test_an_update_gives_a_computed_column_its_default() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, twice INT8 AS (k * 2) STORED)")
        await node.sql("INSERT INTO t VALUES (1)")
        await node.sql("UPDATE t SET k = 3, twice = DEFAULT")
        await node.sql("INSERT INTO t VALUES (3) ON CONFLICT (k) DO UPDATE SET twice = DEFAULT")
        assert await node.rows("SELECT k, twice FROM t") == [(3, 6)]
        assert (await node.error("UPDATE t SET twice = 4")).sqlstate == "428C9"

    run(scenario)


def test_a_text_becomes_longer_where_it_is() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(
            "CREATE TABLE t (k VARCHAR(2) PRIMARY KEY, code VARCHAR(3) UNIQUE, "
            "note VARCHAR(4) CHECK (note <> ''), both STRING AS (code || note) STORED)"
        )
        await node.sql("CREATE TABLE u (k VARCHAR(2) REFERENCES t)")
        await node.sql("INSERT INTO t VALUES ('ab', 'abc', 'abcd')")
        await node.sql("ALTER TABLE t ALTER k TYPE VARCHAR(4), ALTER code TYPE VARCHAR(6)")
        await node.sql("ALTER TABLE t ALTER note TYPE STRING")
        await node.sql("INSERT INTO t VALUES ('abcd', 'abcdef', 'a longer one')")
        assert (await node.error("INSERT INTO t VALUES ('abcde')")).sqlstate == "22001"
        assert (await node.error("INSERT INTO t VALUES ('x', 'abc')")).sqlstate == "23505"
        assert (await node.error("INSERT INTO t VALUES ('x', 'x', '')")).sqlstate == "23514"
        assert await node.rows("SELECT k FROM t WHERE code = 'abcdef'") == [("abcd",)]
        assert (await node.error("ALTER TABLE t ALTER code TYPE VARCHAR(5)")).sqlstate == "2BP01"

    run(scenario)


def test_a_check_comes_with_its_column() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO r VALUES (1, 1, 1, 2)")
        await node.sql("ALTER TABLE r ADD COLUMN a INT8 NOT NULL DEFAULT 5 CHECK (a > 0)")
        await node.sql("ALTER TABLE r ADD COLUMN b INT8, ADD CHECK (sqrt(b) > 1 OR a > 4)")
        for values in ("(k, a) VALUES (2, 0)", "(k, a, b) VALUES (2, 1, 1)"):
            assert (await node.error(f"INSERT INTO r {values}")).sqlstate == "23514"
        await node.sql("INSERT INTO r (k, a, b) VALUES (2, 1, 16)")
        wrong = "ALTER TABLE r ADD COLUMN c INT8 DEFAULT 5 CHECK (c > 10)"
        assert (await node.error(wrong)).sqlstate == "23514"
        shown = str(await node.rows("SHOW CREATE TABLE r"))
        assert 'CHECK ("a" > 0)' in shown
        assert '"c"' not in shown
        filled = "ALTER TABLE r ADD COLUMN c FLOAT8 DEFAULT random() CHECK (c > 2)"
        assert (await node.error(filled)).sqlstate == "0A000"

    run(scenario)
