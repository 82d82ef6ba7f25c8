"""What the operations of a keyspace promise, each on a store of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tailrace.kvlayer.clock import Timestamp, duration
from tailrace.kvlayer.errors import BatchTimestampBeforeGC, DeadlineExceeded, KeyTooLarge
from tailrace.kvlayer.keys import VERSION, split_version_key
from tailrace.kvlayer.raw import RawKeyspace, dead_at, keyspace_span, raw_key
from tailrace.kvlayer.raw.keyspace import COMMAND_BYTES_MAX, COMMAND_KEYS_MAX, USER_KEY_BYTES_MAX
from tailrace.kvlayer.settings import SettingError, Settings
from tailrace.kvlayer.store import Store
from tests.harness.simulation import Simulation
from tests.harness.stores import crash, hold_log, open_store, release_log, reopen, running_store

SPAN = keyspace_span(7)


def run(body: Callable[[Store, RawKeyspace, Simulation], Awaitable[None]], seed: int = 1) -> None:
    sim = Simulation(seed)

    async def main() -> None:
        async with running_store(sim) as store:
            await body(store, RawKeyspace(store, 7), sim)

    sim.run(main())


async def rows(keyspace: RawKeyspace, *args: bytes | None, **options: object) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    async for pairs in keyspace.scan(*args, **options):  # type: ignore[arg-type]
        assert sorted(found.keys() | dict(pairs)) == [*found, *dict(pairs)]
        found.update(pairs)
    return found


def test_put_get_delete() -> None:
    async def body(store: Store, keyspace: RawKeyspace, sim: Simulation) -> None:
        first = await keyspace.put(b"k", b"1")
        second = await keyspace.put(b"k", b"")
        third = await keyspace.delete(b"k")
        assert first < second < third
        assert await keyspace.get(b"k") is None
        assert await keyspace.get(b"k", at=second) == b""
        assert await keyspace.get(b"k", at=first) == b"1"
        assert await keyspace.get(b"k", at=Timestamp(first - 1)) is None

    run(body)


def test_keyspaces_share_no_key() -> None:
    async def body(store: Store, keyspace: RawKeyspace, sim: Simulation) -> None:
        await keyspace.put(b"k", b"1")
        assert await RawKeyspace(store, 8).get(b"k") is None
        assert await rows(RawKeyspace(store, 8)) == {}

    run(body)


def test_a_write_returns_when_it_is_durable() -> None:
    async def body(store: Store, keyspace: RawKeyspace, sim: Simulation) -> None:
        hold_log(store)
        writing = asyncio.create_task(keyspace.put(b"k", b"1"))
        await asyncio.sleep(1)
        reading = asyncio.create_task(keyspace.get(b"k"))
        await asyncio.sleep(1)
        assert not writing.done()
        assert not reading.done()
        release_log(store)
        await writing
        assert await reading == b"1"

    run(body)


def test_acknowledged_writes_outlive_a_crash() -> None:
    sim = Simulation(3)

    async def before() -> None:
        store = await open_store(sim)
        keyspace = RawKeyspace(store, 7)
        await keyspace.put_many([(b"%d" % i, b"v") for i in range(20)])
        await keyspace.delete(b"3")
        crash(sim)

    async def after() -> None:
        store = await reopen(sim)
        keyspace = RawKeyspace(store, 7)
        assert set(await rows(keyspace)) == {b"%d" % i for i in range(20)} - {b"3"}
        await store.close()

    sim.run(before())
    sim.run(after())


def test_timestamps_of_a_key_ascend_when_the_clock_is_set_back() -> None:
    async def body(store: Store, keyspace: RawKeyspace, sim: Simulation) -> None:
        drawn = []
        for jump in (0, -3600, 5, -7200, 0):
            sim.wall.jump(jump)
            drawn.append(await keyspace.put(b"k", b"v"))
        assert drawn == sorted(set(drawn))

    run(body)


def test_the_last_put_of_a_batch_wins() -> None:
    async def body(store: Store, keyspace: RawKeyspace, sim: Simulation) -> None:
        many = 2 * COMMAND_KEYS_MAX + 7
        await keyspace.put_many([(b"%04d" % (i % 700), b"%d" % i) for i in range(many)])
        found = await rows(keyspace)
        assert found == {b"%04d" % (i % 700): b"%d" % i for i in range(many)}

    run(body)


def test_a_value_ends_at_its_instant() -> None:
    async def body(store: Store, keyspace: RawKeyspace, sim: Simulation) -> None:
        at = await keyspace.put(b"k", b"v", ttl_seconds=10)
        await asyncio.sleep(9.9)
        assert await keyspace.get(b"k") == b"v"
        await asyncio.sleep(0.2)
        assert await keyspace.get(b"k") is None
        assert await rows(keyspace) == {}
        ends = Timestamp(at + duration(seconds=10))
        assert await keyspace.get(b"k", at=Timestamp(ends - 1)) == b"v"
        assert await keyspace.get(b"k", at=ends) is None

    run(body)


def test_a_keyspace_has_a_time_to_live_of_its_own() -> None:
    async def body(store: Store, keyspace: RawKeyspace, sim: Simulation) -> None:
        brief = RawKeyspace(store, 7, ttl_seconds=5)
        await brief.put(b"a", b"v")
        await brief.put(b"b", b"v", ttl_seconds=60)
        await asyncio.sleep(6)
        assert await rows(brief) == {b"b": b"v"}

    run(body)


def test_compare_and_swap() -> None:
    async def body(store: Store, keyspace: RawKeyspace, sim: Simulation) -> None:
        swap = keyspace.compare_and_swap
        assert (await swap(b"k", expected=b"x", value=b"1")).swapped is False
        assert (await swap(b"k", expected=None, value=b"1")).swapped is True
        refused = await swap(b"k", expected=None, value=b"2")
        assert (refused.swapped, refused.previous, refused.timestamp) == (False, b"1", None)
        deleted = await swap(b"k", expected=b"1", value=None)
        assert (deleted.swapped, deleted.previous) == (True, b"1")
        assert await keyspace.get(b"k") is None
        await keyspace.put(b"k", b"v", ttl_seconds=1)
        await asyncio.sleep(2)
        assert (await swap(b"k", expected=None, value=b"3")).swapped, "what has ended is absent"

    run(body)


def test_one_of_many_swappers_wins() -> None:
    async def body(store: Store, keyspace: RawKeyspace, sim: Simulation) -> None:
        async def count_up() -> None:
            while True:
                found = await keyspace.get(b"n")
                value = b"%d" % (int(found or b"0") + 1)
                if (await keyspace.compare_and_swap(b"n", expected=found, value=value)).swapped:
                    return

        await asyncio.gather(*[count_up() for _ in range(20)])
        assert await keyspace.get(b"n") == b"20"

    run(body)


def test_scan_is_ordered_bounded_and_of_one_time() -> None:
    async def body(store: Store, keyspace: RawKeyspace, sim: Simulation) -> None:
        at = await keyspace.put_many([(b"%02d" % i, b"v") for i in range(30)])
        await keyspace.delete_many([b"%02d" % i for i in range(0, 30, 2)])
        assert list(await rows(keyspace, b"05", b"12")) == [b"05", b"07", b"09", b"11"]
        assert list(await rows(keyspace, b"05", limit=2)) == [b"05", b"07"]
        assert len(await rows(keyspace, at=at)) == 30
        assert await rows(keyspace, b"9", b"1") == {}
        assert await rows(keyspace, limit=0) == {}

    run(body)


def test_delete_range_deletes_each_key() -> None:
    async def body(store: Store, keyspace: RawKeyspace, sim: Simulation) -> None:
        many = 2 * COMMAND_KEYS_MAX + 100
        await keyspace.put_many([(b"%05d" % i, b"v") for i in range(many)])
        await keyspace.delete(b"00003")
        deleted = await keyspace.delete_range(b"00001", b"01050")
        assert deleted.count == 1048
        assert len(await rows(keyspace)) == many - 1049
        assert (await keyspace.delete_range(b"00001", b"01050")).count == 0
        assert (await keyspace.delete_range()).count == many - 1049
        assert await rows(keyspace) == {}

    run(body)


def test_delete_range_reads_a_megabyte_a_commit() -> None:
    async def body(store: Store, keyspace: RawKeyspace, sim: Simulation) -> None:
        for i in range(4):
            await keyspace.put(b"%d" % i, b"v" * COMMAND_BYTES_MAX)
        await keyspace.put(b"4", b"v")
        assert (await keyspace.delete_range()).count == 5
        versions = store.engine.scan(VERSION + SPAN.start, VERSION + SPAN.end)
        written_at = [split_version_key(key)[1] for key, body in versions if len(body) < 100]
        assert len(written_at) == 6, "the small row, and five deletions"
        assert len(set(written_at)) == 6, "of a commit each"

    run(body)


def test_sizes_are_bounded() -> None:
    async def body(store: Store, keyspace: RawKeyspace, sim: Simulation) -> None:
        longest = b"k" * USER_KEY_BYTES_MAX
        await keyspace.put(longest, b"v")
        assert await keyspace.get(longest) == b"v"
        for call in (keyspace.put(longest + b"k", b"v"), keyspace.delete(longest + b"k")):
            with pytest.raises(KeyTooLarge, match="over the limit"):
                await call
        with pytest.raises(KeyTooLarge):
            await keyspace.put_many([(b"a", b"v"), (longest + b"k", b"v")])
        assert await keyspace.get(b"a") is None

    run(body)


def test_nothing_is_written_at_the_deadline() -> None:
    async def body(store: Store, keyspace: RawKeyspace, sim: Simulation) -> None:
        late = RawKeyspace(store, 7, deadline=lambda: store.clock.last)
        with pytest.raises(DeadlineExceeded):
            await late.put(b"k", b"v")
        assert await keyspace.get(b"k") is None

    run(body)


def test_deletions_are_kept_until_their_time_is_over() -> None:
    async def body(store: Store, keyspace: RawKeyspace, sim: Simulation) -> None:
        await keyspace.put(b"k", b"v")
        await keyspace.delete(b"k")
        threshold = store.clock.now()
        assert await store.collect_garbage(SPAN, threshold, dead_at=dead_at) == 1
        assert len(await store.snapshot(store.clock.now()).scan(SPAN)) == 1, "the deletion is there"
        await asyncio.sleep(25 * 3600 + 1)
        assert await store.collect_garbage(SPAN, store.clock.now(), dead_at=dead_at) == 1
        assert await store.snapshot(store.clock.now()).scan(SPAN) == []
        with pytest.raises(BatchTimestampBeforeGC):
            await keyspace.get(b"k", at=threshold)

    sim = Simulation(9, time_limit=200_000.0)

    async def main() -> None:
        async with running_store(sim) as store:
            await body(store, RawKeyspace(store, 7), sim)

    sim.run(main())


def test_what_has_ended_is_collected_when_nobody_can_see_it() -> None:
    async def body(store: Store, keyspace: RawKeyspace, sim: Simulation) -> None:
        written = await keyspace.put(b"k", b"v", ttl_seconds=10)
        await keyspace.put(b"l", b"v")
        await asyncio.sleep(20)
        before = Timestamp(written + duration(seconds=9))
        assert await store.collect_garbage(SPAN, before, dead_at=dead_at) == 0
        assert await keyspace.get(b"k", at=Timestamp(before + 1)) == b"v"
        assert await store.collect_garbage(SPAN, store.clock.now(), dead_at=dead_at) == 1
        assert [key for key, _ in await store.snapshot(store.clock.now()).scan(SPAN)] == [
            raw_key(7, b"l")
        ]

    run(body)


def test_the_start_window_stays_below_the_time_of_deletions() -> None:
    settings = Settings()
    with pytest.raises(SettingError, match="must stay below"):
        settings.check("kv.raw.start_window", "25h")
    with pytest.raises(SettingError, match="must stay below"):
        settings.check("kv.raw.deleted_ttl", "1h")
    settings.check("kv.raw.start_window", "1h")
    settings.set("kv.raw.start_window", "1h")
    settings.check("kv.raw.deleted_ttl", "2h")
