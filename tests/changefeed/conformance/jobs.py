"""Changefeeds of a source, whose jobs a test plays by hand, and the oracle of what they show."""

from __future__ import annotations

import asyncio
from random import Random

from tailrace.changefeed import Changefeeds, ChangefeedServices
from tailrace.changefeed.sinks import SinkError, SinkKind, default_kinds
from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.protected_timestamp import ProtectedTimestamps
from tests.changefeed.conformance.sources import Source
from tests.changefeed.feeds import MemoryJobs
from tests.harness.secrets import sealer
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode

WRITES = 25


class Jobs:
    """Changefeeds of a node, whose jobs a test runs and stops by hand."""

    def __init__(self, sim: Simulation, node: SqlNode, kind: SinkKind, scheme: str) -> None:
        """`kind` is the kind of sink behind `scheme`."""
        self.node = node
        self.jobs = MemoryJobs()
        kinds = default_kinds()
        kinds.register(scheme, kind)
        services = ChangefeedServices(
            store=node.store,
            descriptors=node.services.catalog.descriptors,
            leases=node.services.leases,
            kinds=kinds,
            offload=sim.offload,
            protections=ProtectedTimestamps(node.store),
            rights=node.services.rights,
            sealer=sealer(),
        )
        self.feeds = Changefeeds(services, self.jobs)

    async def create(self, source: Source, uri: str) -> int:
        await self.node.sql(f"CREATE CHANGEFEED FOR {source.feed} INTO '{uri}'")
        request, sink = self.node.feeds.requests[-1]
        assert sink is not None
        transaction = self.node.store.begin()
        job_id = await self.feeds.create(transaction, request, sink)
        await transaction.commit()
        return job_id

    async def run_until(self, job_id: int, resolved: Timestamp) -> None:
        """The job is claimed, and paused when its sink holds all up to `resolved`."""
        running = asyncio.create_task(self._run(job_id))
        await self.feeds.wait_until(job_id, resolved)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def _run(self, job_id: int) -> None:
        """Attempt after attempt, as the registry runs a job again that its sink has failed."""
        claim = self.jobs.claims[job_id]
        while True:
            claim.take_again()
            try:
                await self.feeds.run(claim)
                return
            except SinkError:
                await asyncio.sleep(0.05)


def due(source: Source, upto: Timestamp) -> list[tuple[Timestamp, tuple[object, ...]]]:
    """The oracle: when each row was written that is there at the end, and the row."""
    newest: dict[bytes, tuple[Timestamp, bytes | None]] = {}
    for (key, at), body in source.history.bodies.items():
        if at <= upto and at > newest.get(key, (ZERO, None))[0]:
            newest[key] = (at, body)
    shown = [
        (at, None if body is None else source.shown(key, body, at))
        for key, (at, body) in newest.items()
    ]
    return sorted(((at, row) for at, row in shown if row is not None), key=repr)


async def write(source: Source, random: Random) -> None:
    for _ in range(WRITES):
        await source.write(random)
        await asyncio.sleep(random.choice((0, 0.01)))
        await source.resolve()
