"""How emitted batches become one change per key."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.catalog.rows.row_codec import codec_for
from tailrace.changefeed.sinks.duckdb.pending import ColumnChanges, PendingChanges, RowChanges
from tailrace.changefeed.sinks.duckdb.table_schema import TableSchema
from tailrace.kvlayer.clock import Timestamp
from tests.harness.descriptors import table
from tests.harness.mirrors import rows_batch

ORDERS = table()
SCHEMA = TableSchema(ORDERS, name="orders", job_id=7)

BATCHES = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=6),
        st.booleans(),
        st.integers(1, 12),
    ),
    max_size=5,
)


def newest_of(changes: RowChanges | ColumnChanges) -> dict[int, tuple[int, str | None]]:
    """Timestamp and value (None: deleted) of each key."""
    found: dict[int, tuple[int, str | None]] = {}
    match changes:
        case RowChanges():
            for key, ts, row in changes.changes:
                (number,) = codec_for(ORDERS).decode_key(key)
                assert isinstance(number, int)
                found[number] = (ts, None if row is None else str(row[1]))
        case ColumnChanges():
            kept = changes.upserts.to_pylist() if changes.upserts is not None else []
            for values in kept:
                found[values["c1"]] = (values["_commit_timestamp"], values["c2"])
            gone = changes.removals.to_pylist() if changes.removals is not None else []
            for values in gone:
                found[values["_key"]] = (values["_commit_timestamp"], None)
            assert len(gone) == len(changes.deletions)
    return found


@settings(max_examples=200)
@given(BATCHES, st.dictionaries(st.integers(0, 5), st.integers(1, 30), max_size=3))
def test_reduction_keeps_the_newest(
    batches: list[tuple[list[tuple[int, bool]], bool, int]], dead: dict[int, int]
) -> None:
    pending = PendingChanges(SCHEMA)
    model: dict[int, tuple[int, str | None]] = {}
    for changes, columnar, start in batches:
        listed = []
        for offset, (key, deleted) in enumerate(changes):
            ts = start + offset
            value = None if deleted else f"{key}@{ts}"
            listed.append(((key,), ts, None if deleted else (key, value)))
            if key not in model or model[key][0] <= ts:
                model[key] = (ts, value)
        pending.add(rows_batch(ORDERS, listed, columnar=columnar))
    codec = codec_for(ORDERS)
    tombstones = {codec.encode_key((key,)): Timestamp(ts) for key, ts in dead.items()}
    expected = {key: entry for key, entry in model.items() if entry[0] > dead.get(key, 0)}
    assert newest_of(pending.reduce(tombstones)) == expected
