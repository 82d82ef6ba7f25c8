"""The mirror equals SELECT * AS OF resolved behind every kind of schema change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest

from tailrace.catalog.descriptors.descriptor import Column
from tailrace.catalog.values.column_types import ColumnType, Datum
from tailrace.catalog.values.type_kinds import TypeKind
from tailrace.changefeed.contract.changes import ChangeKind
from tailrace.changefeed.contract.options import SchemaChangePolicy
from tailrace.changefeed.pipeline.boundary import SchemaChangeEnd
from tests.changefeed.schema_changes.follower import Follower, Source, following
from tests.harness.descriptors import INT8, KEY, STRING, VALUE
from tests.harness.simulation import Simulation

Scenario = Callable[[Follower, Source], Awaitable[None]]


def follow(seed: int, folder: Path, scenario: Scenario, *, locked: bool = False) -> None:
    async def whole() -> None:
        async with following(sim, folder, locked=locked) as on:
            await on.sources[0].write((1, "a"), (2, "b"), (3, None))
            await on.settle()
            await scenario(on, on.sources[0])
            await on.settle()

    sim = Simulation(seed)
    sim.run(whole())


def test_an_added_column_holds_its_default_in_old_rows_at_once(tmp_path: Path) -> None:
    """No row follows the change, and the mirror has it within milliseconds."""

    async def scenario(on: Follower, source: Source) -> None:
        await source.add_column("extra", 7)
        await on.settle()
        assert (await on.shown())[1] == [(1, "a", 7), (2, "b", 7), (3, None, 7)]
        assert not [batch for batch in on.batches if batch.kind is ChangeKind.BACKFILL]
        await source.write((2, "c", 8), (4, "d", None))

    follow(1, tmp_path, scenario)


@pytest.mark.parametrize(
    ("type", "default"),
    [
        (ColumnType(TypeKind.BOOL), True),
        (ColumnType(TypeKind.FLOAT8), float("-inf")),
        (ColumnType(TypeKind.INT2), -32_768),
        (ColumnType(TypeKind.INT4), 7),
        (ColumnType(TypeKind.FLOAT4), 0.10000000149011612),
        (ColumnType(TypeKind.VARCHAR, width=5), "it's"),
        (ColumnType(TypeKind.CHAR, width=5), "\u00e9"),
        (ColumnType(TypeKind.FLOAT8), 0.1),
        (ColumnType(TypeKind.DECIMAL, 10, 3), Decimal("-12.500")),
        (ColumnType(TypeKind.STRING), "it's \\ \u00e9 'quoted'"),
        (ColumnType(TypeKind.STRING), ""),
        (ColumnType(TypeKind.BYTES), b"\x00'\\\xff"),
        (ColumnType(TypeKind.DATE), date(1969, 7, 20)),
        (ColumnType(TypeKind.TIMESTAMP), datetime(2020, 1, 2, 3, 4, 5, 600)),
        (ColumnType(TypeKind.TIMESTAMPTZ), datetime(2020, 1, 2, tzinfo=UTC)),
        (ColumnType(TypeKind.UUID), UUID(int=5)),
        (INT8, None),
    ],
    ids=str,
)
def test_a_default_of_any_type_is_told(tmp_path: Path, type: ColumnType, default: Datum) -> None:
    async def scenario(on: Follower, source: Source) -> None:
        await source.add_column("extra", default, type)
        await source.write((9, "z", default))

    follow(2, tmp_path, scenario)


def test_a_rename_is_a_rename(tmp_path: Path) -> None:
    async def scenario(on: Follower, source: Source) -> None:
        await source.rename_column("v", "remark")
        await on.settle()
        assert (await on.shown())[1] == [(1, "a"), (2, "b"), (3, None)]
        await source.write((4, "d"))

    follow(3, tmp_path, scenario)


def test_names_may_be_exchanged(tmp_path: Path) -> None:
    async def scenario(on: Follower, source: Source) -> None:
        await source.change(columns=(replace(KEY, name="v"), replace(VALUE, name="k")))
        await on.settle()
        assert [name for name, _ in (await on.shown())[0]] == ["v", "k"]

    follow(4, tmp_path, scenario)


def test_a_dropped_column_goes(tmp_path: Path) -> None:
    async def scenario(on: Follower, source: Source) -> None:
        await source.drop_column("v")
        await source.write((4,), delete=[1])

    follow(5, tmp_path, scenario)


def test_a_renamed_table_keeps_its_mirror(tmp_path: Path) -> None:
    """A mirror table bears the name that its feed found; it is not begun anew under another."""

    async def scenario(on: Follower, source: Source) -> None:
        await source.change(name="purchases")
        source.table = replace(source.table, name="orders")  # how the mirror is called
        await on.settle()
        await on.stop()
        on.start()
        await source.write((4, "d"))
        await on.settle()
        source.table = await source.catalog.read(source.id)
        source.table = replace(source.table, name="orders")

    follow(6, tmp_path, scenario)


def test_a_truncated_table_is_empty(tmp_path: Path) -> None:
    async def scenario(on: Follower, source: Source) -> None:
        await source.truncate()
        await on.settle()
        assert (await on.shown())[1] == []
        await source.write((2, "again"))

    follow(7, tmp_path, scenario)


ADDED = Column(id=3, name="w", type=STRING)
RETYPED = Column(id=3, name="v", type=STRING)


async def rewrite(source: Source, columns: tuple[Column, ...], key: tuple[int, ...] = (1,)) -> None:
    """A rewrite of the rows, with writes before, while it runs, and behind."""
    await source.build(columns, key=key)
    await source.write((2, "while it was built"), delete=[3])
    await source.swap()


def test_a_column_with_a_volatile_default_is_backfilled(tmp_path: Path) -> None:
    async def scenario(on: Follower, source: Source) -> None:
        await rewrite(source, (KEY, VALUE, ADDED))
        await on.settle()
        assert (await on.shown())[1] == [
            (1, "a", "made for 1"),
            (2, "while it was built", "made for 2"),
        ]
        await source.write((1, "later", "x"), (7, "new", "y"))

    follow(8, tmp_path, scenario)


def test_a_retyped_column_is_backfilled(tmp_path: Path) -> None:
    async def scenario(on: Follower, source: Source) -> None:
        await rewrite(source, (KEY, replace(RETYPED, type=STRING)))
        await source.write((8, "under the new type"))

    follow(9, tmp_path, scenario)


def test_another_primary_key_is_shown_when_it_is_whole(tmp_path: Path) -> None:
    async def scenario(on: Follower, source: Source) -> None:
        key = Column(id=3, name="w", type=STRING, nullable=False)
        await rewrite(source, (KEY, VALUE, key), key=(3,))
        await on.settle()
        await source.write((1, "b", "made for 1"), (1, "c", "another"), delete=["made for 2"])

    follow(10, tmp_path, scenario)


def test_a_key_of_columns_that_were_there_needs_every_row(tmp_path: Path) -> None:
    async def scenario(on: Follower, source: Source) -> None:
        value = replace(VALUE, nullable=False)
        await source.write(delete=[3])
        await source.change(columns=(KEY, value))
        await source.build((KEY, value), key=(2, 1))
        await source.swap()

    follow(15, tmp_path, scenario)


def test_one_change_follows_another_before_anything_is_flushed(tmp_path: Path) -> None:
    async def scenario(on: Follower, source: Source) -> None:
        await on.stop()
        await source.add_column("w", 7)
        await source.write((1, "a", 1), (4, "d", 2))
        await source.rename_column("w", "x")
        await source.drop_column("v")
        await source.write((5, 9), delete=[4])
        on.start()

    follow(11, tmp_path, scenario)


def test_a_feed_that_starts_anew_goes_on_at_the_change(tmp_path: Path) -> None:
    async def scenario(on: Follower, source: Source) -> None:
        for name in ("w", "x", "y"):
            await source.add_column(name, 7)
            await asyncio.sleep(0.003)
            await on.stop()
            await source.write((1, *(["s"] * 1), *([5] * (len(source.table.columns) - 2))))
            on.start()
        await on.settle()

    follow(12, tmp_path, scenario)


def test_stop_ends_the_feed_with_everything_below(tmp_path: Path) -> None:
    async def whole() -> None:
        async with following(sim, tmp_path) as on:
            [source] = on.sources
            await on.stop()
            on.options = replace(on.options, schema_change_policy=SchemaChangePolicy.STOP)
            on.start()
            await source.write((1, "a"))
            await source.rename_column("v", "w")  # no event: rows read the same
            await source.write((2, "b"))
            await source.drop_column("w")
            with pytest.raises(SchemaChangeEnd, match=r"schema change occurred at .*DROP_COLUMN"):
                await asyncio.wait_for(on.task, 30)
            dropped_at = source.table.modification_time
            assert on.live.resolved == dropped_at - 1
            await on.check(source, on.live.resolved)

    sim = Simulation(13)
    sim.run(whole())


def test_nobackfill_shows_no_row_again(tmp_path: Path) -> None:
    async def whole() -> None:
        async with following(sim, tmp_path) as on:
            [source] = on.sources
            await on.stop()
            on.options = replace(on.options, schema_change_policy=SchemaChangePolicy.NOBACKFILL)
            on.start()
            await source.write((1, "a"), (2, "b"))
            await on.live.wait_until(on.store.clock.now())
            await source.build((KEY, VALUE, ADDED))
            await source.swap()
            await source.write((2, "c", "x"))
            await on.live.wait_until(on.store.clock.now())
            assert (await on.shown())[1] == [(1, "a", None), (2, "c", "x")]

    sim = Simulation(14)
    sim.run(whole())
