from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from tailrace.catalog.jobs import (
    JobContext,
    JobFenced,
    JobNotFound,
    JobRegistry,
    JobState,
    JobStateRefused,
    RetryableJobError,
)
from tests.harness.nodes import CatalogFixture, Node, open_nodes
from tests.harness.simulation import Simulation

Work = Callable[[JobContext], Awaitable[None]]

FINAL = [state for state in JobState if state.final]


class Recorder:
    """A resumer that does what the test says, and notes what was asked of it."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.begun: list[int] = []
        self.stopped: list[int] = []
        self.canceled: list[int] = []

    async def resume(self, context: JobContext) -> None:
        self.begun.append(context.epoch)
        try:
            await self._work(context)
        except asyncio.CancelledError:
            self.stopped.append(context.epoch)
            raise

    async def on_cancel(self, context: JobContext) -> None:
        self.canceled.append(context.epoch)


async def at_once(context: JobContext) -> None:
    await context.save_progress(b"done")


async def for_ever(context: JobContext) -> None:
    await asyncio.Event().wait()


class JobNode:
    """A node and its registry, with one kind of job."""

    def __init__(self, node: Node, work: Work) -> None:
        self.node = node
        self.resumer = Recorder(work)
        self.registry = JobRegistry(node.store, node.session, {"test": self.resumer})


@asynccontextmanager
async def job_nodes(
    sim: Simulation, *works: Work
) -> AsyncIterator[tuple[CatalogFixture, list[JobNode]]]:
    async with open_nodes(sim, len(works)) as (catalog, nodes):
        made = [JobNode(node, work) for node, work in zip(nodes, works, strict=True)]
        for one in made:
            await one.registry.start()
        yield catalog, made
        for one in made:
            one.node.go_on()
            await one.registry.close()


async def create(catalog: CatalogFixture, one: JobNode, kind: str = "test") -> int:
    transaction = catalog.store.begin()
    job_id = await one.registry.create(transaction, kind, "a job", b"payload")
    await transaction.commit()
    return job_id


def test_a_job_runs_as_soon_as_its_transaction_commits() -> None:
    sim = Simulation(1)

    async def scenario() -> None:
        async with job_nodes(sim, at_once) as (catalog, [one]):
            await asyncio.sleep(0.3)
            job_id = await create(catalog, one)
            job = await one.registry.wait(job_id, JobState.SUCCEEDED, timeout=5)
            assert sim.now < 0.5  # by notice, not by the adoption interval
            assert (job.kind, job.payload, job.epoch) == ("test", b"payload", 1)
            assert job.finished is not None
            assert job.finished >= job.created
            assert await one.registry.progress(job_id) == b"done"

    sim.run(scenario())


def test_a_rolled_back_job_never_was() -> None:
    sim = Simulation(2)

    async def scenario() -> None:
        async with job_nodes(sim, at_once) as (catalog, [one]):
            transaction = catalog.store.begin()
            job_id = await one.registry.create(transaction, "test", "a job", b"")
            await transaction.rollback()
            with pytest.raises(JobNotFound):
                await one.registry.get(job_id)
            assert one.resumer.begun == []

    sim.run(scenario())


def test_one_of_two_nodes_runs_a_job() -> None:
    sim = Simulation(3)

    async def scenario() -> None:
        async with job_nodes(sim, for_ever, for_ever) as (catalog, [first, second]):
            await create(catalog, first)
            await asyncio.sleep(5)
            assert sorted(first.resumer.begun + second.resumer.begun) == [1]

    sim.run(scenario())


def test_a_job_of_an_unknown_kind_waits() -> None:
    sim = Simulation(4)

    async def scenario() -> None:
        async with job_nodes(sim, at_once) as (catalog, [one]):
            job_id = await create(catalog, one, kind="of another node")
            await asyncio.sleep(3)
            assert (await one.registry.get(job_id)).state is JobState.PENDING

    sim.run(scenario())


def test_a_dead_nodes_jobs_are_adopted_and_it_is_fenced_off() -> None:
    sim = Simulation(5)

    async def scenario() -> None:
        async with job_nodes(sim, for_ever, for_ever) as (catalog, both):
            job_id = await create(catalog, both[0])
            await asyncio.sleep(0.5)
            dead, heir = sorted(both, key=lambda one: not one.resumer.begun)
            dead.node.stop()
            await asyncio.sleep(8)
            assert (dead.resumer.begun, heir.resumer.begun) == ([1], [2])
            with pytest.raises(JobFenced):
                await heir.registry.save_progress(job_id, b"late", epoch=1)
            await heir.registry.save_progress(job_id, b"in time", epoch=2)
            assert await heir.registry.progress(job_id) == b"in time"
            assert dead.resumer.stopped == []
            dead.node.go_on()
            await asyncio.sleep(2)
            assert dead.resumer.stopped == [1]
            assert (await heir.registry.get(job_id)).epoch == 2

    sim.run(scenario())


def test_progress_outlives_its_claim() -> None:
    sim = Simulation(6)
    found: list[bytes | None] = []

    async def work(context: JobContext) -> None:
        found.append(context.progress)
        await context.save_progress(f"by {context.epoch}".encode())
        await asyncio.Event().wait()

    async def scenario() -> None:
        async with job_nodes(sim, work, work) as (catalog, [first, second]):
            await create(catalog, first)
            await asyncio.sleep(0.5)
            (first if first.resumer.begun else second).node.stop()
            await asyncio.sleep(8)
            assert found[:2] == [None, b"by 1"]

    sim.run(scenario())


def test_a_paused_job_stops_and_resumes() -> None:
    sim = Simulation(7)

    async def scenario() -> None:
        async with job_nodes(sim, for_ever) as (catalog, [one]):
            job_id = await create(catalog, one)
            await one.registry.wait(job_id, JobState.RUNNING, timeout=1)
            await asyncio.sleep(0.01)
            await one.registry.request_pause(job_id)
            paused = await one.registry.wait(job_id, JobState.PAUSED, timeout=1)
            assert paused.claim_session_id is None
            await asyncio.sleep(3)
            assert one.resumer.begun == one.resumer.stopped == [1]
            await one.registry.request_resume(job_id)
            await one.registry.wait(job_id, JobState.RUNNING, timeout=1)
            await asyncio.sleep(0.01)
            assert one.resumer.begun == [1, 2]

    sim.run(scenario())


@pytest.mark.parametrize("seed", range(15))
def test_a_canceled_job_is_cleaned_up_after(seed: int) -> None:
    """Whenever the request comes: before the claim, during it, or while the job runs."""
    sim = Simulation(seed)

    async def scenario() -> None:
        async with job_nodes(sim, for_ever) as (catalog, [one]):
            job_id = await create(catalog, one)
            await asyncio.sleep(sim.random.choice((0, 0.0001, 0.0005, 0.001, 0.5)))
            await one.registry.request_cancel(job_id)
            await one.registry.wait(job_id, JobState.CANCELED, timeout=3)
            assert len(one.resumer.canceled) == 1
            assert one.resumer.begun == one.resumer.stopped
            with pytest.raises(JobStateRefused, match="is canceled: it cannot cancel"):
                await one.registry.request_cancel(job_id)

    sim.run(scenario())


def test_a_retryable_error_backs_off_and_says_so() -> None:
    sim = Simulation(8)
    attempts: list[float] = []

    async def work(context: JobContext) -> None:
        attempts.append(sim.now)
        raise RetryableJobError("the sink is away")

    async def scenario() -> None:
        async with job_nodes(sim, work) as (catalog, [one]):
            job_id = await create(catalog, one)
            await asyncio.sleep(0.1)
            job = await one.registry.get(job_id)
            assert job.running_status == "retrying in 0.25 s after an error: the sink is away"
            assert job.state is JobState.RUNNING
            await asyncio.sleep(300)
            pauses = [round(b - a, 2) for a, b in pairwise(attempts)]
            assert pauses[:8] == pytest.approx([0.25, 0.5, 1, 2, 4, 8, 16, 30], abs=0.03)
            assert pauses[-1] == pytest.approx(30, abs=0.03)

    sim.run(scenario())


def test_moving_progress_resets_the_pause() -> None:
    sim = Simulation(9)
    attempts: list[float] = []

    async def work(context: JobContext) -> None:
        attempts.append(sim.now)
        if len(attempts) == 5:
            await context.save_progress(b"further")
        raise RetryableJobError("the sink is away")

    async def scenario() -> None:
        async with job_nodes(sim, work) as (catalog, [one]):
            await create(catalog, one)
            await asyncio.sleep(10)
            pauses = [round(b - a, 2) for a, b in pairwise(attempts)]
            assert pauses[:6] == pytest.approx([0.25, 0.5, 1, 2, 0.25, 0.5], abs=0.03)

    sim.run(scenario())


def test_a_job_that_backs_off_can_be_canceled() -> None:
    sim = Simulation(10)

    async def work(context: JobContext) -> None:
        raise RetryableJobError("the sink is away")

    async def scenario() -> None:
        async with job_nodes(sim, work) as (catalog, [one]):
            job_id = await create(catalog, one)
            await asyncio.sleep(60)
            started_at = sim.now
            await one.registry.request_cancel(job_id)
            await one.registry.wait(job_id, JobState.CANCELED, timeout=5)
            assert sim.now - started_at < 1

    sim.run(scenario())


def test_any_other_error_fails_the_job_with_its_message() -> None:
    sim = Simulation(11)

    async def work(context: JobContext) -> None:
        raise ValueError("this mirror belongs to another store")

    async def scenario() -> None:
        async with job_nodes(sim, work) as (catalog, [one]):
            job_id = await create(catalog, one)
            job = await one.registry.wait(job_id, *FINAL, timeout=5)
            assert (job.state, job.error) == (
                JobState.FAILED,
                "this mirror belongs to another store",
            )
            assert job.running_status is None

    sim.run(scenario())


def test_an_error_on_the_way_out_does_not_undo_a_pause() -> None:
    sim = Simulation(12)

    async def work(context: JobContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("the sink does not close")

    async def scenario() -> None:
        async with job_nodes(sim, work) as (catalog, [one]):
            job_id = await create(catalog, one)
            await one.registry.wait(job_id, JobState.RUNNING, timeout=1)
            await asyncio.sleep(0.01)
            await one.registry.request_pause(job_id)
            await one.registry.wait(job_id, JobState.PAUSED, timeout=1)

    sim.run(scenario())


def test_a_node_that_lost_its_session_takes_its_jobs_up_again() -> None:
    sim = Simulation(13)

    async def scenario() -> None:
        async with job_nodes(sim, for_ever) as (catalog, [one]):
            await create(catalog, one)
            await asyncio.sleep(0.5)
            one.node.stop()
            await asyncio.sleep(10)
            one.node.go_on()
            await asyncio.sleep(3)
            assert one.resumer.stopped == [1]
            assert one.resumer.begun == [1, 2]

    sim.run(scenario())


def test_jobs_are_listed_oldest_first() -> None:
    sim = Simulation(14)

    async def scenario() -> None:
        async with job_nodes(sim, for_ever) as (catalog, [one]):
            created = [await create(catalog, one) for _ in range(3)]
            assert [job.id for job in await one.registry.list()] == created == sorted(created)

    sim.run(scenario())


def test_requests_name_the_job_they_cannot_find() -> None:
    sim = Simulation(15)

    async def scenario() -> None:
        async with job_nodes(sim, for_ever) as (_, [one]):
            with pytest.raises(JobNotFound, match="job with ID 7 does not exist"):
                await one.registry.request_pause(7)

    sim.run(scenario())


def test_a_request_is_carried_out_where_no_notice_comes() -> None:
    sim = Simulation(16)

    async def scenario() -> None:
        async with job_nodes(sim, for_ever) as (catalog, [one]):
            job_id = await create(catalog, one)
            await asyncio.sleep(0.5)
            one.node.mute_feeds()
            await one.registry.request_pause(job_id)
            await asyncio.sleep(2)
            assert (await one.registry.get(job_id)).state is JobState.PAUSED

    sim.run(scenario())


def test_a_cancellation_that_nobody_noticed_undoes_success() -> None:
    """The job ended after it was canceled, and before its node knew."""
    sim = Simulation(17)

    async def work(context: JobContext) -> None:
        await asyncio.sleep(1)

    async def scenario() -> None:
        async with job_nodes(sim, work) as (catalog, [one]):
            catalog.store.settings.set("jobs.registry.interval.adopt", "1h")
            job_id = await create(catalog, one)
            await asyncio.sleep(0.5)
            one.node.mute_feeds()
            await one.registry.request_cancel(job_id)
            await asyncio.sleep(2)
            assert (await one.registry.get(job_id)).state is JobState.CANCELED
            assert one.resumer.canceled == [1]

    sim.run(scenario())


def test_work_that_cancels_itself_is_tried_again() -> None:
    sim = Simulation(18)

    async def work(context: JobContext) -> None:
        raise asyncio.CancelledError

    async def scenario() -> None:
        async with job_nodes(sim, work) as (catalog, [one]):
            job_id = await create(catalog, one)
            await asyncio.sleep(2)
            assert len(one.resumer.begun) == 4  # at 0, 0.25, 0.75 and 1.75 seconds
            status = (await one.registry.get(job_id)).running_status
            assert status is not None
            assert "cancelled from within" in status

    sim.run(scenario())
