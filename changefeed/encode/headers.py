"""The option `headers_json_column_name`: a JSONB column whose fields are the headers of messages.

    row       (7, 'ada', {"trace": "af31", "try": 2})
    value     {"after": {"id": 7, "name": "ada"}}           headers   trace: af31, try: 2

Messages do not show the column. A field that is a text is the header's value as it is, any other in
JSON, and null has none. A document that is no object has no headers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ...catalog.descriptors.descriptor import Column, TableDescriptor
from ...catalog.values.column_types import Datum
from ...catalog.values.errors import SQLError
from ...catalog.values.type_kinds import TypeKind
from ..contract.changes import ChangeBatch
from ..contract.options import ChangefeedOptions
from .named_column import column_values, named_column
from .protocol import Headers

OPTION = "headers_json_column_name"


def headers_column(table: TableDescriptor, name: str) -> Column:
    """The column of `table` that has the headers. Raises SQLError 42703, and 42804 where it is not
    JSONB."""
    column = named_column(table, name, OPTION)
    if column.type.kind is not TypeKind.JSONB:
        raise SQLError(
            "42804",
            f'column "{name}" of table "{table.name}", which the option {OPTION} names, is '
            f"{column.type}, not JSONB",
        )
    return column


def shown_columns(table: TableDescriptor, options: ChangefeedOptions) -> list[tuple[int, Column]]:
    """The columns of `table` that messages show, each with its place in a row."""
    return [
        (place, column)
        for place, column in enumerate(table.visible_columns)
        if not column.hidden and column.name != options.headers_column
    ]


def headers_of(batch: ChangeBatch, options: ChangefeedOptions) -> Sequence[Headers] | None:
    """The headers of each change's message, of a deletion those of the row that it removed; None
    where no column has them."""
    if options.headers_column is None:
        return None
    column = headers_column(batch.descriptor, options.headers_column)
    return [_headers(document) for document in column_values(batch, column)]


def _headers(document: Datum) -> Headers:
    if document is None or not str(document).startswith("{"):
        return ()
    fields = msgspec.json.decode(str(document), type=dict[str, msgspec.Raw])
    return [(name, _value(bytes(text))) for name, text in fields.items()]


def _value(text: bytes) -> bytes | None:
    if text.startswith(b'"'):
        return msgspec.json.decode(text, type=str).encode()
    return None if text == b"null" else text


def check_named_columns(tables: Iterable[TableDescriptor], options: ChangefeedOptions) -> None:
    """Raises SQLError 42703 and 42804 where one of the tables lacks a column that `options` name,
    or it will not do."""
    for table in tables:
        if options.key_column is not None:
            named_column(table, options.key_column, "key_column")
        if options.headers_column is not None:
            headers_column(table, options.headers_column)
