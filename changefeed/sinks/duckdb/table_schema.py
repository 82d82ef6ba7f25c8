"""The schema of a mirror table: what stands in the DuckDB file for one table of the store.

A mirror of `orders (id INT8 PRIMARY KEY, note STRING)`, table 104, fed by job 7, is a *base table*
that holds the rows and a *view* that shows them as the source does:

    _tailrace.rows_7_104   c1 BIGINT PRIMARY KEY, c2 VARCHAR, _commit_timestamp BIGINT
    main.orders            SELECT c1 AS id, c2 AS note

With `schema = 'shop'` the view is `shop.orders`.

The view of a raw keyspace leaves out what has ended as of the feed's resolved timestamp.

Columns of the base table are named by column id. So no name that a user may choose collides with
ours or has to be escaped twice, and a renamed column is a new view. DuckDB ignores the case of
names, quoted or not: what differs by case alone is refused.

Rows are found by the primary key where it is one column that DuckDB compares as the store does.
Other tables carry `_key`, the store's own key without its table prefix: several columns together
have no index that DuckDB would use for a lookup, and FLOAT8 compares otherwise (0.0 and -0.0), as
INTERVAL does, and the label of an ENUM may change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pyarrow as pa

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.rows.row_codec import codec_for
from ....catalog.values.column_types import Datum
from ....catalog.values.duckdb_values import parameter_writer
from ....catalog.values.type_kinds import FLOATS, TypeKind
from ..locations import MAIN_SCHEMA, OWN_SCHEMA
from ..mirror.conform import KEY_PREFIX_LENGTH
from ..protocol import SinkRefused

SCHEMA = OWN_SCHEMA
COMMIT_TIMESTAMP = "_commit_timestamp"
KEY = "_key"


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


_QUALIFIED = re.compile(r'"((?:[^"]|"")+)"\."((?:[^"]|"")+)"')


def mirror_name(schema: str, table: str) -> str:
    """The name in a file's records of a table or view that readers see: `orders` in schema main,
    and `"shop"."orders"` in another. DuckDB has both as identifiers where `view_of` is asked."""
    if schema == MAIN_SCHEMA and not _QUALIFIED.fullmatch(table):
        return table
    return f"{quoted(schema)}.{quoted(table)}"


def name_parts(name: str) -> tuple[str, str]:
    """The schema and the table of a name in a file's books."""
    found = _QUALIFIED.fullmatch(name)
    if found is None:
        return MAIN_SCHEMA, name
    schema, table = (part.replace('""', '"') for part in found.groups())
    return schema, table


def view_of(name: str) -> str:
    """A name in a file's books as an SQL identifier."""
    schema, table = name_parts(name)
    return f"{quoted(schema)}.{quoted(table)}"


def shown_name(name: str) -> str:
    """A name in a file's books, for people."""
    schema, table = name_parts(name)
    return table if schema == MAIN_SCHEMA else f"{schema}.{table}"


