"""Commands: the entries of the log, and what each does to the engine.

Every change of state is a command: a range, the closed timestamp that it carries, and *logical
operations*. A range feed is driven off these operations, never off the engine's bytes. A step that
changes several ranges is one command all the same, so that it happens whole or not at all: the
operations of the other ranges are its further *parts*.

The engine batch is a function of the operations (`engine_batch`), so the log does not hold it a
second time: the range feed RFC lets an operation point into the batch to save the copy, and this
is the same saving the other way round. What no feed needs to know (transaction records, range
descriptors) travels as `EnginePut` and `EngineDelete`.

An intent on key k of transaction x, committed at 120, is two commands over time:

    WriteIntent(x, k, 100, seq 1, v)    -> put    0x02 k            = intent(x, 100, 1, v)
    CommitIntent(x, 120, [k], [v])      -> delete 0x02 k
                                           put    0x10 k ~120       = v
                                           put    0x11 keyspace 120 rest

Source: the range feed RFC, "Decoding WriteBatches" (MVCCLogicalOp).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from . import keys
from .clock import Timestamp
from .engine import EngineBatch
from .mvcc import Intent, encode_intent, index_entries
from .range_tombstones import RangeTombstone
from .span import Span


class WriteValue(msgspec.Struct, tag=1, array_like=True, frozen=True, gc=False):
    """Versions written at one timestamp without intents. `values` include the version header."""

    timestamp: Timestamp
    keys: list[bytes]
    values: list[bytes]


class WriteVersions(msgspec.Struct, tag=11, array_like=True, frozen=True, gc=False):
    """Versions that were first written elsewhere, each at a timestamp of its own: `timestamps[i]`
    of `keys[i]`. They may lie below what the store has closed, and only in a span that closes by
    itself (`ranges.replica`). `values` include the version header."""

    timestamps: list[Timestamp]
    keys: list[bytes]
    values: list[bytes]


class WriteIntent(msgspec.Struct, tag=2, array_like=True, frozen=True, gc=False):
    """Provisional versions of one transaction.

    A key that bears an intent of the transaction already is first taken by an `AbortIntent` of the
    same command, so that whoever counts intents (the feeds' unresolved-intent queue does, and knows
    no keys) counts rightly.

    `histories` are earlier values of some keys, written by the transaction before it had intents.
    """

    transaction_id: bytes
    timestamp: Timestamp
    sequence: int
    keys: list[bytes]
    values: list[bytes]
    histories: dict[bytes, tuple[tuple[int, bytes], ...]] = {}


class UpdateIntent(msgspec.Struct, tag=3, array_like=True, frozen=True, gc=False):
    """The transaction's intents now stand at `timestamp` (it was pushed, or moved itself)."""

    transaction_id: bytes
    timestamp: Timestamp


class CommitIntent(msgspec.Struct, tag=4, array_like=True, frozen=True, gc=False):
    """Intents became versions at `timestamp`."""

    transaction_id: bytes
    timestamp: Timestamp
    keys: list[bytes]
    values: list[bytes]


class AbortIntent(msgspec.Struct, tag=5, array_like=True, frozen=True, gc=False):
    """Intents were removed. Says nothing of their transaction, which may go on without them."""

    transaction_id: bytes
    keys: list[bytes]


class AbortTxn(msgspec.Struct, tag=6, array_like=True, frozen=True, gc=False):
    """The transaction will never commit."""

    transaction_id: bytes


class DeleteRangeOp(msgspec.Struct, tag=7, array_like=True, frozen=True, gc=False):
    """Every key in `[start, end)` is deleted at `timestamp`: by one range tombstone.

    What the same command writes in the span comes after the deletion. Feeds leave it out when it is
    `omitted`: then nothing that they show is deleted by it.
    """

    timestamp: Timestamp
    start: bytes
    end: bytes
    omitted: bool = False


class EnginePut(msgspec.Struct, tag=8, array_like=True, frozen=True, gc=False):
    """A plain engine write that is no concern of feeds."""

    key: bytes
    value: bytes


class EngineDelete(msgspec.Struct, tag=9, array_like=True, frozen=True, gc=False):
    key: bytes


class RemoveVersions(msgspec.Struct, tag=10, array_like=True, frozen=True, gc=False):
    """Garbage: version `timestamps[i]` of `keys[i]` is gone, and no reader could see it. What the
    time index says of it goes by `EngineDelete` or `EnginePut`."""

    keys: list[bytes]
    timestamps: list[Timestamp]


