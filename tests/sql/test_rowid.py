"""Tables without a primary key, and columns that are not visible."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode], Awaitable[None]], *set_up: str) -> None:
    sim = Simulation(seed=6)

    async def main() -> None:
        async with sql_node(sim) as node:
            for text in set_up:
                await node.sql(text)
            await scenario(node)

    sim.run(main())


LOG = "CREATE TABLE log (a INT8, b STRING)"
TWO = "INSERT INTO log VALUES (1, 'x'), (1, 'x')"


def test_equal_rows_are_two_rows() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO log SELECT a, b FROM log")
        await node.sql("INSERT INTO log (b) VALUES ('y')")
        assert await node.rows("SELECT * FROM log ORDER BY a, b") == [(1, "x")] * 4 + [(None, "y")]
        assert await node.rows("SELECT count(DISTINCT rowid) FROM log") == [(5,)]

    run(scenario, LOG, TWO)


def test_a_star_does_not_show_the_key() -> None:
    async def scenario(node: SqlNode) -> None:
        (first, second) = await node.rows("SELECT rowid FROM log ORDER BY rowid")
        shown = await node.sql("SELECT *, l.rowid, l.* FROM log AS l ORDER BY 3")
        assert [column.name for column in shown.columns] == ["a", "b", "rowid", "a", "b"]
        assert shown.fetch_rows() == [(1, "x", *first, 1, "x"), (1, "x", *second, 1, "x")]
        assert await node.rows("SELECT * FROM log WHERE rowid = $1", *first) == [(1, "x")]
        joined = await node.sql("SELECT * FROM log AS l JOIN log AS r ON l.rowid = r.rowid")
        assert joined.fetch_rows() == [(1, "x", 1, "x")] * 2
        returned = await node.sql("INSERT INTO log VALUES (2) RETURNING *")
        assert returned.fetch_rows() == [(2, None)]
        (names,) = await node.rows(
            "SELECT string_agg(column_name) FROM information_schema.columns "
            "WHERE table_name = 'log'"
        )
        assert names == ("a,b",)

    run(scenario, LOG, TWO)


def test_rows_are_changed_one_by_one() -> None:
    async def scenario(node: SqlNode) -> None:
        ((first,), _) = await node.rows("SELECT rowid FROM log ORDER BY rowid")
        await node.sql("UPDATE log SET b = 'one' WHERE rowid = $1", first)
        await node.sql("UPDATE log SET b = upper(b) WHERE b = 'x'")
        assert await node.rows("SELECT b FROM log ORDER BY b") == [("X",), ("one",)]
        assert (await node.sql("DELETE FROM log WHERE lower(b) = 'x'")).tag == "DELETE 1"
        assert await node.rows("SELECT * FROM log FOR UPDATE") == [(1, "one")]

    run(scenario, LOG, TWO)


def test_a_primary_key_comes_in_its_place() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE t (a INT8 NOT NULL, b STRING, INDEX (b))")
        await node.sql("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        await node.sql("ALTER TABLE t ADD PRIMARY KEY (a)")
        assert (await node.error("SELECT rowid FROM t")).sqlstate == "42703"
        assert (await node.error("INSERT INTO t VALUES (1)")).sqlstate == "23505"
        assert await node.rows("SELECT * FROM t WHERE b = 'y'") == [(2, "y")]
        assert (await node.error("ALTER TABLE t ADD PRIMARY KEY (a)")).sqlstate == "42P16"
        error = await node.error("ALTER TABLE log ADD PRIMARY KEY (a)")
        assert (error.sqlstate, error.hint is not None) == ("42P16", True)
        await node.sql("DELETE FROM log")
        await node.sql("ALTER TABLE log ALTER COLUMN a SET NOT NULL")
        await node.sql("ALTER TABLE log ADD CONSTRAINT log_pkey PRIMARY KEY (a)")

    run(scenario, LOG, TWO)


def test_rows_that_are_equal_refuse_a_key() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("ALTER TABLE log ALTER COLUMN a SET NOT NULL")
        assert (await node.error("ALTER TABLE log ADD PRIMARY KEY (a)")).sqlstate == "23505"
        assert await node.rows("SELECT count(DISTINCT rowid) FROM log") == [(2,)]

    run(scenario, LOG, TWO)


def test_show_create_makes_the_table_again() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE t (rowid STRING, v INT8 NOT VISIBLE DEFAULT 4)")
        await node.sql("INSERT INTO t VALUES ('named so')")
        assert await node.rows("SELECT * FROM t") == [("named so",)]
        assert await node.rows("SELECT v FROM t") == [(4,)]
        ((_, made),) = await node.rows("SHOW CREATE TABLE t")
        assert "rowid_1 INT8 NOT VISIBLE NOT NULL DEFAULT UNIQUE_ROWID()" in str(made)
        await node.sql("DROP TABLE t")
        await node.sql(str(made))
        assert await node.rows("SHOW CREATE TABLE t") == [("t", made)]
        assert (await node.rows("SHOW COLUMNS FROM t"))[-1][-1] is True

    run(scenario)
