"""What one engine does the other does too."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.engine import Engine, EngineBatch, MemoryEngine, Reader
from tailrace.kvlayer.engine.protocol import APPLIED_KEY, encode_applied
from tailrace.kvlayer.engine.rocksdb import RocksEngine
from tailrace.kvlayer.range_tombstones import NO_TOMBSTONES, RangeTombstone
from tailrace.kvlayer.span import Span

KINDS = ("memory", "rocksdb")

keys = st.binary(min_size=1, max_size=3).filter(lambda key: key != APPLIED_KEY)
batches = st.lists(
    st.tuples(st.dictionaries(keys, st.binary(max_size=4)), st.lists(keys), st.booleans()),
    max_size=6,
)


def make_engine(kind: str, folder: Path) -> Engine:
    return MemoryEngine() if kind == "memory" else RocksEngine.open(folder / "engine")


@pytest.fixture(params=KINDS)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    engine = make_engine(request.param, tmp_path)
    yield engine
    engine.close()


def put(engine: Engine, index: int, **entries: bytes) -> None:
    puts = [(key.encode(), value) for key, value in entries.items()]
    engine.write(EngineBatch(puts=puts), applied_index=index)


def check_reads(reader: Reader, model: dict[bytes, bytes], start: bytes, end: bytes) -> None:
    expected = sorted((k, v) for k, v in model.items() if start <= k < end)
    assert list(reader.scan(start, end)) == expected
    assert list(reader.scan(start, end, reverse=True)) == expected[::-1]
    assert reader.first(start, end) == (expected[0] if expected else None)
    for key in (start, end, *model):
        assert reader.get(key) == model.get(key)
    borders = [start, end, *sorted(model), *model]
    spans = [(low, high) for low in borders for high in (low + b"\x00", end)]
    assert reader.first_each(spans) == [reader.first(*span) for span in spans]
    assert reader.first_each(sorted(spans)) == [reader.first(*span) for span in sorted(spans)]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(steps=batches, start=keys, end=keys)
def test_reads_equal_a_sorted_map(
    kind: str,
    steps: list[tuple[dict[bytes, bytes], list[bytes], bool]],
    start: bytes,
    end: bytes,
) -> None:
    with TemporaryDirectory() as folder:
        engine = make_engine(kind, Path(folder))
        model: dict[bytes, bytes] = {}
        for index, (puts, deletes, flushed) in enumerate(steps, 1):
            before, snapshot = dict(model), engine.snapshot()
            engine.write(EngineBatch(list(puts.items()), deletes), applied_index=index)
            for key in deletes:
                model.pop(key, None)
            model |= puts
            model[APPLIED_KEY] = encode_applied(index)
            if flushed:
                engine.flush()
                assert engine.flushed_index == index
            check_reads(engine, model, start, end)
            check_reads(snapshot, before, start, end)
            snapshot.close()
        check_reads(engine, model, b"\x00", b"\xff" * 4)
        engine.close()


def test_new_engine_is_empty(engine: Engine) -> None:
    assert (engine.applied_index, engine.flushed_index) == (0, 0)
    assert list(engine.scan(b"\x00", b"\xff")) == []
    assert engine.first(b"\x00", b"\xff") is None


def test_put_wins_over_deletion_in_one_batch(engine: Engine) -> None:
    engine.write(EngineBatch(puts=[(b"k", b"new")], deletes=[b"k"]), applied_index=1)
    assert engine.get(b"k") == b"new"


def test_last_put_of_a_key_wins(engine: Engine) -> None:
    engine.write(EngineBatch(puts=[(b"k", b"1"), (b"k", b"2")]), applied_index=1)
    assert engine.get(b"k") == b"2"


def test_empty_batch_moves_the_index(engine: Engine) -> None:
    engine.write(EngineBatch(), applied_index=7)
    assert engine.applied_index == 7


def test_first_sees_writes_after_it(engine: Engine) -> None:
    put(engine, 1, b=b"1")
    assert engine.first(b"a", b"z") == (b"b", b"1")
    put(engine, 2, a=b"2")
    assert engine.first(b"a", b"z") == (b"a", b"2")
    engine.write(EngineBatch(deletes=[b"a"]), applied_index=3)
    assert engine.first(b"a", b"z") == (b"b", b"1")


def test_flush_covers_what_was_applied(engine: Engine) -> None:
    put(engine, 3, a=b"1")
    assert engine.flushed_index == 0
    engine.flush()
    put(engine, 4, b=b"2")
    assert (engine.flushed_index, engine.applied_index) == (3, 4)


def test_span_that_is_inverted_is_empty(engine: Engine) -> None:
    put(engine, 1, a=b"1", m=b"2", z=b"3")
    assert list(engine.scan(b"z", b"a")) == []
    assert list(engine.scan(b"m", b"m")) == []
    assert list(engine.scan(b"z", b"a", reverse=True)) == []
    assert engine.first(b"z", b"a") is None


def test_scans_of_a_snapshot_do_not_disturb_each_other(engine: Engine) -> None:
    rows = {f"{row:04}": b"%d" % row for row in range(1000)}
    put(engine, 1, **rows)
    snapshot = engine.snapshot()
    engine.write(EngineBatch(deletes=[b"0500"]), applied_index=2)
    up, down = snapshot.scan(b"0", b"1"), snapshot.scan(b"0", b"1", reverse=True)
    pairs = []
    for ascending, descending in zip(up, down, strict=True):
        assert snapshot.get(b"0500") == b"500"
        pairs.append((ascending, descending))
    assert [entry for entry, _ in pairs] == sorted((k.encode(), v) for k, v in rows.items())
    assert [entry for _, entry in reversed(pairs)] == [entry for entry, _ in pairs]
    snapshot.close()


def test_empty_values_are_values(engine: Engine) -> None:
    put(engine, 1, a=b"")
    assert engine.get(b"a") == b""
    assert engine.first(b"a", b"b") == (b"a", b"")
    snapshot = engine.snapshot()
    assert snapshot.get(b"a") == b""
    snapshot.close()


def test_range_tombstones_are_at_hand(engine: Engine) -> None:
    """Each state has its own: a snapshot keeps those of the moment when it was taken."""
    assert engine.range_tombstones is NO_TOMBSTONES
    found = RangeTombstone(Span(b"t0001a", b"t0001m"), Timestamp(120))
    batch = EngineBatch(puts=[(found.engine_key, found.engine_value)], range_tombstones=True)
    engine.write(batch, applied_index=1)
    assert list(engine.range_tombstones) == [found]
    snapshot = engine.snapshot()
    engine.write(EngineBatch(deletes=[found.engine_key], range_tombstones=True), applied_index=2)
    assert engine.range_tombstones is NO_TOMBSTONES
    assert list(snapshot.range_tombstones) == [found]
    snapshot.close()


def test_range_tombstones_are_there_at_opening(tmp_path: Path) -> None:
    found = RangeTombstone(Span(b"t0001a", b"t0001m"), Timestamp(120), omitted=True)
    batch = EngineBatch(puts=[(found.engine_key, found.engine_value)], range_tombstones=True)
    engine = RocksEngine.open(tmp_path / "engine")
    engine.write(batch, applied_index=1)
    engine.close()
    again = RocksEngine.open(tmp_path / "engine")
    assert list(again.range_tombstones) == [found]
    again.close()


@pytest.mark.parametrize("flushed", [False, True])
def test_what_is_written_once_is_read_as_it_was(engine: Engine, flushed: bool) -> None:
    """Neighbours or not, whatever was deleted or written between them since the snapshot."""
    rows = {b"%03d" % number: b"value %d" % number for number in range(100)}
    engine.write(EngineBatch(puts=list(rows.items())), applied_index=1)
    if flushed:
        engine.flush()
    snapshot = engine.snapshot()
    deleted = [key for key in rows if key.endswith(b"7")]
    engine.write(EngineBatch(puts=[(b"0335", b"later")], deletes=deleted), applied_index=2)
    held = sorted(rows)
    asked = [held, held[::-1], held[::3], held[40:60], held[90:], held[:3], [b"017"], [*held, b"9"]]
    for keys_ in asked:
        assert snapshot.get_fixed_each(keys_) == [rows.get(key) for key in keys_]
    assert engine.get_fixed_each(held) == [
        None if key in deleted else value for key, value in rows.items()
    ]
    snapshot.close()
