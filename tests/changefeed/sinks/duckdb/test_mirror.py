"""What a mirror holds after a flush."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from uuid import UUID

import pytest

from tailrace.catalog.descriptors.descriptor import Column, TableDescriptor
from tailrace.catalog.values.column_types import ColumnType, Datum
from tailrace.catalog.values.interval import Interval
from tailrace.catalog.values.type_kinds import TypeKind
from tailrace.changefeed.sinks.duckdb.schema_step import same_shape
from tailrace.changefeed.sinks.duckdb.table_schema import quoted
from tailrace.changefeed.sinks.protocol import SinkRefused
from tests.harness.descriptors import INT8, KEY, STRING, VALUE, table
from tests.harness.mirrors import Mirrors, begin, progress_of, rows_batch, run

ORDERS = table()
SHAPES = pytest.mark.parametrize("columnar", [False, True])


@SHAPES
def test_mirror_equals_source(tmp_path: Path, columnar: bool) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            changes = [((k,), 10 + k, (k, f"v{k}")) for k in range(5)]
            sink.emit(rows_batch(ORDERS, changes, columnar=columnar))
            await sink.flush(progress_of(ORDERS, 20))
            sink.emit(
                rows_batch(
                    ORDERS,
                    [((1,), 31, (1, "new")), ((2,), 32, None), ((9,), 33, (9, None))],
                    columnar=columnar,
                )
            )
            await sink.flush(progress_of(ORDERS, 40))
            assert await mirrors.read("SELECT * FROM orders ORDER BY k") == [
                (0, "v0"),
                (1, "new"),
                (3, "v3"),
                (4, "v4"),
                (9, None),
            ]

    run(tmp_path, scenario)


@SHAPES
def test_newest_of_a_flush_wins(tmp_path: Path, columnar: bool) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            for changes in (
                [((1,), 10, (1, "a")), ((1,), 12, (1, "c")), ((2,), 13, (2, "x"))],
                [((1,), 11, (1, "replayed")), ((2,), 14, None), ((3,), 15, None)],
                [((3,), 16, (3, "back")), ((2,), 13, (2, "replayed"))],
            ):
                sink.emit(rows_batch(ORDERS, changes, columnar=columnar))
            await sink.flush(None)
            assert await mirrors.read("FROM orders ORDER BY k") == [(1, "c"), (3, "back")]

    run(tmp_path, scenario)


def test_flush_stamps_its_batches(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            batch = rows_batch(ORDERS, [((1,), 10, (1, "a"))])
            sink.emit(batch)
            await sink.flush(None)
            assert batch.stages.sunk > 0

    run(tmp_path, scenario)


KINDS: list[tuple[ColumnType, list[Datum]]] = [
    (ColumnType(TypeKind.BOOL), [True, False]),
    (INT8, [0, -(1 << 63), (1 << 63) - 1]),
    (ColumnType(TypeKind.FLOAT8), [0.5, -0.0, nan, inf, -inf, 5e-324]),
    (ColumnType(TypeKind.DECIMAL), [Decimal("-12345678901234567890123456789.123456789")]),
    (ColumnType(TypeKind.DECIMAL, 5, 2), [Decimal("999.99"), Decimal("-0.01")]),
    (ColumnType(TypeKind.DECIMAL, 18, 0), [Decimal("999999999999999999")]),
    (STRING, ["", 'it\'s "quoted" é\u2028\U0001f600', "x" * 100_000]),
    (ColumnType(TypeKind.BYTES), [b"", b"\x00\xff'"]),
    (ColumnType(TypeKind.DATE), [date.min, date.max, date(1582, 10, 10)]),
    (ColumnType(TypeKind.TIMESTAMP), [datetime.min, datetime.max, datetime(1969, 12, 31, 23)]),
    (
        ColumnType(TypeKind.TIMESTAMPTZ),
        [datetime.max.replace(tzinfo=UTC), datetime(2026, 3, 29, 1, 30, 0, 1, tzinfo=UTC)],
    ),
    (ColumnType(TypeKind.TIME), [time(0), time.max]),
    (ColumnType(TypeKind.UUID), [UUID(int=0), UUID(int=(1 << 128) - 1), UUID(int=1)]),
]


@SHAPES
@pytest.mark.parametrize(("type", "datums"), KINDS, ids=lambda value: str(value)[:20])
def test_type_round_trips(
    tmp_path: Path, type: ColumnType, datums: list[Datum], columnar: bool
) -> None:
    typed = table(columns=(KEY, Column(id=2, name="v", type=type)))
    rows = [(index, datum) for index, datum in enumerate([*datums, None])]

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(typed) as sink:
            for row in rows:  # one by one: as parameters, where they are not columnar
                sink.emit(rows_batch(typed, [((row[0],), 10, row)], columnar=columnar))
                await sink.flush(None)
            found = await mirrors.read("FROM orders ORDER BY k")
            assert [list(map(str, row)) for row in found] == [list(map(str, row)) for row in rows]

    run(tmp_path, scenario)


WIDE: list[tuple[str, list[Datum], list[str]]] = [
    (
        "INTERVAL",
        [Interval(months=1, days=-2), Interval(microseconds=5)],
        ["1 month -2 days", "00:00:00.000005"],
    ),
    ("JSONB", ['{"a": [1, 2.50]}', "null"], ['{"a": [1, 2.50]}', "null"]),
    ("INT4[]", [[1, None], []], ["[1, NULL]", "[]"]),
    ("INTERVAL[]", [[Interval(days=1)]], ["[1 day]"]),
    ("UUID[]", [[UUID(int=1)]], [f"[{UUID(int=1)}]"]),
]


@SHAPES
@pytest.mark.parametrize(("name", "datums", "shown"), WIDE, ids=lambda value: str(value)[:20])
def test_wide_type_is_natural_in_duckdb(
    tmp_path: Path, name: str, datums: list[Datum], shown: list[str], columnar: bool
) -> None:
    typed = table(columns=(KEY, Column(id=2, name="v", type=ColumnType.from_sql(name))))
    rows = [(index, datum) for index, datum in enumerate([*datums, None])]

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(typed) as sink:
            for row in rows:
                sink.emit(rows_batch(typed, [((row[0],), 10, row)], columnar=columnar))
                await sink.flush(None)
            found = await mirrors.read("SELECT v::VARCHAR, typeof(v) FROM orders ORDER BY k")
            assert [row[0] for row in found] == [*shown, None]
            assert {row[1] for row in found} == {
                name.replace("JSONB", "JSON").replace("INT4", "INTEGER")
            }

    run(tmp_path, scenario)


@SHAPES
def test_interval_key_is_the_stores_own(tmp_path: Path, columnar: bool) -> None:
    key = Column(id=1, name="k", type=ColumnType(TypeKind.INTERVAL), nullable=False)
    typed = table(columns=(key, VALUE))
    month, days = Interval(months=1), Interval(days=30)

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(typed) as sink:
            for ts, found in ((10, month), (20, days)):
                changes = [((found,), ts, (found, f"{found}"))]
                sink.emit(rows_batch(typed, changes, columnar=columnar))
                await sink.flush(None)
            assert await mirrors.read("SELECT v FROM orders") == [("30 days",)]
            sink.emit(rows_batch(typed, [((month,), 30, None)], columnar=columnar))
            await sink.flush(None)
            assert await mirrors.read("FROM orders") == []

    run(tmp_path, scenario)


@SHAPES
@pytest.mark.parametrize(("type", "datums"), KINDS, ids=lambda value: str(value)[:20])
def test_every_type_can_be_the_key(
    tmp_path: Path, type: ColumnType, datums: list[Datum], columnar: bool
) -> None:
    key = Column(id=1, name="k", type=type, nullable=False)
    typed = table(columns=(key, VALUE))

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(typed) as sink:
            for ts, value in ((10, "first"), (20, "second")):
                changes = [((datum,), ts, (datum, value)) for datum in datums]
                sink.emit(rows_batch(typed, changes, columnar=columnar))
                await sink.flush(None)
            found = await mirrors.read("FROM orders")
            expected = {(str(datum), "second") for datum in datums}
            assert {(str(key), value) for key, value in found} == expected
            gone = [((datum,), 30, None) for datum in datums]
            sink.emit(rows_batch(typed, gone, columnar=columnar))
            await sink.flush(None)
            assert await mirrors.read("FROM orders") == []

    run(tmp_path, scenario)


def test_float_keys_are_the_stores_own(tmp_path: Path) -> None:
    """0.0 and -0.0 are one key; NaN is a key like any other."""
    key = Column(id=1, name="k", type=ColumnType(TypeKind.FLOAT8), nullable=False)
    typed = table(columns=(key, VALUE))

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(typed) as sink:
            sink.emit(rows_batch(typed, [((0.0,), 10, (0.0, "a")), ((nan,), 10, (nan, "b"))]))
            await sink.flush(None)
            sink.emit(rows_batch(typed, [((-0.0,), 11, (-0.0, "c")), ((nan,), 11, (nan, "d"))]))
            await sink.flush(None)
            assert await mirrors.read("SELECT v FROM orders ORDER BY v") == [("c",), ("d",)]

    run(tmp_path, scenario)


def test_composite_key_is_in_key_order(tmp_path: Path) -> None:
    columns = (
        VALUE,
        Column(id=3, name="a", type=INT8, nullable=False),
        Column(id=4, name="b", type=STRING, nullable=False),
    )
    typed = TableDescriptor(
        id=104,
        name="orders",
        database_id=2,
        schema_id=3,
        columns=columns,
        primary_key=(4, 3),
        next_column_id=9,
    )

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(typed) as sink:
            for size in (2, 40):
                changes = [(("x", k), 10 + size, (f"v{k}", k, "x")) for k in range(size)]
                sink.emit(rows_batch(typed, changes))
                await sink.flush(None)
            sink.emit(rows_batch(typed, [(("x", 7), 99, None)]))
            await sink.flush(None)
            found = await mirrors.read("SELECT a FROM orders WHERE b = 'x' ORDER BY a")
            assert found == [(k,) for k in range(40) if k != 7]

    run(tmp_path, scenario)


NAMES = ["select", 'a"b', "it's", "Order Items", "_commit_timestamp", "_key", "c1", "ü.x", "rows_7"]


@pytest.mark.parametrize("name", [*NAMES, "_tailrace", "main", "sqlite_master", "progress"])
def test_any_name_can_be_a_table(tmp_path: Path, name: str) -> None:
    columns = tuple(
        Column(id=index + 1, name=column, type=INT8, nullable=index > 0)
        for index, column in enumerate(NAMES)
    )
    typed = table(name=name, columns=columns)
    row = tuple(range(len(columns)))

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(typed) as sink:
            sink.emit(rows_batch(typed, [((0,), 10, row)]))
            await sink.flush(None)
            found = await mirrors.reader.read("mirror.duckdb", f"SELECT * FROM {quoted(name)}")
            assert found.schema.names == NAMES
            assert [tuple(value.values()) for value in found.to_pylist()] == [row]

    run(tmp_path, scenario)


def test_names_apart_by_case_alone_are_refused(tmp_path: Path) -> None:
    upper = Column(id=3, name="V", type=INT8)

    async def scenario(mirrors: Mirrors) -> None:
        with pytest.raises(SinkRefused, match='"v" and "V"'):
            await begin(mirrors.sink(), [table(columns=(KEY, VALUE, upper))])
        with pytest.raises(SinkRefused, match='"orders" and "Orders"'):
            await begin(mirrors.sink(), [table(), table(id=105, name="Orders")])
        assert mirrors.files.open_files == []

    run(tmp_path, scenario)


def test_two_tables_share_a_flush(tmp_path: Path) -> None:
    other = table(id=105, name="items")

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS, other) as sink:
            sink.emit(rows_batch(ORDERS, [((1,), 10, (1, "order"))]))
            sink.emit(rows_batch(other, [((1,), 10, (1, "item"))]))
            await sink.flush(None)
            found = await mirrors.read("SELECT o.v, i.v FROM orders o JOIN items i USING (k)")
            assert list(found[0]) in (["order", "item"], ["item"])  # a dict keeps one "v"
            assert await mirrors.reader.tables("mirror.duckdb") == ["items", "orders"]

    run(tmp_path, scenario)


def test_table_parameter_names_the_mirror(tmp_path: Path) -> None:
    uri = "duckdb:///mirror.duckdb?table=sales&mode=mirror&apply=row"

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS, uri=uri) as sink:
            sink.emit(rows_batch(ORDERS, [((1,), 10, (1, "a"))]))
            await sink.flush(None)
            assert await mirrors.read("FROM sales") == [(1, "a")]
        with pytest.raises(SinkRefused, match="2 tables"):
            await begin(mirrors.sink(uri), [ORDERS, table(id=105, name="items")])

    run(tmp_path, scenario)


def test_lock_only_moves_the_version(tmp_path: Path) -> None:
    locked = table(version=2, modified_at=50, locked=True)

    async def scenario(mirrors: Mirrors) -> None:
        version = "SELECT version FROM _tailrace.mirrors"
        async with mirrors.open(ORDERS) as sink:
            sink.emit(rows_batch(locked, [((1,), 60, (1, "a"))]))
            sink.emit(rows_batch(ORDERS, [((2,), 40, (2, "b"))]))
            await sink.flush(progress_of(ORDERS, 60))
            assert await mirrors.read(version) == [(2,)]
        async with mirrors.open(table(version=3, modified_at=70), epoch=2):
            assert await mirrors.read(version) == [(3,)]
            assert await mirrors.read("FROM orders ORDER BY k") == [(1, "a"), (2, "b")]

    run(tmp_path, scenario)


def test_another_schema_is_refused(tmp_path: Path) -> None:
    wider = table(version=2, columns=(KEY, VALUE, Column(id=3, name="w", type=INT8)))

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            await sink.flush(progress_of(ORDERS, 10))
        with pytest.raises(SinkRefused, match="holds version 1"):
            await begin(mirrors.sink(epoch=2), [wider])

    run(tmp_path, scenario)


def test_the_same_version_read_anew_is_compared_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease and the mirror decode the same version each for itself."""
    compared: list[int] = []

    def counting(before: TableDescriptor, after: TableDescriptor) -> bool:
        compared.append(after.version)
        return same_shape(before, after)

    monkeypatch.setattr("tailrace.changefeed.sinks.duckdb.mirror_table.same_shape", counting)

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            anew = replace(ORDERS)
            assert anew is not ORDERS
            for k in range(3):
                sink.emit(rows_batch(anew, [((k,), 10 + k, (k, "v"))]))
                await sink.flush(None)
            assert compared == [ORDERS.version]
            assert await mirrors.read("SELECT count(*) FROM orders") == [(3,)]

    run(tmp_path, scenario)
