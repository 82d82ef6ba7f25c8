"""Tables that a statement makes while it runs, for DuckDB to read beside those of the store.

What a part of a statement has found (the rows that an INSERT collides with, what a WITH returns) is
handed to the next part as a table of this kind. It is planned like any other: a descriptor, with an
id that no other table has, stands for it in `Relations`. Its first column, hidden, numbers the
rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from msgspec.structs import replace

from ...catalog.descriptors.descriptor import Column, TableDescriptor
from ...catalog.rows.arrow_conform import broad_schema
from ...catalog.values.arrow_columns import column_array, column_datums
from ...catalog.values.column_types import INT8, ColumnType, Datum
from ...catalog.values.physical import to_physical
from ...kvlayer.txn import Transaction
from ..results.results import Row
from ..results.table_reads import VirtualRows
from .scalars import Bindings

GIVEN_ID = -1_000_000
"""The id of the first table that a statement makes while it runs; further ones count down."""
ROW_NUMBER = "$row"
"""The first column of a given table: unique, ascending from zero. No statement can name it."""


def given_table(
    number: int, name: str, columns: Sequence[tuple[str, ColumnType]]
) -> TableDescriptor:
    """The descriptor of a statement's given table number `number`, whose names may repeat."""
    types = [(ROW_NUMBER, INT8), *columns]
    return TableDescriptor(
        id=GIVEN_ID - number,
        name=name,
        database_id=0,
        schema_id=0,
        columns=tuple(
            Column(id=place, name=name, type=type, nullable=place != 1, hidden=place == 1)
            for place, (name, type) in enumerate(types, start=1)
        ),
        primary_key=(1,),
        next_column_id=len(types) + 1,
    )


def filled(table: TableDescriptor, rows: Sequence[Row]) -> pa.Table:
    """The rows, without their numbers, as the table's."""
    columns = table.visible_columns
    schema = broad_schema(table, range(len(columns)))
    values = [range(len(rows)), *zip(*rows, strict=True)] if rows else [() for _ in columns]
    assert len(values) == len(columns), (table.name, len(values))
    arrays = [
        column_array(column.type.broad, [to_physical(column.type, value) for value in given])
        for column, given in zip(columns, values, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def values_given(table: TableDescriptor, place: int, bindings: Bindings) -> list[Datum]:
    """Returns the values of a column of a table that the statement has made."""
    made = bindings.virtual_rows
    assert isinstance(made, GivenTables), table
    return column_datums(table.visible_columns[place].type, made.tables[table.id].column(place))


class GivenTables:
    """Implements `VirtualRows`: tables by the ids of their descriptors, before all others."""

    def __init__(self, tables: Mapping[int, pa.Table], others: VirtualRows | None) -> None:
        self.tables = tables
        self._others = others

    async def read(self, descriptor: TableDescriptor, reader: Transaction) -> pa.Table:
        given = self.tables.get(descriptor.id)
        if given is not None:
            return given
        assert self._others is not None, descriptor
        return await self._others.read(descriptor, reader)


def with_given(bindings: Bindings, tables: Mapping[int, pa.Table]) -> Bindings:
    """The bindings of a plan that reads given tables, too."""
    if not tables:
        return bindings
    return replace(bindings, virtual_rows=GivenTables(tables, bindings.virtual_rows))


def in_catalog(descriptor: TableDescriptor) -> bool:
    """Whether the table is one of the catalog's, whose types are not PostgreSQL's."""
    return GIVEN_ID < descriptor.id < 0


def is_given(descriptor: TableDescriptor) -> bool:
    """Whether the table is one that the statement makes while it runs."""
    return descriptor.id < GIVEN_ID


def is_virtual(descriptor: TableDescriptor) -> bool:
    return descriptor.id < 0
