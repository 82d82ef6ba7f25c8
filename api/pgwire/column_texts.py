"""Columns of results as the texts that PostgreSQL would write, made by Arrow where it can.

What Arrow writes differently from PostgreSQL (floats, intervals, ...) is written value by value, by
the types of the wire.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from ...catalog.values.arrow_columns import AnyArray, column_datums
from ...catalog.values.column_types import ColumnType
from ...catalog.values.session_zone import UTC_NAME, zone_name
from ...catalog.values.type_kinds import INTEGERS, TEXTS, TypeKind
from .wire_types import TEXT, encoder

_join: Any = pc.binary_join_element_wise
"""The stubs know none of its forms that take texts and arrays together."""


def column_texts(type: ColumnType, column: pa.ChunkedArray[Any]) -> pa.StringArray:
    """The texts of a column; NULLs stay."""
    array = _one_array(column)
    if type.kind in TEXTS and array.type == pa.string():
        return cast(pa.StringArray, array)
    if type.kind in INTEGERS or type.kind is TypeKind.DATE:
        return cast(pa.StringArray, array.cast(pa.string()))
    if type.kind is TypeKind.BOOL:
        return cast(pa.StringArray, pc.if_else(array, "t", "f"))
    if type.kind is TypeKind.TIMESTAMP and array.type == pa.timestamp("us"):
        return _timestamps(array)
    utc = zone_name() == UTC_NAME
    if utc and type.kind is TypeKind.TIMESTAMPTZ and array.type == pa.timestamp("us", tz="UTC"):
        texts = _timestamps(array.view(pa.timestamp("us")))
        return cast(pa.StringArray, _join(texts, "+00", ""))
    return _one_by_one(type, column)


def _one_by_one(type: ColumnType, column: pa.ChunkedArray[Any]) -> pa.StringArray:
    write = encoder(type, TEXT)
    values = column_datums(type, column)
    written = [None if value is None else write(value).decode() for value in values]
    return pa.array(written, pa.string())


def _one_array(column: pa.ChunkedArray[Any]) -> AnyArray:
    if column.num_chunks == 1:
        return cast(AnyArray, column.chunk(0))
    chunks: list[Any] = column.chunks or [pa.array([], column.type)]
    return cast(AnyArray, pa.concat_arrays(chunks))


def _timestamps(array: AnyArray) -> pa.StringArray:
    """Six digits of a second, but for those at the end that are zero; and no point behind them."""
    texts = cast(pa.StringArray, array.cast(pa.string()))
    return pc.utf8_rtrim(pc.utf8_rtrim(texts, characters="0"), characters=".")


def joined_rows(texts: Sequence[pa.StringArray], delimiter: str, null: str) -> list[bytes]:
    """Rows of columns of texts."""
    joined = _join(*texts, delimiter, null_handling="replace", null_replacement=null)
    rows: list[bytes] = joined.cast(pa.binary()).to_pylist()
    return rows
