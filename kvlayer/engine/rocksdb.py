"""The durable engine: RocksDB through rocksdict.

One column family, its own log off: the command log is the truth, and a flush covers one family
only. A batch holds the loop for 0.2 µs an entry; it never waits, because writes are made with
`no_slowdown`: where RocksDB would sleep or block (its memtables are full, compaction is behind),
it answers "Incomplete: Write stall" instead, having written nothing, and that is EngineStall.

`flush` and compaction run without the interpreter lock; `write` and reads hold it.

HAZARD: an iterator that meets a damaged or unreadable file is over, as one that has reached its
end is: only its status tells them apart, and `next` of one that is over is a fault of memory. The
binding's `items` never ask for it.

HAZARD: the ends of spans are compared in Python, never given to RocksDB. The binding's iterators
only borrow the bounds of their `ReadOptions`, whose memory may be used again while they run (a
scan then ends early without a word), and its backward iterators ignore them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rocksdict import (
    AccessType,
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DBCompressionType,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from ..errors import StoreFull
from ..process.memory import share
from ..range_tombstones import RangeTombstones
from .protocol import (
    APPLIED_KEY,
    EngineBatch,
    EngineDamaged,
    EngineFailed,
    EngineStall,
    decode_applied,
    encode_applied,
)

MEMTABLE_BYTES = share(32, at_most=64 * 1024 * 1024)
MEMTABLE_COUNT_MAX = 4
"""One is written, one is flushed, and two bear a burst before writers are told to back off."""

BLOCK_CACHE_BYTES = share(16, at_most=128 * 1024 * 1024)
BLOOM_BITS_PER_KEY = 10
"""One in a hundred absent keys costs a block read."""

BACKGROUND_JOBS = 2
"""One flush and one compaction; more would take the loop's processor."""

OPEN_FILES_MAX = 256
"""Each holds a descriptor. Of what lies in more files than that, the oldest opened is opened anew:
its index is in the block cache."""

DIAGNOSTIC_FILES_KEPT = 3

STEPS_IN_VAIN_MAX = 8

NEIGHBOURS_MIN = 8
"""Keys that a snapshot reads by steps of its iterator where they are neighbours: a step costs a
sixth of a lookup, and the seek before the first as much as seven lookups."""

_STALL_MESSAGE, _FULL_MESSAGE = "Result incomplete", "IO error: No space left"
_DAMAGED_MESSAGE = "Corruption"


def _check(iterator: RdictIter) -> None:
    """Raises EngineFailed if the iterator is over for an error, and not for want of entries."""
    if iterator.valid():
        return
    try:
        iterator.status()
    except Exception as error:
        raise _refusal(error) from error


def _get(database: Rdict, key: bytes) -> bytes | None:
    try:
        value: bytes | None = database.get(key)
    except Exception as error:
        raise _refusal(error) from error
    return value


def _first(iterator: RdictIter, start: bytes, end: bytes) -> tuple[bytes, bytes] | None:
    iterator.seek(start)
    if not iterator.valid():
        _check(iterator)
        return None
    key: bytes = iterator.key()
    return (key, iterator.value()) if key < end else None


def _first_each(
    iterator: RdictIter, spans: Sequence[tuple[bytes, bytes]]
) -> list[tuple[bytes, bytes] | None]:
    """Returns the result of `_first` for each span. A step to the next entry costs a quarter of a
    seek, and is tried where the spans ascend, until it has led nowhere `STEPS_IN_VAIN_MAX` times:
    then keys have more versions than one."""
    found: list[tuple[bytes, bytes] | None] = []
    key: bytes | None = None  # of the entry that the iterator is at; None behind the last one
    before, vain = b"", 0
    for number, (start, end) in enumerate(spans):
        ascending = number > 0 and before <= start
        before = start
        if ascending and (key is None or key >= start):
            pass  # what lies behind the span before lies behind this one's start
        else:
            stepped = False
            if ascending and vain < STEPS_IN_VAIN_MAX:
                iterator.next()
                stepped = not iterator.valid() or iterator.key() >= start
                vain += not stepped
            if not stepped:
                iterator.seek(start)
            key = iterator.key() if iterator.valid() else None
            if key is None:
                _check(iterator)
        found.append((key, iterator.value()) if key is not None and key < end else None)
    return found


