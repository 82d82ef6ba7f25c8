"""What is RocksDB's alone: folders, stalls, threads."""

import os
import resource
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from rocksdict import Options, Rdict

from tailrace.kvlayer import keys
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.engine import EngineBatch, EngineDamaged, EngineFailed, EngineStall, Reader
from tailrace.kvlayer.engine.rocksdb import BLOCK_CACHE_BYTES, RocksEngine

L0_FILES_COMPACTED = 4
"""RocksDB compacts so many files of the first level."""


def test_closed_engine_opens_where_it_was(tmp_path: Path) -> None:
    engine = RocksEngine.open(tmp_path / "engine")
    engine.write(EngineBatch(puts=[(b"a", b"1")]), applied_index=9)
    engine.close()
    engine = RocksEngine.open(tmp_path / "engine")
    assert (engine.applied_index, engine.flushed_index) == (9, 9)
    assert engine.get(b"a") == b"1"
    engine.close()


def test_engine_that_is_opened_again_has_its_cache_and_its_filters(tmp_path: Path) -> None:
    RocksEngine.open(tmp_path / "engine").close()
    engine = RocksEngine.open(tmp_path / "engine")
    engine.write(EngineBatch(puts=[(b"a", b"1")]), applied_index=1)
    engine.flush()
    database = engine._database
    assert database.property_int_value("rocksdb.block-cache-capacity") == BLOCK_CACHE_BYTES
    files = database.property_value("rocksdb.aggregated-table-properties")
    assert "# entries for filter=2;" in (files or "")
    engine.close()


def small_engine(path: Path) -> RocksEngine:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(64 * 1024)
    options.set_max_write_buffer_number(2)
    return RocksEngine(Rdict(str(path), options))


def test_stall_is_an_error_that_changes_nothing(tmp_path: Path) -> None:
    engine = small_engine(tmp_path / "engine")
    stalled = index = 0
    while not stalled:
        index += 1
        batch = EngineBatch(puts=[(b"%d" % index, os.urandom(20_000))])
        try:
            engine.write(batch, applied_index=index)
        except EngineStall:
            stalled = index
            assert engine.applied_index == index - 1
            assert engine.get(b"%d" % index) is None
            assert engine.get(b"%d" % (index - 1)) is not None
    engine.flush()  # waits until the memtables are free
    engine.write(batch, applied_index=stalled)
    assert engine.get(b"%d" % stalled) is not None
    engine.close()


def test_failed_disk_ends_the_engine_until_it_is_opened_anew(tmp_path: Path) -> None:
    """The system refuses to write files beyond a size, which to RocksDB is a disk that failed."""
    engine = RocksEngine.open(tmp_path / "engine")
    engine.write(EngineBatch(puts=[(b"a", os.urandom(1 << 20))]), applied_index=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, hard))
    try:
        with pytest.raises(EngineFailed, match="too large"):
            engine.flush()
        with pytest.raises(EngineFailed, match="too large"):
            engine.write(EngineBatch(puts=[(b"b", b"1")]), applied_index=2)
        assert engine.applied_index == 1
        engine.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    engine = RocksEngine.open(tmp_path / "engine")
    assert engine.applied_index == 0, "the log has it"
    engine.close()


def test_damaged_engine_is_refused_and_named(tmp_path: Path) -> None:
    RocksEngine.open(tmp_path / "engine").close()
    [manifest] = (tmp_path / "engine").glob("MANIFEST-*")
    manifest.write_bytes(bytes(100))
    with pytest.raises(EngineFailed, match=f"engine {tmp_path}/engine cannot be opened.*backup"):
        RocksEngine.open(tmp_path / "engine")


def test_read_of_a_damaged_block_is_refused_and_the_rest_is_read(tmp_path: Path) -> None:
    engine = RocksEngine.open(tmp_path)
    rows = [(b"%05d" % number, os.urandom(100)) for number in range(1000)]
    engine.write(EngineBatch(puts=rows), applied_index=1)
    engine.close()
    [file] = tmp_path.glob("*.sst")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    engine = RocksEngine.open(tmp_path)
    snapshot = engine.snapshot()
    lost = [key for key, _ in rows if not _is_read(engine, key)]
    assert 0 < len(lost) < 100
    damaged = f"files are damaged.*{file.name}.*restore the data folder from a backup"
    for reader in (engine, snapshot):
        for read in _reads(reader, lost[0]):
            with pytest.raises(EngineDamaged, match=damaged):
                read()
    sound = rows[: int(lost[0]) - 1]
    assert list(engine.scan(b"0", rows[len(sound)][0])) == sound
    assert engine.first(b"0", b"9") == rows[0]
    assert engine.first_each([(b"0", b"9")]) == [rows[0]]
    snapshot.close()
    engine.close()


