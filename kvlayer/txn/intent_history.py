"""The versions that a transaction writes over, kept so that a savepoint can bring them back.

An intent carries the earlier values of its transaction that a standing savepoint may restore, and
no others, so it never holds more of them than there are savepoints:

    sequence  1  put k = a       intent k: 1 a
              2  SAVEPOINT s
              3  put k = b       intent k: 3 b, history 1 a
              4  put k = c       intent k: 4 c, history 1 a     (nothing can bring b back)
              ROLLBACK TO s      intent k: 1 a

Feeds count the intents of a transaction and know no keys (`command.WriteIntent`). An intent that
stays an intent of its transaction, with another value, changes no count: where it has a history,
and where it is restored, it is written as a plain `EnginePut`. One that goes is an `AbortIntent`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import keys as key_format
from ..command import AbortIntent, EnginePut, LogicalOp, UpdateIntent, WriteIntent
from ..engine import Reader
from ..mvcc import Intent, encode_intent, intent_on
from .record import TransactionRecord

History = tuple[tuple[int, bytes], ...]


def needed(history: History, savepoints: Sequence[int]) -> History:
    """The values that a savepoint may restore: for each, the last that is not younger than it."""
    kept: list[tuple[int, bytes]] = []
    for position, (sequence, value) in enumerate(history):
        upto = history[position + 1][0] if position + 1 < len(history) else None
        if any(sequence <= at and (upto is None or at < upto) for at in savepoints):
            kept.append((sequence, value))
    return tuple(kept)


def write_operations(
    reader: Reader,
    record: TransactionRecord,
    keys: list[bytes],
    values: list[bytes],
    replaced: list[bytes],
) -> list[LogicalOp]:
    """Writes the transaction's next sequence to the keys, at its write timestamp. Those `replaced`
    bear its intents already."""
    at, sequence = record.write_timestamp, record.sequence + 1
    if not replaced:
        return [WriteIntent(record.id, at, sequence, keys, values)]
    histories = _histories(reader, record, replaced) if record.savepoints else {}
    operations: list[LogicalOp] = []
    if len(histories) < len(replaced):
        operations.append(AbortIntent(record.id, [key for key in replaced if key not in histories]))
    if not histories:
        operations.append(WriteIntent(record.id, at, sequence, keys, values))
        return operations
    fresh = [pair for pair in zip(keys, values, strict=True) if pair[0] not in histories]
    if fresh:
        names, written = zip(*fresh, strict=True)
        operations.append(WriteIntent(record.id, at, sequence, list(names), list(written)))
    operations.append(UpdateIntent(record.id, at))
    for key, value in zip(keys, values, strict=True):
        if key in histories:
            intent = Intent(record.id, at, sequence, value, histories[key])
            operations.append(_put(key, intent))
    return operations


def _histories(
    reader: Reader, record: TransactionRecord, replaced: Sequence[bytes]
) -> dict[bytes, History]:
    """The histories that the keys' new intents must remember, for those that must remember one."""
    histories: dict[bytes, History] = {}
    for key in replaced:
        intent = intent_on(reader, key)
        assert intent is not None, ("the record names an intent that is not there", key, record)
        history = (*intent.history, (intent.sequence, intent.value))
        kept = needed(history, record.savepoints)
        if kept:
            histories[key] = kept
    return histories


@dataclass(frozen=True, slots=True)
class Restoration:
    """A command that undoes writes: keys whose intents go, and sequences of those brought back."""

    operations: list[LogicalOp]
    removed: list[bytes]
    restored: dict[bytes, int]


def restoration(
    reader: Reader, record: TransactionRecord, keys: Sequence[bytes], upto: int
) -> Restoration:
    """Brings the keys, whose intents are younger than sequence `upto`, back to where they were."""
    at = record.write_timestamp
    operations: list[LogicalOp] = []
    removed: list[bytes] = []
    restored: dict[bytes, int] = {}
    for key in keys:
        intent = intent_on(reader, key)
        assert intent is not None, ("the record names an intent that is not there", key, record)
        older = tuple(entry for entry in intent.history if entry[0] <= upto)
        if not older:
            removed.append(key)
            continue
        sequence, value = older[-1]
        restored[key] = sequence
        operations.append(_put(key, Intent(record.id, at, sequence, value, older[:-1])))
    if removed:
        operations.append(AbortIntent(record.id, removed))
    return Restoration(operations, removed, restored)


def _put(key: bytes, intent: Intent) -> EnginePut:
    return EnginePut(key_format.INTENT + key, encode_intent(intent))
