"""Protected timestamps: what holds garbage collection back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.protected_timestamp import (
    ProtectedTimestamps,
    ProtectionRefused,
    low_water,
)
from tailrace.kvlayer.protected_timestamp import records as committed_records
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store
from tests.harness.simulation import Simulation
from tests.harness.stores import key, put, running_store

SPAN, OTHER = Span.prefix(key("", 7)), Span.prefix(key("", 8))


def on_store(test: Callable[[Store], Awaitable[None]]) -> None:
    async def run(sim: Simulation) -> None:
        async with running_store(sim) as store:
            await test(store)

    sim = Simulation(1)
    sim.run(run(sim))


def water(store: Store, span: Span = SPAN) -> Timestamp | None:
    return low_water(store.engine, span, store.clock.now())


async def protect(store: Store, ts: Timestamp, *, max_age_seconds: float = 0.0) -> bytes:
    transaction = store.begin()
    record_id = await ProtectedTimestamps(store).protect(
        transaction, owner="a test", spans=[SPAN], timestamp=ts, max_age_seconds=max_age_seconds
    )
    await transaction.commit()
    return record_id


def test_low_water_is_the_least_of_the_span() -> None:
    async def test(store: Store) -> None:
        first, second = store.clock.now(), store.clock.now()
        assert water(store) is None
        await protect(store, second)
        await protect(store, first)
        assert water(store) == first
        assert water(store, OTHER) is None

    on_store(test)


def test_record_protects_before_it_is_committed() -> None:
    async def test(store: Store) -> None:
        ts = store.clock.now()
        transaction = store.begin()
        await ProtectedTimestamps(store).protect(
            transaction, owner="a test", spans=[SPAN], timestamp=ts
        )
        assert water(store) == ts
        await transaction.rollback()
        assert water(store) is None

    on_store(test)


def test_moving_record_protects_where_it_stood() -> None:
    async def test(store: Store) -> None:
        old, new = store.clock.now(), store.clock.now()
        records = ProtectedTimestamps(store)
        record_id = await protect(store, old)
        transaction = store.begin()
        assert await records.advance(transaction, record_id, new)
        assert not await records.advance(transaction, record_id, old)
        assert water(store) == old
        await transaction.commit()
        assert water(store) == new

    on_store(test)


def test_released_record_protects_no_more() -> None:
    async def test(store: Store) -> None:
        records = ProtectedTimestamps(store)
        record_id = await protect(store, store.clock.now())
        transaction = store.begin()
        await records.release(transaction, record_id)
        assert water(store) is not None
        await transaction.commit()
        assert water(store) is None
        assert committed_records(store.engine) == []

    on_store(test)


def test_old_record_expires() -> None:
    async def test(store: Store) -> None:
        ts = store.clock.now()
        await protect(store, ts, max_age_seconds=60)
        await asyncio.sleep(59)
        assert water(store) == ts
        await asyncio.sleep(2)
        assert water(store) is None

    on_store(test)


def test_timestamp_below_threshold_is_refused() -> None:
    async def test(store: Store) -> None:
        ts = await put(store, {key("a"): b"1"})
        await store.collect_garbage(SPAN, ts)
        transaction = store.begin()
        with pytest.raises(ProtectionRefused):
            await ProtectedTimestamps(store).protect(
                transaction, owner="a test", spans=[SPAN], timestamp=ts
            )
        await transaction.rollback()
        await protect(store, Timestamp(ts + 1))

    on_store(test)


def test_system_spans_are_always_covered() -> None:
    async def test(store: Store) -> None:
        ts = store.clock.now()
        transaction = store.begin()
        records = ProtectedTimestamps(store, always=[OTHER])
        await records.protect(transaction, owner="a test", spans=[SPAN], timestamp=ts)
        await transaction.commit()
        assert water(store, OTHER) == ts

    on_store(test)


def test_expired_records_are_counted() -> None:
    """Nobody else says that what a feed has yet to read is protected no more."""

    async def test(store: Store) -> None:
        await protect(store, store.clock.now(), max_age_seconds=60)
        await protect(store, store.clock.now(), max_age_seconds=600)
        await asyncio.sleep(61)
        await store.collect_garbage(SPAN, store.clock.now())
        assert store.metrics.get("kv_protected_timestamps_expired") == 1

    on_store(test)
