"""What serializable transactions must not let happen, and what they must let happen."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.kvlayer.errors import KeyTooLarge, RetryableTransaction
from tailrace.kvlayer.keys import KEY_BYTES_MAX, VALUE_BYTES_MAX, table_span
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.transaction_modes import Isolation
from tests.harness.simulation import Simulation
from tests.harness.stores import key, put, running_store, unbuffered

A, B, C = key("a"), key("b"), key("c")
SPAN = table_span(7)


def test_no_update_is_lost() -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"0"})
            one, two = store.begin(), store.begin()
            assert await one.get(A) == await two.get(A) == b"0"
            await one.put([A], [b"1"])
            waiting = asyncio.create_task(two.put([A], [b"2"]))
            await asyncio.sleep(0.01)
            assert await one.commit() > two.read_timestamp, "it moved above the read of two"
            with pytest.raises(RetryableTransaction):
                await waiting
                await two.commit()
            await two.rollback()
            assert await store.snapshot(store.clock.last).get(A) == b"1"

    sim.run(main())


def test_write_skew_is_prevented() -> None:
    sim = Simulation(2)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"on", B: b"on"})
            one, two = store.begin(), store.begin()
            assert len(await one.scan(SPAN)) == len(await two.scan(SPAN)) == 2
            await one.put([A], [b"off"])
            await two.put([B], [b"off"])
            outcomes = await asyncio.gather(one.commit(), two.commit(), return_exceptions=True)
            failed = [o for o in outcomes if isinstance(o, RetryableTransaction)]
            assert len(failed) == 1, outcomes

    sim.run(main())


def test_commits_that_read_what_the_other_writes_do_not_push_each_other_for_ever() -> None:
    """Somebody has read since, so both refresh what they read, which the other has written."""
    sim = Simulation(23, shuffled=False)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"on", B: b"on"})
            one, two = store.begin(), store.begin()
            for transaction in (one, two):
                assert len(await transaction.scan(SPAN)) == 2
            reader = store.begin(read_only=True)
            assert len(await reader.scan(SPAN)) == 2
            await reader.rollback()
            await one.put([A], [b"off"])
            await two.put([B], [b"off"])
            commits = [asyncio.create_task(each.commit()) for each in (one, two)]
            for _ in range(100):
                await asyncio.sleep(0)
            assert any(commit.done() for commit in commits), (one, two)
            outcomes = await asyncio.gather(*commits, return_exceptions=True)
            failed = [each for each in outcomes if isinstance(each, RetryableTransaction)]
            assert len(failed) == 1, outcomes

    sim.run(main())


def test_phantom_is_prevented() -> None:
    sim = Simulation(3)

    async def main() -> None:
        async with running_store(sim) as store:
            counting = store.begin()
            inserting = store.begin()
            assert await inserting.scan(Span(A, B)) == []
            assert await counting.scan(Span(B, key("d"))) == []
            await counting.put([A], [b"0 rows in b..d"])
            await inserting.put([C], [b"0 rows in a..b"])
            outcomes = await asyncio.gather(
                counting.commit(), inserting.commit(), return_exceptions=True
            )
            assert sum(isinstance(o, RetryableTransaction) for o in outcomes) == 1, outcomes

    sim.run(main())


def test_reads_stand_still() -> None:
    sim = Simulation(4)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"0", B: b"0"})
            reader = store.begin(read_only=True)
            assert await reader.get(A) == b"0"
            await put(store, {A: b"1", B: b"1", C: b"1"})
            assert await reader.get(B) == b"0"
            assert await reader.scan(SPAN) == [(A, b"0"), (B, b"0")]
            await reader.commit()

    sim.run(main())


def test_a_read_waits_for_who_may_commit_below_it() -> None:
    sim = Simulation(21)

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            await put(store, {A: b"old"})
            writer = store.begin()
            await writer.put([A], [b"new"])
            reader = store.begin()
            reading = asyncio.create_task(reader.get(A))
            await asyncio.sleep(0.05)
            assert not reading.done()
            await writer.commit()
            assert await reading == b"new"
            await reader.rollback()

    sim.run(main())


def test_own_writes_are_read() -> None:
    sim = Simulation(5)

    async def main() -> None:
        async with running_store(sim) as store:
            before = await put(store, {A: b"0", B: b"0"})
            writer = store.begin()
            await writer.put([A, C], [b"1", b"1"])
            await writer.delete([B])
            await writer.put([C], [b"2"])
            assert [await writer.get(name) for name in (A, B, C)] == [b"1", None, b"2"]
            assert await writer.scan(SPAN) == [(A, b"1"), (C, b"2")]
            assert await writer.scan(SPAN, reverse=True, limit=1) == [(C, b"2")]
            assert [rows async for rows in writer.scan_slices(SPAN)] == [[(A, b"1"), (C, b"2")]]
            store.check_invariants()
            assert await store.begin(read_timestamp=before).get(B) == b"0"
            committed = await writer.commit()
            assert await store.snapshot(committed).scan(SPAN) == [(A, b"1"), (C, b"2")]

    sim.run(main())


def test_rollback_leaves_nothing() -> None:
    sim = Simulation(6)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"0"})
            writer = store.begin()
            names = [key(f"{i:05}") for i in range(1500)]
            await writer.put(names, [b"x"] * len(names))
            await writer.put([A], [b"1"])
            await writer.rollback()
            assert await store.snapshot(store.clock.last).scan(SPAN) == [(A, b"0")]
            versions = store.versions(SPAN, store.gc_threshold, store.clock.last)
            assert [v[2] async for rows in versions for v in rows] == [b"0"]

    sim.run(main())


def test_no_write_lands_under_a_read() -> None:
    sim = Simulation(7)

    async def main() -> None:
        async with running_store(sim) as store:
            writer = store.begin()
            at = store.clock.now()
            rows = await store.snapshot(at).scan(SPAN)
            await writer.put([B], [b"1"])
            assert await writer.commit() > at
            assert await store.snapshot(at).scan(SPAN) == rows == []

    sim.run(main())


def test_slices_see_one_moment() -> None:
    sim = Simulation(8)

    async def main() -> None:
        async with running_store(sim) as store:
            names = [key(f"{i:05}") for i in range(2500)]
            await put(store, dict.fromkeys(names, b"0"))
            writer = store.begin()  # begins below the scan, writes in the middle of it
            at = store.clock.now()
            found = []
            async for rows in store.snapshot(at).scan_slices(SPAN):
                found += rows
                if len(found) == len(rows):
                    await writer.put([names[0], names[-1]], [b"1", b"1"])
                    await writer.commit()
            assert found == [(name, b"0") for name in names]
            assert writer.write_timestamp > at

    sim.run(main())


def test_timestamp_moves_when_nothing_read_has_changed() -> None:
    sim = Simulation(9)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"0", B: b"0"})
            writer = store.begin()
            assert await writer.get(A) == b"0"
            began = writer.read_timestamp
            moved_by = await put(store, {B: b"1"})
            await writer.put([B], [b"2"])
            assert await writer.commit() > moved_by > began

    sim.run(main())


def test_refresh_fails_when_a_read_has_changed() -> None:
    sim = Simulation(10)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"0", B: b"0"})
            for read_it in ("get", "scan"):
                writer = store.begin()
                if read_it == "get":
                    await writer.get(A)
                else:
                    await writer.scan(Span(A, B))
                await put(store, {A: b"1", B: b"1"})
                with pytest.raises(RetryableTransaction):
                    await writer.put([B], [b"2"])
                await writer.rollback()
            assert await store.snapshot(store.clock.last).get(B) == b"1"

    sim.run(main())


def test_many_reads_collapse_and_still_refresh() -> None:
    sim = Simulation(11)

    async def main() -> None:
        async with running_store(sim) as store:
            writer = store.begin()
            for i in range(1000):
                await writer.get(key(f"{i:05}"))
            assert len(writer._record.read_spans.spans) == 1
            await put(store, {C: b"1"})  # outside what was read
            await writer.put([C], [b"2"])
            await writer.commit()
            writer = store.begin()
            for i in range(1000):
                await writer.get(key(f"{i:05}"))
            await put(store, {key("00500"): b"1", C: b"3"})
            with pytest.raises(RetryableTransaction):
                await writer.put([C], [b"4"])
            await writer.rollback()

    sim.run(main())


def test_write_at_or_below_closed_moves() -> None:
    sim = Simulation(12)

    async def main() -> None:
        async with running_store(sim) as store:
            writer = store.begin()
            await asyncio.sleep(1)
            closed = store.closed_timestamps.close()
            assert closed > writer.write_timestamp
            await writer.put([A], [b"1"])
            assert await writer.commit() > closed

    sim.run(main())


def test_pushed_transaction_commits_above_the_push() -> None:
    sim = Simulation(13)

    async def main() -> None:
        async with running_store(sim) as store:
            writer = store.begin()
            await writer.put([A], [b"1"])
            outcome = await store._ranges.push(writer.id)
            assert await writer.commit() == outcome.timestamp
            outcome = await store._ranges.push(writer.id)
            assert outcome.verdict.name in ("COMMITTED", "ABORTED")  # retired once consumed

    sim.run(main())


def test_oversized_keys_and_values_are_refused() -> None:
    sim = Simulation(14)

    async def main() -> None:
        async with running_store(sim) as store:
            writer = store.begin()
            with pytest.raises(KeyTooLarge):
                await writer.put([A + b"x" * KEY_BYTES_MAX], [b""])
            with pytest.raises(KeyTooLarge):
                await writer.put([A], [bytes(VALUE_BYTES_MAX + 1)])
            with pytest.raises(KeyTooLarge):
                await put(store, {A + b"x" * KEY_BYTES_MAX: b""})
            assert writer.write_count == 0
            await writer.rollback()

    sim.run(main())


@pytest.mark.parametrize("isolation", list(Isolation))
def test_tracked_read_holds_at_commit_at_every_level(isolation: Isolation) -> None:
    """What an invariant rests on is tracked by whoever keeps it, however weak the transaction."""
    sim = Simulation(21)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"0"})
            for tracked in (True, False):
                writer = store.begin(isolation=isolation)
                with writer.tracking(tracked):
                    await writer.get(A)
                await put(store, {A: b"1"})
                await writer.put([C], [b"for A = 0"])
                await store._ranges.push(writer.id)  # so that it commits above the change
                if tracked:
                    with pytest.raises(RetryableTransaction):
                        await writer.commit()
                else:
                    await writer.commit()

    sim.run(main())


def test_a_refresh_fails_at_an_intent() -> None:
    """What may yet become a version below where a transaction moves is a change of what it read."""
    sim = Simulation(22)

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            first = store.begin()
            assert await first.get(A) is None
            second = store.begin()
            await second.put([A], [b"2"])
            assert await store.snapshot(store.clock.now()).get(B) is None
            await first.put([B], [b"1"])
            with pytest.raises(RetryableTransaction):
                await first.commit()
            await second.commit()

    sim.run(main())
