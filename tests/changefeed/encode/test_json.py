"""Messages are those of the golden files, byte for byte, whichever form a batch has."""

from __future__ import annotations

import io
import json
import os
import struct
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.catalog.descriptors.descriptor import Column, TableDescriptor
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.values.arrow_columns import datum_array
from tailrace.catalog.values.column_types import ColumnType, Datum, array_of, enum_of
from tailrace.catalog.values.enum_type import EnumMember, EnumType
from tailrace.catalog.values.interval import Interval
from tailrace.catalog.values.type_kinds import TypeKind
from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind, Form, StageTimes
from tailrace.changefeed.contract.options import parse_options
from tailrace.changefeed.encode import (
    Encoder,
    FeedOrigin,
    Topics,
    encoder_for,
    line_encoder_for,
)
from tailrace.changefeed.encode.json_texts import ColumnTexts, as_list, joined
from tailrace.changefeed.encode.parquet import parquet_table
from tailrace.changefeed.pipeline.decode import decode
from tailrace.changefeed.targets import Versions
from tailrace.kvlayer.clock import Timestamp, timestamp_at
from tests.harness.datums import SIMPLE_TYPES, datums

GOLDEN = Path(__file__).parent / "golden"
MOOD = EnumType(200, "mood", (EnumMember("sad", b"\x40"), EnumMember('o"k', b"\x80")))

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
    "small": ColumnType(TypeKind.INT2),
    "Medium": ColumnType(TypeKind.INT4),
    "real": ColumnType(TypeKind.FLOAT4),
    "code": ColumnType(TypeKind.VARCHAR, width=5),
    "letter": ColumnType(TypeKind.CHAR, width=1),
    "mood": enum_of(MOOD),
    "tiny": ColumnType(TypeKind.DECIMAL, 38, 12),
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
    next_column_id=22,
)

DAY = date(2020, 1, 1)
NULLS = (None,) * 11
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
        -(2**15),
        2**31 - 1,
        struct.unpack("<f", struct.pack("<f", 0.1))[0],
        "a%b",
        "c",
        'o"k',
        Decimal("0.000000000001"),
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
        0,
        0,
        1.0,
        "",
        "",
        "sad",
        Decimal("0E-12"),
    ),
    (2, DAY, None, float("inf"), None, None, None, None, None, None, *NULLS),
    (3, DAY, None, float("-inf"), Decimal("0.00"), "\n\t", None, None, None, None, *NULLS),
]

TS = [
    timestamp_at(unix_us=1_700_000_000_000_000),
    timestamp_at(unix_us=1_700_000_000_000_000, logical=1),
]
FULL = {"updated": None, "mvcc_timestamp": None}
IN_VALUE = {"key_in_value": None, "topic_in_value": None}
CASES: dict[str, dict[str, str | None]] = {
    "wrapped": {},
    "wrapped-metadata": {**FULL, **IN_VALUE},
    "wrapped-diff": {"diff": None, "key_in_value": None},
    "wrapped-null-object": {"encode_json_value_null_as_object": None},
    "bare": {"envelope": "bare"},
    "bare-metadata": {"envelope": "bare", **FULL, **IN_VALUE},
    "row": {"envelope": "row"},
    "row-metadata": {"envelope": "row", **FULL},
    "key_only": {"envelope": "key_only"},
    "enriched": {"envelope": "enriched"},
    "enriched-full": {
        "envelope": "enriched",
        "enriched_properties": "source,schema",
        "diff": None,
        "key_in_value": None,
        **FULL,
    },
}
"""Options by the golden file that shows their messages."""
TOPICS = Topics(full_names={104: 'shop.public."every thing"'}, topic_prefix="eu_")


FILLER = 1000
ORIGIN = FeedOrigin(
    sink="kafka",
    cluster_id="38269e9c-9823-4568-875e-000000000000",
    job_id=12,
    node_id=2,
    version="v1.0.0",
    unix_us=lambda: 1_700_000_001_000_000,
)


def encoder(**options: str | None) -> Encoder:
    return encoder_for(parse_options(options), TOPICS, ORIGIN)


