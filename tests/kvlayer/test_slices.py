"""Long reads hold a slice at a time, and a slice is bounded in bytes, whatever its rows weigh."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import closing

import pytest

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.events import Event, ValueBatch
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.mvcc import SLICE_BYTES, SLICE_ROWS, intents_in, run_of_intents, take_slice
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.txn.buffer import BUFFER_BYTES
from tailrace.kvlayer.txn.intents_seen import PASSED, RUN_INTENTS, intents_seen
from tailrace.kvlayer.txn.reading import merged
from tests.harness.simulation import Simulation
from tests.harness.stores import key, put, running_store

SPAN = table_span(7)
BODY = b"v" * (SLICE_BYTES // 3)
ROWS = {key(f"{number:03}"): BODY for number in range(30)}
HELD_MAX = SLICE_BYTES + len(BODY) + 100
"""What a slice may hold: the bound, and the row that passes it."""

Read = Callable[[Store, Timestamp], AsyncIterator[list[bytes]]]


async def scanned(store: Store, before: Timestamp) -> AsyncIterator[list[bytes]]:
    async for rows in store.snapshot(store.clock.now()).scan_slices(SPAN):
        yield [body for _, body in rows]


async def scanned_in_a_transaction(store: Store, before: Timestamp) -> AsyncIterator[list[bytes]]:
    transaction = store.begin()
    async for rows in transaction.scan_slices(SPAN):
        yield [body for _, body in rows]
    await transaction.rollback()


async def history(store: Store, before: Timestamp) -> AsyncIterator[list[bytes]]:
    async for rows in store.versions(SPAN, before, store.clock.now()):
        yield [body or b"" for _, _, body in rows]


async def changed(store: Store, before: Timestamp) -> AsyncIterator[list[bytes]]:
    transaction = store.begin()
    async for rows in transaction.changed_slices(SPAN, before):
        yield [body or b"" for _, body in rows]
    await transaction.rollback()


async def own_intents(store: Store, before: Timestamp) -> AsyncIterator[list[bytes]]:
    transaction = store.begin()
    await transaction.put(list(ROWS), list(ROWS.values()))
    async for rows in transaction.changed_slices(SPAN, store.clock.last):
        yield [body or b"" for _, body in rows]
    await transaction.rollback()


async def caught_up(store: Store, before: Timestamp) -> AsyncIterator[list[bytes]]:
    feed = store.span_feed([SPAN], before)
    rest = len(ROWS)
    while rest:
        bodies = bodies_in(await feed.next())
        rest -= len(bodies)
        if bodies:
            yield bodies
    feed.close()


def bodies_in(events: Iterable[Event]) -> list[bytes]:
    batches = [event for event in events if isinstance(event, ValueBatch)]
    return [body or b"" for batch in batches for body in batch.values]


def on_a_store(scenario: Callable[[Store], Awaitable[None]]) -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with running_store(sim) as store:
            await scenario(store)

    sim.run(main())


@pytest.mark.parametrize(
    "read", [scanned, scanned_in_a_transaction, history, changed, own_intents, caught_up]
)
def test_slices_are_cut_by_bytes(read: Read) -> None:
    async def scenario(store: Store) -> None:
        before = store.clock.now()
        for name, body in ROWS.items():
            await put(store, {name: body})
        slices = [bodies async for bodies in read(store, before)]
        assert sum(map(len, slices)) >= len(ROWS)
        held = [sum(map(len, bodies)) for bodies in slices]
        assert max(held) <= HELD_MAX, held

    on_a_store(scenario)


def test_one_step_reads_no_more_intents_than_a_slice() -> None:
    async def scenario(store: Store) -> None:
        transaction = store.begin()
        await transaction.put(list(ROWS), list(ROWS.values()))
        run, more = run_of_intents(store.engine, SPAN, 256)
        assert sum(len(intent.value) for _, intent in run) <= HELD_MAX
        assert more
        assert run == list(intents_in(store.engine, SPAN))[: len(run)]
        await transaction.rollback()

    on_a_store(scenario)


def test_large_rows_are_all_scanned() -> None:
    async def scenario(store: Store) -> None:
        for name, body in ROWS.items():
            await put(store, {name: body})
        transaction = store.begin()
        assert await transaction.scan(SPAN) == list(ROWS.items())
        assert await transaction.scan(SPAN, limit=20) == list(ROWS.items())[:20]
        assert await transaction.scan(SPAN, limit=3) == list(ROWS.items())[:3]
        assert await store.snapshot(store.clock.now()).scan(SPAN) == list(ROWS.items())
        await transaction.rollback()

    on_a_store(scenario)


def test_intents_that_are_passed_over_end_a_slice() -> None:
    rows: list[tuple[bytes, bytes] | None] = [(b"a", b"1"), (b"b", b"2"), None, (b"d", b"4")]
    over: list[tuple[bytes, bytes | None]] = [(b"b", PASSED), (b"c", b"3"), (b"e", PASSED)]
    source = merged(iter(rows), iter(over))
    slices = [take_slice(source) for _ in range(4)]
    assert [found for found, _ in slices] == [
        [(b"a", b"1"), (b"b", b"2")], [], [(b"c", b"3"), (b"d", b"4")], [],
    ]  # fmt: skip
    assert [more for _, more in slices] == [True, True, True, False]


def test_a_reader_passes_over_others_intents_in_slices() -> None:
    """Those above its time are nothing to it, and are as many as their transaction has written."""

    async def scenario(store: Store) -> None:
        store.settings.set(BUFFER_BYTES.name, "0")  # all are intents
        reader = store.begin()
        await reader.started()
        await reader.put([key("0"), key("9")], [b"own"] * 2)
        other = store.begin()
        await other.put([key(f"1{n:04}") for n in range(4 * RUN_INTENTS)], [b"x"] * 4 * RUN_INTENTS)
        seen = intents_seen(store._ranges, SPAN, reader.read_timestamp, reader._record)
        with closing(store.engine.snapshot()) as snapshot:
            found = list(seen.over(snapshot, reader.read_timestamp))
        assert [body for _, body in found] == [b"own", *[PASSED] * 4, b"own"]
        assert await reader.scan(SPAN) == [(key("0"), b"own"), (key("9"), b"own")]
        await reader.rollback()
        await other.rollback()

    on_a_store(scenario)


def test_small_rows_are_cut_by_number() -> None:
    rows = [(b"%d" % number, b"") for number in range(SLICE_ROWS + 1)]
    source = iter(rows)
    assert take_slice(source) == (rows[:-1], True)
    assert take_slice(source) == (rows[-1:], False)
    assert take_slice(source) == ([], False)


def test_a_row_above_the_bound_is_a_slice() -> None:
    rows = [(b"a", b"v" * (2 * SLICE_BYTES)), (b"b", b"")]
    source = iter(rows)
    assert take_slice(source) == (rows[:1], True)
    assert take_slice(source) == (rows[1:], False)