def _reads(reader: Reader, key: bytes) -> list[Callable[[], object]]:
    return [
        lambda: reader.get(key),
        lambda: reader.get_fixed_each([key]),
        lambda: reader.first(key, b"9"),
        lambda: reader.first_each([(b"0", b"9"), (key, b"9")]),
        lambda: list(reader.scan(b"0", b"9")),
        lambda: list(reader.scan(b"0", b"9", reverse=True)),
    ]


def _is_read(engine: RocksEngine, key: bytes) -> bool:
    try:
        return engine.get(key) is not None
    except EngineDamaged:
        return False


def test_engine_without_compaction_writes_over_a_damaged_block(tmp_path: Path) -> None:
    for index in range(1, L0_FILES_COMPACTED):
        engine = RocksEngine.open(tmp_path, compaction=False)
        puts = [(b"%05d" % number, os.urandom(100)) for number in range(1000)]
        engine.write(EngineBatch(puts=puts), applied_index=index)
        engine.close()
    for file in tmp_path.glob("*.sst"):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 0xFF
        file.write_bytes(content)
    engine = RocksEngine.open(tmp_path, compaction=False)
    for index in range(L0_FILES_COMPACTED, 3 * L0_FILES_COMPACTED):
        engine.write(EngineBatch(puts=[(b"00001", b"new")]), applied_index=index)
        engine.flush()
    assert engine.get(b"00001") == b"new"
    engine.close()


def test_writes_go_on_during_a_flush(tmp_path: Path) -> None:
    engine = RocksEngine.open(tmp_path / "engine")
    for index in range(1, 21):
        puts = [(b"%d %d" % (index, row), os.urandom(100)) for row in range(1000)]
        engine.write(EngineBatch(puts=puts), applied_index=index)
    flusher = threading.Thread(target=engine.flush)
    flusher.start()
    index = 20
    while flusher.is_alive():
        index += 1
        engine.write(EngineBatch(puts=[(b"x%d" % index, b"v")]), applied_index=index)
        assert engine.first(b"x%d" % index, b"y") == (b"x%d" % index, b"v")
    flusher.join()
    assert 20 <= engine.flushed_index <= index
    engine.close()


def test_closed_snapshot_does_not_read(tmp_path: Path) -> None:
    engine = RocksEngine.open(tmp_path / "engine")
    snapshot = engine.snapshot()
    snapshot.close()
    with pytest.raises(ValueError, match="snapshot is closed"):
        snapshot.get(b"a")
    with pytest.raises(ValueError, match="snapshot is closed"):
        list(snapshot.scan(b"a", b"b"))
    engine.close()


def test_snapshot_outlives_its_engine_without_harm(tmp_path: Path) -> None:
    engine = RocksEngine.open(tmp_path / "engine")
    engine.write(EngineBatch(puts=[(b"a", b"1")]), applied_index=1)
    snapshot = engine.snapshot()
    engine.close()
    snapshot.close()
    engine = RocksEngine.open(tmp_path / "engine")
    assert engine.get(b"a") == b"1"
    engine.close()


def test_bounds_outlive_their_scan_call(tmp_path: Path) -> None:
    """A scan reads to its end whatever is allocated meanwhile: the native iterator only borrows
    its bounds, and stops early, without a word, once their memory is used again."""
    engine = RocksEngine.open(tmp_path)
    table, ts = keys.table_prefix(104), Timestamp(890_467_148_885_766_144)
    rows = [keys.index_prefix(104, 1) + keys.encode_int(n) for n in range(5_000)]
    for index, at in enumerate((ts, Timestamp(ts + 10**14)), 1):
        puts = [(keys.time_index_key(row, at), b"") for row in rows]
        engine.write(EngineBatch(puts=puts), applied_index=index)
    snapshot = engine.snapshot()
    for reader in (engine, snapshot):
        bounds = keys.time_index_bounds(table, Timestamp(ts - 5), Timestamp(ts + 10**13))
        scanned = [keys.split_time_index_key(key) for key, _ in reader.scan(*bounds)]
        assert len(scanned) == len(rows)
        bounds = keys.time_index_bounds(table, Timestamp(ts - 5), Timestamp(ts + 10**13))
        count = 0
        for key, _ in reader.scan(*bounds):
            assert keys.split_time_index_key(key) == (rows[count], ts)
            count += 1
        assert count == len(rows)
    snapshot.close()
    engine.close()