def batch(*, columnar: bool, kind: ChangeKind = ChangeKind.LIVE) -> ChangeBatch:
    """The rows, and a deletion in their midst."""
    pairs = [codec_for(TABLE).encode_row(row) for row in ROWS]
    keys = [key for key, _ in pairs]
    bodies: list[bytes | None] = [body for _, body in pairs]
    keys.insert(2, codec_for(TABLE).encode_key((DAY, 9)))
    bodies.insert(2, None)
    replaced: list[bytes | None] = [None, *bodies[:1], *bodies[:1], None, *bodies[1:2]]
    versions = Versions(keys, bodies, [TS[0]] * 3 + [TS[1]] * 2, replaced)
    if columnar:
        # Enough of them to be columnar, the last of which are those that count.
        filler = FILLER
        versions = Versions(
            keys[:1] * filler + keys,
            bodies[:1] * filler + bodies,
            TS[:1] * filler + versions.timestamps,
            [*[None] * filler, *versions.previous],
        )
    form = Form.COLUMNS if columnar else Form.ROWS
    return decode(versions, TABLE, stages=StageTimes(), kind=kind, form=form)


def rendered(options: dict[str, str | None], *, columnar: bool) -> str:
    # The filler's moments are a microsecond, so the rows that count have the same ones in any form.
    earlier = replace(ORIGIN, unix_us=lambda: ORIGIN.unix_us() - 1)
    chosen = encoder_for(parse_options(options), TOPICS, earlier if columnar else ORIGIN)
    encoded = chosen.encode(batch(columnar=columnar))
    pairs = list(zip(encoded.keys, encoded.values, strict=True))[-5:]
    shown = [
        f"{encoded.topic} {key.decode()} {'(no value)' if value is None else value.decode()}"
        for key, value in pairs
    ]
    resolved = chosen.encode_resolved(encoded.topic, TS[1]).decode()
    return "\n".join([*shown, f"resolved {resolved}", ""])


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("name", CASES)
def test_messages_equal_the_golden_file(name: str, columnar: bool) -> None:
    text = rendered(CASES[name], columnar=columnar)
    path = GOLDEN / f"json-{name}.txt"
    if os.environ.get("TAILRACE_REWRITE"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize(
    "name", [name for name in CASES if "row" not in name and "key" not in name]
)
def test_lines_are_the_values_of_messages(name: str, columnar: bool) -> None:
    chosen = line_encoder_for(parse_options(CASES[name]), TOPICS, ORIGIN)
    given = batch(columnar=columnar)
    values = [value for value in chosen.encode(given).values if value is not None]
    assert len(values) == len(given)
    assert bytes(chosen.lines(given)) == b"\n".join([*values, b""])


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_lines_of_csv_equal_the_golden_file(columnar: bool) -> None:
    pairs = [codec_for(TABLE).encode_row(row) for row in ROWS]
    bodies: list[bytes | None] = [body for _, body in pairs]
    filler = 100 if columnar else 1
    versions = Versions(
        [key for key, _ in pairs] * filler,
        bodies * filler,
        TS[:1] * filler * 4,
    )
    form = Form.COLUMNS if columnar else Form.ROWS
    scanned = decode(versions, TABLE, stages=StageTimes(), kind=ChangeKind.INITIAL_SCAN, form=form)
    chosen = line_encoder_for(parse_options({"format": "csv", "initial_scan": "only"}), TOPICS)
    encoded = chosen.encode(scanned)
    assert bytes(chosen.lines(scanned)) == b"\n".join(
        [*map(bytes, filter(None, encoded.values)), b""]
    )
    text = "\n".join(value.decode() for value in encoded.values[-4:] if value is not None) + "\n"
    path = GOLDEN / "csv.txt"
    if os.environ.get("TAILRACE_REWRITE"):
        path.write_text(text)
    assert text == path.read_text()
    assert set(encoded.keys) == {b""}


def test_fields_stand_in_the_order_of_their_names() -> None:
    options = CASES["wrapped-metadata"]
    for value in encoder(**options).encode(batch(columnar=False)).values:
        message = json.loads(value or b"")
        assert list(message) == sorted(message)
        assert message["after"] is None or list(message["after"]) == sorted(message["after"])


def test_scan_rows_show_the_scan_as_updated() -> None:
    scanned = batch(columnar=False, kind=ChangeKind.INITIAL_SCAN)
    own = [Timestamp(ts - 5) for ts in scanned.timestamps]
    with_versions = replace(scanned, versions=own)
    message = json.loads(encoder(**FULL).encode(with_versions).values[0] or b"")
    assert message["updated"] == "1700000000000000000.0000000000"
    assert message["mvcc_timestamp"] == "1699999999999999000.0000004091"


def test_a_row_of_a_scan_has_no_row_before() -> None:
    scanned = replace(batch(columnar=True), previous=None)
    values = encoder(diff=None).encode(scanned).values
    assert all(json.loads(value or b"")["before"] is None for value in values)


def test_a_backfill_shows_the_row_under_the_schema_before() -> None:
    older = replace(TABLE, columns=TABLE.columns[:3], next_column_id=4, version=9)
    row = (1, DAY, True)
    backfilled = replace(batch(columnar=False), previous=[row, *[None] * 4], before=older)
    messages = [json.loads(value or b"") for value in encoder(diff=None).encode(backfilled).values]
    assert messages[0]["before"] == {"day": "2020-01-01", "flag": True, "id": 1}
    assert [message["before"] for message in messages[1:]] == [None] * 4


@pytest.mark.parametrize("envelope", ["wrapped", "bare", "row", "key_only"])
def test_batch_of_deletions_alone(envelope: str) -> None:
    gone = batch(columnar=False)
    only = replace(gone, keys=gone.keys[2:3], timestamps=gone.timestamps[2:3], rows=[None])
    encoded = encoder(envelope=envelope).encode(only)
    assert encoded.keys == [b'["2020-01-01",9]']
    value = encoded.values[0]
    if envelope == "wrapped":
        assert value == b'{"after":null}'
    elif envelope == "bare":
        row = json.loads(value or b"")
        assert {name for name in row if row[name] is not None} == {"id", "day"}
    else:
        assert value is None


@given(data=st.data())
def test_columns_and_values_have_the_same_texts(data: st.DataObject) -> None:
    type = data.draw(st.sampled_from([*SIMPLE_TYPES, *COLUMNS.values()]))
    drawn = st.sampled_from(["sad", 'o"k']) if type.enum else datums(type)
    values = data.draw(st.lists(st.none() | drawn, min_size=1, max_size=20))
    texts = ColumnTexts(type)
    shown = joined(texts.of_array(datum_array(type, values)), len(values))
    assert as_list(shown) == texts.of_values(values)


@pytest.mark.parametrize(
    ("options", "name"),
    [({}, "eu_every thing"), ({"full_table_name": None}, 'eu_shop.public."every thing"')],
)
def test_topics_bear_the_name_that_the_feed_was_made_with(
    options: dict[str, str | None], name: str
) -> None:
    full = parse_options(options).full_table_name
    topics = replace(TOPICS, full_table_name=full)
    assert topics.of(TABLE) == name
    assert topics.of(replace(TABLE, name="renamed")) == name
    assert topics.names == (name,)


def test_one_topic_for_all_tables() -> None:
    assert Topics(topic_name="all", topic_prefix="eu_").of(TABLE) == "eu_all"


def test_golden_files_have_every_type() -> None:
    assert {type.kind for type in COLUMNS.values()} == set(TypeKind)


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_tables_of_parquet_equal_the_golden_file(columnar: bool) -> None:
    """Read back from the bytes of a file, as any reader of Parquet sees them."""
    file = io.BytesIO()
    options = parse_options({"format": "parquet", **FULL})
    pq.write_table(parquet_table(batch(columnar=columnar), options), file)
    table = pq.read_table(file).slice(FILLER if columnar else 0)
    lines = [f"{field.name}: {field.type}" for field in table.schema]
    lines += [
        f"{name}: {' | '.join(map(str, table.column(name).to_pylist()))}"
        for name in table.column_names
    ]
    path = GOLDEN / "parquet.txt"
    text = "\n".join(line.replace("\n", "\\n") for line in lines) + "\n"
    if os.environ.get("TAILRACE_REWRITE"):
        path.write_text(text)
    assert text == path.read_text()
