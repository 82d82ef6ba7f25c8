"""Changefeeds as jobs: what is refused, what a claim does, what an end leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from tailrace.catalog.descriptors.descriptor import DescriptorState
from tailrace.catalog.rows.row_codec import RowCodec
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed import FeedRequest, FeedState, FeedStopped
from tailrace.changefeed.jobs.details import decode_details, decode_progress, encode_details
from tailrace.changefeed.jobs.job import END_SECONDS_MAX
from tailrace.changefeed.sinks import SinkError, SinkProgress, SinkRefused
from tailrace.changefeed.targets import TargetState
from tailrace.kvlayer.clock import ZERO, Timestamp, format_timestamp
from tailrace.kvlayer.protected_timestamp import records
from tailrace.kvlayer.span import Span
from tailrace.schemafeed.feed import TableDropped
from tests.changefeed.feeds import FeedBench, MemoryClaim, open_bench
from tests.changefeed.model import Target
from tests.harness.simulation import Simulation

URI = "target://a?secret=1"


def test_feed_scans_then_follows() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            job_id = await bench.create()
            async with bench.running(job_id):
                at = await bench.table.write((3, "new"), delete=[1])
                await bench.feeds.wait_until(job_id, at)
                assert bench.rows() == {2: "old", 3: "new"}

    sim = Simulation(1)
    sim.run(scenario())


@pytest.mark.parametrize("uri", [URI, "null://"])
def test_restart_goes_on_from_saved_progress(uri: str) -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            job_id = await bench.create(uri)
            async with bench.running(job_id):
                await bench.feeds.wait_until(job_id, await bench.table.write((3, "new")))
                await asyncio.sleep(2)
            live = bench.feeds.feed(job_id)
            assert live is not None
            emitted = live.rows_emitted
            async with bench.running(job_id):
                await bench.feeds.wait_until(job_id, await bench.table.write((4, "newer")))
            assert live.rows_emitted == emitted + 1

    sim = Simulation(2)
    sim.run(scenario())


@pytest.mark.parametrize("lost", [False, True])
def test_feed_that_is_told_to_end_saves_what_it_flushed(lost: bool) -> None:
    """Unless its claim is lost: then the progress is another's to save."""

    async def scenario() -> None:
        async with open_bench(sim) as bench:
            job_id = await bench.create("null://", min_checkpoint_frequency="1h")
            claim = bench.jobs.claims[job_id]
            async with bench.running(job_id):
                await bench.feeds.wait_until(job_id, await bench.table.write((3, "new")))
                saved = claim.progress
                at = await bench.table.write((4, "newer"))
                await asyncio.sleep(0.5)
                claim.lost = lost
            live = bench.feeds.feed(job_id)
            assert live is not None
            assert live.rows_emitted == 4
            assert (claim.progress == saved) is lost
            assert lost or decode_progress(claim.progress or b"").resolved >= at
            claim.lost = False
            async with bench.running(job_id):
                await bench.feeds.wait_until(job_id, await bench.table.write((5, "newest")))
            assert (live.rows_emitted > 5) is lost, "nothing flushed is sent again"

    sim = Simulation(2)
    sim.run(scenario())


def test_sink_that_does_not_answer_holds_no_pause_up() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            job_id = await bench.create()
            async with bench.running(job_id):
                await bench.feeds.wait_until(job_id, await bench.table.write((3, "new")))
            bench.kind.seconds = 3600.0
            async with bench.running(job_id):
                await bench.table.write((4, "newer"))
                await asyncio.sleep(1)
                told_at = sim.now
            assert sim.now - told_at == pytest.approx(END_SECONDS_MAX)

    sim = Simulation(3)
    sim.run(scenario())


class SlowClaim(MemoryClaim):
    """A claim whose payload changes once the feed was told to end."""

    def __init__(self, known: MemoryClaim) -> None:
        super().__init__(known.job.id, known.payload)
        self.asked, self.told = asyncio.Event(), asyncio.Event()

    async def change_payload(self, change: Callable[[bytes], bytes]) -> bytes:
        self.asked.set()
        await self.told.wait()
        return await super().change_payload(change)