class TableSchema:
    """One version of a source table as DDL, and where its key stands in a row."""

    def __init__(
        self, descriptor: TableDescriptor, *, name: str, job_id: int, base_name: str | None = None
    ) -> None:
        self.descriptor = descriptor
        self.name = name
        self.job_id = job_id
        self.first_base_name = f"rows_{job_id}_{descriptor.id}"
        self.base_name = base_name or self.first_base_name
        self.base = f"{SCHEMA}.{self.base_name}"
        self.key_place = _key_place(descriptor)
        self.data_columns = [f"c{column.id}" for column in descriptor.visible_columns]
        if self.key_place is None:
            self.key_column = KEY
            self.columns = [*self.data_columns, KEY, COMMIT_TIMESTAMP]
        else:
            self.key_column = self.data_columns[self.key_place]
            self.columns = [*self.data_columns, COMMIT_TIMESTAMP]
        self.parameter_writers = [
            (place, write)
            for place, column in enumerate(descriptor.visible_columns)
            if (write := parameter_writer(column.type)) is not None
        ]
        self._codec = codec_for(descriptor)
        self.upserts, self.removals = self._arrow_schemas()

    def _arrow_schemas(self) -> tuple[pa.Schema, pa.Schema]:
        """Rows as the base table has them; and keys with the timestamp of their deletion."""
        timestamp: tuple[str, pa.DataType] = (COMMIT_TIMESTAMP, pa.int64())
        key: tuple[str, pa.DataType] = (KEY, pa.binary())
        fields = [
            (name, column.type.arrow_type)
            for name, column in zip(self.data_columns, self.descriptor.visible_columns, strict=True)
        ]
        if self.key_place is None:
            fields.append(key)
        else:
            key = (KEY, fields[self.key_place][1])
        return pa.schema([*fields, timestamp]), pa.schema([key, timestamp])

    def key_of(self, key: bytes) -> Datum:
        """The value of the key column for a key of the store."""
        if self.key_place is None:
            return key[KEY_PREFIX_LENGTH:]
        return self._codec.decode_key(key)[0]

    def parameters(self, key: bytes, row: Sequence[Datum]) -> list[object]:
        """A row as parameters for `columns`, without its timestamp."""
        values: list[object] = [*row]
        for place, write in self.parameter_writers:
            if row[place] is not None:
                values[place] = write(row[place])
        if self.key_place is None:
            values.append(self.key_of(key))
        return values

    def renewed(self, descriptor: TableDescriptor, *, base_name: str) -> TableSchema:
        """The mirror table for another version. Raises SinkRefused where DuckDB cannot hold it."""
        mirror_names([descriptor], None)
        return TableSchema(descriptor, name=self.name, job_id=self.job_id, base_name=base_name)

    def create(self) -> list[str]:
        """The statements that make the base table and the view."""
        return [self.create_base(), self.view()]

    def view(self) -> str:
        """The statement that makes the view.

        Rows that have ended by what the feed has resolved are not shown, as the source shows them
        to nobody who reads as of then.
        """
        shown = ", ".join(
            f"c{column.id} AS {quoted(column.name)}" for column in self.descriptor.shown_columns
        )
        view = f"CREATE VIEW {view_of(self.name)} AS SELECT {shown} FROM {self.base}"
        ends = self.descriptor.expiry_column
        if ends is None:
            return view
        resolved = f"SELECT max(resolved) FROM {SCHEMA}.progress WHERE job_id = {self.job_id}"
        return f"{view} WHERE c{ends.id} IS NULL OR c{ends.id} > coalesce(({resolved}), 0)"

    def create_base(self) -> str:
        """The statement that makes the base table, its key first.

        DuckDB drops no column before one that an index depends on.
        """
        types = self.column_types()
        columns = [f"{self.key_column} {types.pop(self.key_column)}"]
        columns += [f"{name} {type}" for name, type in types.items()]
        return f"CREATE TABLE {self.base} ({', '.join(columns)}, PRIMARY KEY ({self.key_column}))"

    def column_types(self) -> dict[str, str]:
        """The type of each of `columns`, in DuckDB's words."""
        types = [column.type.mirror_name for column in self.descriptor.visible_columns]
        if self.key_place is None:
            types.append("BLOB")
        return dict(zip(self.columns, [*types, "BIGINT NOT NULL"], strict=True))


def drop_statements(name: str, base_names: Iterable[str]) -> list[str]:
    """The statements that remove a mirror table, view first."""
    return [
        f"DROP VIEW IF EXISTS {view_of(name)}",
        *[f"DROP TABLE IF EXISTS {SCHEMA}.{quoted(base)}" for base in sorted(set(base_names))],
    ]


def mirror_names(
    tables: Iterable[TableDescriptor], override: str | None, schema: str = MAIN_SCHEMA
) -> dict[int, str]:
    """The mirror table's name for each table id, as `mirror_name` makes it. Raises SinkRefused
    where DuckDB cannot hold the table."""
    names: dict[int, str] = {}
    for table in tables:
        names[table.id] = mirror_name(schema, table.name if override is None else override)
        _refuse_doubles(
            (column.name for column in table.visible_columns),
            f'columns of table "{table.name}"',
        )
    if override is not None and len(names) != 1:
        raise SinkRefused(
            f"sink parameter table={override!r} names one mirror table, and the feed has "
            f"{len(names)} tables"
        )
    _refuse_doubles(names.values(), "mirror tables")
    return names


def _refuse_doubles(names: Iterable[str], what: str) -> None:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.get(name.lower())
        if other is not None:
            told = (shown_name(other), shown_name(name))
            raise SinkRefused(f'{what} "{told[0]}" and "{told[1]}" have one name in DuckDB')
        seen[name.lower()] = name


def _key_place(descriptor: TableDescriptor) -> int | None:
    if len(descriptor.primary_key) != 1:
        return None
    key = descriptor.key_columns[0]
    if key.type.kind in (*FLOATS, TypeKind.INTERVAL, TypeKind.ENUM):
        return None
    return descriptor.visible_columns.index(key)
