"""A mirror file that was removed, or put back from an older copy, while its feed was paused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tailrace.catalog.descriptors.descriptor import Column
from tailrace.changefeed.sinks import SinkRefused
from tests.changefeed.schema_changes.follower import Follower, Source, following
from tests.harness.descriptors import KEY, STRING, VALUE
from tests.harness.simulation import Simulation

Change = Callable[[Source], Awaitable[None]]


async def truncate(source: Source) -> None:
    await source.truncate()
    await source.write((3, "after"))


async def alter_primary_key(source: Source) -> None:
    key = Column(id=3, name="w", type=STRING, nullable=False)
    await source.build((KEY, VALUE, key), key=(3,))
    await source.swap()


async def add_column(source: Source) -> None:
    await source.add_column("extra", 7)
    await source.write((3, "after", 8))


async def add_rewritten_column(source: Source) -> None:
    await source.build((KEY, VALUE, Column(id=3, name="w", type=STRING)))
    await source.swap()


async def drop_column(source: Source) -> None:
    await source.drop_column("v")


async def everything(source: Source) -> None:
    await add_column(source)
    await source.truncate()
    await source.write((4, "again", 9))
    await source.drop_column("v")


CHANGES: list[Change] = [
    truncate,
    alter_primary_key,
    add_column,
    add_rewritten_column,
    drop_column,
    everything,
]


def remove(on: Follower, copy: bytes) -> None:
    on.path.unlink()


def put_older_copy_back(on: Follower, copy: bytes) -> None:
    on.path.write_bytes(copy)


def replaced(
    seed: int, folder: Path, change: Change, replacement: Callable[[Follower, bytes], None]
) -> None:
    async def scenario() -> None:
        async with following(sim, folder) as on:
            [source] = on.sources
            await source.write((1, "a"), (2, "b"))
            await on.settle()
            await on.stop()
            copy = on.path.read_bytes()
            on.start()
            await source.write((2, "later"), delete=[1])
            await change(source)
            await on.settle()
            await asyncio.sleep(2)  # the job's copy of the progress follows once a second
            await on.stop()
            assert on.saved[-1].resolved > source.table.modification_time
            replacement(on, copy)
            on.start()
            await on.settle()

    sim = Simulation(seed)
    sim.run(scenario())


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("replacement", [remove, put_older_copy_back])
def test_mirror_equals_its_table_again(
    tmp_path: Path, change: Change, replacement: Callable[[Follower, bytes], None]
) -> None:
    """The job's copy of the progress lies behind the change, and the file before it."""
    replaced(CHANGES.index(change) + 1, tmp_path, change, replacement)


def test_removed_mirror_is_scanned_where_nothing_was_collected(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with following(sim, tmp_path) as on:
            [source] = on.sources
            await source.write((1, "a"), (2, "b"))
            await source.add_column("extra", 7)
            await source.write((2, "later", 8))
            await on.settle()
            await on.stop()
            on.path.unlink()
            threshold = on.store.clock.now()
            await on.store.collect_garbage(source.table.primary_span, threshold)
            on.protected_at = on.store.clock.now()
            on.start()
            await on.settle()

    sim = Simulation(20)
    sim.run(scenario())


def test_older_copy_is_refused_where_changes_were_collected(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with following(sim, tmp_path) as on:
            [source] = on.sources
            await source.write((1, "a"))
            await on.settle()
            await on.stop()
            await source.write((1, "b"))
            threshold = on.protected_at = on.store.clock.now()
            await on.store.collect_garbage(source.table.primary_span, threshold)
            on.start()
            with pytest.raises(SinkRefused, match=r"garbage collected since.*create the"):
                await asyncio.wait_for(on.task, 30)

    sim = Simulation(21)
    sim.run(scenario())


def test_removed_mirror_of_two_tables_begins_anew(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with following(sim, tmp_path, tables=("orders", "items")) as on:
            orders, items = on.sources
            await orders.write((1, "a"))
            await items.write((1, "a"))
            await orders.truncate()
            await items.change(columns=(KEY, replace(VALUE, name="remark")))
            await on.settle()
            await asyncio.sleep(2)
            await on.stop()
            on.path.unlink()
            on.start()
            await on.settle()

    sim = Simulation(23)
    sim.run(scenario())
