"""Jobs that have ended: how long they are listed, when they go, and that nobody pays for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from tailrace.catalog.jobs import JobNotFound, JobRecord, JobState, JobStateRefused
from tailrace.catalog.jobs.job_store import RECENT, REMOVED_AT_ONCE, JobStore
from tailrace.catalog.jobs.record import encode_end, job_key, progress_key, time_of
from tailrace.kvlayer.engine import memory
from tailrace.kvlayer.store import Store
from tests.catalog.jobs.test_registry import at_once, create, for_ever, job_nodes
from tests.harness.nodes import open_catalog
from tests.harness.simulation import Simulation


def ended_job(store: Store, job_id: int, age: timedelta) -> JobRecord:
    finished = time_of(store.clock.now()) - age
    return JobRecord(
        id=job_id,
        kind="test",
        description="a job",
        state=JobState.SUCCEEDED,
        payload=b"",
        created=finished,
        finished=finished,
    )


async def put_ended(store: Store, *jobs: JobRecord) -> None:
    rows = [job.encode_finished() for job in jobs]
    rows += [encode_end(job.id, job.finished) for job in jobs if job.finished is not None]
    await store.one_phase(lambda e: e.put([key for key, _ in rows], [body for _, body in rows]))


def test_an_ended_job_is_found_and_refuses_requests() -> None:
    sim = Simulation(1)

    async def scenario() -> None:
        async with job_nodes(sim, at_once) as (catalog, [one]):
            job_id = await create(catalog, one)
            await one.registry.wait(job_id, JobState.SUCCEEDED, timeout=5)
            assert [job.id for job in await one.registry.list()] == [job_id]
            assert list(one.registry.live()) == []
            with pytest.raises(JobStateRefused, match="is succeeded"):
                await one.registry.request_cancel(job_id)

    sim.run(scenario())


def test_ended_jobs_leave_the_list_and_are_still_found() -> None:
    sim = Simulation(2)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            store, jobs = catalog.store, JobStore(catalog.store)
            old = ended_job(store, 1, RECENT + timedelta(seconds=1))
            new = ended_job(store, 2, RECENT - timedelta(minutes=1))
            await put_ended(store, old, new)
            assert list(await jobs.ended(store.clock.now())) == [new]
            assert await jobs.get(old.id) == old

    sim.run(scenario())


def test_ended_jobs_are_removed_with_all_that_is_left_of_them() -> None:
    sim = Simulation(3)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            store, jobs = catalog.store, JobStore(catalog.store)
            many = [ended_job(store, n, timedelta(days=15)) for n in range(2 * REMOVED_AT_ONCE + 1)]
            kept = ended_job(store, 10_000, timedelta(days=13))
            await put_ended(store, *many, kept)
            await store.one_phase(lambda e: e.put([progress_key(5)], [b"progress"]))
            cutoff = time_of(store.clock.now()) - timedelta(days=14)
            assert await jobs.remove_finished(cutoff) == len(many)
            with pytest.raises(JobNotFound):
                await jobs.get(5)
            assert await store.snapshot(store.clock.now()).get(progress_key(5)) is None
            assert await jobs.get(kept.id) == kept

    sim.run(scenario())


def test_retention_follows_its_setting_at_once() -> None:
    sim = Simulation(4)

    async def scenario() -> None:
        async with job_nodes(sim, at_once) as (catalog, [one]):
            job_id = await create(catalog, one)
            await one.registry.wait(job_id, JobState.SUCCEEDED, timeout=5)
            await asyncio.sleep(20)
            assert (await one.registry.get(job_id)).state is JobState.SUCCEEDED
            catalog.store.settings.set("jobs.retention_time", "10s")
            await asyncio.sleep(15)
            with pytest.raises(JobNotFound):
                await one.registry.get(job_id)

    sim.run(scenario())


def test_jobs_that_an_earlier_build_left_are_filed() -> None:
    sim = Simulation(5)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            store, jobs = catalog.store, JobStore(catalog.store)
            left = ended_job(store, 7, timedelta(hours=1))
            key, body = left.encode()
            await store.one_phase(lambda e: e.put([key], [body]))
            await jobs.file_finished()
            assert await jobs.get(7) == left
            assert list(await jobs.live(store.clock.now())) == []
            assert await store.snapshot(store.clock.now()).get(job_key(7)) is None

    sim.run(scenario())


@pytest.fixture
def entries_read(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many entries of the engine were read so far."""
    read = [0]
    scan = memory._SortedReader.scan

    def counted(
        self: memory._SortedReader, start: bytes, end: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        for entry in scan(self, start, end, reverse=reverse):
            read[0] += 1
            yield entry

    monkeypatch.setattr(memory._SortedReader, "scan", counted)
    return lambda: read[0]


@pytest.mark.parametrize("nodes", [1, 2])
def test_what_repeats_costs_no_history(nodes: int, entries_read: Callable[[], int]) -> None:
    sim = Simulation(6)

    async def scenario() -> None:
        async with job_nodes(sim, *[for_ever] * nodes) as (catalog, [one, *_]):
            await create(catalog, one)

            async def idle() -> int:
                await asyncio.sleep(5)
                before = entries_read()
                await asyncio.sleep(20)
                return entries_read() - before

            with_none = await idle()
            jobs = [ended_job(catalog.store, n, timedelta(hours=1)) for n in range(1, 501)]
            for job in jobs:  # each as it is left by a life of its own
                key, body = job.encode()
                await catalog.store.one_phase(lambda e, k=key, b=body: e.put([k], [b]))  # type: ignore[misc]
                await catalog.store.one_phase(lambda e, k=key: e.delete([k]))  # type: ignore[misc]
            await put_ended(catalog.store, *jobs)
            assert await idle() < 2 * with_none  # a job of history read once a second is 10,000

    sim.run(scenario())
