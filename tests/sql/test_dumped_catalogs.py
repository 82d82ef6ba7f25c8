"""What pg_dump asks for beside the catalogs' tables; `tests/system/test_pg_dump.py` runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode], Awaitable[None]], *texts: str) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            for text in texts:
                await node.sql(text)
            await scenario(node)

    sim = Simulation(43)
    sim.run(whole())


def test_a_sequence_is_a_relation_of_one_row() -> None:
    async def scenario(node: SqlNode) -> None:
        state = "SELECT last_value, is_called FROM s"
        assert await node.rows(state) == [(100, False)]
        await node.sql("SELECT nextval('s'), nextval('s')")
        assert await node.rows(state) == [(105, True)]
        assert await node.rows("SELECT q.* FROM public.s AS q") == [(105, 0, True)]
        await node.sql("DROP SEQUENCE s")
        with pytest.raises(SQLError, match='relation "s" does not exist'):
            await node.rows(state)

    run(scenario, "CREATE SEQUENCE s START 100 INCREMENT 5")


def test_access_share_is_the_lock_that_reads_have() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("LOCK TABLE t IN ACCESS SHARE MODE")
        with pytest.raises(SQLError, match='relation "none" does not exist'):
            await node.sql("LOCK TABLE none IN ACCESS SHARE MODE")

    run(scenario, "CREATE TABLE t (k INT8 PRIMARY KEY)")


def test_default_access_lists_are_postgresqls() -> None:
    async def scenario(node: SqlNode) -> None:
        lists = "acldefault('r', u.oid), acldefault('T', u.oid), acldefault('c', u.oid)"
        rows = await node.rows(f"SELECT {lists} FROM pg_roles u WHERE rolname = 'root'")
        assert rows == [(["root=arwdDxt/root"], ["=U/root", "root=U/root"], [])]

    run(scenario)


def test_a_default_that_draws_depends_on_its_sequence() -> None:
    async def scenario(node: SqlNode) -> None:
        rows = await node.rows(
            "SELECT r.relname FROM pg_depend d JOIN pg_attrdef a ON a.oid = d.objid "
            "AND d.classid = a.tableoid JOIN pg_class r ON r.oid = d.refobjid "
            "WHERE a.adrelid = 't'::regclass"
        )
        assert rows == [("s",)]

    run(scenario, "CREATE SEQUENCE s", "CREATE TABLE t (k INT8 PRIMARY KEY DEFAULT nextval('s'))")
