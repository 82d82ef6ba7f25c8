"""Foreign keys that are looked at when their transaction commits."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql import Session
from tailrace.sql.runtime import transactions
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

SCHEMA = """
    CREATE TABLE parent (k INT8 PRIMARY KEY);
    CREATE TABLE child (
        k INT8 PRIMARY KEY,
        p INT4 CONSTRAINT child_p REFERENCES parent DEFERRABLE INITIALLY DEFERRED,
        q INT8 CONSTRAINT child_q REFERENCES parent DEFERRABLE,
        r INT8 CONSTRAINT child_r REFERENCES parent
    );
    INSERT INTO parent VALUES (1)
"""


def run(*steps: tuple[str, str]) -> None:
    """Each step is a text, and the tag of its last statement or the SQLSTATE of its error."""

    async def scenario() -> None:
        async with sql_node(sim) as node:
            await node.sql(SCHEMA)
            for text, wanted in steps:
                assert await answer(node.first, text) == wanted, text
            orphans = "SELECT k FROM child WHERE p NOT IN (SELECT k FROM parent)"
            assert await node.rows(orphans) == []

    sim = Simulation(seed=11)
    sim.run(scenario())


async def answer(session: Session, text: str) -> str:
    try:
        return (await session.execute(text))[-1].tag
    except SQLError as error:
        return error.sqlstate


def test_child_may_come_before_its_parent() -> None:
    run(
        ("BEGIN", "BEGIN"),
        ("INSERT INTO child VALUES (7, 2), (8, 2), (9, NULL)", "INSERT 0 3"),
        ("INSERT INTO parent VALUES (2)", "INSERT 0 1"),
        ("COMMIT", "COMMIT"),
    )


def test_commit_without_the_parent_rolls_back() -> None:
    run(
        ("BEGIN", "BEGIN"),
        ("INSERT INTO child VALUES (7, 2)", "INSERT 0 1"),
        ("COMMIT", "23503"),
        ("COMMIT", "COMMIT"),  # nothing is open any more
        ("INSERT INTO child VALUES (7, 1)", "INSERT 0 1"),
    )


def test_statement_by_itself_is_its_own_transaction() -> None:
    run(
        ("INSERT INTO child VALUES (7, 2)", "23503"),
        ("INSERT INTO child VALUES (7, 1)", "INSERT 0 1"),
        ("DELETE FROM parent", "23503"),
        ("UPDATE child SET p = 2", "23503"),
    )


@pytest.mark.parametrize("index", ["", "CREATE INDEX ON child (p)"])
def test_parent_may_go_before_its_children(index: str) -> None:
    run(
        (index or "SELECT 1", "CREATE INDEX" if index else "SELECT 1"),
        ("INSERT INTO child VALUES (7, 1)", "INSERT 0 1"),
        ("BEGIN; DELETE FROM parent; DELETE FROM child; COMMIT", "COMMIT"),
        ("INSERT INTO parent VALUES (1), (2); INSERT INTO child VALUES (7, 1)", "INSERT 0 1"),
        ("BEGIN; DELETE FROM parent WHERE k = 1; UPDATE child SET p = 2; COMMIT", "COMMIT"),
        ("BEGIN; DELETE FROM parent WHERE k = 2; COMMIT", "23503"),
    )


def test_errors_say_which_side_was_written() -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await node.sql(SCHEMA)
            refused = await node.error("BEGIN; INSERT INTO child VALUES (7, 2); COMMIT")
            assert refused.detail == 'Key (p)=(2) is not present in table "parent".'
            await node.sql("INSERT INTO child VALUES (7, 1)")
            refused = await node.error("BEGIN; DELETE FROM parent; COMMIT")
            assert refused.detail == 'Key (k)=(1) is still referenced from table "child".'

    sim = Simulation(seed=12)
    sim.run(scenario())


def test_savepoint_takes_the_parent_away_again() -> None:
    run(
        ("BEGIN; INSERT INTO child VALUES (7, 2); SAVEPOINT a", "SAVEPOINT"),
        ("INSERT INTO parent VALUES (2); SET CONSTRAINTS ALL IMMEDIATE", "SET CONSTRAINTS"),
        ("ROLLBACK TO a", "ROLLBACK"),
        ("INSERT INTO child VALUES (8, 3)", "INSERT 0 1"),  # deferred again, as before it
        ("INSERT INTO parent VALUES (3)", "INSERT 0 1"),
        ("COMMIT", "23503"),
    )


def test_rows_that_a_savepoint_took_back_are_not_missed() -> None:
    run(
        ("BEGIN; SAVEPOINT a; INSERT INTO child VALUES (7, 2); ROLLBACK TO a", "ROLLBACK"),
        ("CREATE TABLE t (k INT8 PRIMARY KEY, p INT8 REFERENCES t INITIALLY DEFERRED)",
         "CREATE TABLE"),
        ("INSERT INTO t VALUES (1, 2)", "INSERT 0 1"),
        ("ROLLBACK TO a", "ROLLBACK"),
        ("COMMIT", "COMMIT"),
    )  # fmt: skip


def test_set_constraints_decides_when() -> None:
    run(
        ("BEGIN; INSERT INTO child (k, q) VALUES (7, 2)", "23503"),
        ("ROLLBACK", "ROLLBACK"),
        ("BEGIN; SET CONSTRAINTS child_q DEFERRED", "SET CONSTRAINTS"),
        ("INSERT INTO child (k, q) VALUES (7, 2); INSERT INTO parent VALUES (2)", "INSERT 0 1"),
        ("COMMIT", "COMMIT"),
        ("BEGIN; SET CONSTRAINTS public.child_p IMMEDIATE", "SET CONSTRAINTS"),
        ("INSERT INTO child VALUES (8, 3)", "23503"),
        ("ROLLBACK", "ROLLBACK"),
        ("BEGIN; SET CONSTRAINTS ALL DEFERRED; INSERT INTO child VALUES (8, 3, 3)", "INSERT 0 1"),
        ("SET CONSTRAINTS child_p, child_q IMMEDIATE", "23503"),
        ("ROLLBACK", "ROLLBACK"),
        ("BEGIN; SET CONSTRAINTS ALL DEFERRED; INSERT INTO child (k, r) VALUES (8, 3)", "23503"),
        ("ROLLBACK", "ROLLBACK"),
        ("SET CONSTRAINTS child_r DEFERRED", "SET CONSTRAINTS"),  # a notice, as nothing is open
        ("BEGIN; SET CONSTRAINTS child_r DEFERRED", "42704"),
        ("ROLLBACK; BEGIN; SET CONSTRAINTS nothing DEFERRED", "42704"),
        ("ROLLBACK", "ROLLBACK"),
    )


def test_values_held_for_the_commit_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "DEFERRED_VALUES_MAX", 3)
    run(
        ("BEGIN; INSERT INTO child VALUES (1, 2), (2, 3), (3, 4)", "INSERT 0 3"),
        ("INSERT INTO child VALUES (4, 1), (5, 2), (6, 1)", "INSERT 0 3"),
        ("INSERT INTO child VALUES (7, 5)", "54000"),
        ("ROLLBACK", "ROLLBACK"),
    )


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_parent_that_another_takes_away_is_missed(level: str) -> None:
    """Each transaction is right by itself; one of them has to give way."""

    async def scenario() -> None:
        async with sql_node(sim) as node:
            await node.sql(SCHEMA)
            one, other = node.session(), node.session()
            await one.execute(f"BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM parent")
            await one.execute("INSERT INTO child VALUES (7, 2), (8, 1)")
            await one.execute("INSERT INTO parent VALUES (2)")
            ended = await asyncio.gather(
                answer(other, "DELETE FROM parent WHERE k = 1"), answer(one, "COMMIT")
            )
            assert len({"23503", "40001"} & set(ended)) == 1, ended
            await one.close()
            await other.close()

    sim = Simulation(seed=13)
    sim.run(scenario())


def test_catalogs_tell_of_it() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(SCHEMA)
        rows = await node.rows(
            "SELECT conname, condeferrable, condeferred, pg_get_constraintdef(oid) "
            "FROM pg_constraint WHERE contype = 'f' ORDER BY conname"
        )
        definition = "FOREIGN KEY ({}) REFERENCES parent(k){}"
        assert rows == [
            ("child_p", True, True, definition.format("p", " DEFERRABLE INITIALLY DEFERRED")),
            ("child_q", True, False, definition.format("q", " DEFERRABLE")),
            ("child_r", False, False, definition.format("r", "")),
        ]
        ((_, shown),) = await node.rows("SHOW CREATE TABLE child")
        await node.sql("DROP TABLE child")
        await node.sql(str(shown))
        assert rows == await node.rows(
            "SELECT conname, condeferrable, condeferred, pg_get_constraintdef(oid) "
            "FROM pg_constraint WHERE contype = 'f' ORDER BY conname"
        )
        told = "SELECT is_deferrable, initially_deferred FROM information_schema.table_constraints"
        assert await node.rows(f"{told} WHERE constraint_name = 'child_p'") == [("YES", "YES")]

    async def main() -> None:
        async with sql_node(sim) as node:
            await scenario(node)

    sim = Simulation(seed=14)
    sim.run(main())


def test_key_that_the_transaction_adds_can_be_named() -> None:
    """As Django does, for a table has no pending checks when it is changed again."""
    run(
        ("BEGIN; ALTER TABLE child ADD COLUMN s INT8 CONSTRAINT child_s REFERENCES parent "
         "DEFERRABLE INITIALLY DEFERRED; SET CONSTRAINTS child_s IMMEDIATE", "SET CONSTRAINTS"),
        ("COMMIT", "COMMIT"),
        ("INSERT INTO child (k, s) VALUES (7, 2)", "23503"),
    )  # fmt: skip
