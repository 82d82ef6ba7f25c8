"""A feed of a database through crashes: no table is missed, and no row of any."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.descriptors.named_descriptor import DescriptorState
from tailrace.catalog.descriptors.system_tables import DEFAULT_DATABASE_ID
from tailrace.changefeed import DatabaseTables, FeedRequest
from tailrace.changefeed.jobs.details import decode_details
from tailrace.changefeed.targets import TargetState
from tests.changefeed.feeds import FeedBench, TargetKind
from tests.changefeed.table import Table
from tests.harness.nodes import open_nodes
from tests.harness.simulation import Simulation

URI = "target://a"
STEPS = 25


class RoomyKind(TargetKind):
    """Its target takes tables that join the feed later."""

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        """Any table will do."""


class Shop:
    """A database whose tables come, are written and go, and a feed of it that is killed again and
    again."""

    def __init__(self, sim: Simulation, bench: FeedBench, job_id: int) -> None:
        self._random = sim.random
        self._bench = bench
        self._job_id = job_id
        self._count = 0
        self.tables = [bench.table]
        self.checks = 0

    async def killed(self) -> None:
        while True:
            # A sink fails at the same flush of each life: in some lives it does not.
            self._bench.kind.fail = self._random.choice([0.0, 0.2])
            async with self._bench.running(self._job_id):
                await asyncio.sleep(self._random.uniform(0.02, 1.5))

    async def step(self) -> None:
        choice = self._random.random()
        if choice < 0.3 or not self.tables:
            self._count += 1
            catalog = self._bench.table.catalog
            created = await catalog.create(f"t{self._count}", locked=self._random.random() < 0.3)
            self.tables.append(Table(catalog, created))
        elif choice < 0.4:
            gone = self.tables.pop(self._random.randrange(len(self.tables)))
            await gone.publish(locked=False)
            await gone.publish(state=DescriptorState.DROPPED)
            return
        table = self._random.choice(self.tables)
        at = await table.write((self._random.randrange(20), str(self._count)))
        if self._random.random() < 0.3:
            await self._bench.feeds.wait_until(self._job_id, at)
            await self.check()
        await asyncio.sleep(self._random.choice([0, 0, 0.3]))

    async def check(self) -> None:
        """Nothing else is written meanwhile: what was waited for is all that there is."""
        self.checks += 1
        now = await self._bench.store.now()
        for table in self.tables:
            found = self._bench.kind.targets[URI].rows(table.descriptor.id)
            assert found == await table.rows_at(now), table.descriptor


@pytest.mark.parametrize("seed", range(6))
def test_a_feed_of_a_database_that_is_killed_misses_no_table(seed: int) -> None:
    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            first = Table(catalog, await catalog.create("t0"))
            bench = FeedBench(sim, catalog, node, first, RoomyKind(sim))
            at = await bench.store.now()
            whole = DatabaseTables(id=DEFAULT_DATABASE_ID, name="defaultdb")
            transaction = bench.store.begin()
            request = FeedRequest(
                tables=[await catalog.read(first.descriptor.id)],
                names=["defaultdb.public.t0"],
                options={},
                at=at,
                whole_database=whole,
            )
            job_id = await bench.feeds.create(transaction, request, URI)
            await transaction.commit()
            shop = Shop(sim, bench, job_id)
            killing = asyncio.create_task(shop.killed())
            for _ in range(STEPS):
                await shop.step()
            killing.cancel()
            await asyncio.gather(killing, return_exceptions=True)
            bench.kind.fail = 0.0
            async with bench.running(job_id):
                await bench.feeds.wait_until(job_id, await bench.store.now())
                await shop.check()
            details = decode_details(bench.jobs.claims[job_id].payload)
            assert all(each.state is not TargetState.FAILED for each in details.targets), details
            assert shop.checks > 1

    sim = Simulation(seed)
    sim.run(scenario())
