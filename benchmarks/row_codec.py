"""What the row codec costs: microseconds a row, encoding and decoding, columns and single rows.

python -m benchmarks.row_codec [--rows N]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from tailrace.catalog.descriptors.descriptor import Column, TableDescriptor
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.values.column_types import ColumnType
from tailrace.catalog.values.type_kinds import TypeKind

REPEATS = 7


def table() -> TableDescriptor:
    """A bigint key, an int, a double, a text and a timestamptz."""
    kinds = {
        "k": TypeKind.INT8,
        "i": TypeKind.INT8,
        "f": TypeKind.FLOAT8,
        "s": TypeKind.STRING,
        "t": TypeKind.TIMESTAMPTZ,
    }
    columns = tuple(
        Column(id=place + 1, name=name, type=ColumnType(kind), nullable=name != "k")
        for place, (name, kind) in enumerate(kinds.items())
    )
    return TableDescriptor(
        id=104,
        name="t",
        database_id=50,
        schema_id=51,
        columns=columns,
        primary_key=(1,),
        next_column_id=6,
    )


def rows(count: int) -> list[tuple[int, int, float, str, datetime]]:
    start = datetime(2013, 1, 1, tzinfo=UTC)
    return [
        (n, n * 7, n * 1.5, f"text value {n}", start + timedelta(seconds=n)) for n in range(count)
    ]


def best(call: Callable[[], object], count: int) -> float:
    """Microseconds a row in the best of `REPEATS` runs."""
    spent = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        call()
        spent.append(time.perf_counter() - started)
    return round(min(spent) / count * 1e6, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=64_000)
    count: int = parser.parse_args().rows
    codec = codec_for(table())
    data = rows(count)
    columns = [list(column) for column in zip(*data, strict=True)]
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(column, field.type)
            for column, field in zip(columns, codec.arrow_schema, strict=True)
        ],
        schema=codec.arrow_schema,
    )
    keys, bodies = codec.encode_columns(batch)
    pairs = list(zip(keys, bodies, strict=True))
    older = [*bodies[:-1], codec.encode_row(data[-1])[1]]
    assert codec.decode_columns(older).equals(batch)
    metrics = {
        "encode_columns_us": best(lambda: codec.encode_columns(batch), count),
        "decode_columns_us": best(lambda: codec.decode_columns(bodies), count),
        "decode_columns_2000_us": best(
            lambda: [codec.decode_columns(bodies[i : i + 2000]) for i in range(0, count, 2000)],
            count,
        ),
        "decode_keys_us": best(lambda: codec.decode_keys(keys), count),
        "encode_row_us": best(lambda: [codec.encode_row(row) for row in data], count),
        "decode_row_us": best(lambda: [codec.decode_row(k, b) for k, b in pairs], count),
    }
    for name, value in metrics.items():
        print(f"{name:28} {value:8.3f}")
    print(json.dumps({"benchmark": "row_codec", "metrics": metrics}))


if __name__ == "__main__":
    main()
