"""Messages are those of `wrapped.txt`, byte for byte, whichever form a batch has."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest

from tailrace.catalog.descriptors.descriptor import Column, TableDescriptor
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.values.column_types import ColumnType, Datum, array_of
from tailrace.catalog.values.interval import Interval
from tailrace.catalog.values.type_kinds import TypeKind
from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind, StageTimes
from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.encode import JSONEncoder, Message
from tailrace.changefeed.encode.json import encode_resolved
from tailrace.changefeed.pipeline.decode import decode
from tailrace.changefeed.targets import Versions
from tailrace.kvlayer.clock import Timestamp, timestamp_at

GOLDEN = Path(__file__).parent / "wrapped.txt"

COLUMNS = {
    "id": ColumnType(TypeKind.INT8),
    "day": ColumnType(TypeKind.DATE),
    "flag": ColumnType(TypeKind.BOOL),
    "ratio": ColumnType(TypeKind.FLOAT8),
    "price": ColumnType(TypeKind.DECIMAL, 10, 2),
    "name": ColumnType(TypeKind.STRING),
    "blob": ColumnType(TypeKind.BYTES),
    "local": ColumnType(TypeKind.TIMESTAMP),
    "instant": ColumnType(TypeKind.TIMESTAMPTZ),
    "token": ColumnType(TypeKind.UUID),
    "hour": ColumnType(TypeKind.TIME),
    "span": ColumnType(TypeKind.INTERVAL),
    "doc": ColumnType(TypeKind.JSONB),
    "list": array_of(ColumnType(TypeKind.TIMESTAMPTZ)),
}

TABLE = TableDescriptor(
    id=104,
    name="everything",
    database_id=2,
    schema_id=3,
    columns=tuple(
        Column(id=number, name=name, type=type, nullable=number > 2)
        for number, (name, type) in enumerate(COLUMNS.items(), 1)
    ),
    primary_key=(2, 1),
    next_column_id=15,
)

DAY = date(2020, 1, 1)
NULLS = (None, None, None, None)
ROWS: list[tuple[Datum, ...]] = [
    (
        1,
        DAY,
        True,
        0.5,
        Decimal("1.50"),
        'quote " and ü',
        b"\x00\xff",
        datetime(2020, 1, 1),
        datetime(2020, 1, 1, tzinfo=UTC),
        UUID("6f0d1c5e-9b1a-4c8e-8d59-0a1b2c3d4e5f"),
        time(10, 30, 0, 500_000),
        Interval(months=1, days=-2, microseconds=1_500_000),
        '{"a": [1.50, "ü"]}',
        [datetime(2020, 1, 1, tzinfo=UTC), None],
    ),
    (
        -(2**63),
        DAY,
        False,
        float("nan"),
        Decimal("-12345678.90"),
        "",
        b"",
        datetime(2020, 1, 1, 0, 0, 0, 500000),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        UUID(int=0),
        time(0),
        Interval(),
        "null",
        [],
    ),
    (2, DAY, None, float("inf"), None, None, None, None, None, None, *NULLS),
    (3, DAY, None, float("-inf"), Decimal("0.00"), "\n\t", None, None, None, None, *NULLS),
]

TS = [
    timestamp_at(unix_us=1_700_000_000_000_000),
    timestamp_at(unix_us=1_700_000_000_000_000, logical=1),
]
BARE = ChangefeedOptions()
FULL = ChangefeedOptions(updated=True, mvcc_timestamp=True)


def batch(*, columnar: bool, kind: ChangeKind = ChangeKind.LIVE) -> ChangeBatch:
    """The rows, and a deletion in their midst."""
    pairs = [codec_for(TABLE).encode_row(row) for row in ROWS]
    keys = [key for key, _ in pairs]
    bodies: list[bytes | None] = [body for _, body in pairs]
    keys.insert(2, codec_for(TABLE).encode_key((DAY, 9)))
    bodies.insert(2, None)
    versions = Versions(keys, bodies, [TS[0]] * 3 + [TS[1]] * 2)
    if columnar:
        # Enough of them to be columnar, the last of which are those that count.
        filler = 100
        versions = Versions(
            keys[:1] * filler + keys,
            bodies[:1] * filler + bodies,
            TS[:1] * filler + versions.timestamps,
        )
    return decode(versions, TABLE, stages=StageTimes(), kind=kind, columnar=columnar)


def lines(title: str, messages: list[Message]) -> list[str]:
    return [f"-- {title}", *[f"{key.decode()} {value.decode()}" for key, value in messages], ""]


def rendered(*, columnar: bool) -> str:
    bare = JSONEncoder(BARE).encode(batch(columnar=columnar))[-5:]
    full = JSONEncoder(FULL).encode(batch(columnar=columnar))[-5:]
    text = lines("wrapped", bare) + lines("wrapped with updated, mvcc_timestamp", full)
    return "\n".join([*text, "-- resolved", encode_resolved(TS[1]).decode(), ""])


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_messages_equal_the_golden_file(columnar: bool) -> None:
    assert rendered(columnar=columnar) == GOLDEN.read_text()


def test_messages_are_json() -> None:
    for key, value in JSONEncoder(FULL).encode(batch(columnar=False)):
        assert isinstance(json.loads(key), list)
        assert list(json.loads(value)) == ["after", "updated", "mvcc_timestamp"]


def test_scan_rows_show_the_scan_as_updated() -> None:
    scanned = batch(columnar=False, kind=ChangeKind.INITIAL_SCAN)
    own = [Timestamp(ts - 5) for ts in scanned.timestamps]
    with_versions = ChangeBatch(
        descriptor=TABLE,
        kind=scanned.kind,
        keys=scanned.keys,
        timestamps=scanned.timestamps,
        rows=scanned.rows,
        versions=own,
    )
    message = json.loads(JSONEncoder(FULL).encode(with_versions)[0].value)
    assert message["updated"] == "1700000000000000000.0000000000"
    assert message["mvcc_timestamp"] == "1699999999999999000.0000004091"


if __name__ == "__main__":
    GOLDEN.write_text(rendered(columnar=False))
