"""What a feed held is free once its job is over, whatever was away when it ended."""

from __future__ import annotations

import asyncio

from tailrace.catalog.descriptors.descriptor import DescriptorState
from tailrace.catalog.jobs import JobState
from tailrace.changefeed.jobs.details import decode_details
from tailrace.kvlayer.protected_timestamp import KEYSPACE, low_water, records
from tests.changefeed.feeds import FeedBench
from tests.changefeed.test_registry import FeedNode, open_feed_nodes
from tests.harness.simulation import Simulation


async def running_feed(on: FeedNode) -> int:
    job_id = await on.bench.create()
    await on.feeds.wait_until(job_id, on.bench.store.clock.now())
    return job_id


def protected(bench: FeedBench) -> int:
    return len(records(bench.store.engine))


def test_release_is_tried_until_it_is_done() -> None:
    """Meanwhile the job says what it waits for, and holds no rows from garbage collection."""

    async def scenario() -> None:
        async with open_feed_nodes(sim, 1) as [only]:
            job_id = await running_feed(only)
            only.bench.kind.away = True
            await only.registry.request_cancel(job_id)
            await asyncio.sleep(60)
            job = await only.registry.get(job_id)
            assert job.state is JobState.CANCEL_REQUESTED
            assert job.error is not None
            assert "is away" in job.error
            assert protected(only.bench) == 0
            only.bench.kind.away = False
            await only.registry.wait(job_id, JobState.CANCELED, timeout=60)
            assert only.bench.kind.released == [job_id]

    sim = Simulation(1)
    sim.run(scenario())


def test_a_feed_that_is_canceled_tells_what_it_waits_for() -> None:
    async def scenario() -> None:
        async with open_feed_nodes(sim, 1) as [only]:
            job_id = await running_feed(only)
            only.bench.kind.release_seconds = 60.0
            await only.registry.request_cancel(job_id)
            await asyncio.sleep(30)
            job = await only.registry.get(job_id)
            status = only.feeds.status(job_id, job.payload, None).running_status
            assert ": waiting for target://a for " in status
            await only.registry.wait(job_id, JobState.CANCELED, timeout=60)
            assert only.feeds.feed(job_id) is None

    sim = Simulation(1)
    sim.run(scenario())


def test_release_goes_on_after_a_restart() -> None:
    async def scenario() -> None:
        async with open_feed_nodes(sim, 1) as [only]:
            job_id = await running_feed(only)
            only.bench.kind.away = True
            await only.registry.request_cancel(job_id)
            await asyncio.sleep(5)
            await only.registry.close()
            only.bench.kind.away = False
            await only.registry.start()
            await only.registry.wait(job_id, JobState.CANCELED, timeout=60)
            assert only.bench.kind.released == [job_id]

    sim = Simulation(2)
    sim.run(scenario())


def test_feed_that_failed_releases_too() -> None:
    """Its job has failed, with the error that ended it, when everything is released."""

    async def scenario() -> None:
        async with open_feed_nodes(sim, 1) as [only]:
            job_id = await running_feed(only)
            only.bench.kind.away = True
            await only.bench.table.publish(locked=False)
            await only.bench.table.publish(state=DescriptorState.DROPPED)
            await asyncio.sleep(20)
            assert (await only.registry.get(job_id)).state is JobState.RUNNING
            assert only.bench.kind.sinks_made == 1, "it runs again"
            only.bench.kind.away = False
            job = await only.registry.wait(job_id, JobState.FAILED, timeout=60)
            assert "dropped" in str(job.error)
            assert only.bench.kind.released == [job_id]
            assert protected(only.bench) == 0

    sim = Simulation(3)
    sim.run(scenario())


def test_locked_protection_is_released_later() -> None:
    async def scenario() -> None:
        async with open_feed_nodes(sim, 1) as [only]:
            bench = only.bench
            job_id = await running_feed(only)
            job = await only.registry.get(job_id)
            bench.store.settings.set("kv.lock_timeout", "1s")
            blocking = bench.store.begin()
            await blocking.lock([KEYSPACE + decode_details(job.payload).protection_id])
            await only.registry.request_cancel(job_id)
            await asyncio.sleep(20)
            assert (await only.registry.get(job_id)).state is JobState.CANCEL_REQUESTED
            await blocking.rollback()
            await only.registry.wait(job_id, JobState.CANCELED, timeout=60)
            assert protected(bench) == 0
            assert bench.kind.released == [job_id]

    sim = Simulation(4)
    sim.run(scenario())


