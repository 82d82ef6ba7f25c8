"""A virtual table: its name and columns, and where its rows come from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...cached import cached_property
from ...catalog.descriptors.descriptor import Column, TableDescriptor
from ...catalog.values.column_types import ColumnType, array_of
from ...catalog.values.type_kinds import CatalogName, TypeKind
from ..results.results import INT8, LETTERS, STRING, Row, typed_columns
from ..runtime.introspection_context import IntrospectionContext

RowSource = Callable[[IntrospectionContext], Awaitable[Sequence[Row]]]


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
        """Makes the table's rows."""
        rows = await self.rows(context)
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
    "n": ColumnType(TypeKind.INTERVAL),
    "o": (_OID := ColumnType(TypeKind.INT8, catalog_name=CatalogName.OID)),
    "c": ColumnType(TypeKind.STRING, catalog_name=CatalogName.CHAR),
    "I": array_of(INT8), "O": array_of(_OID), "S": array_of(STRING),
    "v": ColumnType(TypeKind.ARRAY, element=INT8, catalog_name=CatalogName.INT2VECTOR),
    "V": ColumnType(TypeKind.ARRAY, element=INT8, catalog_name=CatalogName.OIDVECTOR),
}  # fmt: skip
"""Types that the catalogs' columns have beside those of results."""


async def _no_rows(context: IntrospectionContext) -> Sequence[Row]:
    return ()


def virtual_tables(
    schema: str, first_id: int, text: str, rows: Mapping[str, RowSource]
) -> tuple[VirtualTable, ...]:
    """The tables that a text describes: a line with the name of each and a number, which counts
    down from `first_id`, and lines of columns. One without `rows` is empty.

        pg_auth_members 12
            roleid:o member:o grantor:o admin_option:b
    """
    described: list[tuple[str, int, dict[str, ColumnType]]] = []
    for line in filter(None, text.splitlines()):
        words = line.split()
        if not line.startswith(" "):
            described.append((words[0], int(words[1]), {}))
            continue
        described[-1][-1].update(typed_columns(line, _LETTERS))
    assert rows.keys() <= {name for name, _, _ in described}, rows.keys()
    return tuple(
        VirtualTable(first_id - number, schema, name, columns, rows.get(name, _no_rows))
        for name, number, columns in described
    )
