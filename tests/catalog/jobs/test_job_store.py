from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tailrace.catalog.jobs import JobContext, JobFenced, JobRecord, JobState
from tailrace.catalog.jobs.job_store import JobStore
from tailrace.catalog.jobs.runner import Backoff, JobRunner
from tailrace.catalog.jobs.states import IllegalTransition, JobEvent
from tailrace.catalog.leases import Incarnation, SessionRow
from tailrace.kvlayer.clock import Timestamp, duration
from tailrace.kvlayer.store import Store
from tests.harness.nodes import open_catalog
from tests.harness.simulation import Simulation


async def session(store: Store, name: str, *, seconds: float = 60) -> Incarnation:
    """A session by hand: its row is there, and expires `seconds` from now."""
    expiration = Timestamp(store.clock.now() + duration(seconds=seconds))
    row = SessionRow(session_id=name, expiration=expiration, node_id=1, epoch=1)
    key, body = row.encode()
    await store.one_phase(lambda evaluation: evaluation.put((key,), (body,)))
    return Incarnation(name, 1, expiration)


async def pending_job(store: Store) -> tuple[JobStore, int]:
    jobs = JobStore(store)
    transaction = store.begin()
    job_id = await jobs.create(transaction, "test", "a job", b"")
    await transaction.commit()
    return jobs, job_id


def test_a_living_claim_keeps_others_out() -> None:
    sim = Simulation(1)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            jobs, job_id = await pending_job(catalog.store)
            holder = await session(catalog.store, "holder", seconds=5)
            other = await session(catalog.store, "other")
            assert await jobs.claim(job_id, holder) is not None
            assert await jobs.claim(job_id, other) is None
            await asyncio.sleep(5.01)  # its row is still there, and says when it ended
            adopted = await jobs.claim(job_id, other)
            assert adopted is not None
            assert (adopted.epoch, adopted.claim_session_id) == (2, "other")

    sim.run(scenario())


def test_nobody_claims_under_a_dead_session() -> None:
    sim = Simulation(2)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            jobs, job_id = await pending_job(catalog.store)
            dead = await session(catalog.store, "dead", seconds=-1)
            assert await jobs.claim(job_id, dead) is None
            assert await jobs.claim(job_id, Incarnation("unheard of", 1, dead.expiration)) is None

    sim.run(scenario())


def test_an_illegal_event_changes_nothing() -> None:
    sim = Simulation(3)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            jobs, job_id = await pending_job(catalog.store)
            claimed = await jobs.claim(job_id, await session(catalog.store, "holder"))
            assert claimed is not None
            await jobs.request(job_id, JobEvent.REQUEST_CANCEL)
            before = await jobs.get(job_id)
            with pytest.raises(IllegalTransition):
                await jobs.finish(claimed, JobEvent.SUCCEED)
            assert await jobs.get(job_id) == before

    sim.run(scenario())


def test_a_finished_job_takes_no_more_progress() -> None:
    sim = Simulation(4)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            jobs, job_id = await pending_job(catalog.store)
            claimed = await jobs.claim(job_id, await session(catalog.store, "holder"))
            assert claimed is not None
            await jobs.finish(claimed, JobEvent.SUCCEED)
            with pytest.raises(JobFenced):
                await jobs.save_progress(job_id, b"late", claimed.epoch)

    sim.run(scenario())


def test_a_new_claim_begins_with_no_status() -> None:
    sim = Simulation(5)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            jobs, job_id = await pending_job(catalog.store)
            holder = await session(catalog.store, "holder")
            claimed = await jobs.claim(job_id, holder)
            assert claimed is not None
            await jobs.set_status(claimed, "retrying")
            again = await jobs.claim(job_id, holder)
            assert again is not None
            assert again.running_status is None

    sim.run(scenario())


class Waiting:
    """A resumer that never finishes by itself."""

    async def resume(self, context: JobContext) -> None:
        await asyncio.Event().wait()

    async def on_cancel(self, context: JobContext) -> None:
        raise AssertionError("nobody canceled it")


async def running_job(store: Store) -> tuple[JobStore, JobRecord, JobRunner]:
    jobs, job_id = await pending_job(store)
    claimed = await jobs.claim(job_id, await session(store, "holder"))
    assert claimed is not None
    runner = JobRunner(jobs, claimed, Waiting(), Backoff(1, 30))
    await asyncio.sleep(0.1)
    return jobs, claimed, runner


def test_a_row_from_before_the_claim_says_nothing() -> None:
    sim = Simulation(6)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            _, claimed, runner = await running_job(catalog.store)
            now = catalog.store.clock.now()
            runner.note(replace(claimed, epoch=0, claim_session_id=None), now)
            runner.note(replace(claimed, epoch=0, state=JobState.PAUSE_REQUESTED), now)
            await asyncio.sleep(0.1)
            assert not runner.task.done()
            await runner.close()

    sim.run(scenario())


def test_a_row_from_before_what_the_claim_changed_says_nothing() -> None:
    """The payload would be as it was, until the feed of rows has come as far."""
    sim = Simulation(6)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            jobs, job_id = await pending_job(catalog.store)
            claimed = await jobs.claim(job_id, await session(catalog.store, "holder"))
            assert claimed is not None
            context = JobContext(jobs, claimed, None)
            before = catalog.store.clock.now()
            assert await context.change_payload(lambda _: b"changed") == b"changed"
            context.note_payload(b"late", before)
            assert context.payload == b"changed"
            context.note_payload(b"altered", catalog.store.clock.now())
            assert context.payload == b"altered"

    sim.run(scenario())


def test_a_row_of_a_later_claim_stops_the_work() -> None:
    sim = Simulation(7)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            jobs, claimed, runner = await running_job(catalog.store)
            runner.note(
                replace(claimed, epoch=2, claim_session_id="other"), catalog.store.clock.now()
            )
            await asyncio.sleep(0.1)
            assert runner.task.done()
            assert await jobs.get(claimed.id) == claimed  # and wrote nothing

    sim.run(scenario())
