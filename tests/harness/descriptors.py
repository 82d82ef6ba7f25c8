"""Table descriptors for tests, in one line each."""

from __future__ import annotations

from tailrace.catalog.descriptors.descriptor import Column, TableDescriptor
from tailrace.catalog.values.column_types import ColumnType
from tailrace.catalog.values.type_kinds import TypeKind
from tailrace.kvlayer.clock import Timestamp

INT8 = ColumnType(TypeKind.INT8)
STRING = ColumnType(TypeKind.STRING)

KEY = Column(id=1, name="k", type=INT8, nullable=False)
VALUE = Column(id=2, name="v", type=STRING)


def table(
    version: int = 1,
    modified_at: int = 100,
    *,
    id: int = 104,
    name: str = "orders",
    columns: tuple[Column, ...] = (KEY, VALUE),
    locked: bool = False,
) -> TableDescriptor:
    """Version `version` of `orders (k INT8 PRIMARY KEY, v STRING)`, modified at `modified_at`."""
    return TableDescriptor(
        id=id,
        name=name,
        database_id=2,
        schema_id=3,
        columns=columns,
        primary_key=(1,),
        next_column_id=10,
        version=version,
        modification_time=Timestamp(modified_at),
        locked=locked,
    )