class RocksSnapshot:
    """A state of the database. Pins its memtables and files until it is closed.

    It is one iterator, which sees the state in which it was made and which every read moves. Once
    it has met a damaged block, it may tell of it at every read.
    HAZARD: the binding's own snapshots are none (0.3.29): their iterators see later writes.
    """

    def __init__(self, database: Rdict, iterator: RdictIter, tombstones: RangeTombstones) -> None:
        self.range_tombstones = tombstones
        self._database = database
        self._iterator: RdictIter | None = iterator
        self._mover = object()
        """Who moved the iterator last: a scan that finds another must seek back."""

    def get(self, key: bytes) -> bytes | None:
        found = self.first(key, key + b"\x00")
        return None if found is None else found[1]

    def get_fixed_each(self, keys: Sequence[bytes]) -> list[bytes | None]:
        values: list[bytes | None] = []
        if len(keys) >= NEIGHBOURS_MIN:
            iterator = self._open_iterator()
            self._mover = object()
            iterator.seek(keys[0])
            for key in keys:
                if iterator.key() != key:
                    _check(iterator)
                    break
                values.append(iterator.value())
                iterator.next()
        for key in keys[len(values) :]:
            value = _get(self._database, key)
            # Where it has been collected since, this state has it still.
            values.append(self.get(key) if value is None else value)
        return values

    def first(self, start: bytes, end: bytes) -> tuple[bytes, bytes] | None:
        self._mover = object()
        return _first(self._open_iterator(), start, end)

    def first_each(self, spans: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes] | None]:
        return [self.first(start, end) for start, end in spans]

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        iterator = self._open_iterator()
        self._mover = mover = object()
        if reverse:
            iterator.seek_for_prev(end)
            if iterator.valid() and iterator.key() == end:
                iterator.prev()
        else:
            iterator.seek(start)
        advance = iterator.prev if reverse else iterator.next
        last = start if reverse else end.removesuffix(b"\x00")
        while iterator.valid() and start <= (key := iterator.key()) < end:
            yield key, iterator.value()
            if key == last:
                break  # the next key that is there may lie behind a million that were deleted
            if self._mover is not mover:
                self._open_iterator().seek(key)
                _check(iterator)
                self._mover = mover
            advance()
        _check(iterator)

    def close(self) -> None:
        self._iterator = None
        self._mover = object()

    def _open_iterator(self) -> RdictIter:
        if self._iterator is None:
            raise ValueError("the snapshot is closed")
        return self._iterator


class RocksEngine:
    """The engine in a folder of its own. Use it from one thread; `flush` alone from another."""

    def __init__(self, database: Rdict) -> None:
        self._database = database
        self._read_only = False
        self._seeker: RdictIter | None = None
        """Kept between reads, since making one costs twice as much as seeking it (3.0 µs and
        1.3 µs on a flushed table). It sees the state it was made in: each write drops it, and so
        does an error, which it may tell again wherever it is moved."""
        self._write_options = WriteOptions()
        self._write_options.disable_wal = True  # type: ignore[method-assign, assignment]
        self._write_options.no_slowdown = True
        self._applied_index = decode_applied(self.get(APPLIED_KEY))
        # What is read at opening was flushed: there is no other way for it to be there.
        self._flushed_index = self._applied_index
        self.range_tombstones = RangeTombstones.load(self)

    @classmethod
    def open(cls, path: Path, *, compaction: bool = True) -> RocksEngine:
        """Opens the engine in `path`, making it if it is missing. Blocks. Raises EngineFailed where
        its files are damaged, or cannot be read or written.

        Without `compaction` a damaged block does no harm until a read needs it, and files add up.
        """
        options = _options()
        options.set_disable_auto_compactions(not compaction)
        try:
            database = _database(path, options, AccessType.read_write())
        except Exception as error:
            raise EngineFailed(
                f"engine {path} cannot be opened: {_told(error)}; if its files are damaged, "
                "restore the data folder from a backup"
            ) from error
        return cls(database)

    @classmethod
    def open_read_only(cls, path: Path) -> RocksEngine:
        """Opens what `path` holds for reading alone: what was flushed. Blocks."""
        access = AccessType.read_only(error_if_log_file_exist=False)
        engine = cls(_database(path, _options(), access))
        engine._read_only = True
        return engine

    @property
    def applied_index(self) -> int:
        return self._applied_index

    @property
    def flushed_index(self) -> int:
        return self._flushed_index

    def get(self, key: bytes) -> bytes | None:
        return _get(self._database, key)

    def get_fixed_each(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def first(self, start: bytes, end: bytes) -> tuple[bytes, bytes] | None:
        if self._seeker is None:
            self._seeker = self._database.iter()
        try:
            return _first(self._seeker, start, end)
        except EngineFailed:
            self._seeker = None
            raise

    def first_each(self, spans: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes] | None]:
        if self._seeker is None:
            self._seeker = self._database.iter()
        try:
            return _first_each(self._seeker, spans)
        except EngineFailed:
            self._seeker = None
            raise

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        # Without a bound an iterator runs on over all that was deleted behind it, to the next key
        # that is there: behind a large transaction's intents that is milliseconds a scan.
        # HAZARD: the binding's lower bounds are upper bounds (0.3.29). Backwards, a scan is over
        # where it has returned `start`.
        bounds = ReadOptions()
        bounds.set_iterate_upper_bound(end)
        iterator = self._database.iter(bounds)
        if reverse:
            iterator.seek_for_prev(end)
            last, advance = start, iterator.prev
        else:
            iterator.seek(start)
            last, advance = end, iterator.next
        get_key, get_value = iterator.key, iterator.value
        while (key := get_key()) is not None and start <= key:
            yield key, get_value()
            if key == last:
                break
            advance()
        _check(iterator)

    def write(self, batch: EngineBatch, *, applied_index: int) -> None:
        assert applied_index > self._applied_index, (applied_index, self._applied_index)
        writes = WriteBatch(raw_mode=True)
        delete, put = writes.delete, writes.put
        for key in batch.deletes:
            delete(key)
        for key, value in batch.puts:
            put(key, value)
        put(APPLIED_KEY, encode_applied(applied_index))
        try:
            self._database.write(writes, self._write_options)
        except Exception as error:
            raise _refusal(error) from error
        self._seeker = None
        self._applied_index = applied_index
        if batch.range_tombstones:
            self.range_tombstones = RangeTombstones.load(self)

    def snapshot(self) -> RocksSnapshot:
        return RocksSnapshot(self._database, self._database.iter(), self.range_tombstones)

    def flush(self) -> None:
        # Read first: what is applied while the flush runs may miss it.
        covered = self._applied_index
        try:
            self._database.flush()
        except Exception as error:
            raise _refusal(error) from error
        self._flushed_index = max(self._flushed_index, covered)  # two may run beside each other

    def checkpoint(self, folder: Path) -> None:
        """Makes `folder`, on the same disk, an engine that holds one state: links to the files of
        this one, which has had that state at some moment of the call. Call it by Offload.

        HAZARD: the binding keeps the interpreter's lock while it makes the links and flushes what
        was written since the flush before: some tens of milliseconds.
        """
        self.flush()
        Checkpoint(self._database).create_checkpoint(str(folder))

    def close(self) -> None:
        """Flushes, so that the next opening has nothing to replay, unless the disk is full or has
        failed. Close snapshots before."""
        self._seeker = None
        refused = False
        if not self._read_only:
            try:
                self.flush()
            except (StoreFull, EngineFailed):
                refused = True
        try:
            self._database.close()
        except Exception:
            if not refused:
                raise  # else it is the flush that is tried again


