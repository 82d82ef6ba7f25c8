"""Schedules of changefeeds, in virtual time: each run once, whatever happens to nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import pytest

from tailrace.catalog.descriptors.descriptor import DescriptorState, TableDescriptor
from tailrace.catalog.jobs import JobRecord, JobState
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed import JOB_KIND, ScheduleStatus, parse_schedule_options
from tailrace.changefeed.schedules import schedule_status
from tailrace.changefeed.schedules.schedule import next_run
from tests.changefeed.feeds import TargetKind
from tests.changefeed.test_registry import FeedNode, open_feed_nodes
from tests.harness.simulation import Simulation

SOON = "2026-01-01 00:00:05"
"""Five seconds after a simulation begins."""


async def make(
    node: FeedNode, sink: str = "null://", *, crontab: str = "* * * * *", **options: str
) -> int:
    transaction = node.bench.store.begin()
    now = node.bench.store.clock.wall.unix_us() / 1e6
    schedule_id, _ = await node.feeds.create_schedule(
        transaction,
        node.bench.request(),
        sink,
        label="often",
        crontab=crontab,
        options=parse_schedule_options({"first_run": SOON, **options}, now),
    )
    await transaction.commit()
    return schedule_id


async def runs(node: FeedNode) -> list[JobRecord]:
    found = [job for job in await node.registry.list() if job.kind == JOB_KIND]
    return sorted(found, key=lambda job: job.id)


async def status(node: FeedNode, schedule_id: int) -> ScheduleStatus:
    job = await node.registry.get(schedule_id)
    return schedule_status(job, await node.registry.progress(schedule_id))


def times(jobs: list[JobRecord]) -> list[str]:
    return [f"{job.created:%M:%S}" for job in jobs]


def test_a_run_comes_at_each_time_of_the_crontab() -> None:
    async def scenario() -> None:
        async with open_feed_nodes(sim, 1) as [only]:
            schedule_id = await make(only)
            first = (await status(only, schedule_id)).next_run
            assert first == datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)
            await asyncio.sleep(90)
            jobs = await runs(only)
            assert times(jobs) == ["00:05", "01:00"]
            assert {job.state for job in jobs} == {JobState.SUCCEEDED}
            assert "initial_scan = 'only'" in jobs[0].description
            await only.registry.request_pause(schedule_id)
            await asyncio.sleep(45)
            assert (await status(only, schedule_id)).next_run is None
            assert len(await runs(only)) == 2
            await only.registry.request_resume(schedule_id)
            await asyncio.sleep(3)
            assert len(await runs(only)) == 3, "what was missed is made up for, once"
            await only.registry.request_cancel(schedule_id)
            await asyncio.sleep(60)
            assert len(await runs(only)) == 3

    sim = Simulation(1)
    sim.run(scenario())


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_run_is_made_once_by_several_nodes(seed: int) -> None:
    async def scenario() -> None:
        async with open_feed_nodes(sim, 2) as nodes:
            await make(nodes[0])
            for minute in range(2):
                stopped = nodes[sim.random.randrange(2)]
                await asyncio.sleep(5 + 55 * minute - 1 + 2 * sim.random.random())
                stopped.node.stop()
                await asyncio.sleep(20)
                stopped.node.go_on()
            await asyncio.sleep(5)
            made = await runs(nodes[0])
            assert [f"{job.created:%M}" for job in made] == ["00", "01"]

    sim = Simulation(seed)
    sim.run(scenario())


@pytest.mark.parametrize(
    ("policy", "following", "state"),
    [
        ("reschedule", 3600, JobState.RUNNING),
        ("retry", 65, JobState.RUNNING),
        ("pause", None, JobState.PAUSED),
    ],
)
def test_what_follows_a_run_that_failed(
    policy: str, following: int | None, state: JobState
) -> None:
    async def scenario() -> None:
        async with open_feed_nodes(sim, 1) as [only]:
            schedule_id = await make(only, crontab="@hourly", on_execution_failure=policy)
            await only.bench.table.publish(locked=False)
            await only.bench.table.publish(state=DescriptorState.DROPPED)
            await asyncio.sleep(8)
            told = await status(only, schedule_id)
            assert 'table "defaultdb.public.orders" does not exist' in told.error
            assert (await only.registry.get(schedule_id)).state is state
            due = None if told.next_run is None else told.next_run.timestamp() % 86400
            assert (due and round(due / 5) * 5) == following

    sim = Simulation(1)
    sim.run(scenario())


class StuckKind(TargetKind):
    """No feed into it ever ends, and it takes several."""

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        """Any table will do."""

    def reserved(self, uri: str, table_names: Iterable[str]) -> frozenset[str]:
        return frozenset()


@pytest.mark.parametrize(
    ("policy", "due", "later"), [("wait", 1, 2), ("skip", 1, 1), ("start", 2, 2)]
)
def test_a_run_that_is_due_while_another_runs(policy: str, due: int, later: int) -> None:
    async def scenario() -> None:
        async with open_feed_nodes(sim, 1) as [only]:
            only.bench.services.kinds.register("stuck", StuckKind(sim, fail=1.0))
            await make(only, "stuck://a", on_previous_running=policy)
            await asyncio.sleep(55)
            (first,) = await runs(only)
            await asyncio.sleep(8)
            assert len(await runs(only)) == due
            await only.registry.request_cancel(first.id)
            await only.registry.wait(first.id, JobState.CANCELED, timeout=20)
            await asyncio.sleep(5)
            assert len(await runs(only)) == later

    sim = Simulation(1)
    sim.run(scenario())


@pytest.mark.parametrize("crontab", ["* * *", "0 0 30 2 *", "@once", "* * * * * *", "61 * * * *"])
def test_what_is_no_crontab_is_refused(crontab: str) -> None:
    with pytest.raises(SQLError, match="crontab"):
        next_run(crontab, 0.0)
