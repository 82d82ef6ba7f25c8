"""Boundaries: what passes beside a backfill, what waits for it, and what a restart finds."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tailrace.catalog.descriptors.descriptor import Column
from tailrace.changefeed.contract.changes import ChangeKind
from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.pipeline import backfill, crossing
from tailrace.changefeed.pipeline.budget import MEMORY_LIMIT, MemoryBudget
from tailrace.changefeed.pipeline.initial_scan import RowEmitter
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.rangefeed import catch_up
from tests.changefeed.schema_changes.follower import Follower, following
from tests.harness.descriptors import KEY, STRING, VALUE
from tests.harness.simulation import Simulation

ADDED = Column(id=3, name="w", type=STRING)
ROWS = 3000


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a backfill has sixty steps, and takes as many milliseconds."""
    monkeypatch.setattr(backfill, "slice_rows", lambda table: 50)
    emit = RowEmitter.emit

    async def emit_slowly(self: RowEmitter, *arguments: Any, **options: Any) -> None:
        await asyncio.sleep(0.001)
        await emit(self, *arguments, **options)

    monkeypatch.setattr(RowEmitter, "emit", emit_slowly)


async def load(on: Follower, rows: int = ROWS) -> None:
    await on.sources[0].write(*[(k, f"row {k}") for k in range(rows)])
    await on.settle()


def emitted(on: Follower, table_id: int) -> dict[bytes, list[Timestamp]]:
    """Timestamps of a table's versions in the order of their emission, by key."""
    found: dict[bytes, list[Timestamp]] = defaultdict(list)
    for batch in on.batches:
        if batch.descriptor.id == table_id:
            for key, ts in zip(batch.keys, batch.timestamps, strict=True):
                found[key[7:]].append(ts)
    return found


def test_live_rows_pass_beside_the_backfill_and_stay_newest(tmp_path: Path) -> None:
    async def whole() -> None:
        async with following(sim, tmp_path) as on:
            [source] = on.sources
            await load(on)
            await source.build((KEY, VALUE, ADDED))
            on.batches.clear()
            await source.swap()
            swapped_at = source.table.modification_time
            await on.backfilling.wait()
            assert on.live.resolved < swapped_at
            late = await source.write((ROWS - 1, "later", "x"), delete=[ROWS - 2])
            passed_at = sim.now
            while not any(late in batch.timestamps for batch in on.batches):
                await asyncio.sleep(0.0001)
            assert sim.now - passed_at < 0.05
            assert on.live.backfills
            await on.settle()
            for versions in emitted(on, source.id).values():
                assert versions == sorted(versions)

    sim = Simulation(1)
    sim.run(whole())


def test_live_rows_pass_a_lock_behind_the_swap(tmp_path: Path) -> None:
    """What a schema change publishes behind its swap shows in no row, and stops none."""

    async def whole() -> None:
        async with following(sim, tmp_path) as on:
            [source] = on.sources
            await load(on)
            await source.build((KEY, VALUE, ADDED))
            on.batches.clear()
            await source.swap()
            await on.backfilling.wait()
            await source.change(old_primary=None)
            await source.change(locked=True)
            late = await source.write((ROWS - 1, "later", "x"))
            while not any(late in batch.timestamps for batch in on.batches):
                await asyncio.sleep(0.0001)
            assert on.live.backfills, "the row waited for the backfill"
            await on.settle()

    sim = Simulation(7)
    sim.run(whole())


def test_resolved_stays_below_until_the_backfill_is_done(tmp_path: Path) -> None:
    async def whole() -> None:
        async with following(sim, tmp_path) as on:
            [source] = on.sources
            await load(on)
            await source.build((KEY, VALUE, ADDED))
            on.batches.clear()
            await source.swap()
            at = source.table.modification_time
            await on.backfilling.wait()
            while on.live.backfills:
                assert on.live.resolved < at
                await asyncio.sleep(0.001)
            await on.settle()
            keys = [k for b in on.batches if b.kind is ChangeKind.BACKFILL for k in b.keys]
            assert len(set(keys)) == len(keys) == ROWS

    sim = Simulation(2)
    sim.run(whole())


@pytest.mark.parametrize("turns", [0, 5, 20, 50])
def test_a_restart_goes_on_where_the_backfill_was(tmp_path: Path, turns: int) -> None:
    """What was saved as shown is not shown again, and nothing is left out."""

    async def whole() -> None:
        async with following(sim, tmp_path) as on:
            [source] = on.sources
            await load(on)
            await source.build((KEY, VALUE, ADDED))
            await source.swap()
            await on.backfilling.wait()
            await asyncio.sleep(turns / 1000)
            assert on.live.backfills
            await on.stop()
            shown = {
                key
                for batch in on.batches
                if batch.kind is ChangeKind.BACKFILL
                for key in batch.keys
            }
            on.batches.clear()
            on.start()
            await on.settle()
            progress = on.live.progress
            assert progress is not None
            assert progress.backfills == ()
            again = {
                key
                for batch in on.batches
                if batch.kind is ChangeKind.BACKFILL
                for key in batch.keys
            }
            assert len(shown | again) == ROWS

    sim = Simulation(3)
    sim.run(whole())


