"""A virtual table: its name and columns, and where its rows come from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...cached import cached_property
from ...catalog.descriptors.descriptor import Column, TableDescriptor
from ...catalog.values.column_types import ColumnType
from ..results.results import Row
from ..runtime.introspection_context import IntrospectionContext

RowSource = Callable[[IntrospectionContext], Awaitable[Sequence[Row]]]


@dataclass(frozen=True)
class VirtualTable:
    """Declared once, for all nodes.

    `id` is negative and unique among virtual tables, for ever: clients see it. Rows have a value
    per column, in order, as `Result.rows` has them; timestamps of the store are INT8.
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
        columns = list(zip(*rows, strict=True)) if rows else [() for _ in fields]
        assert len(columns) == len(fields), (self.name, len(columns))
        arrays = [
            pa.array(list(values), field.type)
            for values, field in zip(columns, fields, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def virtual_columns(**columns: ColumnType) -> dict[str, ColumnType]:
    """Columns in the order written."""
    return columns
