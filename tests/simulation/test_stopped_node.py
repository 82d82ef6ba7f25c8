"""A node that stood still past its session's end emits nothing that its leases do not cover."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import cast

import pytest

from tailrace.api.rpc import StoreService
from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.rights.bootstrap import bootstrap
from tailrace.catalog.store.descriptor_store import DescriptorStore
from tailrace.changefeed import FeedRequest
from tailrace.changefeed.jobs.services import ChangefeedServices
from tailrace.changefeed.sinks import SinkKinds
from tailrace.changefeed.streams.stream import ChangefeedStream, open_stream
from tailrace.kvlayer.clock import ZERO, Timestamp, parse_timestamp
from tailrace.kvlayer.protected_timestamp import ProtectedTimestamps
from tailrace.kvlayer.store import Store
from tests.harness.secrets import sealer
from tests.harness.sim_network import SimNetwork
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_services
from tests.harness.stores import open_store

SESSION_SECONDS = 5.0


async def table_of(node: SqlNode) -> TableDescriptor:
    reader = node.store.snapshot(await node.store.now())
    [table] = await node.services.catalog.list_tables(reader, "defaultdb")
    return table


async def added_at(node: SqlNode) -> Timestamp:
    """When the column came."""
    table = await table_of(node)
    versions = await node.services.catalog.descriptors.versions(
        [table.id], ZERO, await node.store.now()
    )
    shown = [v for v in versions if isinstance(v, TableDescriptor) and len(v.visible_columns) > 1]
    return shown[0].modification_time


async def stream_on(sim: Simulation, node: SqlNode) -> ChangefeedStream:
    """CREATE CHANGEFEED FOR TABLE t, without a sink, by a client of that node."""
    services = ChangefeedServices(
        store=node.store,
        descriptors=DescriptorStore(node.store),
        leases=node.services.leases,
        kinds=SinkKinds({}),
        offload=sim.offload,
        protections=ProtectedTimestamps(node.store),
        rights=node.services.rights,
        sealer=sealer(),
    )
    request = FeedRequest(
        tables=[await table_of(node)],
        names=["defaultdb.public.t"],
        options={"updated": None},
        at=await node.store.now(),
    )
    return await open_stream(services, request)


async def rows_of(stream: ChangefeedStream) -> AsyncIterator[tuple[Timestamp, dict[str, object]]]:
    """Each row with the timestamp of its version. A version may come more than once."""
    async for row in stream:
        message = json.loads(row.value)
        yield parse_timestamp(message["updated"]), message["after"]


@pytest.mark.parametrize("seed", range(4))
def test_a_stopped_node_emits_nothing_beyond_its_leases(seed: int) -> None:
    """It had the fast path, and its lease was all that stood in the way of an ALTER."""
    sim = Simulation(seed)

    async def scenario() -> None:
        store = await open_store(sim)
        await bootstrap(store)
        service = StoreService(store)
        service.start()
        network = SimNetwork(sim, service)
        remote = await network.join()
        async with (
            sql_services(sim, store, 1) as first,
            sql_services(sim, cast(Store, remote), 2) as second,
        ):
            await first.sql(
                "CREATE TABLE t (k INT8 PRIMARY KEY) WITH (changefeed_optimized = true)"
            )
            async with await stream_on(sim, second) as stream:
                await first.sql("INSERT INTO t VALUES (1)")
                rows = rows_of(stream)
                assert (await anext(rows))[1] == {"k": 1}
                network.cut()
                stopped_at = sim.now
                await first.sql("ALTER TABLE t ADD COLUMN c INT8 DEFAULT 7")
                assert 1 < sim.now - stopped_at < SESSION_SECONDS + 1
                altered_at = await added_at(first)
                await first.sql("INSERT INTO t VALUES (2, 20)")
                network.heal()
                wanted = [{"k": 1, "c": 7}, {"k": 2, "c": 20}]
                while wanted:
                    at, row = await anext(rows)
                    assert ("c" in row) is (at >= altered_at), (at, row)
                    wanted = [other for other in wanted if other != row]
        await remote.close()
        await service.close()
        await store.close()

    sim.run(scenario())
