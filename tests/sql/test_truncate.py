"""TRUNCATE: in a transaction it is whole, and foreign keys hold whatever is truncated with what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tailrace.sql.execute.ddl import schema_changes as truncation
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

FAMILY = (
    "CREATE TABLE parents (id INT8 PRIMARY KEY)",
    "CREATE TABLE children (id INT8 PRIMARY KEY, p INT8 REFERENCES parents, v STRING, INDEX (v))",
    "CREATE TABLE toys (id INT8 PRIMARY KEY, c INT8 REFERENCES children ON DELETE CASCADE)",
    "INSERT INTO parents VALUES (1), (2)",
    "INSERT INTO children VALUES (1, 1, 'a'), (2, 2, 'b')",
    "INSERT INTO toys VALUES (1, 1)",
)
COUNTS = (
    "SELECT (SELECT count(*) FROM parents), (SELECT count(*) FROM children), "
    "(SELECT count(*) FROM toys)"
)


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            for text in FAMILY:
                await node.sql(text)
            await scenario(node)

    sim = Simulation(9)
    sim.run(whole())


def test_transaction_sees_the_table_empty() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN")
        await node.sql("TRUNCATE toys")
        await node.sql("INSERT INTO toys VALUES (7, 2)")
        assert await node.rows("SELECT * FROM toys") == [(7, 2)]
        await node.sql("COMMIT")
        assert await node.rows("SELECT * FROM toys") == [(7, 2)]

    run(scenario)


@pytest.mark.parametrize("end", ["ROLLBACK", "ROLLBACK TO a; COMMIT"])
def test_rollback_brings_every_row_back(end: str) -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; SAVEPOINT a; TRUNCATE parents, children, toys")
        assert await node.rows(COUNTS) == [(0, 0, 0)]
        await node.sql(end)
        assert await node.rows(COUNTS) == [(2, 2, 1)]
        assert await node.rows("SELECT id FROM children WHERE v = 'b'") == [(2,)]

    run(scenario)


def test_referring_tables_are_named_or_cascaded_to() -> None:
    async def scenario(node: SqlNode) -> None:
        for text in (
            "TRUNCATE parents",
            "TRUNCATE parents, children",
            "TRUNCATE children RESTRICT",
        ):
            error = await node.error(text)
            assert error.sqlstate == "0A000"
            assert "CASCADE" in (error.hint or "")
        assert await node.rows(COUNTS) == [(2, 2, 1)]
        result = await node.sql("TRUNCATE parents CASCADE")
        assert result.tag == "TRUNCATE TABLE"
        assert result.notice == (
            'truncate cascades to table "children"; truncate cascades to table "toys"'
        )
        assert await node.rows(COUNTS) == [(0, 0, 0)]
        assert await node.rows("SELECT id FROM children WHERE v > ''") == []

    run(scenario)


def test_row_that_comes_meanwhile_refers_to_one_that_is_there() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; TRUNCATE parents, children, toys")
        other = node.session()
        await other.execute("INSERT INTO toys VALUES (9, 2)")
        assert (await node.error("COMMIT")).sqlstate == "40001"
        assert await node.rows("SELECT count(*) FROM parents WHERE id = 2") == [(1,)]
        await node.sql("TRUNCATE parents, children, toys")
        with pytest.raises(Exception, match="foreign key"):
            await other.execute("INSERT INTO toys VALUES (9, 2)")
        await other.close()

    run(scenario)


def test_many_rows_are_not_deleted_in_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truncation, "DELETED_ROWS_MAX", 1)

    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE big (id INT8 PRIMARY KEY)")
        await node.sql("INSERT INTO big VALUES (1), (2)")
        await node.sql("BEGIN")
        assert (await node.error("TRUNCATE big")).sqlstate == "54000"
        await node.sql("ROLLBACK")
        assert await node.rows("SELECT count(*) FROM big") == [(2,)]
        await node.sql("TRUNCATE big")
        assert await node.rows("SELECT count(*) FROM big") == [(0,)]
        assert (await node.error("TRUNCATE parents CASCADE")).sqlstate == "54000"

    run(scenario)


def test_locked_table_restarts_its_identity_too() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(
            "CREATE TABLE i (id INT8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v STRING)"
        )
        await node.sql("ALTER TABLE i SET (schema_locked = true)")
        await node.sql("INSERT INTO i (v) VALUES ('a'), ('b')")
        await node.sql("TRUNCATE i RESTART IDENTITY")
        assert await node.rows("INSERT INTO i (v) VALUES ('c') RETURNING id") == [(1,)]
        assert await node.rows("SELECT * FROM i") == [(1, "c")]

    run(scenario)


@pytest.mark.parametrize("within", [False, True])
def test_identity_restarts_with_its_transaction(*, within: bool) -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(
            "CREATE TABLE i (id INT8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v STRING)"
        )
        await node.sql("INSERT INTO i (v) VALUES ('a'), ('b')")
        await node.sql("TRUNCATE i CONTINUE IDENTITY")
        assert await node.rows("INSERT INTO i (v) VALUES ('c') RETURNING id") == [(3,)]
        if within:
            await node.sql("BEGIN")
        await node.sql("TRUNCATE TABLE i RESTART IDENTITY")
        assert await node.rows("INSERT INTO i (v) VALUES ('d') RETURNING id") == [(1,)]
        if within:
            await node.sql("ROLLBACK")
        ((drawn,),) = await node.rows("INSERT INTO i (v) VALUES ('e') RETURNING id")
        assert drawn == (4 if within else 2)

    run(scenario)
