"""Segments: the files of a relaxed log, one for each process that writes.

A segment is a line of text that names the domain, and frames behind it, each appended by one
`write`: what a process was told is kept survives the process, and a frame that is cut or damaged is
told from one that is whole.

    length (4) | CRC-32 of the payload (4) | payload

A payload is one batch's events (`E`), a record (`R`) or a snapshot with its cells (`S`). Readers
take Arrow (`events.LINES`); `read_segment` turns a file into it, from any frame on, so a segment
that is being written is followed by reading on from where the last read ended.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import pyarrow as pa

from .errors import FrameLimit, SegmentDamaged
from .events import Event, Line, Record, Snapshot, Write, lines_table

FIRST_LINE = b"relaxed log 1 domain "
FIRST_LINE_LENGTH = len(FIRST_LINE) + 17
FRAME_BYTES_MAX = 256 * 1024 * 1024
"""No frame is longer: what would be is refused when it is written, and damage when it is read."""

_FRAME = struct.Struct("<II")
_BATCH = struct.Struct("<cQIH")
_EVENT = struct.Struct("<HHIii")
_RECORD = struct.Struct("<cQQQ?")
_CUT = struct.Struct("<cQQ")


class SegmentWriter:
    """Appends lines to a file that nobody else writes. Its methods may be called by any thread."""

    def __init__(self, path: Path, domain: int) -> None:
        """Raises OSError, where the file exists too."""
        self.path = path
        self._domain = domain
        self._lock = Lock()
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        os.write(self._file, FIRST_LINE + b"%016x\n" % domain)

    def append(self, domain: int, id: int, ordinal: int, writes: Sequence[Write]) -> None:
        assert domain == self._domain, (domain, self.path)
        parts = [_BATCH.pack(b"E", id, ordinal, 0)]
        for write in writes:
            parts += _encode_cell(*write)
        self._write(b"".join(parts))

    def record(self, record: Record) -> None:
        self._write(_RECORD.pack(b"R", record.begin, record.end, record.count, record.complete))

    def snapshot(self, snapshot: Snapshot) -> None:
        """Keeps the store at a cut."""
        parts = [_CUT.pack(b"S", snapshot.cut, len(snapshot.cells))]
        for (table, row, column), value in snapshot.cells.items():
            parts += _encode_cell(table, row, column, None, value)
        self._write(b"".join(parts))

    def close(self) -> None:
        os.close(self._file)

    def _write(self, payload: bytes) -> None:
        """Raises OSError or FrameLimit, and nothing is kept."""
        if len(payload) > FRAME_BYTES_MAX:
            raise FrameLimit(
                f"{self.path}: {len(payload)} bytes at once are more than {FRAME_BYTES_MAX}: end "
                "batches sooner, or divide the store into domains"
            )
        frame = _FRAME.pack(len(payload), zlib.crc32(payload)) + payload
        with self._lock:
            written = os.write(self._file, frame)
            if written != len(frame):  # the disk is full: what was begun is taken back
                os.ftruncate(self._file, os.fstat(self._file).st_size - written)
                raise OSError(f"{self.path}: only {written} of {len(frame)} bytes could be written")


@dataclass(frozen=True, slots=True)
class Segment:
    """The frames of a file from some offset on. `end` is the offset behind the last whole frame,
    where reading goes on. `torn_at` is the same where there is a frame that is not whole: it is
    being written, the process that wrote it died, or the file was cut."""

    domain: int
    lines: pa.Table
    end: int
    torn_at: int | None


def read_segment(path: Path, start: int = 0, bytes_max: int = -1) -> Segment:
    """Every whole frame of a segment, from an earlier read's `end` on; where `bytes_max` is given,
    as many as it has room for, and one at least. Raises SegmentDamaged and OSError."""
    assert bytes_max < 0 or bytes_max >= _FRAME.size, bytes_max
    with path.open("rb") as file:
        head = file.read(FIRST_LINE_LENGTH)
        start = max(start, len(head))
        file.seek(start)
        data = file.read(bytes_max)
        if len(data) >= _FRAME.size:
            lacking = _FRAME.size + _FRAME.unpack_from(data)[0] - len(data)
            data += file.read(min(max(lacking, 0), FRAME_BYTES_MAX))
        more = bool(file.read(1))
    try:
        if not head.startswith(FIRST_LINE) or not head.endswith(b"\n"):
            raise ValueError
        domain = int(head[len(FIRST_LINE) :], 16)
    except ValueError:
        raise SegmentDamaged(f"{path} is no segment of a relaxed log: {head[:40]!r}") from None
    lines: list[Line] = []
    offset = 0
    torn_at = None
    while offset < len(data):
        payload = _frame(data, offset)
        if payload is None:
            torn_at = start + offset if not more or not offset else None
            break
        if zlib.crc32(payload) != _FRAME.unpack_from(data, offset)[1]:
            raise SegmentDamaged(
                f"{path}: the frame at byte {start + offset} does not match its checksum"
            )
        lines.extend(_decode(domain, payload))
        offset += _FRAME.size + len(payload)
    return Segment(domain, lines_table(lines), start + offset, torn_at)


def _frame(data: bytes, offset: int) -> bytes | None:
    """The payload of the frame at an offset; None where it is not whole."""
    if offset + _FRAME.size > len(data):
        return None
    length, _ = _FRAME.unpack_from(data, offset)
    payload = data[offset + _FRAME.size : offset + _FRAME.size + length]
    return payload if len(payload) == length <= FRAME_BYTES_MAX else None


def _encode_cell(
    table: str, row: bytes, column: str, old: bytes | None, new: bytes | None
) -> tuple[bytes, ...]:
    table_bytes, column_bytes = table.encode(), column.encode()
    lengths = _EVENT.pack(
        len(table_bytes), len(column_bytes), len(row),
        -1 if old is None else len(old), -1 if new is None else len(new),
    )  # fmt: skip
    return (lengths, table_bytes, column_bytes, row, old or b"", new or b"")


def _decode(domain: int, payload: bytes) -> Iterator[Line]:
    match payload[:1]:
        case b"E":
            _, id, ordinal, _ = _BATCH.unpack_from(payload)
            for at, cell in enumerate(_cells(payload, _BATCH.size)):
                yield Event(domain, id, ordinal + at, *cell)
        case b"R":
            _, begin, end, count, complete = _RECORD.unpack(payload)
            yield Record(domain=domain, begin=begin, end=end, count=count, complete=complete)
        case b"S":
            _, cut, _ = _CUT.unpack_from(payload)
            cells = {
                (table, row, column): new or b""
                for table, row, column, _, new in _cells(payload, _CUT.size)
            }
            yield Snapshot(domain=domain, cut=cut, cells=cells)


def _cells(
    payload: bytes, offset: int
) -> Iterator[tuple[str, bytes, str, bytes | None, bytes | None]]:
    while offset < len(payload):
        lengths = _EVENT.unpack_from(payload, offset)
        offset += _EVENT.size
        parts: list[bytes | None] = []
        for length in lengths:
            parts.append(None if length < 0 else payload[offset : offset + length])
            offset += max(length, 0)
        table, column, row, old, new = parts
        assert table is not None and column is not None and row is not None
        yield table.decode(), row, column.decode(), old, new
