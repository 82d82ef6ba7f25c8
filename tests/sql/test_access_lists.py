"""Access lists, as the catalogs show them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    sim = Simulation(seed=1)

    async def main() -> None:
        async with sql_node(sim) as node:
            await scenario(node)

    sim.run(main())


def test_access_lists_are_shown_of_whatever_has_rights() -> None:
    async def scenario(node: SqlNode) -> None:
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
