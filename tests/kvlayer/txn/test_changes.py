"""What has changed since a timestamp turns the rows of then into the rows of now."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from tailrace.kvlayer.access import Row, Transaction
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.errors import RetryableTransaction
from tailrace.kvlayer.keys import table_span
from tests.harness.simulation import Simulation
from tests.harness.stores import key, put, running_store

A, B, C = key("a"), key("b"), key("c")
SPAN = table_span(7)


async def brought_up(reader: Transaction, rows: dict[bytes, bytes], after: Timestamp) -> list[Row]:
    """`rows`, those of `after`, with what `reader` says has changed."""
    now: dict[bytes, bytes | None] = dict(rows)
    async for changes in reader.changed_slices(SPAN, after):
        now.update(changes)
    return sorted((name, body) for name, body in now.items() if body is not None)


@pytest.mark.parametrize("seed", range(3))
def test_old_rows_and_changes_are_the_new_rows(seed: int) -> None:
    sim = Simulation(seed)

    async def main() -> None:
        random = Random(seed)
        names = [key(f"{number:03}") for number in range(40)]
        async with running_store(sim) as store:
            held: list[tuple[Timestamp, dict[bytes, bytes]]] = []
            for step in range(30):
                chosen = random.sample(names, random.randrange(1, 6))
                match random.randrange(4):
                    case 0:
                        await store.one_phase(lambda e, c=chosen: e.delete(c))  # type: ignore[misc]
                    case 1 if step % 10 == 0:
                        await store.one_phase(lambda e: e.delete_range(SPAN))
                    case _:
                        await put(store, dict.fromkeys(chosen, b"%d" % step))
                reader = store.begin()
                if random.random() < 0.5:
                    await reader.put(random.sample(names, 3), [b"own"] * 3)
                    await reader.delete(random.sample(names, 2))
                rows = await reader.scan(SPAN)
                for after, then in held:
                    assert await brought_up(reader, then, after) == rows, (seed, step)
                if not reader.write_count:
                    held.append((reader.read_timestamp, dict(rows)))
                await reader.rollback()

    sim.run(main())


def test_others_writes_are_waited_for() -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"0"})
            after = await store.now()
            writer = store.begin()
            await writer.put([A], [b"1"])
            await asyncio.sleep(0.01)
            reader = store.begin(read_only=True)
            reading = asyncio.create_task(brought_up(reader, {A: b"0"}, after))
            await asyncio.sleep(0.01)
            await writer.commit()
            assert await reading == await reader.scan(SPAN)
            await reader.rollback()

    sim.run(main())


def test_what_was_asked_for_counts_as_read() -> None:
    sim = Simulation(2)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"0"})
            after = await store.now()
            reader = store.begin()
            assert await brought_up(reader, {A: b"0"}, after) == [(A, b"0")]
            await put(store, {B: b"phantom"})
            assert await store.snapshot(await store.now()).get(C) is None, "moves the writer up"
            await reader.put([C], [b"one row"])
            with pytest.raises(RetryableTransaction):
                await reader.commit()
            await reader.rollback()

    sim.run(main())
