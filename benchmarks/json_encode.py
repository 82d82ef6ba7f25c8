"""What JSON messages cost: microseconds a row, beside msgspec on dictionaries that are ready.

python -m benchmarks.json_encode [--rows N]

`json_encode_over_msgspec` is the rate of the encoder, from Arrow columns to keys and values, over
the rate of `msgspec.json` on dictionaries of the same messages. The dictionaries hold Python
objects that msgspec prints by itself; making them is not counted. Both take the best of seven runs,
in turn, in processor time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import msgspec
import pyarrow as pa

from benchmarks.outcome import print_outcome
from benchmarks.row_codec import rows, table
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind
from tailrace.changefeed.contract.options import parse_options
from tailrace.changefeed.encode import Topics, encoder_for
from tailrace.kvlayer.clock import Timestamp

REPEATS = 7
BATCH_ROWS = 4_096
AT = Timestamp(1_700_000_000_000_000 << 12)


def seconds(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=65_536)
    count: int = parser.parse_args().rows
    data = rows(count)
    codec = codec_for(table())
    batches = []
    for start in range(0, count, BATCH_ROWS):
        part = data[start : start + BATCH_ROWS]
        columns = [
            pa.array(column, field.type)
            for column, field in zip(zip(*part, strict=True), codec.arrow_schema, strict=True)
        ]
        batches.append(
            ChangeBatch(
                descriptor=table(),
                kind=ChangeKind.LIVE,
                keys=[codec.encode_key(row[:1]) for row in part],
                timestamps=[AT] * len(part),
                columns=pa.RecordBatch.from_arrays(columns, schema=codec.arrow_schema),
            )
        )
    encoder = encoder_for(parse_options({"updated": None, "key_in_value": None}), Topics())
    updated = msgspec.json.decode(encoder.encode(batches[0]).values[0] or b"")["updated"]
    messages = [
        {
            "after": {"f": f, "i": i, "k": k, "s": s, "t": t},
            "key": [k],
            "updated": updated,
        }
        for k, i, f, s, t in data
    ]
    encode = msgspec.json.Encoder().encode
    ours, theirs = [], []
    for _ in range(REPEATS):
        ours.append(seconds(lambda: [encoder.encode(batch) for batch in batches]))
        theirs.append(seconds(lambda: [encode(message) for message in messages]))
    print_outcome(
        "json_encode",
        {
            "json_encode_us": min(ours) / count * 1e6,
            "msgspec_us": min(theirs) / count * 1e6,
            "json_encode_over_msgspec": min(theirs) / min(ours),
        },
    )


if __name__ == "__main__":
    main()
