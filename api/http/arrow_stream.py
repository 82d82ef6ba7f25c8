"""An Arrow IPC stream that arrives in chunks, as record batches.

pyarrow reads streams from files, and would block the loop until the next chunk is there. The frames
are simple, so they are cut here, and pyarrow is given whole ones:

    stream   message* [end]
    message  ff ff ff ff, metadata length (4 bytes), metadata (a flatbuffer), body
    end      ff ff ff ff, 00 00 00 00

The schema comes first, then dictionaries and record batches. A record batch is read as a stream of
its own that begins with the schema and the dictionaries so far.
"""

from __future__ import annotations

import struct
from collections.abc import AsyncGenerator, AsyncIterator
from enum import Enum

import pyarrow as pa
import pyarrow.ipc

from ...catalog.values.errors import SQLError
from .arrow_sizes import row_bytes, unpacked_bytes

MESSAGE_BYTES_MAX = 64 * 1024 * 1024
"""Of one message, as it comes and unpacked, of its rows, and of a stream's schema with all its
dictionaries: what is held at a time."""

_CONTINUATION = b"\xff\xff\xff\xff"


class _Kind(Enum):
    """The messages of a stream, by their number in Arrow's format."""

    SCHEMA = 1  # what batches look like; the first message, once
    DICTIONARY = 2  # values that later batches refer to
    BATCH = 3  # rows


async def arrow_batches(chunks: AsyncIterator[bytes]) -> AsyncGenerator[pa.RecordBatch, None]:
    """The batches of a stream, checked. Raises SQLError: 22P03 for what is no such stream, 54000
    for a batch that is too large."""
    received = _Received(chunks)
    preamble = bytearray()
    dictionary_bytes = 0
    while True:
        message = await _read_message(received)
        if message is None:
            break
        kind, content, unpacked = message
        if (kind is _Kind.SCHEMA) != (not preamble):
            raise _malformed("the schema comes first, and once")
        if kind is _Kind.BATCH:
            yield _read_batch(preamble + content)
            continue
        preamble += content
        dictionary_bytes += unpacked
        if max(len(preamble), dictionary_bytes) > MESSAGE_BYTES_MAX:
            raise _too_large("dictionaries")
    if not preamble:
        raise _malformed("it has no schema")
    if not await received.at_end():
        raise _malformed("something follows its end")


def _read_batch(stream: bytes | bytearray) -> pa.RecordBatch:
    """Checked in full: what came over a wire may point outside of its buffers."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(stream)) as reader:
            batch = reader.read_next_batch()
        batch.validate(full=True)
        size = row_bytes(batch)
    except (pa.ArrowException, OSError, StopIteration) as error:
        raise _malformed(str(error).partition("\n")[0]) from error
    if size > MESSAGE_BYTES_MAX:
        raise _too_large("a record batch whose rows are")
    return batch


async def _read_message(received: _Received) -> tuple[_Kind, bytes, int] | None:
    """The next message with its frame, and its body's bytes once they are not compressed. None at
    the stream's end."""
    if await received.at_end():
        return None
    prefix = await received.take(4)
    if prefix == _CONTINUATION:
        prefix += await received.take(4)
    (metadata_length,) = struct.unpack("<i", prefix[-4:])
    if metadata_length == 0:
        return None
    if not 0 < metadata_length <= MESSAGE_BYTES_MAX:
        raise _malformed(f"metadata of {metadata_length} bytes")
    metadata = await received.take(metadata_length)
    kind, body_length = _look_into(metadata)
    if body_length > MESSAGE_BYTES_MAX:
        raise _too_large("a record batch")
    body = await received.take(body_length)
    unpacked = 0 if kind is _Kind.SCHEMA else _unpacked(metadata, body)
    if unpacked > MESSAGE_BYTES_MAX:
        raise _too_large("a record batch that is compressed")
    return kind, prefix + metadata + body, unpacked


def _unpacked(metadata: bytes, body: bytes) -> int:
    try:
        return unpacked_bytes(metadata, body)
    except (struct.error, IndexError):
        raise _malformed("a message that cannot be read") from None


def _look_into(metadata: bytes) -> tuple[_Kind, int]:
    """The kind of a message and the length of its body, out of its flatbuffer.

    `Message` is a table of version, header type, header and body length: where its fields lie is
    said by a table of two-byte offsets.
    """
    try:
        (table,) = struct.unpack_from("<I", metadata, 0)
        (back,) = struct.unpack_from("<i", metadata, table)
        fields = table - back
        if fields < 0:
            raise _malformed("a message that cannot be read")
        size, _, _, kind_at, _ = struct.unpack_from("<5H", metadata, fields)
        length_at = struct.unpack_from("<H", metadata, fields + 10)[0] if size > 10 else 0
        if not kind_at:
            raise _malformed("a message of no kind")
        kind = _Kind(metadata[table + kind_at])
        length = struct.unpack_from("<q", metadata, table + length_at)[0] if length_at else 0
    except (struct.error, IndexError, ValueError):
        raise _malformed("a message that cannot be read") from None
    if length < 0:
        raise _malformed(f"a body of {length} bytes")
    return kind, length


class _Received:
    """The bytes that have arrived and are not taken yet: a chunk at most, beside what is being put
    together."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._bytes = b""
        self._position = 0

    async def at_end(self) -> bool:
        while self._position == len(self._bytes):
            chunk = await anext(self._chunks, None)
            if chunk is None:
                return True
            self._bytes, self._position = chunk, 0
        return False

    async def take(self, count: int) -> bytes:
        """The next `count` bytes. Raises SQLError 22P03 if there are fewer."""
        parts: list[bytes] = []
        while count:
            if await self.at_end():
                raise _malformed("it ends within a message")
            part = self._bytes[self._position : self._position + count]
            self._position += len(part)
            count -= len(part)
            parts.append(part)
        return b"".join(parts)


def _malformed(why: str) -> SQLError:
    return SQLError("22P03", f"the body is not an Arrow IPC stream: {why}")


def _too_large(what: str) -> SQLError:
    return SQLError(
        "54000",
        f"{what} of more than {MESSAGE_BYTES_MAX} bytes",
        hint="Write smaller batches: pyarrow's write_table takes max_chunksize.",
    )
