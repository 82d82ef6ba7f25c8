"""Columns of texts, read as columns of values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..values.arrow_columns import AnyArray
from ..values.column_types import ColumnType
from ..values.type_kinds import INTEGERS, TEXTS, TypeKind
from .arrow_conform import fits_width

PLAIN: dict[TypeKind, bytes] = {
    **dict.fromkeys(INTEGERS, b"0123456789-"),
    TypeKind.FLOAT8: b"0123456789-+.eE",
    TypeKind.DECIMAL: b"0123456789-.",
    TypeKind.DATE: b"0123456789-",
    TypeKind.TIMESTAMP: b"0123456789-: .",
    TypeKind.TIMESTAMPTZ: b"0123456789-: .+Z",
}
"""Types whose texts Arrow reads as `coerce` does, and of which bytes these texts are made."""

_TIMESTAMP_LENGTH_MIN = len("2000-01-01 00:00:00")

_ZONED = (
    r"^[12]\d{3}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?"
    r"(?:Z|[+-](?:0\d|1[0-4])(?::?[0-5]\d)?)$"
)
"""A moment with its offset: one without is in the session's zone, which Arrow does not know."""


def cast_texts(type: ColumnType, texts: pa.StringArray) -> AnyArray | None:
    """Texts as a column, where Arrow reads them just as `coerce` would; else None."""
    if type.kind in TEXTS:
        return texts if fits_width(type, texts) else None
    if type.kind not in PLAIN or text_bytes(texts).translate(None, PLAIN[type.kind]):
        return None
    if type.kind is TypeKind.TIMESTAMP:
        shortest = pc.min(pc.utf8_length(texts)).as_py()
        if shortest is not None and shortest < _TIMESTAMP_LENGTH_MIN:
            return None
    if type.kind is TypeKind.TIMESTAMPTZ:
        zoned = pc.match_substring_regex(texts, _ZONED)
        if type.precision is not None or not pc.all(zoned, min_count=0).as_py():
            return None
    try:
        found: AnyArray = texts.cast(type.arrow_type)
    except pa.ArrowInvalid:
        return None
    return None if type.kind is TypeKind.FLOAT8 and _out_of_range(texts, found) else found


def _out_of_range(texts: Any, floats: Any) -> bool:
    """Whether Arrow made infinities of what is too great, or zeros of what is too small."""
    if pc.any(pc.is_inf(floats)).as_py():
        return True
    zeros = texts.filter(pc.equal(floats, pa.scalar(0.0))).unique().to_pylist()
    mantissas = (text.lower().partition("e")[0] for text in zeros if text)
    return any(not _NONZERO.isdisjoint(mantissa) for mantissa in mantissas)


_NONZERO = frozenset("123456789")


def text_bytes(texts: pa.StringArray) -> bytes:
    """The bytes of all texts of a column, one behind another; perhaps some that belong to none."""
    _, offsets, data = texts.buffers()
    if offsets is None or data is None:
        return b""
    ends = memoryview(offsets).cast("i")
    start, end = ends[texts.offset], ends[texts.offset + len(texts)]
    return bytes(memoryview(data)[start:end])
