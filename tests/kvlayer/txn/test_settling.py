"""A scan behind a large commit reads its rows before they are versions, and waits for none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from tailrace.kvlayer import keys
from tailrace.kvlayer.clock import ZERO
from tailrace.kvlayer.engine import MemoryEngine
from tailrace.kvlayer.keys import ALL_KEYS, table_span
from tailrace.kvlayer.transaction_modes import WhenLocked
from tailrace.kvlayer.txn import Transaction
from tailrace.kvlayer.txn.limits import COMMAND_ROWS_MAX
from tests.harness.simulation import Simulation
from tests.harness.stores import (
    crash,
    key,
    open_store,
    put,
    reopen,
    running_store,
    unbuffered,
)

SPAN = table_span(7)
ROWS = 50_000
"""More than are resolved ahead of the log, so that some still stand when the commit is durable."""


async def written(transaction: Transaction, body: bytes = b"v") -> None:
    for start in range(0, ROWS, 500):
        names = [key(f"{number:05}") for number in range(start, start + 500)]
        await transaction.put(names, [body] * 500)


def test_a_scan_reads_rows_that_are_about_to_be_versions() -> None:
    """The first slice comes while most rows are intents, and none is missed or read twice."""
    sim = Simulation(1)

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            writer = store.begin()
            await written(writer)
            await writer.commit()
            slices = store.snapshot(await store.now()).scan_slices(SPAN)
            rows = await anext(slices)
            assert len(writer._record.intents) > 10_000, "they follow behind the commit"
            rows += [row async for found in slices for row in found]
            assert rows == [(key(f"{number:05}"), b"v") for number in range(ROWS)]

    sim.run(main())


def test_intents_replace_and_hide_what_lies_below() -> None:
    """Both ways through the span, while what was deleted and changed is not resolved."""
    sim = Simulation(2)

    async def main() -> None:
        async with running_store(sim) as store:
            first = store.begin()
            await written(first)
            await first.commit()
            old = await store.now()
            second = store.begin()
            await written(second, b"w")
            await second.delete([key(f"{number:05}") for number in range(0, ROWS, 3)])
            await second.commit()
            assert len(second._record.intents) > 10_000
            expected = [(key(f"{n:05}"), b"w") for n in range(ROWS) if n % 3]
            reader = store.begin(read_only=True)
            assert await reader.scan(SPAN, limit=700, reverse=True) == expected[:-701:-1]
            assert await reader.scan(SPAN) == expected
            before = store.snapshot(old).scan_slices(SPAN)
            assert [row async for rows in before for row in rows] == [
                (key(f"{n:05}"), b"v") for n in range(ROWS)
            ]
            await reader.rollback()

    sim.run(main())


def test_what_a_reader_knows_is_no_change() -> None:
    """Rows whose intents still stand, committed below where it asks from."""
    sim = Simulation(4)

    async def main() -> None:
        async with running_store(sim) as store:
            writer = store.begin()
            await written(writer)
            await writer.commit()
            known = await store.now()
            reader = store.begin()
            await reader.put([key("00007")], [b"own"])
            assert len(writer._record.intents) > 10_000
            slices = reader.changed_slices(SPAN, known)
            assert [row async for rows in slices for row in rows] == [(key("00007"), b"own")]
            await reader.rollback()

    sim.run(main())


def test_a_deletion_of_a_span_waits_once_for_a_commit_that_is_resolved() -> None:
    """The deletion waited for the first intent that was left, and stepped over all before it."""
    sim = Simulation(9)

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            writer = store.begin()
            await written(writer)
            await writer.commit()
            assert len(writer._record.intents) > 10_000
            await store.one_phase(lambda evaluation: evaluation.delete_range(SPAN))
            assert store.metrics.get("kv_lock_waits_total") == 1
            assert await store.snapshot(store.clock.last).scan(SPAN) == []

    sim.run(main())


def test_rows_that_another_may_change_are_passed_over() -> None:
    sim = Simulation(3)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {key("00007"): b"below", key("99999"): b"free"})
            writer = store.begin()
            await written(writer)
            reader = store.begin()
            free = [(key("99999"), b"free")]
            assert await reader.scan(SPAN, when_locked=WhenLocked.SKIP) == free
            assert await reader.scan(table_span(8)) == [], "of another table nobody waits"
            await reader.rollback()
            await writer.rollback()

    sim.run(main())


class CountingEngine(MemoryEngine):
    """Counts the scans of intents over more than one key, and the bytes that they return."""

    intent_scans = 0
    intent_bytes = 0

    def __init__(self) -> None:
        super().__init__()
        self.intent_spans: list[tuple[bytes, bytes]] = []

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        if start.startswith(keys.INTENT) and end != start + b"\x00":
            self.intent_scans += 1
            self.intent_spans.append((start, end))
        for engine_key, value in super().scan(start, end, reverse=reverse):
            if start.startswith(keys.INTENT):
                self.intent_bytes += len(value)
            yield engine_key, value


def test_keys_far_apart_are_not_scanned_for() -> None:
    """A commit of rows at both ends of a table steps over nothing that was deleted between them."""
    sim = Simulation(5)

    async def main() -> None:
        engine = CountingEngine()
        store = await open_store(sim, engine=engine)
        writer = store.begin()
        await writer.put([key("00000"), key("99999")], [b"v"] * 2)
        before = engine.intent_scans
        await writer.commit()
        assert engine.intent_scans == before
        await store.close()

    sim.run(main())


def test_a_feed_that_begins_scans_where_open_transactions_have_intents() -> None:
    """Behind a large load a scan of its whole range would step over all that is resolved."""
    sim = Simulation(7)

    async def main() -> None:
        engine = CountingEngine()
        store = await open_store(sim, engine=engine, settings=unbuffered())
        writer = store.begin()
        names = [key(f"{number:05}") for number in range(500, 900)]
        await writer.put(names, [b"v"] * 400)
        engine.intent_spans.clear()
        feed = store.range_feed(SPAN, ZERO)
        [(start, end)] = engine.intent_spans
        assert (start, end) == (keys.INTENT + names[0], keys.INTENT + names[-1] + b"\x00")
        feed.close()
        await writer.rollback()
        await store.close()

    sim.run(main())


def test_recovery_steps_over_nothing_that_it_has_resolved() -> None:
    """Each command's worth of intents is looked for behind the last one."""
    sim = Simulation(8)
    names = [key(f"{number:05}") for number in range(1000)]

    async def before() -> None:
        store = await open_store(sim, engine=CountingEngine(), settings=unbuffered())
        await store.begin().put(names, [b"v"] * len(names))
        await put(store, {key("99999"): b"durable, and so is all before it"})
        crash(sim)

    async def after() -> None:
        store = await reopen(sim)
        assert isinstance(store.engine, CountingEngine)
        starts = [start[1:] for start, _ in store.engine.intent_spans]
        behind = [name + b"\x00" for name in names[COMMAND_ROWS_MAX - 1 :: COMMAND_ROWS_MAX]]
        assert starts == [ALL_KEYS.start, *behind]
        await store.close()

    sim.run(before())
    sim.run(after())


def test_wide_intents_are_read_about_once() -> None:
    """Each command's worth of them was found by reading all that were left: seconds of the loop."""
    sim = Simulation(6)

    async def main() -> None:
        engine = CountingEngine()
        store = await open_store(sim, engine=engine)
        writer = store.begin()
        names = [key(f"{number:05}") for number in range(120)]
        await writer.put(names, [b"v" * 250_000] * 120)
        before = engine.intent_bytes
        await writer.commit()
        await asyncio.sleep(60)
        assert (await store.snapshot(store.clock.last).scan(SPAN))[-1][0] == names[-1]
        resolved = engine.intent_bytes - before
        assert 120 * 250_000 <= resolved < 6 * 120 * 250_000, resolved
        await store.close()

    sim.run(main())
