"""What a mirror in PostgreSQL holds after a flush."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import inf
from typing import Any
from uuid import UUID

import pytest

from tailrace.catalog.descriptors.descriptor import Column, TableDescriptor
from tailrace.catalog.values.column_types import ColumnType, Datum, enum_of
from tailrace.catalog.values.enum_type import EnumType, new_members
from tailrace.catalog.values.errors import SQLError
from tailrace.catalog.values.interval import Interval
from tailrace.catalog.values.type_kinds import TypeKind
from tailrace.changefeed.contract.changes import ChangeKind
from tailrace.changefeed.sinks.protocol import FeedIdentity, SinkError, SinkRefused
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.history import StorePosition
from tailrace.schemafeed.table_events import TableEvent, classify
from tests.changefeed.sinks.postgres.databases import Database
from tests.harness.descriptors import INT8, KEY, STRING, VALUE, table
from tests.harness.mirrors import progress_of, rows_batch
from tests.harness.postgres_process import PostgresProcess

pytestmark = pytest.mark.system

ORDERS = table()
MANY = pytest.mark.parametrize("many", [False, True])


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresProcess]:
    with PostgresProcess() as process:
        yield process


@pytest.fixture
def database(postgres: PostgresProcess) -> Database:
    return Database(postgres)


def padding(many: bool, at: int) -> list[tuple[tuple[int], int, tuple[int, str]]]:
    """Rows enough for a flush to be no small one."""
    return [((k,), at, (k, "padding")) for k in range(1000, 1200)] if many else []


@MANY
def test_mirror_equals_source(database: Database, many: bool) -> None:
    async def scenario(at: Database) -> None:
        async with at.open(ORDERS) as sink:
            first = [((k,), 10 + k, (k, f"v{k}")) for k in range(5)]
            sink.emit(rows_batch(ORDERS, [*first, *padding(many, 20)]))
            await sink.flush(progress_of(ORDERS, 20))
            changes: list[Any] = [
                ((1,), 31, (1, "new")), ((2,), 32, None), ((9,), 33, (9, None)),
                *padding(many, 34),
            ]  # fmt: skip
            sink.emit(rows_batch(ORDERS, changes))
            await sink.flush(progress_of(ORDERS, 40))
            assert at.rows("SELECT * FROM orders WHERE k < 1000 ORDER BY k") == [
                (0, "v0", 10), (1, "new", 31), (3, "v3", 13), (4, "v4", 14), (9, None, 33),
            ]  # fmt: skip

    database.run(scenario)


@MANY
def test_replay_changes_nothing(database: Database, many: bool) -> None:
    """Neither an older version nor one of a deleted row, also in another sink after a crash."""
    history: list[Any] = [
        ((1,), 10, (1, "a")), ((1,), 12, (1, "c")), ((2,), 13, (2, "x")), ((2,), 14, None),
        *padding(many, 15),
    ]  # fmt: skip

    async def scenario(at: Database) -> None:
        async with at.open(ORDERS) as sink:
            sink.emit(rows_batch(ORDERS, history))
            await sink.flush(progress_of(ORDERS, 9))
        async with at.open(ORDERS, epoch=2) as sink:
            for each in history:
                sink.emit(rows_batch(ORDERS, [each]))
                await sink.flush(None)
                shown = at.rows("SELECT v FROM orders WHERE k < 1000")
                assert shown == [("c",)], each
            await sink.flush(progress_of(ORDERS, 20))
            assert at.rows("SELECT count(*) FROM _tailrace.tombstones") == [(0,)]

    database.run(scenario)


def test_scan_is_copied_and_may_be_shown_again(database: Database) -> None:
    rows: list[Any] = [((k,), 10, (k, "scanned")) for k in range(500)]

    async def scenario(at: Database) -> None:
        for epoch in (1, 2):
            async with at.open(ORDERS, epoch=epoch) as sink:
                for part in (rows[:200], rows[200:]):
                    sink.emit(rows_batch(ORDERS, part, kind=ChangeKind.INITIAL_SCAN))
                    await sink.flush(None)
                sink.emit(rows_batch(ORDERS, [((3,), 12, (3, "live"))]))
                sink.emit(rows_batch(ORDERS, rows[:9], kind=ChangeKind.INITIAL_SCAN))
                await sink.flush(progress_of(ORDERS, 5, scan_complete=False))
                counts = "SELECT v, count(*) FROM orders GROUP BY v ORDER BY v"
                assert at.rows(counts) == [("live", 1), ("scanned", 499)]

    database.run(scenario)


MOOD = enum_of(EnumType(id=150, name="mood", members=new_members(["sad", "it's \\ok"])))
KINDS: list[tuple[ColumnType, list[Datum], list[Any] | None]] = [
    (ColumnType(TypeKind.BOOL), [True, False], None),
    (ColumnType(TypeKind.INT2), [-32768, 32767], None),
    (ColumnType(TypeKind.INT4), [-(1 << 31)], None),
    (INT8, [0, -(1 << 63), (1 << 63) - 1], None),
    (ColumnType(TypeKind.FLOAT4), [0.5, inf], None),
    (ColumnType(TypeKind.FLOAT8), [0.5, -0.0, -inf, 5e-324], None),
    (ColumnType(TypeKind.DECIMAL), [Decimal("-12345678901234567890123456789.123456789")], None),
    (ColumnType(TypeKind.DECIMAL, 5, 2), [Decimal("999.99"), Decimal("-0.01")], None),
    (STRING, ["", 'it\'s "quoted" \\N \t\n é\u2028\U0001f600', "x" * 100_000], None),
    (ColumnType(TypeKind.VARCHAR, width=3), ["abc", ""], None),
    (ColumnType(TypeKind.CHAR, width=3), ["a"], None),
    (ColumnType(TypeKind.BYTES), [b"", b"\x00\xff'\\"], None),
    (ColumnType(TypeKind.DATE), [date.min, date.max], None),
    (ColumnType(TypeKind.TIMESTAMP), [datetime.min, datetime.max], None),
    (ColumnType(TypeKind.TIMESTAMP, 3), [datetime(2026, 1, 1, 0, 0, 0, 123000)], None),
    (ColumnType(TypeKind.TIMESTAMPTZ), [datetime(2026, 3, 29, 1, 30, 0, 1, tzinfo=UTC)], None),
    (ColumnType(TypeKind.TIME), [time(0), time.max], None),
    (
        ColumnType(TypeKind.INTERVAL),
        [Interval(days=-2, microseconds=5)],
        [timedelta(days=-2, microseconds=5)],
    ),
    (ColumnType(TypeKind.UUID), [UUID(int=0), UUID(int=(1 << 128) - 1)], None),
    (ColumnType(TypeKind.JSONB), ['{"a": [1, 2.50]}', "null"], [{"a": [1, 2.5]}, None]),
    (MOOD, ["sad", "it's \\ok"], None),
    (ColumnType.from_sql("INT4[]"), [[1, None], []], None),
    (ColumnType.from_sql("STRING[]"), [["a,b", '"', "NULL", None]], None),
    (ColumnType.from_sql("JSONB[]"), [['{"a": "b"}']], [[{"a": "b"}]]),
    (ColumnType.from_sql("INTERVAL[]"), [[Interval(days=1)]], [[timedelta(days=1)]]),
    (ColumnType.from_sql("UUID[]"), [[UUID(int=1)]], None),
]  # fmt: skip


@MANY
@pytest.mark.parametrize(("type", "datums", "shown"), KINDS, ids=lambda value: str(value)[:20])
def test_type_round_trips(
    database: Database, type: ColumnType, datums: list[Datum], shown: list[Any] | None, many: bool
) -> None:
    typed = table(columns=(KEY, Column(id=2, name="v", type=type)))
    rows = [(index, datum) for index, datum in enumerate([*datums, None])]
    padded = rows + [(k, datums[0]) for k in range(100, 200 if many else 100)]

    async def scenario(at: Database) -> None:
        async with at.open(typed) as sink:
            sink.emit(rows_batch(typed, [((row[0],), 10, row) for row in padded]))
            await sink.flush(progress_of(typed, 20))
            found = at.rows("SELECT v FROM orders WHERE k < 100 ORDER BY k")
            expected = [*(datums if shown is None else shown), None]
            assert [value for (value,) in found] == expected

    database.run(scenario)


@pytest.mark.parametrize(
    ("type", "keys"),
    [
        (STRING, ["", "a", "A", "ä", "a "]),
        (ColumnType(TypeKind.FLOAT8), [-0.0, 1.5, inf]),
        (ColumnType(TypeKind.INTERVAL), [Interval(months=1), Interval(days=-2, microseconds=1)]),
        (ColumnType(TypeKind.TIMESTAMPTZ), [datetime(2026, 3, 29, 1, 30, 0, 1, tzinfo=UTC)]),
        (ColumnType(TypeKind.UUID), [UUID(int=5)]),
        (ColumnType(TypeKind.DECIMAL, 5, 2), [Decimal("0.10"), Decimal("1.00")]),
        (ColumnType(TypeKind.BYTES), [b"", b"\x00"]),
        (MOOD, ["sad", "it's \\ok"]),
    ],
    ids=lambda value: str(value)[:12],
)
@MANY
def test_rows_go_by_any_key(
    database: Database, type: ColumnType, keys: list[Datum], many: bool
) -> None:
    keyed = table(columns=(replace(KEY, type=type), VALUE))
    several = keys * (30 if many else 1)

    async def scenario(at: Database) -> None:
        async with at.open(keyed) as sink:
            sink.emit(rows_batch(keyed, [((k,), 10 + n, (k, "x")) for n, k in enumerate(several)]))
            await sink.flush(progress_of(keyed, 5))
            assert len(at.rows("SELECT k FROM orders")) == len(keys)
            sink.emit(rows_batch(keyed, [((k,), 900, None) for k in several]))
            await sink.flush(progress_of(keyed, 1000))
            assert at.rows("SELECT k FROM orders") == []

    database.run(scenario)


def test_equal_keys_are_one_row_as_last_written(database: Database) -> None:
    span = ColumnType(TypeKind.INTERVAL)
    keyed = table(columns=(replace(KEY, type=span), VALUE))

    async def scenario(at: Database) -> None:
        async with at.open(keyed) as sink:
            month, days = Interval(months=1), Interval(days=30)
            sink.emit(rows_batch(keyed, [((month,), 10, (month, "month"))]))
            await sink.flush(None)
            sink.emit(rows_batch(keyed, [((days,), 11, (days, "days"))]))
            await sink.flush(None)
            assert at.rows("SELECT k::text, v FROM orders") == [("30 days", "days")]

    database.run(scenario)


def test_composite_key_is_the_primary_key(database: Database) -> None:
    line = Column(id=2, name="li ne\"'", type=STRING, nullable=False)
    keyed = replace(table(columns=(KEY, line)), primary_key=(2, 1))

    async def scenario(at: Database) -> None:
        async with at.open(keyed) as sink:
            sink.emit(rows_batch(keyed, [(("a", 1), 10, (1, "a")), (("b", 1), 11, (1, "b"))]))
            sink.emit(rows_batch(keyed, [(("a", 1), 12, None)]))
            await sink.flush(None)
            assert at.rows("SELECT * FROM orders") == [(1, "b", 11)]

    database.run(scenario)


def event(before: TableDescriptor, after: TableDescriptor, at: int) -> TableEvent:
    after = replace(after, modification_time=Timestamp(at))
    return TableEvent(before=before, after=after, kinds=classify(before, after))


def test_schema_changes_are_followed_with_late_rows(database: Database) -> None:
    """One flush holds rows, a change, and a row from below the change behind it."""
    other = Column(id=3, name="w", type=STRING)
    first = table(columns=(KEY, VALUE, other))
    swapped = replace(
        first,
        version=2,
        columns=(
            KEY,
            replace(VALUE, name="w"),
            replace(other, name="v"),
            Column(id=4, name="it's", type=INT8, default=7, has_default=True, missing=7),
        ),
    )

    async def scenario(at: Database) -> None:
        async with at.open(first) as sink:
            sink.emit(rows_batch(first, [((1,), 10, (1, "two", "three"))]))
            sink.change_schema(event(first, swapped, 20))
            sink.emit(rows_batch(swapped, [((2,), 21, (2, "TWO", "THREE", 8))]))
            sink.emit(rows_batch(first, [((3,), 11, (3, "late", "lately"))]))
            await sink.flush(progress_of(first, 20))
            shown = at.rows("""SELECT k, w, v, "it's" FROM orders ORDER BY k""")
            assert shown == [
                (1, "two", "three", 7), (2, "TWO", "THREE", 8), (3, "late", "lately", 7),
            ]  # fmt: skip
        async with at.open(first, epoch=2) as sink:
            sink.change_schema(event(first, swapped, 20))
            sink.emit(rows_batch(swapped, [((1,), 22, None)]))
            await sink.flush(progress_of(first, 30))
            assert at.rows("SELECT k FROM orders ORDER BY k") == [(2,), (3,)]

    database.run(scenario)


def test_table_of_another_key_is_shown_when_it_is_whole(database: Database) -> None:
    second = replace(
        ORDERS,
        version=2,
        columns=(KEY, replace(VALUE, nullable=False)),
        primary_key=(2,),
        primary_index_id=2,
        next_index_id=3,
    )

    async def scenario(at: Database) -> None:
        async with at.open(ORDERS) as sink:
            sink.emit(rows_batch(ORDERS, [((1,), 10, (1, "a")), ((2,), 11, (2, "b"))]))
            sink.change_schema(event(ORDERS, second, 20))
            sink.emit(rows_batch(second, [(("c",), 21, (3, "c"))]))
            await sink.flush(progress_of(ORDERS, 19))
            assert at.rows("SELECT k FROM orders ORDER BY k") == [(1,), (2,)]
        async with at.open(ORDERS, epoch=2) as sink:
            rows: list[Any] = [(("a",), 20, (1, "a")), (("b",), 20, (2, "b"))]
            sink.emit(rows_batch(second, rows, kind=ChangeKind.BACKFILL))
            await sink.flush(progress_of(second, 20))
            assert at.rows("SELECT k FROM orders ORDER BY k") == [(1,), (2,), (3,)]
            sink.emit(rows_batch(second, [(("b",), 25, (9, "b")), (("a",), 26, None)]))
            await sink.flush(progress_of(second, 30))
            assert at.rows("SELECT * FROM orders ORDER BY k") == [(3, "c", 21), (9, "b", 25)]
            left = at.rows(
                "SELECT 1 FROM pg_class WHERE relkind = 'r' AND starts_with(relname, 'rows_')"
            )
            assert left == []

    database.run(scenario)


@MANY
def test_names_are_of_any_characters(database: Database, many: bool) -> None:
    odd = Column(id=2, name="100% \"o'f %s", type=STRING)
    named = table(columns=(replace(KEY, name="%k"), odd), name='a%"b')

    async def scenario(at: Database) -> None:
        async with at.open(named) as sink:
            rows = [((k,), 10, (k, "x")) for k in range(200 if many else 3)]
            sink.emit(rows_batch(named, rows))
            await sink.flush(progress_of(named, 5))
            sink.emit(rows_batch(named, [(key, 20, None) for key, _, _ in rows[1:]]))
            await sink.flush(progress_of(named, 30))
            assert at.rows('SELECT * FROM "a%%""b"') == [(0, "x", 10)]

    database.run(scenario)


def test_smaller_epoch_is_fenced_off(database: Database) -> None:
    async def scenario(at: Database) -> None:
        async with at.open(ORDERS) as old, at.open(ORDERS, epoch=2) as new:
            for many in (False, True):
                old.emit(rows_batch(ORDERS, [((1,), 10, (1, "old")), *padding(many, 10)]))
                with pytest.raises(SinkRefused, match="fenced"):
                    await old.flush(None)
            new.emit(rows_batch(ORDERS, [((2,), 10, (2, "new"))]))
            await new.flush(progress_of(ORDERS, 20))
            assert at.rows("SELECT k, v FROM orders") == [(2, "new")]
        with pytest.raises(SinkRefused, match="fenced"):
            async with at.open(ORDERS, epoch=1):
                pass

    database.run(scenario)


ALTERATIONS = [
    ("DROP TABLE orders", "was dropped by somebody else"),
    ("ALTER TABLE orders DROP COLUMN v", 'its column "v" of type text is gone'),
    ("ALTER TABLE orders RENAME COLUMN v TO w", 'its column "v" of type text is gone'),
    (
        "ALTER TABLE orders ALTER COLUMN k TYPE int4",
        'its column "k" of type bigint is of type integer',
    ),
    ("ALTER TABLE orders DROP CONSTRAINT orders_pkey", "its primary key (k) is gone"),
]


@pytest.mark.parametrize(("statement", "why"), ALTERATIONS)
def test_altered_by_hand_is_refused(database: Database, statement: str, why: str) -> None:
    async def scenario(at: Database) -> None:
        async with at.open(ORDERS) as sink:
            sink.emit(rows_batch(ORDERS, [((1,), 10, (1, "a"))]))
            await sink.flush(progress_of(ORDERS, 20))
            at.rows(statement)
        with pytest.raises(SinkRefused) as caught:
            async with at.open(ORDERS, epoch=2):
                pass
        assert why in str(caught.value)

    database.run(scenario)


def test_rows_and_columns_by_hand_do_no_harm(database: Database) -> None:
    async def scenario(at: Database) -> None:
        async with at.open(ORDERS) as sink:
            sink.emit(rows_batch(ORDERS, [((1,), 10, (1, "a")), ((2,), 10, (2, "b"))]))
            await sink.flush(progress_of(ORDERS, 20))
            at.rows("ALTER TABLE orders ADD COLUMN mine text DEFAULT 'kept'")
            at.rows("CREATE VIEW seen AS SELECT v FROM orders")
            at.rows("UPDATE orders SET v = 'altered' WHERE k = 1")
            at.rows("DELETE FROM orders WHERE k = 2")
        async with at.open(ORDERS, epoch=2) as sink:
            sink.emit(rows_batch(ORDERS, [((1,), 30, (1, "A")), ((2,), 31, (2, "B"))]))
            await sink.flush(progress_of(ORDERS, 40))
            shown = at.rows("SELECT k, v, mine FROM orders ORDER BY k")
            assert shown == [(1, "A", "kept"), (2, "B", "kept")]

    database.run(scenario)


def test_dropping_what_a_view_shows_waits_for_the_view(database: Database) -> None:
    second = replace(ORDERS, version=2, columns=(KEY,))

    async def scenario(at: Database) -> None:
        async with at.open(ORDERS) as sink:
            at.rows("CREATE VIEW seen AS SELECT v FROM orders")
            sink.change_schema(event(ORDERS, second, 20))
            with pytest.raises(SinkError, match="other objects depend on it"):
                await sink.flush(progress_of(ORDERS, 30))
        at.rows("DROP VIEW seen")
        async with at.open(ORDERS, epoch=2) as sink:
            sink.change_schema(event(ORDERS, second, 20))
            await sink.flush(progress_of(ORDERS, 30))
            assert at.rows("SELECT * FROM orders") == []

    database.run(scenario)


async def holds(position: StorePosition) -> bool:
    return True


def test_a_copy_of_the_store_releases_nothing_of_it(database: Database) -> None:
    async def holds_not(position: StorePosition) -> bool:
        return False

    async def scenario(at: Database) -> None:
        async with at.open(ORDERS) as sink:
            await sink.flush(progress_of(ORDERS, 30))
        identity = FeedIdentity(store_id="store-1", job_id=7, epoch=1)
        await at.kind.release(at.uri, identity, holds_not)
        assert at.rows("SELECT job_id FROM _tailrace.mirrors") == [(7,)]
        await at.kind.release(at.uri, identity, holds)
        assert at.rows("SELECT job_id FROM _tailrace.mirrors") == [(None,)]

    database.run(scenario)


def test_names_belong_to_one_living_feed(database: Database) -> None:
    async def scenario(at: Database) -> None:
        at.rows("CREATE TABLE mine (k int8)")
        taken = table(name="mine")
        with pytest.raises(SQLError, match="no changefeed made it"):
            await at.kind.validate(at.uri, [taken], store_id="store-1")
        async with at.open(ORDERS):
            pass
        with pytest.raises(SQLError, match="belongs to changefeed job 7"):
            await at.kind.validate(at.uri, [ORDERS], store_id="store-1")
        with pytest.raises(SQLError, match="of another store, store-1"):
            await at.kind.validate(at.uri, [ORDERS], store_id="store-2")
        await at.kind.validate(at.uri + "?table=other", [ORDERS], store_id="store-1")
        await at.kind.release(at.uri, FeedIdentity(store_id="store-1", job_id=7, epoch=1), holds)
        assert at.rows("SELECT count(*) FROM _tailrace.progress") == [(0,)]
        async with at.open(ORDERS, job_id=8):
            pass
        at.ended.add(8)  # without a release
        await at.kind.validate(at.uri, [ORDERS], store_id="store-1")
        async with at.open(ORDERS, job_id=9):
            pass
        assert at.rows("SELECT job_id FROM _tailrace.mirrors") == [(9,)]

    database.run(scenario)


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (replace(VALUE, name="_commit_timestamp"), "has kept for other things"),
        (replace(VALUE, name="xmin"), "has kept for other things"),
        (replace(VALUE, name="é" * 32), "more than 63 bytes"),
    ],
)
def test_columns_without_a_place_are_refused(database: Database, column: Column, why: str) -> None:
    async def scenario(at: Database) -> None:
        with pytest.raises(SQLError, match=why):
            await at.kind.validate(at.uri, [table(columns=(KEY, column))], store_id="s")

    database.run(scenario)


def test_value_beyond_a_limit_is_refused(database: Database) -> None:
    """No index of PostgreSQL holds so long a key: trying again would mend nothing."""
    keyed = table(columns=(replace(KEY, type=STRING), VALUE))
    noise = "".join(chr(0x4E00 + (k * k * 7919) % 20000) for k in range(4000))

    async def scenario(at: Database) -> None:
        async with at.open(keyed) as sink:
            sink.emit(rows_batch(keyed, [((noise,), 10, (noise, "x"))]))
            with pytest.raises(SinkRefused, match="maximum size is"):
                await sink.flush(None)

    database.run(scenario)


def test_who_waits_for_a_server_that_stands_still_can_stop(
    database: Database, postgres: PostgresProcess
) -> None:
    async def scenario(at: Database) -> None:
        async with at.open(ORDERS) as sink:
            [(backend,)] = at.rows(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'tailrace changefeed'"
            )
            os.kill(backend, signal.SIGSTOP)
            try:
                sink.emit(rows_batch(ORDERS, [((1,), 10, (1, "a"))]))
                flushing = asyncio.create_task(sink.flush(None))
                await asyncio.sleep(0)
                flushing.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await flushing
            finally:
                os.kill(backend, signal.SIGCONT)

    database.run(scenario)
