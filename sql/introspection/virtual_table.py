"""A virtual table: its schema, name and columns, and where its rows come from."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from ...cached import cached_property
from ...catalog.descriptors.descriptor import Column, TableDescriptor
from ...catalog.values.column_types import INT8, INTERVAL, STRING, ColumnType, array_of
from ...catalog.values.type_kinds import CatalogName, TypeKind
from ..results.results import LETTERS, Row, typed_columns
from ..runtime.authorization import Actor
from ..variables.variables import SessionVariables


@dataclass(frozen=True, slots=True)
class IntrospectionContext(Actor):
    """The actor of a statement that reads as of the timestamp of `reader`. `variables` are what
    the session has set."""

    variables: SessionVariables


Rows = AsyncIterator[Row]
RowSource = Callable[[IntrospectionContext], Rows]


@dataclass(frozen=True)
class VirtualTable:
    """Declared once, for all nodes.

    `id` is negative and unique among virtual tables, for ever: clients see it. Rows have values of
    the first columns, in order, as `Result.rows` has them, and the other columns are NULL;
    timestamps of the store are INT8.
    """

    id: int
    schema: str
    name: str
    columns: Mapping[str, ColumnType]
    rows: RowSource

    def __post_init__(self) -> None:
        assert self.id < 0, self.id
        assert self.columns, self.name

    @cached_property
    def descriptor(self) -> TableDescriptor:
        """As the binder and the planner see it. It is in no database, and nobody writes it.

        A descriptor must have a key; the first column passes for one, and nothing relies on it.
        """
        first = next(iter(self.columns))
        return TableDescriptor(
            id=self.id,
            name=self.name,
            database_id=0,
            schema_id=0,
            columns=tuple(
                Column(id=place, name=name, type=type, nullable=name != first)
                for place, (name, type) in enumerate(self.columns.items(), start=1)
            ),
            primary_key=(1,),
            next_column_id=len(self.columns) + 1,
        )

    async def read(self, context: IntrospectionContext) -> pa.Table:
        rows = [row async for row in self.rows(context)]
        fields = [pa.field(name, type.arrow_type) for name, type in self.columns.items()]
        columns = list(zip(*rows, strict=True)) if rows else []
        assert len(columns) <= len(fields), (self.name, len(columns))
        columns += [(None,) * len(rows)] * (len(fields) - len(columns))
        arrays = [
            pa.array(list(values), field.type)
            for values, field in zip(columns, fields, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


_LETTERS = {
    **LETTERS,
    "n": INTERVAL,
    "o": (_OID := ColumnType(TypeKind.INT8, catalog_name=CatalogName.OID)),
    "c": ColumnType(TypeKind.STRING, catalog_name=CatalogName.CHAR),
    "N": ColumnType(TypeKind.STRING, catalog_name=CatalogName.NAME),
    "I": array_of(INT8), "O": array_of(_OID), "S": array_of(STRING),
    "v": ColumnType(TypeKind.ARRAY, element=INT8, catalog_name=CatalogName.INT2VECTOR),
    "V": ColumnType(TypeKind.ARRAY, element=INT8, catalog_name=CatalogName.OIDVECTOR),
}  # fmt: skip
"""Types that the catalogs' columns have beside those of results."""


async def _no_rows(context: IntrospectionContext) -> Rows:
    for row in tuple[Row, ...]():
        yield row


class VirtualSchema:
    """A schema of virtual tables. Each is declared where its rows are made, with its name, a number
    that counts down from `first_id`, and its columns:

        @PG_CATALOG.table("pg_auth_members 12 roleid:o member:o grantor:o admin_option:b")
        async def member_rows(context: IntrospectionContext) -> Rows: ...
    """

    def __init__(self, name: str, first_id: int) -> None:
        self.name = name
        self.tables: dict[str, VirtualTable] = {}
        self._first_id = first_id

    def table(self, text: str) -> Callable[[RowSource], RowSource]:
        """Declares the table that a function makes the rows of."""
        name, number, columns = text.split(maxsplit=2)

        def declare(rows: RowSource) -> RowSource:
            table_id, types = self._first_id - int(number), typed_columns(columns, _LETTERS)
            assert name not in self.tables, name
            self.tables[name] = VirtualTable(table_id, self.name, name, types, rows)
            return rows

        return declare

    def empty_tables(self, text: str) -> None:
        """Declares tables that have no rows: a line with the name and number of each, and indented
        lines of columns."""
        for each in re.split(r"\n(?=\S)", text.strip()):
            self.table(each)(_no_rows)


PG_CATALOG = VirtualSchema("pg_catalog", -200)
INFORMATION_SCHEMA = VirtualSchema("information_schema", -300)
TAILRACE_INTERNAL = VirtualSchema("tailrace_internal", -100)
SCHEMAS = (TAILRACE_INTERNAL, PG_CATALOG, INFORMATION_SCHEMA)


def virtual_tables() -> Iterator[VirtualTable]:
    """All of them, which every database has."""
    for schema in SCHEMAS:
        yield from schema.tables.values()