def test_feed_that_is_told_to_end_begins_no_other_attempt() -> None:
    """Also where a table is dropped at that moment, without which the others would go on."""

    async def scenario() -> None:
        async with open_bench(sim) as bench:
            other = await bench.table.catalog.create("other")
            request = bench.request(on_table_dropped="leave")
            request = replace(
                request,
                tables=[*request.tables, other],
                names=[*request.names, "defaultdb.public.other"],
            )
            transaction = bench.store.begin()
            job_id = await bench.feeds.create(transaction, request, URI)
            await transaction.commit()
            claim = bench.jobs.claims[job_id] = SlowClaim(bench.jobs.claims[job_id])
            task = asyncio.create_task(bench.feeds.run(claim))
            await bench.feeds.wait_until(job_id, bench.store.clock.now())
            await bench.table.publish(locked=False)
            await bench.table.publish(state=DescriptorState.DROPPED)
            await claim.asked.wait()
            made, told_at = bench.kind.sinks_made, sim.now
            task.cancel()
            await asyncio.sleep(0)
            claim.told.set()
            await asyncio.gather(task, return_exceptions=True)
            assert sim.now - told_at < END_SECONDS_MAX
            assert bench.kind.sinks_made == made
            assert decode_details(claim.payload).targets[0].state is TargetState.DROPPED

    sim = Simulation(3)
    sim.run(scenario())


def test_cursor_skips_the_scan_and_is_exclusive() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            cursor = await bench.table.write((3, "at the cursor"))
            await bench.table.write((4, "above"))
            job_id = await bench.create(cursor=format_timestamp(cursor))
            async with bench.running(job_id):
                await bench.feeds.wait_until(job_id, bench.store.clock.now())
            assert bench.rows() == {4: "above"}

    sim = Simulation(3)
    sim.run(scenario())


def test_scan_only_succeeds_and_releases() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            job_id = await bench.create(initial_scan="only")
            assert len(records(bench.store.engine)) == 1
            await bench.feeds.run(bench.jobs.claims[job_id])
            assert bench.rows() == {1: "old", 2: "old"}
            assert bench.kind.released == [job_id]
            assert records(bench.store.engine) == []

    sim = Simulation(4)
    sim.run(scenario())


def test_sink_error_is_left_to_be_retried() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            job_id = await bench.create()
            bench.kind.fail = 2.0
            with pytest.raises(SinkError):
                await bench.feeds.run(bench.jobs.claims[job_id])
            live = bench.feeds.feed(job_id)
            assert live is not None
            assert live.state is FeedState.BACKOFF
            await asyncio.sleep(3)
            claim = bench.jobs.claims[job_id]
            await bench.store.now()  # as reading the job's rows does
            status = bench.feeds.status(job_id, claim.payload, claim.progress)
            assert "retrying: 3." in status.running_status
            assert "the target is away" in status.running_status
            bench.kind.fail = 0.0
            waiting = asyncio.create_task(bench.feeds.wait_until(job_id, bench.store.clock.now()))
            async with bench.running(job_id):
                await waiting
            assert bench.rows() == {1: "old", 2: "old"}

    sim = Simulation(5)
    sim.run(scenario())


def test_dropped_table_is_the_end_of_its_feed() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            job_id = await bench.create()
            task = asyncio.create_task(bench.feeds.run(bench.jobs.claims[job_id]))
            await bench.feeds.wait_until(job_id, bench.store.clock.now())
            await bench.table.publish(locked=False)
            await bench.table.publish(state=DescriptorState.DROPPED)
            with pytest.raises(TableDropped, match="orders"):
                await task
            assert bench.kind.released == [job_id]
            with pytest.raises(FeedStopped, match="dropped"):
                await bench.feeds.wait_until(job_id, bench.store.clock.now())

    sim = Simulation(6)
    sim.run(scenario())


def test_an_interrupted_rescan_goes_on_where_the_table_stood() -> None:
    """Also one that had shown no row, where another table's progress was saved."""

    async def scenario() -> None:
        async with open_bench(sim) as bench:
            job_id = await bench.create()
            claim, target = bench.jobs.claims[job_id], bench.kind.targets.setdefault(URI, Target())
            async with bench.running(job_id):
                at = await bench.table.write((1, "new"))
                await bench.feeds.wait_until(job_id, at)
                await asyncio.sleep(2)
            details = decode_details(claim.payload)
            again = msgspec.structs.replace(details.targets[0], again=True)
            claim.alter(encode_details(details.with_target(again)))
            bench.kind.fail = 2.0
            with pytest.raises(SinkError):
                await bench.feeds.run(claim)
            assert target.progress is not None
            span = target.progress.frontier[0][0]
            target.progress = replace(target.progress, frontier=((span, ZERO),))
            target.versions.clear()
            bench.kind.fail = 0.0
            async with bench.running(job_id):
                await bench.feeds.wait_until(job_id, await bench.table.write((3, "newer")))
                await asyncio.sleep(2)
            assert bench.rows() == {1: "new", 2: "old", 3: "newer"}
            assert all(version >= at for version, _ in target.versions.values())
            assert not decode_details(claim.payload).targets[0].again

    sim = Simulation(8)
    sim.run(scenario())


