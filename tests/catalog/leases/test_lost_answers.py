"""A node whose answers are lost: what it may have done leaves nothing behind."""

from __future__ import annotations

import asyncio

from tailrace.catalog.rights.bootstrap import bootstrap
from tailrace.catalog.store.lease_rows import LEASES, LeaseRow
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.errors import KVError
from tailrace.kvlayer.store import Store
from tests.harness.simulation import Simulation
from tests.harness.stores import open_store
from tests.simulation.storm_places import start_places

MOMENTS = range(10, 24)
"""In units of 0.3 ms: an acquisition takes a few messages of at most 2 ms each."""


async def leased_versions(store: Store, node_id: int, table_id: int) -> list[int]:
    found = await store.snapshot(store.clock.now()).scan(LEASES)
    rows = [LeaseRow.decode(key, body) for key, body in found]
    return [row.version for row in rows if (row.node_id, row.descriptor_id) == (node_id, table_id)]


def test_lease_whose_answer_was_lost_blocks_nobody() -> None:
    """The row stands, and the node does not know: the next acquisition takes it away.

    Found by a storm: the node went on to the next version, and the row of the first stood in the
    way of every schema change for as long as the node lived.
    """

    async def scenario(moment: int) -> bool:
        store = await open_store(sim)
        await bootstrap(store)
        async with start_places(sim, store, 1, {}) as [home, away]:
            assert away.network is not None
            await home.node.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
            [table] = await home.node.services.catalog.list_tables(
                store.snapshot(store.clock.now()), "defaultdb"
            )
            leases = away.node.services.leases
            now = await away.node.store.now()
            acquiring = asyncio.create_task(leases.acquire(table.id, now))
            await asyncio.sleep(moment * 0.0003)
            away.network.disconnect()
            lost = False
            try:
                (await acquiring).release()
            except (KVError, SQLError):
                lost = bool(await leased_versions(store, 2, table.id))
            async with asyncio.timeout(5.0):
                for number in range(3):
                    await home.node.sql(f"ALTER TABLE t ADD COLUMN c{number} INT8")
            assert len(await leased_versions(store, 2, table.id)) <= 1, moment
        await store.close()
        return lost

    lost = 0
    for moment in MOMENTS:
        sim = Simulation(moment, time_limit=60.0)
        lost += sim.run(scenario(moment))
    assert lost, "no answer was lost at any of the moments: this proves nothing"