def test_other_tables_are_not_delayed(tmp_path: Path) -> None:
    """Rows of a table that the change does not concern pass within milliseconds throughout."""

    async def whole() -> None:
        async with following(sim, tmp_path, tables=("orders", "payments"), locked=True) as on:
            changed, other = on.sources
            await load(on)
            waits: list[float] = []
            stop = asyncio.Event()

            async def writer() -> None:
                number = 0
                while not stop.is_set():
                    number += 1
                    began = sim.now
                    ts = await other.write((number, "p"))
                    while not any(ts in batch.timestamps for batch in on.batches[-40:]):
                        await asyncio.sleep(0.0005)
                    waits.append(sim.now - began)
                    await asyncio.sleep(0.002)

            writing = asyncio.create_task(writer())
            await changed.change(locked=False)
            await changed.build((KEY, VALUE, ADDED))
            await changed.swap()
            await changed.change(locked=True)
            await on.live.wait_until(on.store.clock.now())
            stop.set()
            await writing
            assert max(waits) < 0.05, max(waits)
            assert len(waits) > 5
            await on.settle()

    sim = Simulation(4)
    sim.run(whole())


def test_a_table_with_too_many_new_keys_waits_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crossing, "BACKFILL_KEY_BYTES_MAX", 1_500)

    async def whole() -> None:
        async with following(sim, tmp_path, tables=("orders", "payments")) as on:
            source, other = on.sources
            await load(on)
            await source.build((KEY, VALUE, ADDED))
            on.batches.clear()
            await source.swap()
            for number in range(30):
                await source.write((ROWS - number, "later", "x"))
                await other.write((number, "p"))
            await on.settle()
            for versions in emitted(on, source.id).values():
                assert versions == sorted(versions)

    sim = Simulation(5)
    sim.run(whole())


def test_a_second_change_waits_for_the_backfill_of_the_first(tmp_path: Path) -> None:
    async def whole() -> None:
        async with following(sim, tmp_path) as on:
            [source] = on.sources
            await load(on)
            await source.build((KEY, VALUE, ADDED))
            await source.swap()
            await source.rename_column("w", "x")
            await source.write((1, "a", "b"))
            await source.add_column("y", 7)
            await source.write((2, "a", "b", 3))
            await source.change(old_primary=None)
            await source.build((KEY, replace(VALUE, id=9)))
            await source.swap()
            await on.settle()

    sim = Simulation(6)
    sim.run(whole())


@pytest.mark.parametrize("key", [(1,), (3,)], ids=["a column", "the key"])
def test_catching_up_passes_a_rewrite_with_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: tuple[int, ...]
) -> None:
    """More rows lie behind the change than may wait, and than a backfill remembers keys of.

    What the feed holds is bounded all the while: the limit for what is on its way, as much again
    for what waits at the boundary, and what one read brings.
    """
    held: list[int] = []
    charge = MemoryBudget.charge

    def noted(self: MemoryBudget, size: int) -> None:
        charge(self, size)
        held.append(self.used + self.held)

    monkeypatch.setattr(MemoryBudget, "charge", noted)
    monkeypatch.setattr(crossing, "BACKFILL_KEY_BYTES_MAX", 1_500)
    monkeypatch.setattr(catch_up, "SLICE_ROWS", 20)

    async def whole() -> None:
        async with following(sim, tmp_path) as on:
            [source] = on.sources
            await load(on, 100)
            await on.stop()
            await source.build((KEY, VALUE, replace(ADDED, nullable=False)), key=key)
            await source.swap()
            for number in range(600):
                await source.write((number, "later", f"x{number}"))
            on.store.settings.set(MEMORY_LIMIT.name, "8000")
            held.clear()
            on.start()
            await on.settle()
            assert max(held) < 3 * 8_000, max(held)
            for versions in emitted(on, source.id).values():
                assert versions == sorted(versions)

    sim = Simulation(8)
    sim.run(whole())


def test_a_table_under_another_key_is_shown_when_it_is_whole(tmp_path: Path) -> None:
    """Progress is saved again and again meanwhile, and the view stays as of below the change."""

    async def whole() -> None:
        async with following(sim, tmp_path) as on:
            [source] = on.sources
            await load(on)
            await on.stop()
            on.options = ChangefeedOptions(min_checkpoint_frequency=0.002)
            on.start()
            await source.build((KEY, VALUE, replace(ADDED, nullable=False)), key=(3,))
            await source.swap()
            await on.backfilling.wait()
            looks = 0
            while on.live.backfills:
                at = on.live.resolved
                assert at < source.table.modification_time
                shown = await on.shown(source.table.name)
                if on.live.backfills:  # else names may be of before the last flush, and rows not
                    await on.compare(source, at, shown)
                    looks += 1
            assert looks > 5
            await on.settle()

    sim = Simulation(10)
    sim.run(whole())