def test_progress_ahead_of_the_clock_is_refused() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            job_id = await bench.create()
            later = Timestamp(bench.store.clock.now() + (1 << 50))
            target = bench.kind.targets[URI] = Target()
            span = bench.table.descriptor.primary_span
            target.progress = SinkProgress(
                frontier=((span, later),), resolved=later, scan_complete=True
            )
            with pytest.raises(SinkRefused, match="ahead of this store's clock"):
                await bench.feeds.run(bench.jobs.claims[job_id])

    sim = Simulation(7)
    sim.run(scenario())


class LateClaim(MemoryClaim):
    """A claim of which the row was altered, and the node has not heard."""

    def __init__(self, known: MemoryClaim, row: bytes, target: Target) -> None:
        super().__init__(known.job.id, known.payload)
        self._row = row
        self._target = target

    async def change_payload(self, change: Callable[[bytes], bytes]) -> bytes:
        self._target.progress = None  # as it is to the feed that the row tells of
        self.alter(change(self._row))
        return self.payload


def test_what_refuses_an_altered_feed_may_take_it_as_it_is_now() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            job_id = await bench.create()
            known = bench.jobs.claims[job_id]
            target = bench.kind.targets[URI] = Target()
            later = Timestamp(bench.store.clock.now() + (1 << 50))
            target.progress = SinkProgress(
                frontier=((bench.table.descriptor.primary_span, later),),
                resolved=later,
                scan_complete=True,
            )
            details = decode_details(known.payload)
            again = msgspec.structs.replace(details.targets[0], again=True)
            altered = encode_details(details.with_target(again))
            bench.jobs.claims[job_id] = LateClaim(known, altered, target)
            async with bench.running(job_id):
                await bench.feeds.wait_until(job_id, await bench.table.write((3, "new")))
            assert bench.rows() == {1: "old", 2: "old", 3: "new"}

    sim = Simulation(9)
    sim.run(scenario())


def test_scan_under_way_goes_on_at_its_own_time() -> None:
    """What is protected has moved up meanwhile; the rest of a scan belongs to its beginning."""

    async def scenario() -> None:
        async with open_bench(sim) as bench:
            job_id = await bench.create()
            target = bench.kind.targets[URI] = Target()
            span = bench.table.descriptor.primary_span
            middle = RowCodec(bench.table.descriptor).encode_key((2,))
            begun_at = bench.store.clock.now()
            target.progress = SinkProgress(
                frontier=((Span(span.start, middle), begun_at), (Span(middle, span.end), ZERO)),
                resolved=ZERO,
                scan_complete=False,
            )
            transaction = bench.store.begin()
            protection_id = decode_details(bench.jobs.claims[job_id].payload).protection_id
            later = bench.store.clock.now()
            assert await bench.protections.advance(transaction, protection_id, later)
            await transaction.commit()
            async with bench.running(job_id):
                await bench.feeds.wait_until(job_id, bench.store.clock.now())
            assert target.applied == [(middle, begun_at)]

    sim = Simulation(21)
    sim.run(scenario())


def test_protection_follows_the_feed_and_ends_with_it() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            job_id = await bench.create()
            claim = bench.jobs.claims[job_id]
            [before] = records(bench.store.engine)
            assert before.timestamp == decode_details(claim.payload).start_at
            async with bench.running(job_id):
                await asyncio.sleep(70)
                assert claim.progress is not None
                [moved] = records(bench.store.engine)
                resolved = decode_progress(claim.progress).resolved
                assert before.timestamp < moved.timestamp <= resolved
            await bench.feeds.cancel(claim)
            assert records(bench.store.engine) == []
            assert bench.kind.released == [job_id]

    sim = Simulation(8)
    sim.run(scenario())


def test_feed_goes_on_whose_protection_was_released() -> None:
    """ALTER CHANGEFEED … DROP releases a table's at once; the attempt hears of it later."""

    async def scenario() -> None:
        async with open_bench(sim) as bench:
            job_id = await bench.create()
            protection_id = decode_details(bench.jobs.claims[job_id].payload).protection_id
            async with bench.running(job_id):
                await bench.feeds.wait_until(job_id, bench.store.clock.now())
                transaction = bench.store.begin()
                await bench.protections.release(transaction, protection_id)
                await transaction.commit()
                await asyncio.sleep(70)
                await bench.feeds.wait_until(job_id, bench.store.clock.now())

    sim = Simulation(10)
    sim.run(scenario())


