"""Two lease managers on one store, under random acquisitions, versions, stops and lost sessions.

The promise, in timestamps: whatever a node may claim for version `v`, ever, ends at or below the
moment at which `v + 2` is published. Stops longer than a session's life are in, so that leases end
by expiry as well as by release, and a node that wakes up must find that it may claim nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tailrace.catalog.leases import Lease
from tailrace.catalog.store.live_leases import DescriptorLeased
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.clock import Timestamp, duration
from tailrace.kvlayer.errors import Deadlock, LockTimeout, RetryableTransaction
from tests.harness.nodes import CatalogFixture, Node, open_nodes
from tests.harness.simulation import Simulation
from tests.simulation.version_model import VersionModel

REFUSED = (RetryableTransaction, LockTimeout, Deadlock)

RUN_SECONDS = 40.0
PUBLISH_SECONDS_MAX = 30.0
"""A session lives 5 s after its last heartbeat, the longest hold lasts 8, and notices that stand
still are noticed after 10: a publication that waits longer waits for nobody."""

REFUSED_PAUSE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class LeaseOutcome:
    versions: int
    refusals: int
    leases: int


class TwoNodes:
    """One seed's run."""

    def __init__(self, seed: int) -> None:
        self.sim = Simulation(seed)
        self.random = self.sim.random
        self.versions = VersionModel()
        self.leases: list[Lease] = []
        self.refusals = 0
        self._served: list[tuple[Lease, Timestamp]] = []

    def run(self) -> LeaseOutcome:
        self.sim.run(self._scenario())
        return LeaseOutcome(len(self.versions.versions), self.refusals, len(self.leases))

    async def _scenario(self) -> None:
        async with open_nodes(self.sim, 2) as (catalog, nodes):
            self.versions.note(await catalog.create(locked=self.random.random() < 0.5))
            works = [self._publisher(catalog)]
            works += [self._user(catalog, node) for node in nodes for _ in range(2)]
            works += [self._stopper(node) for node in nodes]
            if self.random.random() < 0.25:
                nodes[1].mute_feeds()  # no notice ever comes
            tasks = [asyncio.create_task(work) for work in works]
            await asyncio.sleep(RUN_SECONDS)
            for task in tasks:
                if task.done():
                    await task
                task.cancel()
            await asyncio.wait(tasks)
            for node in nodes:
                node.go_on()
            for lease in self.leases:
                lease.release()
            # Everybody has let go: the next versions come without waiting for an expiry.
            async with asyncio.timeout(PUBLISH_SECONDS_MAX):
                for _ in range(3):
                    await self._publish(catalog)
            self.check()

    def check(self) -> None:
        """No lease there ever was may be claimed at or above the version after next."""
        for lease in self.leases:
            version = lease.descriptor.version
            end, beyond = lease.coverage_end(), self.versions.published_at(version + 2)
            assert end <= beyond, f"{lease} is claimed to {end}, v{version + 2} came at {beyond}"
        for lease, at in self._served:
            behind = self.versions.canonical_at(at).version - lease.descriptor.version
            assert 0 <= behind <= 1, f"{lease} was served for {at}, {behind} versions later"

    async def _publisher(self, catalog: CatalogFixture) -> None:
        while True:
            await asyncio.sleep(self.random.choice([0.0, 0.05, 1.0]))
            async with asyncio.timeout(PUBLISH_SECONDS_MAX):
                await self._publish(catalog)
            self.check()

    async def _publish(self, catalog: CatalogFixture) -> None:
        """The next version. One that is refused is held by somebody, as far as anybody knows."""
        last = self.versions.last
        while True:
            try:
                changed = await catalog.publish(last.id, locked=not last.locked)
            except DescriptorLeased as refused:
                assert refused.lease.version < last.version, refused
                self.refusals += 1
                await asyncio.sleep(REFUSED_PAUSE_SECONDS)
            except REFUSED:
                await asyncio.sleep(REFUSED_PAUSE_SECONDS)
            else:
                self.versions.note(changed)
                return

    async def _user(self, catalog: CatalogFixture, node: Node) -> None:
        """Takes leases, holds them for a while, relies on them, lets go."""
        store = catalog.store
        while True:
            await asyncio.sleep(self.random.random() * 0.3)
            at = store.clock.now()
            if self.random.random() < 0.1:
                created_at = self.versions.published_at(1)
                at = max(created_at, Timestamp(at - duration(seconds=2)))
            try:
                async with asyncio.timeout(20):
                    lease = await self._acquire(node, at)
            except (SQLError, *REFUSED, TimeoutError):
                continue
            self.leases.append(lease)
            if lease.covers(at):
                self._served.append((lease, at))
            await asyncio.sleep(self.random.choice([0.0, 0.01, 0.5, 0.5, 8.0]))
            lease.release()

    async def _acquire(self, node: Node, at: Timestamp) -> Lease:
        table_id = self.versions.last.id
        if self.random.random() < 0.2:
            return await node.leases.acquire_freshest(table_id)
        return await node.leases.acquire(table_id, at)

    async def _stopper(self, node: Node) -> None:
        """Stops the node's process, or only its notices, for less or more than a session lives."""
        while True:
            await asyncio.sleep(self.random.random() * 8)
            node.stop()
            await asyncio.sleep(self.random.choice([0.1, 1.0, 7.0]))
            node.go_on()


def run_two_nodes(seed: int) -> LeaseOutcome:
    return TwoNodes(seed).run()
