"""The source's options, filters and columns: what of Spark needs no Java."""

from __future__ import annotations

import datetime
import decimal
import uuid

import pyarrow as pa
import pytest
from pyspark.sql import datasource

from tailrace.changefeed.spark.columns import shape, spark_schema, with_metadata
from tailrace.changefeed.spark.filters import push
from tailrace.changefeed.spark.options import OptionRefused, SourceOptions


def schema_of(**types: pa.DataType) -> pa.Schema:
    return pa.schema(list(types.items()))


GIVEN = {"url": "http://127.0.0.1:1", "table": "t"}


def test_options_are_read() -> None:
    assert SourceOptions.read({**GIVEN, "AS_OF": "5"}).as_of == 5
    options = SourceOptions.read({**GIVEN, "columns": "a, b", "start": "7", "initial_scan": "YES"})
    assert (options.columns, options.start) == (("a", "b"), 7)
    assert options.initial_scan is True
    assert SourceOptions.read({**GIVEN, "schema_at": "9"}).schema_at == 9
    assert SourceOptions.read(GIVEN).address.database == "defaultdb"
    quoted = SourceOptions.read({**GIVEN, "columns": '["a,b", "c"]'})
    assert quoted.columns == ("a,b", "c")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"table": None}, 'option "table" is missing'),
        ({"url": None}, 'option "url" is missing'),
        ({"url": "ftp://x"}, "write http://host:port"),
        ({"tabel": "t"}, "unknown option 'tabel'"),
        ({"as_of": "now"}, "'as_of': 'now' is not a timestamp"),
        ({"as_of": "0"}, "is not a timestamp"),
        ({"start": "-1"}, "'start'"),
        ({"start": str(1 << 63)}, "'start'"),
        ({"as_of": "²"}, "is not a timestamp"),
        ({"columns": "a,,b"}, "name one at least"),
        ({"columns": "a,a"}, "each once"),
        ({"columns": "[a"}, "'columns'"),
        ({"columns": "[1]"}, "'columns'"),
        ({"initial_scan": "true"}, "is yes or no"),
        ({"as_of": "5", "initial_scan": "yes"}, "as_of is for batch reads"),
        ({"as_of": "5", "start": "4"}, "as_of is for batch reads"),
        ({"as_of": "5", "schema_at": "4"}, "as_of is for batch reads"),
    ],
)
def test_wrong_options_are_named(given: dict[str, str | None], says: str) -> None:
    options = {name: value for name, value in {**GIVEN, **given}.items() if value is not None}
    with pytest.raises(OptionRefused, match=r".") as caught:
        SourceOptions.read(options)
    assert says in str(caught.value)


TABLE = schema_of(
    k=pa.int64(),
    f=pa.float64(),
    d=pa.decimal128(30, 10),
    day=pa.date32(),
    at=pa.timestamp("us", tz="UTC"),
    id=pa.uuid(),
    v=pa.string(),
)


def test_comparisons_go_to_the_server() -> None:
    at = datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC)
    asked, left = push(
        [
            datasource.GreaterThan(("k",), 5),
            datasource.EqualTo(("v",), "x"),
            datasource.LessThanOrEqual(("d",), decimal.Decimal("1.50")),
            datasource.LessThan(("at",), at),
            datasource.IsNull(("v",)),
            datasource.IsNotNull(("f",)),
        ],
        TABLE,
    )
    assert left == []
    assert asked == [
        ("k", ">", 5),
        ("v", "=", "x"),
        ("d", "<=", "1.50"),
        ("at", "<", "2024-01-02T00:00:00+00:00"),
        ("v", "is null", None),
        ("f", "is not null", None),
    ]


def test_what_the_server_might_see_otherwise_stays_sparks() -> None:
    kept = [
        datasource.EqualTo(("f",), 1.0),
        datasource.GreaterThan(("_commit_timestamp",), 5),
        datasource.EqualTo(("a", "b"), 1),
        datasource.In(("k",), (1, 2)),
        datasource.Not(datasource.EqualTo(("k",), 1)),
        datasource.EqualNullSafe(("k",), None),
        datasource.StringContains(("v",), "x"),
    ]
    assert push(kept, TABLE) == ([], kept)


def test_rows_take_the_shape_of_the_query() -> None:
    asked = schema_of(
        v=pa.string(),
        id=pa.string(),
        _op=pa.string(),
        new=pa.int64(),
        _commit_timestamp=pa.int64(),
    )
    key = uuid.UUID(int=5)
    storage = pa.array([key.bytes, None], pa.binary(16))
    batch = pa.record_batch(
        {"id": pa.ExtensionArray.from_storage(pa.uuid(), storage), "v": ["a", "b"]}
    )
    assert shape(batch, asked, snapshot_at=9).to_pylist() == [
        {"v": "a", "id": str(key), "_op": "upsert", "new": None, "_commit_timestamp": 9},
        {"v": "b", "id": None, "_op": "upsert", "new": None, "_commit_timestamp": 9},
    ]


def test_schema_is_the_tables_with_metadata() -> None:
    schema = spark_schema(TABLE)
    assert schema.simpleString() == (
        "struct<k:bigint,f:double,d:decimal(30,10),day:date,at:timestamp,id:string,v:string,"
        "_op:string,_commit_timestamp:bigint>"
    )
    assert [field.nullable for field in schema][-3:] == [True, False, False]
    assert with_metadata(TABLE).names[-2:] == ["_op", "_commit_timestamp"]
