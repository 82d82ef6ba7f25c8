"""The contents of an engine and a log, as lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from ...catalog.store.key_names import KeyNames
from ...kvlayer import keys
from ...kvlayer.clock import Timestamp, format_timestamp
from ...kvlayer.command import (
    AbortIntent,
    AbortTxn,
    CommitIntent,
    DeleteRangeOp,
    EngineDelete,
    EnginePut,
    LogicalOp,
    RemoveVersions,
    UpdateIntent,
    WriteIntent,
    WriteValue,
    WriteVersions,
    decode_command,
)
from ...kvlayer.engine import Reader
from ...kvlayer.mvcc import body_of, header_of, intents_in, version_bounds
from ...kvlayer.process.fibre import give_way
from ...kvlayer.ranges.descriptor import decode_descriptor
from ...kvlayer.span import Span, prefix_end
from ..json_values import json_value

Line = dict[str, object]
"""One thing, for JSON: its values are what `json_value` makes."""

KEYS_SHOWN_MAX = 20
"""Keys of one operation that a log line names; the line says how many there are."""

_DESCRIPTOR = b"descriptor"


def shown_value(names: KeyNames, key: bytes, body: bytes | None) -> object:
    """A row as an object of its columns, anything else in hex, a deletion as None."""
    if body is None:
        return None
    row = names.row(key, body)
    return f"0x{body.hex()}" if row is None else json_value(row)


def key_lines(reader: Reader, names: KeyNames, span: Span) -> Iterator[Line]:
    """Intents, range tombstones, and then every version of the span's keys, newest first."""
    for key, intent in intents_in(reader, span):
        yield {
            "kind": "intent",
            "key": names.key(key),
            "timestamp": format_timestamp(intent.timestamp),
            "transaction": intent.transaction_id.hex(),
            "sequence": intent.sequence,
            "value": shown_value(names, key, body_of(intent.value)),
        }
    for found in reader.range_tombstones:
        if found.span.overlaps(span):
            yield {
                "kind": "range tombstone",
                "span": names.span(found.span),
                "timestamp": format_timestamp(found.timestamp),
            }
    for engine_key, value in reader.scan(*version_bounds(span)):
        key, ts = keys.split_version_key(engine_key)
        if span.contains(key):
            yield _version_line(names, key, ts, value)


def _version_line(names: KeyNames, key: bytes, ts: Timestamp, value: bytes) -> Line:
    line: Line = {
        "kind": "version",
        "key": names.key(key),
        "timestamp": format_timestamp(ts),
        "value": shown_value(names, key, body_of(value)),
    }
    header = header_of(value)
    if header.omitted:
        line["omitted from feeds"] = True
    if header.origin is not None:
        line["origin"] = header.origin
    if header.expires_at is not None:
        line["expires"] = format_timestamp(header.expires_at)
    return line


def range_lines(reader: Reader, names: KeyNames) -> Iterator[Line]:
    """Every range as its descriptor has it, with the resolved timestamp that it keeps."""
    prefix = keys.RANGE
    resolved: dict[int, Timestamp] = {}
    found: list[tuple[int, Span]] = []
    for engine_key, value in reader.scan(prefix, prefix_end(prefix)):
        give_way()
        range_id, name = int.from_bytes(engine_key[1:9], "big"), engine_key[9:]
        if name == _DESCRIPTOR:
            descriptor = decode_descriptor(value)
            found.append((descriptor.id, descriptor.span))
        elif name == b"resolved":
            resolved[range_id] = Timestamp(int.from_bytes(value, "big"))
    for range_id, span in sorted(found, key=lambda each: each[1]):
        give_way()
        line: Line = {"kind": "range", "id": range_id, "span": names.span(span)}
        if range_id in resolved:
            line["resolved at least"] = format_timestamp(resolved[range_id])
        yield line


def log_lines(entries: Iterable[tuple[int, bytes]], names: KeyNames) -> Iterator[Line]:
    """A line for each operation of each entry."""
    for index, payload in entries:
        command = decode_command(payload)
        parts = [(command.range_id, command.ops)]
        parts += [(part.range_id, part.ops) for part in command.others]
        for range_id, ops in parts:
            for op in ops:
                yield {"index": index, "range": range_id, **_op_line(op, names)}


def _op_line(op: LogicalOp, names: KeyNames) -> Line:
    line: Line = {"op": type(op).__name__}
    match op:
        case WriteValue() | CommitIntent() | WriteIntent():
            line["timestamp"] = format_timestamp(op.timestamp)
            line |= _keys(op.keys, names)
        case WriteVersions():
            line["timestamps"] = [format_timestamp(at) for at in op.timestamps]
            line |= _keys(op.keys, names)
        case AbortIntent():
            line |= _keys(op.keys, names)
        case UpdateIntent():
            line["timestamp"] = format_timestamp(op.timestamp)
        case DeleteRangeOp():
            line["timestamp"] = format_timestamp(op.timestamp)
            line["span"] = names.span(Span(op.start, op.end))
        case EnginePut() | EngineDelete():
            line["engine key"] = f"0x{op.key.hex()}"
        case RemoveVersions():
            line |= _keys(op.keys, names)
        case AbortTxn():
            pass
        case _:
            assert_never(op)
    if isinstance(op, WriteIntent | UpdateIntent | CommitIntent | AbortIntent | AbortTxn):
        line["transaction"] = op.transaction_id.hex()
    return line


def _keys(named: list[bytes], names: KeyNames) -> Line:
    line: Line = {"keys": [names.key(key) for key in named[:KEYS_SHOWN_MAX]]}
    if len(named) > KEYS_SHOWN_MAX:
        line["key count"] = len(named)
    return line
