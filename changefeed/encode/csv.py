r"""Rows in CSV: the values of a row in the table's order, and nothing beside them.

    1,"a, ""b"" c",1.50,\x00ff,2020-01-01,"[1,null]",

A value has the text that JSON messages have for it (`json_texts`), without the quotes that JSON
puts around it. Texts, documents and arrays stand in quotes, with their quotes doubled; NULL is
empty and not quoted, so that the empty text is told apart from it. A line cannot say that a row was
deleted, so only an initial scan has CSV; a message has no key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...catalog.descriptors.descriptor import Column
from ...catalog.values.arrow_columns import column_datums
from ...catalog.values.column_types import ColumnType, Datum
from ...catalog.values.type_kinds import TEXTS, TypeKind
from ...kvlayer.clock import Timestamp
from ..contract.changes import ChangeBatch
from .json_texts import ColumnTexts, Lines, Parts, as_lines, as_list, joined
from .protocol import EncodedBatch
from .topics import Topics


class CSVEncoder:
    """Encodes the rows of an initial scan as CSV."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    def encode(self, batch: ChangeBatch) -> EncodedBatch:
        return EncodedBatch(
            topic=self._topics.of(batch.descriptor),
            keys=[b""] * len(batch),
            values=as_list(joined(_rows(batch), len(batch))),
        )

    def lines(self, batch: ChangeBatch) -> Lines:
        return as_lines(_rows(batch), len(batch))

    def encode_resolved(self, topic: str | None, resolved: Timestamp) -> bytes:
        raise AssertionError("initial_scan = 'only' and resolved exclude each other")


def _rows(batch: ChangeBatch) -> Parts:
    assert not batch.deleted, batch
    assert batch.rows is None or None not in batch.rows, batch
    parts: list[bytes | list[bytes]] = []
    for column, values in _columns(batch):
        fields = _fields(column.type, values)
        parts += [b",", fields] if parts else [fields]
    return tuple(parts)


def _columns(batch: ChangeBatch) -> list[tuple[Column, Sequence[Datum]]]:
    """The columns that are shown, with their values."""
    columns = batch.descriptor.visible_columns
    values: list[Sequence[Datum]]
    if batch.columns is not None:
        values = [
            column_datums(column.type, array)
            for column, array in zip(columns, batch.columns.columns, strict=True)
        ]
    else:
        rows = [row for row in batch.iterate_rows() if row is not None]
        values = list(zip(*rows, strict=True))
    pairs = zip(columns, values, strict=True)
    return [(column, of_column) for column, of_column in pairs if not column.hidden]


def _fields(type: ColumnType, values: Sequence[Datum]) -> list[bytes]:
    if type.kind in TEXTS or type.kind is TypeKind.ENUM:
        return [b"" if value is None else _quoted(str(value).encode()) for value in values]
    shown = _quoted if type.element is not None or type.kind is TypeKind.JSONB else _bare
    return _of_texts(values, ColumnTexts(type).of_values(values), shown)


def _of_texts(
    values: Sequence[Datum], texts: Sequence[bytes], shown: Callable[[bytes], bytes]
) -> list[bytes]:
    return [
        b"" if value is None else shown(text) for value, text in zip(values, texts, strict=True)
    ]


def _quoted(text: bytes) -> bytes:
    return b'"' + text.replace(b'"', b'""') + b'"'


def _bare(text: bytes) -> bytes:
    """A JSON text that has nothing to escape but the backslash of BYTES."""
    return text.strip(b'"').replace(b"\\\\", b"\\")
