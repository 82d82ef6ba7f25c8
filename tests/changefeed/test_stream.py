"""Sinkless feeds: how they end, what they survive, and what is kept for them meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from tailrace.catalog.descriptors.descriptor import Column, DescriptorState
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed import Changefeeds, ChangefeedStream
from tailrace.changefeed.streams import stream_protection
from tailrace.kvlayer.access import Feed, StoreAccess
from tailrace.kvlayer.clock import Timestamp, duration, format_timestamp
from tailrace.kvlayer.errors import RetryableTransaction, StoreClosed
from tailrace.kvlayer.events import Event
from tailrace.kvlayer.frontier import Frontier
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.protected_timestamp import records
from tailrace.kvlayer.span import Span
from tests.changefeed.feeds import FeedBench, open_bench
from tests.harness.descriptors import STRING
from tests.harness.simulation import Simulation

MAX_AGE_SECONDS = 20.0

ADDED = Column(id=3, name="w", type=STRING, missing="x")


@pytest.fixture(autouse=True)
def short_ages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_protection, "MAX_AGE_SECONDS", MAX_AGE_SECONDS)
    monkeypatch.setattr(stream_protection, "RENEWAL_SECONDS", MAX_AGE_SECONDS / 10)


async def ended(stream: ChangefeedStream) -> SQLError:
    """What the stream's end says, its rows having been read."""
    with pytest.raises(SQLError) as raised:
        async for _ in stream:
            pass
    return raised.value


async def keys_until(stream: ChangefeedStream, key: bytes) -> list[bytes]:
    """The keys of the rows up to the first of `key`."""
    found: list[bytes] = []
    async for row in stream:
        if row.key is not None:
            found.append(row.key)
            if row.key == key:
                break
    return found


class FaultyFeed:
    """A feed that fails once the store that made it says so."""

    def __init__(self, store: FaultyStore, feed: Feed) -> None:
        self._store = store
        self._feed = feed

    @property
    def frontier(self) -> Frontier:
        return self._feed.frontier

    @property
    def behind(self) -> bool:
        return self._feed.behind

    async def next(self) -> list[Event]:
        events = await self._feed.next()
        if self._store.faults:
            raise self._store.faults.pop()
        return events

    def space_checkpoints(self, seconds: float) -> None:
        self._feed.space_checkpoints(seconds)

    def close(self) -> None:
        self._feed.close()


class FaultyStore:
    """A store whose feeds fail by `faults`, one of them each, and that is otherwise as it was."""

    def __init__(self, store: StoreAccess) -> None:
        self._store = store
        self.faults: list[Exception] = []
        self.feeds_opened = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def span_feed_from(self, starts: Iterable[tuple[Span, Timestamp]], **options: Any) -> Feed:
        self.feeds_opened += 1
        return FaultyFeed(self, self._store.span_feed_from(starts, **options))


def on_a_faulty_store(bench: FeedBench) -> tuple[FaultyStore, Changefeeds]:
    store = FaultyStore(bench.store)
    services = replace(bench.services, store=store)
    return store, Changefeeds(services, bench.jobs)


def test_policy_stop_ends_with_its_own_words() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            request = bench.request(schema_change_policy="stop")
            async with await bench.feeds.stream(request) as stream:
                await bench.table.write((3, "below"))
                await bench.table.publish(locked=False)
                columns = (*bench.table.descriptor.columns, ADDED)
                await bench.table.publish(columns=columns, next_column_id=4)
                error = await ended(stream)
            assert error.sqlstate == "55000"
            assert error.message.startswith("schema change occurred at ")
            assert "was changed (ADD_COLUMN)" in error.message
            at = error.message.split()[4].rstrip(":")
            assert error.hint is not None
            assert f"cursor = '{at}'" in error.hint

    sim = Simulation(1)
    sim.run(scenario())


def test_the_hint_of_an_end_leads_behind_it() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            request = bench.request(schema_change_policy="stop")
            async with await bench.feeds.stream(request) as stream:
                await bench.table.publish(locked=False)
                columns = (*bench.table.descriptor.columns, ADDED)
                await bench.table.publish(columns=columns, next_column_id=4)
                await bench.table.write((3, "behind"))
                error = await ended(stream)
            at = error.message.split()[4].rstrip(":")
            request = bench.request(schema_change_policy="stop", cursor=at)
            async with await bench.feeds.stream(request) as stream:
                assert await keys_until(stream, b"[3]") == [b"[3]"]

    sim = Simulation(2)
    sim.run(scenario())


def test_a_cursor_is_good_whatever_was_collected_of_other_tables() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            at = await bench.store.now()
            await bench.table.write((3, "behind"))
            await bench.store.collect_garbage(table_span(999), await bench.store.now())
            assert bench.store.gc_threshold > at
            request = bench.request(cursor=at_text(at))
            async with await bench.feeds.stream(request) as stream:
                assert await keys_until(stream, b"[3]") == [b"[3]"]
            own = bench.table.descriptor.primary_span
            await bench.store.collect_garbage(own, await bench.store.now())
            with pytest.raises(SQLError, match="garbage collection threshold") as refused:
                await bench.feeds.stream(request)
            assert refused.value.sqlstate == "22023"

    sim = Simulation(12)
    sim.run(scenario())