LogicalOp = (
    WriteValue
    | WriteVersions
    | WriteIntent
    | UpdateIntent
    | CommitIntent
    | AbortIntent
    | AbortTxn
    | DeleteRangeOp
    | EnginePut
    | EngineDelete
    | RemoveVersions
)


class Part(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The effects of a command on one more range."""

    range_id: int
    ops: list[LogicalOp]


class Command(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One entry of the log. `closed` is zero where the command closes nothing.

    `ops` are those of the range `range_id`, and `others` those of further ranges. No range has two
    parts.
    """

    range_id: int
    closed: Timestamp
    ops: list[LogicalOp]
    others: list[Part] = []

    def part_of(self, range_id: int) -> Command | None:
        """The part of the command for one range, as a command of its own; None if it has none."""
        if self.range_id == range_id:
            return Command(range_id, self.closed, self.ops) if self.others else self
        for part in self.others:
            if part.range_id == range_id:
                return Command(range_id, self.closed, part.ops)
        return None

    def all_ops(self) -> Iterator[LogicalOp]:
        """The operations of every part."""
        yield from self.ops
        for part in self.others:
            yield from part.ops


_encoder = msgspec.msgpack.Encoder()
_command_decoder = msgspec.msgpack.Decoder(Command)

encode_command = _encoder.encode


def decode_command(data: bytes) -> Command:
    """Raises msgspec.DecodeError or msgspec.ValidationError on bytes that are no command."""
    return _command_decoder.decode(data)


def engine_batch(command: Command) -> EngineBatch:
    """The writes of the command to the engine, less the applied index."""
    batch = EngineBatch()
    for op in command.ops:
        _apply(op, batch)
    for part in command.others:
        for op in part.ops:
            _apply(op, batch)
    return batch


def _apply(op: LogicalOp, batch: EngineBatch) -> None:
    match op:
        case WriteValue():
            _put_versions(batch, op.timestamp, op.keys, op.values)
        case WriteVersions():
            _put_stamped(batch, op)
        case CommitIntent():
            batch.deletes.extend(keys.INTENT + key for key in op.keys)
            _put_versions(batch, op.timestamp, op.keys, op.values)
        case WriteIntent():
            for key, value in zip(op.keys, op.values, strict=True):
                history = op.histories.get(key, ())
                intent = Intent(op.transaction_id, op.timestamp, op.sequence, value, history)
                batch.puts.append((keys.INTENT + key, encode_intent(intent)))
        case AbortIntent():
            batch.deletes.extend(keys.INTENT + key for key in op.keys)
        case DeleteRangeOp():
            found = RangeTombstone(Span(op.start, op.end), op.timestamp, op.omitted)
            batch.puts.append((found.engine_key, found.engine_value))
            batch.range_tombstones = True
        case EnginePut():
            batch.puts.append((op.key, op.value))
            batch.range_tombstones |= op.key[:1] == keys.RANGE_TOMBSTONE
        case EngineDelete():
            batch.deletes.append(op.key)
            batch.range_tombstones |= op.key[:1] == keys.RANGE_TOMBSTONE
        case RemoveVersions():
            for key, ts in zip(op.keys, op.timestamps, strict=True):
                batch.deletes.append(keys.version_key(key, ts))
        case UpdateIntent() | AbortTxn():
            pass


def _put_versions(
    batch: EngineBatch, ts: Timestamp, written: list[bytes], values: list[bytes]
) -> None:
    # The key building is inlined: this loop is the hottest of the write path.
    version, suffix = keys.VERSION, keys.inverted(ts)
    batch.puts += [
        (version + key + suffix, value) for key, value in zip(written, values, strict=True)
    ]
    batch.puts += index_entries(ts, written)


def _put_stamped(batch: EngineBatch, op: WriteVersions) -> None:
    """Puts versions that have a timestamp each. Inlined as above, which a replica lives by."""
    version, index, cut = keys.VERSION, keys.TIME_INDEX, keys.KEYSPACE_LENGTH
    inverted, big_endian = keys.inverted, keys.big_endian
    stamped = list(zip(op.timestamps, op.keys, op.values, strict=True))
    batch.puts.extend([(version + key + inverted(ts), value) for ts, key, value in stamped])
    batch.puts.extend(
        [(index + key[:cut] + big_endian(ts) + key[cut:], b"") for ts, key, _ in stamped]
    )