def test_status_shows_no_secrets() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            job_id = await bench.create()
            claim = bench.jobs.claims[job_id]
            status = bench.feeds.status(job_id, claim.payload, None)
            assert status.sink_uri == "target://a"
            assert status.full_table_names == ("defaultdb.public.orders",)
            assert status.topics == ("orders",)
            assert status.running_status == "waiting to run"
            assert b"secret" not in claim.payload
            assert "secret" not in bench.jobs.descriptions[job_id]

    sim = Simulation(9)
    sim.run(scenario())


async def refusal(bench: FeedBench, uri: str = URI, **options: str | None) -> SQLError:
    """Why a feed is not created; nothing is left behind."""
    with pytest.raises(SQLError) as caught:
        await bench.create(uri, **options)
    assert bench.jobs.claims == {}
    assert records(bench.store.engine) == []
    return caught.value


def test_bad_requests_leave_nothing_behind() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            assert (await refusal(bench, "kafka://x")).hint == "Known schemes: null, target."
            assert "unknown changefeed option" in (await refusal(bench, differences=None)).message
            mistyped = await refusal(bench, resolvd=None)
            assert (mistyped.hint or "").startswith("Did you mean resolved? Known options: ")
            future = Timestamp(bench.store.clock.now() + (1 << 40))
            error = await refusal(bench, cursor=format_timestamp(future))
            assert "in the future" in error.message
            early = Timestamp(bench.table.descriptor.modification_time - 1)
            error = await refusal(bench, cursor=format_timestamp(early))
            assert error.sqlstate == "42P01"
            cursor = bench.store.clock.now()
            span = bench.table.descriptor.primary_span
            await bench.store.collect_garbage(span, bench.store.clock.now())
            error = await refusal(bench, cursor=format_timestamp(cursor))
            assert "garbage collection threshold" in error.message

    sim = Simulation(10)
    sim.run(scenario())


def test_second_feed_into_a_target_is_refused() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            job_id = await bench.create()
            async with bench.running(job_id):
                await bench.feeds.wait_until(job_id, bench.store.clock.now())
            with pytest.raises(SQLError, match="belongs to another feed"):
                await bench.create()
            assert len(bench.jobs.claims) == 1

    sim = Simulation(11)
    sim.run(scenario())


def test_table_named_twice_is_refused() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            table = bench.table.descriptor
            twice = FeedRequest(
                tables=[table, table],
                names=["orders", "orders"],
                options={},
                at=bench.store.clock.now(),
            )
            with pytest.raises(SQLError, match="more than once"):
                await bench.feeds.stream(twice)

    sim = Simulation(12)
    sim.run(scenario())


def test_stream_gives_rows_then_changes() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            stream = await bench.feeds.stream(bench.request(resolved=None))
            async with stream:
                assert [row.key for row in await stream.take()] == [b"[1]", b"[2]"]
                at = await bench.table.write((3, "new"), delete=[1])
                seen = []
                async for row in stream:
                    if row.table is None:
                        if row.value.decode() >= f'{{"resolved":"{format_timestamp(at)}"}}':
                            break
                    else:
                        seen.append((row.key, row.value))
                assert sorted(seen) == [
                    (b"[1]", b'{"after":null}'),
                    (b"[3]", b'{"after":{"k":3,"v":"new"}}'),
                ]

    sim = Simulation(13)
    sim.run(scenario())


def test_stream_of_a_scan_ends() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            stream = await bench.feeds.stream(bench.request(initial_scan="only"))
            async with stream:
                assert [row.key async for row in stream] == [b"[1]", b"[2]"]

    sim = Simulation(14)
    sim.run(scenario())


def test_slow_stream_consumer_slows_nobody() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            bench.store.settings.set("changefeed.memory.per_changefeed_limit", "5000")
            async with await bench.feeds.stream(bench.request(initial_scan="no")) as stream:
                await asyncio.sleep(0.1)
                began = sim.now
                for k in range(500):
                    await bench.table.write((k, "v" * 20))
                assert sim.now - began < 5
                seen = set()
                async for row in stream:
                    seen.add(row.key)
                    await asyncio.sleep(0.001)
                    if len(seen) == 500:
                        break

    sim = Simulation(15)
    sim.run(scenario())


def test_stream_raises_what_ended_it() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            stream = await bench.feeds.stream(bench.request())
            async with stream:
                await bench.table.publish(locked=False)
                await bench.table.publish(state=DescriptorState.DROPPED)
                with pytest.raises(SQLError, match=r'table "orders" .* was dropped') as raised:
                    async for _ in stream:
                        pass
                assert raised.value.sqlstate == "42P01"

    sim = Simulation(16)
    sim.run(scenario())
