"""Intents as the engine holds them: under their own prefix, value inline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from .. import keys
from ..clock import Timestamp
from ..engine import Reader
from ..span import Span
from .slices import take_slice


class Intent(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A provisional write of a transaction. `value` includes the version header.

    `timestamp` is where the transaction stood when it wrote; it may have been moved up since.
    `sequence` counts the transaction's writes. `history` holds earlier values of the same
    transaction as (sequence, value), ascending: those to which a savepoint may yet roll back.
    """

    transaction_id: bytes
    timestamp: Timestamp
    sequence: int
    value: bytes
    history: tuple[tuple[int, bytes], ...] = ()


encode_intent = msgspec.msgpack.Encoder().encode


decode_intent = msgspec.msgpack.Decoder(Intent).decode
"""Raises msgspec.DecodeError or msgspec.ValidationError on bytes that are no intent."""


def intent_on(reader: Reader, key: bytes) -> Intent | None:
    """The intent on one key, whosever it is."""
    encoded = reader.get(keys.INTENT + key)
    return None if encoded is None else decode_intent(encoded)


def intents_on(
    reader: Reader, written: Sequence[bytes], *, dense: bool = False
) -> list[Intent | None]:
    """The intents on several keys.

    `dense` says that nothing else is likely to lie between them, as in a slice of a load: then one
    scan finds them in a fifth of the time. HAZARD: of keys far apart it would step over all that
    was deleted between them, which is milliseconds behind a load.
    """
    if dense and written and sorted(written) == written:
        start, end = keys.INTENT + written[0], keys.INTENT + written[-1] + b"\x00"
        found = list(islice(reader.scan(start, end), len(written) + 1))
        if [engine_key[1:] for engine_key, _ in found] == written:
            return [decode_intent(encoded) for _, encoded in found]
    return [intent_on(reader, key) for key in written]


def intents_in(
    reader: Reader, span: Span, *, reverse: bool = False
) -> Iterator[tuple[bytes, Intent]]:
    """The intents on the span's keys, in key order or against it. Lazy, as the reader is."""
    start, end = keys.INTENT + span.start, keys.INTENT + span.end
    for engine_key, encoded in reader.scan(start, end, reverse=reverse):
        yield engine_key[1:], decode_intent(encoded)


def run_of_intents(
    reader: Reader, span: Span, count: int, *, reverse: bool = False
) -> tuple[list[tuple[bytes, Intent]], bool]:
    """The first of `intents_in`, `count` and a slice's bytes of them at most, and whether there
    may be more: for whoever reads a million of them."""
    start, end = keys.INTENT + span.start, keys.INTENT + span.end
    run, more = take_slice(reader.scan(start, end, reverse=reverse), count)
    return [(engine_key[1:], decode_intent(encoded)) for engine_key, encoded in run], more
