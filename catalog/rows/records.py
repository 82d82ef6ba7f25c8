"""Rows of system tables as records: dataclasses whose fields have the names of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from ..descriptors.descriptor import TableDescriptor
from ..values.column_types import Datum
from .row_codec import codec_for

R = TypeVar("R")


class RecordCodec(Generic[R]):
    """Encodes and decodes the records of one table. Enumerations are stored as their values."""

    def __init__(self, table: TableDescriptor, kind: type[R]) -> None:
        self._codec = codec_for(table)
        self._names = [column.name for column in table.columns]
        self._kind = kind

    def encode_key(self, values: Sequence[Datum]) -> bytes:
        return self._codec.encode_key(values)

    def encode(self, record: R) -> tuple[bytes, bytes]:
        values = msgspec.to_builtins(record, builtin_types=(bytes, datetime))
        return self._codec.encode_row([values[name] for name in self._names])

    def decode(self, key: bytes, body: bytes) -> R:
        """The record; columns that are none of its fields are left out."""
        row = zip(self._names, self._codec.decode_row(key, body), strict=True)
        return msgspec.convert(dict(row), self._kind)