def test_protection_without_a_job_is_swept() -> None:
    """Those of feeds that may still run stay, and those of others."""

    async def scenario() -> None:
        async with open_feed_nodes(sim, 1) as [only]:
            bench = only.bench
            job_id = await running_feed(only)
            kept = decode_details((await only.registry.get(job_id)).payload).protection_id
            span = bench.table.descriptor.primary_span
            transaction = bench.store.begin()
            for owner in ("changefeed", "somebody else"):
                at = bench.store.clock.now()
                await bench.protections.protect(
                    transaction, owner=owner, spans=[span], timestamp=at
                )
            await transaction.commit()
            await only.feeds.release_orphans()
            left = records(bench.store.engine)
            assert {record.owner for record in left if record.id != kept} == {"somebody else"}
            assert len(left) == 2

    sim = Simulation(5)
    sim.run(scenario())


# A node that died


def test_dead_nodes_mirror_is_canceled_elsewhere() -> None:
    """Its file is out of reach and stays as it is; its tables' garbage may be collected."""

    async def scenario() -> None:
        async with open_feed_nodes(sim, 2) as [first, second]:
            first.bench.kind.local = True
            job_id = await running_feed(second)
            second.node.stop()
            await first.registry.request_cancel(job_id)
            await first.registry.wait(job_id, JobState.CANCELED, timeout=60)
            assert first.bench.kind.released == []
            assert protected(first.bench) == 0

    sim = Simulation(6)
    sim.run(scenario())


def test_dead_nodes_mirror_is_paused_elsewhere_and_resumed_at_home() -> None:
    async def scenario() -> None:
        async with open_feed_nodes(sim, 2) as [first, second]:
            first.bench.kind.local = True
            job_id = await running_feed(second)
            second.node.stop()
            await first.registry.request_pause(job_id)
            await first.registry.wait(job_id, JobState.PAUSED, timeout=60)
            await first.registry.request_resume(job_id)
            at = await first.bench.table.write((3, "while its node was away"))
            await asyncio.sleep(20)
            assert (await first.registry.get(job_id)).state is JobState.PENDING
            second.node.go_on()
            await second.feeds.wait_until(job_id, at)
            assert 3 in second.bench.rows()

    sim = Simulation(7)
    sim.run(scenario())


def test_living_node_cleans_up_after_its_own_mirror() -> None:
    """Nobody has the claim of a paused job, and the node that holds the file releases it."""

    async def scenario() -> None:
        async with open_feed_nodes(sim, 2) as [first, second]:
            first.bench.kind.local = True
            job_id = await running_feed(second)
            await first.registry.request_pause(job_id)
            await first.registry.wait(job_id, JobState.PAUSED, timeout=60)
            second.node.stop()
            await first.registry.request_cancel(job_id)
            await asyncio.sleep(3)  # less than its session lasts
            assert (await first.registry.get(job_id)).state is JobState.CANCEL_REQUESTED
            second.node.go_on()
            await first.registry.wait(job_id, JobState.CANCELED, timeout=60)
            assert first.bench.kind.released == [job_id]

    sim = Simulation(8)
    sim.run(scenario())


def test_feed_without_progress_protects_for_a_while() -> None:
    """The node of a mirror may never come back, and nobody cancels its feed."""

    async def scenario() -> None:
        async with open_feed_nodes(sim, 1) as [only]:
            bench = only.bench
            bench.store.settings.set("changefeed.protect_timestamp.max_age", "60s")
            job_id = await running_feed(only)
            await asyncio.sleep(100)  # it moves while the feed does
            span = bench.table.descriptor.primary_span
            assert low_water(bench.store.engine, span, bench.store.clock.now()) is not None
            await only.registry.request_pause(job_id)
            await only.registry.wait(job_id, JobState.PAUSED, timeout=60)
            await asyncio.sleep(40)
            assert low_water(bench.store.engine, span, bench.store.clock.now()) is not None
            await asyncio.sleep(30)
            assert low_water(bench.store.engine, span, bench.store.clock.now()) is None

    sim = Simulation(12)
    sim.run(scenario())
