"""pg_locks and access lists."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tailrace.sql import Session
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode, Session], Awaitable[None]]) -> None:
    sim = Simulation(seed=1)

    async def main() -> None:
        async with sql_node(sim) as node:
            other = node.session()
            try:
                await scenario(node, other)
            finally:
                await other.close()

    sim.run(main())


LOCKS = (
    "SELECT pid, classid, objid, objsubid, mode, granted FROM pg_locks "
    "WHERE locktype = 'advisory' ORDER BY classid, granted DESC"
)


def test_pg_locks_lists_who_holds_and_who_waits() -> None:
    async def scenario(node: SqlNode, other: Session) -> None:
        await node.sql("BEGIN")
        await node.sql("SELECT pg_advisory_lock(1), pg_advisory_xact_lock_shared(-5, 7)")
        mine, theirs = node.first.activity.process_id, other.activity.process_id
        task = asyncio.create_task(other.execute("SELECT pg_advisory_lock(1)"))
        await asyncio.sleep(0.1)
        assert await node.rows(LOCKS) == [
            (mine, 0, 1, 1, "ExclusiveLock", True),
            (theirs, 0, 1, 1, "ExclusiveLock", False),
            (mine, 4294967291, 7, 2, "ShareLock", True),
        ]
        assert await node.rows(
            "SELECT wait_event_type, wait_event, pg_blocking_pids(pid) FROM pg_stat_activity "
            "ORDER BY pid"
        ) == [(None, None, None), ("Lock", "advisory", [mine])]
        await node.sql("SELECT pg_advisory_unlock(1)")
        await node.sql("COMMIT")
        await task
        assert await node.rows(LOCKS) == [(theirs, 0, 1, 1, "ExclusiveLock", True)]

    run(scenario)


def test_access_lists_are_shown_of_whatever_has_rights() -> None:
    async def scenario(node: SqlNode, other: Session) -> None:
        await node.sql("CREATE USER ada; CREATE SCHEMA s; CREATE TYPE mood AS ENUM ('ok')")
        assert await node.rows("SELECT nspacl FROM pg_namespace WHERE nspname = 's'") == [(None,)]
        await node.sql(
            "GRANT USAGE ON SCHEMA s TO ada; GRANT USAGE ON TYPE mood TO ada; "
            "GRANT CREATE ON DATABASE defaultdb TO ada"
        )
        assert await node.rows("SELECT nspacl FROM pg_namespace WHERE nspname = 's'") == [
            (["root=UC/root", "ada=U/root"],)
        ]
        assert await node.rows("SELECT datacl FROM pg_database WHERE datname = 'defaultdb'") == [
            (["root=Cc/root", "ada=C/root", "=c/root"],)
        ]
        assert await node.rows("SELECT typacl FROM pg_type WHERE typname = 'mood'") == [
            (["root=U/root", "ada=U/root", "=U/root"],)
        ]

    run(scenario)
