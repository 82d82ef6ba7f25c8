"""One version of a source table as a table of PostgreSQL.

    orders (id INT8 PRIMARY KEY, note STRING)

    CREATE TABLE public.orders (
        id bigint, note text, _commit_timestamp bigint NOT NULL, PRIMARY KEY (id)
    )

Columns have the names and types of the source, so that a mirror is queried, indexed and joined as
any table is. `_commit_timestamp` is that of the row's version. PostgreSQL tells keys apart as the
store does (0.0 and -0.0 are one key, a month and thirty days too). An ENUM's labels may change and
change places; a table with one in its key has the store's own key as its primary key, in `_key`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from psycopg import sql

from ....catalog.descriptors.descriptor import Column, TableDescriptor
from ....catalog.rows.row_codec import codec_for
from ....catalog.values.column_types import ColumnType, Datum
from ....catalog.values.interval import Interval
from ....catalog.values.type_kinds import TypeKind
from ..mirror.conform import KEY_PREFIX_LENGTH
from ..protocol import SinkRefused
from .location import check_name

OWN_SCHEMA = "_tailrace"
COMMIT_TIMESTAMP = "_commit_timestamp"
KEY = "_key"
TEMPORARY = "_tailrace_"
"""Prefix of a column's name while another column takes its old one."""

SYSTEM_COLUMNS = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"})
COLUMNS_MAX = 1500
"""PostgreSQL has 1600, dropped ones among them."""

_NAMES = {
    TypeKind.BOOL: "boolean",
    TypeKind.INT2: "smallint",
    TypeKind.INT4: "integer",
    TypeKind.INT8: "bigint",
    TypeKind.FLOAT4: "real",
    TypeKind.FLOAT8: "double precision",
    TypeKind.STRING: "text",
    TypeKind.BYTES: "bytea",
    TypeKind.DATE: "date",
    TypeKind.INTERVAL: "interval",
    TypeKind.UUID: "uuid",
    TypeKind.JSONB: "jsonb",
    TypeKind.ENUM: "text",
}


def type_name(type: ColumnType) -> str:
    """The type as `format_type` of PostgreSQL prints it.

    A CHAR is a `character varying`: blanks at its end are not stored, and none are to be added. An
    ENUM is text, as its labels may change.
    """
    if type.element is not None:
        return f"{type_name(type.element)}[]"
    match type.kind:
        case TypeKind.DECIMAL:
            precision, scale = type.decimal
            return f"numeric({precision},{scale})"
        case TypeKind.VARCHAR | TypeKind.CHAR:
            return "character varying" + ("" if type.width is None else f"({type.width})")
        case TypeKind.TIME | TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ:
            word = "time" if type.kind is TypeKind.TIME else "timestamp"
            digits = "" if type.precision is None else f"({type.precision})"
            zone = "with" if type.kind is TypeKind.TIMESTAMPTZ else "without"
            return f"{word}{digits} {zone} time zone"
    return _NAMES[type.kind]


class TableSchema:
    """A version of a source table, and the table of PostgreSQL that holds its rows: `rows`, a name
    within `schema`."""

    def __init__(self, descriptor: TableDescriptor, *, schema: str, rows: str) -> None:
        self.descriptor = descriptor
        self.schema = schema
        self.rows = rows
        self.table = sql.Identifier(schema, rows)
        self.natural = natural_key(descriptor)
        columns = descriptor.visible_columns
        self.data_names = [column.name for column in columns]
        self.names = [*self.data_names, *([] if self.natural else [KEY]), COMMIT_TIMESTAMP]
        self.types = [type_name(column.type) for column in columns]
        self.key_names = [c.name for c in descriptor.key_columns] if self.natural else [KEY]
        self.key_types = (
            [type_name(column.type) for column in descriptor.key_columns]
            if self.natural
            else ["bytea"]
        )
        self._writers = [
            (place, write)
            for place, column in enumerate(columns)
            if (write := value_writer(column.type)) is not None
        ]
        self._key_writers = [value_writer(column.type) for column in descriptor.key_columns]
        self._codec = codec_for(descriptor)

    @property
    def all_types(self) -> list[str]:
        """The types of `names`."""
        return [*self.types, *([] if self.natural else ["bytea"]), "bigint"]

    def key_of(self, key: bytes) -> tuple[object, ...]:
        """The values of the key columns, for a key of the store without its prefix."""
        if not self.natural:
            return (key,)
        whole = self.descriptor.primary_span.start[:KEY_PREFIX_LENGTH] + key
        datums = self._codec.decode_key(whole)
        return tuple(
            value if write is None else write(value)
            for value, write in zip(datums, self._key_writers, strict=True)
        )

    def values(self, key: bytes, row: Sequence[Datum], ts: int) -> list[object]:
        """A row as parameters for `names`."""
        values: list[object] = [*row]
        for place, write in self._writers:
            if row[place] is not None:
                values[place] = write(row[place])
        if not self.natural:
            values.append(key)
        values.append(ts)
        return values

    def create(self) -> sql.Composed:
        columns = [
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(type))
            for name, type in zip(self.names, self.all_types, strict=True)
        ]
        return sql.SQL("CREATE TABLE {} ({} NOT NULL, PRIMARY KEY ({}))").format(
            self.table, sql.SQL(", ").join(columns), identifiers(self.key_names)
        )


def natural_key(descriptor: TableDescriptor) -> bool:
    """Whether the values of the key's columns stay as they are while their row does."""
    return not any(column.type.kind is TypeKind.ENUM for column in descriptor.key_columns)


def check_columns(descriptor: TableDescriptor) -> None:
    """Raises SinkRefused where PostgreSQL cannot have these columns."""
    columns = descriptor.visible_columns
    if len(columns) > COLUMNS_MAX:
        raise SinkRefused(
            f'table "{descriptor.name}" has {len(columns)} columns, a mirror {COLUMNS_MAX} at most'
        )
    for column in columns:
        check_name(column.name, f'column "{column.name}" of table "{descriptor.name}"')
        kept = column.name in (COMMIT_TIMESTAMP, KEY) or column.name.startswith(TEMPORARY)
        if kept or column.name in SYSTEM_COLUMNS:
            raise SinkRefused(
                f'column "{column.name}" of table "{descriptor.name}" has a name that a mirror in '
                "PostgreSQL has kept for other things: rename it"
            )


def same_shape(before: TableDescriptor, after: TableDescriptor) -> bool:
    """Whether nothing of the change shows in a mirror."""
    return (
        [_shape(column) for column in before.visible_columns]
        == [_shape(column) for column in after.visible_columns]
        and before.primary_key == after.primary_key
        and before.primary_index_id == after.primary_index_id
    )


def _shape(column: Column) -> tuple[int, str, str]:
    return column.id, column.name, type_name(column.type)


def identifiers(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def value_writer(type: ColumnType) -> Callable[[Datum], object] | None:
    """Makes a parameter of a datum that is not NULL; None where the datum is one."""
    if type.element is not None:
        element = value_writer(type.element)
        return None if element is None else _array_writer(element)
    return _interval if type.kind is TypeKind.INTERVAL else None


def _interval(value: Datum) -> str:
    assert isinstance(value, Interval), value
    return str(value)


def _array_writer(element: Callable[[Datum], object]) -> Callable[[Datum], object]:
    def write(items: Datum) -> list[object]:
        assert isinstance(items, list), items
        return [None if item is None else element(item) for item in items]

    return write