def _database(path: Path, options: Options, access: AccessType) -> Rdict:
    """HAZARD: where the database exists, the binding takes the options of a column family that is
    not named from a file of the database, which has no block cache and no filters in it."""
    families = {"default": options}
    return Rdict(str(path), options, column_families=families, access_type=access)


def _refusal(error: Exception) -> Exception:
    """Returns the error of a read, a write or a flush, whose kind the binding tells by the text
    alone.

    Behind a full disk RocksDB goes on by itself, when there is room; behind any other error of a
    file it is for reading alone, until it is opened anew.
    """
    text = _told(error)
    if text.startswith(_STALL_MESSAGE):
        return EngineStall(text)
    if text.startswith(_FULL_MESSAGE):
        return StoreFull(f"the engine has no room for more: {text}")
    if text.startswith(_DAMAGED_MESSAGE):
        return EngineDamaged(
            f"the engine's files are damaged: {text}; save what is sound, from a server started "
            "with --salvage where others end, and restore the data folder from a backup"
        )
    return EngineFailed(text)


def _told(error: Exception) -> str:
    """Returns the binding's words in one line."""
    return " ".join(f"{error}".split())


def _options() -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(MEMTABLE_BYTES)
    options.set_max_write_buffer_number(MEMTABLE_COUNT_MAX)
    options.set_max_background_jobs(BACKGROUND_JOBS)
    options.set_max_open_files(OPEN_FILES_MAX)
    options.set_level_compaction_dynamic_level_bytes(True)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_bottommost_compression_type(DBCompressionType.zstd())
    options.set_avoid_unnecessary_blocking_io(True)
    options.set_keep_log_file_num(DIAGNOSTIC_FILES_KEPT)
    table = BlockBasedOptions()
    table.set_bloom_filter(BLOOM_BITS_PER_KEY, False)
    table.set_block_cache(Cache(BLOCK_CACHE_BYTES))
    # The cache has 64 shards of 2 MiB. The index and the filter of a file of millions of keys are
    # larger, and none that is larger is kept: in one piece they would be read for each get.
    table.set_index_type(BlockBasedIndexType.two_level_index_search())
    table.set_partition_filters(True)
    table.set_pin_top_level_index_and_filter(True)
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    options.set_block_based_table_factory(table)
    return options
