"""Tables without a primary key, and columns that are not visible."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode], Awaitable[None]], *set_up: str, seed: int = 6) -> None:
    sim = Simulation(seed)

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

    run(scenario, LOG, TWO)


def test_a_key_that_comes_may_have_the_name_that_it_would_be_given() -> None:
    """As dumps write it: CREATE TABLE first, the rows, and then the key by its name."""

    async def scenario(node: SqlNode) -> None:
        await node.sql("DELETE FROM log")
        await node.sql("ALTER TABLE log ADD CONSTRAINT log_pkey PRIMARY KEY (a)")
        error = await node.error("ALTER TABLE log ADD CONSTRAINT log_pkey UNIQUE (a)")
        assert error.sqlstate == "42710"

    run(scenario, LOG, TWO)


def test_the_columns_of_a_new_key_become_not_null() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO log VALUES (NULL, 'none')")
        assert (await node.error("ALTER TABLE log ADD PRIMARY KEY (a)")).sqlstate == "23502"
        await node.sql("UPDATE log SET a = 7 WHERE a IS NULL")
        assert (await node.error("ALTER TABLE log ADD PRIMARY KEY (a)")).sqlstate == "23505"
        await node.sql("INSERT INTO log VALUES (NULL, 'it is nullable still')")
        await node.sql("DELETE FROM log WHERE a IS NULL OR a = 1")
        await node.sql("ALTER TABLE log ADD CONSTRAINT key_of_log PRIMARY KEY (a)")
        assert (await node.error("INSERT INTO log VALUES (NULL, 'x')")).sqlstate == "23502"
        assert await node.rows("SELECT * FROM log") == [(7, "none")]

    run(scenario, LOG, TWO)


@pytest.mark.parametrize("seed", range(6))
def test_a_key_comes_while_rows_are_written(seed: int) -> None:
    """Some without a value for it: then there is no key, or they are refused."""

    async def scenario(node: SqlNode) -> None:
        written = 0

        async def write(start: int) -> None:
            nonlocal written
            session = node.session()
            for number in range(start, start + 12):
                value = "NULL" if number % 7 == 0 and seed % 2 else str(number)
                try:
                    await session.execute(f"INSERT INTO log VALUES ({value}, 'w')")
                except SQLError as error:
                    assert error.sqlstate == "23502", error
                else:
                    written += 1
                await asyncio.sleep(0.002)
            await session.close()

        writers = [asyncio.create_task(write(start)) for start in (100, 200)]
        await asyncio.sleep(0.005)
        try:
            await node.sql("ALTER TABLE log ADD PRIMARY KEY (a)")
        except SQLError as error:
            assert error.sqlstate == "23502", error
        await asyncio.gather(*writers)
        rows = await node.rows("SELECT a FROM log")
        assert len(rows) == written
        if "PRIMARY KEY (a)" in str(await node.rows("SHOW CREATE TABLE log")):
            assert (None,) not in rows

    run(scenario, LOG, seed=seed)


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
        assert "rowid_1 INT8 NOT VISIBLE NOT NULL DEFAULT unique_rowid()" in str(made)
        await node.sql("DROP TABLE t")
        await node.sql(str(made))
        assert await node.rows("SHOW CREATE TABLE t") == [("t", made)]
        assert (await node.rows("SHOW COLUMNS FROM t"))[-1][-1] is True

    run(scenario)


def test_a_key_takes_the_place_of_one_that_is_dropped() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE t (a INT8 PRIMARY KEY, b STRING, INDEX (b))")
        await node.sql("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        drop = "ALTER TABLE t DROP CONSTRAINT t_pkey"
        assert (await node.error(drop)).sqlstate == "0A000"
        await node.sql(f"{drop}, ADD CONSTRAINT by_b PRIMARY KEY (b)")
        assert (await node.error("INSERT INTO t VALUES (3, 'x')")).sqlstate == "23505"
        await node.sql("INSERT INTO t VALUES (1, 'z')")
        assert "CONSTRAINT by_b PRIMARY KEY (b)" in str(await node.rows("SHOW CREATE TABLE t"))
        again = "ALTER TABLE t DROP CONSTRAINT by_b, ADD PRIMARY KEY (a)"
        assert (await node.error(again)).sqlstate == "23505"
        await node.sql("DELETE FROM t WHERE b = 'z'")
        await node.sql(again)
        assert "CONSTRAINT t_pkey PRIMARY KEY (a)" in str(await node.rows("SHOW CREATE TABLE t"))
        assert await node.rows("SELECT * FROM t ORDER BY a") == [(1, "x"), (2, "y")]

    run(scenario)