def test_a_dropped_table_ends_its_stream_by_name() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench, await bench.feeds.stream(bench.request()) as stream:
            await bench.table.publish(locked=False)
            await bench.table.publish(state=DescriptorState.DROPPED)
            error = await ended(stream)
            assert error.sqlstate == "42P01"
            assert 'table "orders"' in error.message
            assert "was dropped at" in error.message

    sim = Simulation(3)
    sim.run(scenario())


def test_a_truncated_table_ends_its_stream_by_name() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench, await bench.feeds.stream(bench.request()) as stream:
            await bench.table.publish(locked=False)
            await bench.table.publish(primary_index_id=2, next_index_id=3)
            error = await ended(stream)
            assert error.sqlstate == "55000"
            assert 'table "orders" was truncated' in error.message

    sim = Simulation(4)
    sim.run(scenario())


def test_nothing_is_lost_by_an_attempt_that_failed() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            store, feeds = on_a_faulty_store(bench)
            written = [b"[1]", b"[2]"]
            request = bench.request(resolved=None, min_checkpoint_frequency="10ms")
            async with await feeds.stream(request) as stream:
                assert await keys_until(stream, b"[2]") == written
                for k in range(3, 13):
                    if k % 3 == 0:
                        store.faults.append(RetryableTransaction("the store asks for patience"))
                    await bench.table.write((k, "new"))
                    await asyncio.sleep(0.1)
                found = await keys_until(stream, b"[12]")
            assert store.feeds_opened >= 3, "no attempt failed"
            assert list(dict.fromkeys(found)) == [b"[%d]" % k for k in range(3, 13)]

    sim = Simulation(5)
    sim.run(scenario())


def test_an_attempt_begins_at_what_the_client_has() -> None:
    """What was resolved and taken does not come again."""

    async def scenario() -> None:
        async with open_bench(sim) as bench:
            store, feeds = on_a_faulty_store(bench)
            request = bench.request(resolved=None, min_checkpoint_frequency="10ms")
            async with await feeds.stream(request) as stream:
                at = await bench.table.write((3, "new"))
                async for row in stream:
                    if row.key is None and row.value.decode() > f'{{"resolved":"{at_text(at)}"}}':
                        break
                store.faults.append(RetryableTransaction("the store asks for patience"))
                await bench.table.write((4, "newer"))
                assert await keys_until(stream, b"[4]") == [b"[4]"]
            assert store.feeds_opened == 2

    sim = Simulation(6)
    sim.run(scenario())


def at_text(at: Timestamp) -> str:
    return format_timestamp(at)


def test_a_closed_store_ends_a_stream() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            store, feeds = on_a_faulty_store(bench)
            async with await feeds.stream(bench.request()) as stream:
                store.faults.append(StoreClosed("the store is closing"))
                with pytest.raises(StoreClosed):
                    async for _ in stream:
                        pass
            assert store.feeds_opened == 1

    sim = Simulation(7)
    sim.run(scenario())


def test_a_slow_scan_is_protected_for_as_long_as_it_is_read() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            request = bench.request()
            await bench.table.write((1, "newer"), (2, "newer"))
            async with await bench.feeds.stream(request) as stream:
                await asyncio.sleep(5 * MAX_AGE_SECONDS)
                span = bench.table.descriptor.primary_span
                await bench.store.collect_garbage(span, await bench.store.now())
                assert bench.store.gc_threshold_of(span) < request.at
                first = await stream.take()
                assert [row.value for row in first] == [
                    b'{"after":{"k":1,"v":"old"}}',
                    b'{"after":{"k":2,"v":"old"}}',
                ]

    sim = Simulation(8)
    sim.run(scenario())


def test_protection_follows_what_was_taken() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench, await bench.feeds.stream(bench.request()) as stream:
            assert await keys_until(stream, b"[2]") == [b"[1]", b"[2]"]
            await asyncio.sleep(MAX_AGE_SECONDS)
            [record] = records(bench.store.engine)
            assert record.owner == "sinkless changefeed"
            now = await bench.store.now()
            span = bench.table.descriptor.primary_span
            await bench.store.collect_garbage(
                span, Timestamp(now - duration(seconds=MAX_AGE_SECONDS / 4))
            )
            assert bench.store.gc_threshold_of(span) > 0

    sim = Simulation(9)
    sim.run(scenario())


def test_protection_ends_with_the_stream() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            async with await bench.feeds.stream(bench.request()) as stream:
                await stream.take()
                assert len(records(bench.store.engine)) == 1
            assert records(bench.store.engine) == []

    sim = Simulation(10)
    sim.run(scenario())


def test_a_stream_that_is_never_read_protects_for_its_age_alone() -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            await bench.feeds.stream(bench.request())
            await asyncio.sleep(MAX_AGE_SECONDS + 1)
            [record] = records(bench.store.engine)
            assert record.expired(await bench.store.now())

    sim = Simulation(11)
    sim.run(scenario())
