"""MERGE: each pair of source and target, and each source alone, meets the first WHEN for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

TABLES = (
    "CREATE TABLE t (id INT8 PRIMARY KEY, n INT8 NOT NULL DEFAULT abs(-7), v STRING UNIQUE, "
    "twice INT8 AS (n * 2) STORED, CHECK (n >= 0))",
    "CREATE TABLE s (id INT8 PRIMARY KEY, n INT8, gone BOOL)",
    "INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c')",
    "INSERT INTO s VALUES (1, 1, false), (2, 2, true), (4, 4, false), (5, 5, true)",
)
ROWS = "SELECT id, n, v FROM t ORDER BY id"


def run(scenario: Callable[[SqlNode], Awaitable[None]], *, seed: int = 8) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            for text in TABLES:
                await node.sql(text)
            await scenario(node)

    sim = Simulation(seed)
    sim.run(whole())


@pytest.mark.parametrize("begin", [False, True])
def test_first_when_that_holds_is_done(*, begin: bool) -> None:
    async def scenario(node: SqlNode) -> None:
        if begin:
            await node.sql("BEGIN")
        result = await node.sql(
            "MERGE INTO t USING s ON t.id = s.id "
            "WHEN MATCHED AND s.gone THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET n = t.n + s.n, v = 'm' || s.id "
            "WHEN NOT MATCHED AND gone THEN DO NOTHING "
            "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (id, n * 100)"
        )
        assert (result.tag, result.row_count) == ("MERGE 3", 3)
        if begin:
            await node.sql("COMMIT")
        assert await node.rows(ROWS) == [(1, 11, "m1"), (3, 30, "c"), (4, 400, None)]
        assert await node.rows("SELECT twice FROM t ORDER BY id") == [(22,), (60,), (800,)]
        assert await node.rows("SELECT id FROM t WHERE v = 'm1'") == [(1,)]

    run(scenario)


def test_defaults_are_drawn_for_each_row() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE SEQUENCE q")
        await node.sql(
            "MERGE INTO t USING s ON t.id = s.id + 100 "
            "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (nextval('q') + 50, 'k' || s.id)"
        )
        assert await node.rows("SELECT id, n FROM t WHERE id > 50 ORDER BY id") == [
            (51, 7), (52, 7), (53, 7), (54, 7),
        ]  # fmt: skip
        await node.sql(
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = DEFAULT"
        )
        assert await node.rows("SELECT id, n FROM t WHERE id < 4 ORDER BY id") == [
            (1, 7), (2, 7), (3, 30),
        ]  # fmt: skip

    run(scenario)


def test_row_is_changed_once() -> None:
    async def scenario(node: SqlNode) -> None:
        twice = "MERGE INTO t USING (VALUES (1, 1), (1, 2)) AS w (id, k) ON t.id = w.id "
        for action in ("DELETE", "UPDATE SET n = k"):
            assert (await node.error(f"{twice} WHEN MATCHED THEN {action}")).sqlstate == "21000"
        await node.sql(f"{twice} WHEN MATCHED AND k = 1 THEN UPDATE SET n = k")
        assert await node.rows("SELECT n FROM t WHERE id = 1") == [(1,)]

    run(scenario)


def test_keys_move_and_references_follow() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(
            "CREATE TABLE c (id INT8 PRIMARY KEY, t INT8 REFERENCES t ON DELETE CASCADE "
            "ON UPDATE CASCADE)"
        )
        await node.sql("INSERT INTO c VALUES (1, 1), (2, 2), (3, 3)")
        await node.sql(
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND gone THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET id = s.id + 1 WHEN NOT MATCHED THEN DO NOTHING"
        )
        assert await node.rows("SELECT id FROM t ORDER BY id") == [(2,), (3,)]
        assert await node.rows("SELECT * FROM c ORDER BY id") == [(1, 2), (3, 3)]
        refused = "MERGE INTO c USING s ON false WHEN NOT MATCHED THEN INSERT VALUES (s.id + 9, 99)"
        assert (await node.error(refused)).sqlstate == "23503"

    run(scenario)


@pytest.mark.parametrize(
    ("rest", "sqlstate"),
    [
        ("WHEN MATCHED THEN UPDATE SET n = -1", "23514"),
        ("WHEN MATCHED THEN UPDATE SET n = NULL", "23502"),
        ("WHEN MATCHED THEN UPDATE SET v = 'c'", "23505"),
        ("WHEN MATCHED THEN UPDATE SET twice = 1", "428C9"),
        ("WHEN MATCHED THEN UPDATE SET n = n", "42702"),
        ("WHEN MATCHED THEN UPDATE SET n = 1, n = 2", "42601"),
        ("WHEN NOT MATCHED THEN INSERT (id) VALUES (t.id)", "42P01"),
        ("WHEN NOT MATCHED THEN INSERT (id, n) VALUES (1)", "42601"),
        ("WHEN NOT MATCHED THEN INSERT (id) VALUES (3)", "23505"),
        ("WHEN NOT MATCHED THEN DELETE", "42601"),
        ("WHEN MATCHED THEN INSERT VALUES (1)", "42601"),
        ("WHEN MATCHED THEN DELETE WHEN MATCHED THEN DO NOTHING", "42601"),
        ("WHEN MATCHED THEN DELETE RETURNING id", "42601"),
    ],
)
def test_what_is_wrong_leaves_nothing(rest: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        error = await node.error(f"MERGE INTO t USING s ON t.id = s.id {rest}")
        assert error.sqlstate == sqlstate, error
        assert await node.rows(ROWS) == [(1, 10, "a"), (2, 20, "b"), (3, 30, "c")]

    run(scenario)


def test_each_action_needs_its_right() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE USER ada; GRANT SELECT ON s, t TO ada; GRANT INSERT ON t TO ada")
        ada = node.session("ada")
        merge = "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (id)"
        await ada.execute(merge)
        for action, right in (("DELETE", "DELETE"), ("UPDATE SET n = 1", "UPDATE")):
            with pytest.raises(Exception, match=f"does not have {right} privilege"):
                await ada.execute(f"{merge} WHEN MATCHED THEN {action}")
        await node.sql("REVOKE SELECT ON s FROM ada")
        with pytest.raises(Exception, match="does not have SELECT privilege on relation s"):
            await ada.execute(merge)
        await ada.close()

    run(scenario)


@pytest.mark.parametrize("seed", range(4))
def test_concurrent_merges_count_every_source(seed: int) -> None:
    """Each adds one to a row, which the first of them makes."""

    async def scenario(node: SqlNode) -> None:
        async def merge() -> None:
            session = node.session()
            await session.execute(
                "MERGE INTO t USING (SELECT 77 AS id) AS w ON t.id = w.id "
                "WHEN MATCHED THEN UPDATE SET n = t.n + 1 "
                "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (77, 1)"
            )
            await session.close()

        await asyncio.gather(*(merge() for _ in range(6)))
        assert await node.rows("SELECT n FROM t WHERE id = 77") == [(6,)]

    run(scenario, seed=seed)


def test_explain_tells_what_becomes_of_rows() -> None:
    async def scenario(node: SqlNode) -> None:
        rows = await node.rows(
            "EXPLAIN MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND gone THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET n = 1 WHEN NOT MATCHED THEN DO NOTHING"
        )
        assert rows[0] == ("engine", "duckdb over a snapshot")
        assert rows[-3:] == [
            ("when matched", "delete"),
            ("when matched", "update"),
            ("when not matched", "do nothing"),
        ]
        assert ("table", "s") in rows
        assert ("table", "t") in rows

    run(scenario)


def test_parameters_have_the_types_of_their_columns() -> None:
    async def scenario(node: SqlNode) -> None:
        merge = (
            "WITH w AS (SELECT $1::INT8 AS id) MERGE INTO t USING w ON t.id = w.id "
            "WHEN MATCHED THEN UPDATE SET v = $2 "
            "WHEN NOT MATCHED THEN INSERT (id, v) VALUES ($1, $2)"
        )
        await node.sql(merge, 1, "x")
        await node.sql(merge, 9, "y")
        assert await node.rows("SELECT id, v FROM t WHERE v IN ('x', 'y') ORDER BY id") == [
            (1, "x"), (9, "y"),
        ]  # fmt: skip

    run(scenario)


@pytest.mark.parametrize(
    "source",
    [
        "s JOIN u ON s.id = u.id",
        "s JOIN u USING (id)",
        "(s JOIN u ON s.id = u.id)",
        "s LEFT JOIN u ON s.id = u.id AND u.m > 0",
    ],
)
def test_the_source_may_be_a_join(source: str) -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("CREATE TABLE u (id INT8 PRIMARY KEY, m INT8)")
        await node.sql("INSERT INTO u VALUES (1, 5), (2, 6), (4, 7), (5, 8)")
        await node.sql(
            f"MERGE INTO t USING {source} ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET n = CASE WHEN s.gone THEN 0 ELSE m END "
            "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, u.m)"
        )
        assert await node.rows("SELECT id, n FROM t ORDER BY id") == [
            (1, 5), (2, 0), (3, 30), (4, 7), (5, 8),
        ]  # fmt: skip

    run(scenario)
