"""The tables and sequences of the session's database, as introspection describes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...catalog.descriptors import elements
from ...catalog.descriptors.descriptor import Column, TableDescriptor
from ...catalog.descriptors.named_objects import SequenceDescriptor
from ...catalog.descriptors.names import quote_identifier
from ...catalog.store.show_create import constraint_text
from ...catalog.store.show_create import default_text as written_default
from ..analyze.views import within_database
from .virtual_table import IntrospectionContext


@dataclass(frozen=True, slots=True)
class DescribedTable:
    """A table, the schema that it is in, and by their ids all tables of its database."""

    schema: str
    table: TableDescriptor
    all_tables: Mapping[int, DescribedTable] = field(repr=False, compare=False)

    @property
    def indexes(self) -> Sequence[elements.Index]:
        """The primary one first, if the table was given a key."""
        public = [i for i in self.table.indexes if i.state is elements.ElementState.PUBLIC]
        keyed = self.table.view is None and not self.table.keyless
        return [self.table.primary_index, *public] if keyed else public

    def referenced_index(self, key: elements.ForeignKey) -> elements.Index:
        """Returns the unique index that a foreign key to the table refers to."""
        columns = set(key.referenced_columns)
        return next(i for i in self.indexes if i.unique and set(i.columns) == columns)

    @property
    def constraints(self) -> Iterator[NamedConstraint]:
        """All but NOT NULL, which is a property of a column."""
        table = self.table
        for index in self.indexes:
            if index.kind is elements.IndexKind.PRIMARY:
                yield NamedConstraint("p", index.name, index.columns, index=index)
            elif index.constraint:
                yield NamedConstraint("u", index.name, index.columns, index=index)
        for check in table.checks:
            if check.not_null_column is None:
                yield NamedConstraint("c", check.name, check.columns, check=check)
        for key in table.foreign_keys:
            yield NamedConstraint("f", key.name, key.columns, key=key)

    def index_definition(self, index: elements.Index) -> str:
        """Returns the text of pg_get_indexdef."""
        table = self.table
        unique = "UNIQUE " if index.unique else ""
        where = f"{quote_identifier(self.schema)}.{quote_identifier(table.name)}"
        include = f" INCLUDE ({names_of(table, index.storing)})" if index.storing else ""
        columns = names_of(table, index.columns)
        return (
            f"CREATE {unique}INDEX {quote_identifier(index.name)} ON {where} "
            f"USING btree ({columns}){include}"
        )

    def constraint_definition(self, constraint: NamedConstraint) -> str:
        """Returns the text of pg_get_constraintdef."""
        if constraint.index is not None:
            words = "PRIMARY KEY" if constraint.kind == "p" else "UNIQUE"
            return f"{words} ({names_of(self.table, constraint.columns)})"
        if constraint.key is None:
            assert constraint.check is not None, constraint
            return constraint_text(self.table, constraint.check)
        other = self.all_tables[constraint.key.referenced_id]
        return constraint_text(self.table, constraint.key, other.table, other.schema)


@dataclass(frozen=True, slots=True)
class NamedConstraint:
    """`kind` is pg_constraint.contype's letter; of `index`, `check` and `key` one is there."""

    kind: str
    name: str
    columns: tuple[int, ...]
    index: elements.Index | None = None
    check: elements.CheckConstraint | None = None
    key: elements.ForeignKey | None = None

    @property
    def validated(self) -> bool:
        constraint = self.check or self.key
        return constraint is None or constraint.validity is elements.Validity.VALIDATED


async def relations(context: IntrospectionContext) -> list[DescribedTable]:
    """Tables and views, by schema and name."""
    catalog, reader = context.services.catalog, context.reader
    found: dict[int, DescribedTable] = {}
    for schema in await catalog.list_schemas(reader, context.database):
        for table in await catalog.list_tables(reader, context.database, schema, views=True):
            found[table.id] = DescribedTable(schema, table, found)
    return list(found.values())


async def views(context: IntrospectionContext) -> list[tuple[DescribedTable, str]]:
    """Views by schema and name, each with its query as PostgreSQL would print it."""
    return [
        (found, f" {within_database(found.table.view.text, context.database)};")
        for found in await relations(context)
        if found.table.view is not None
    ]


async def tables(context: IntrospectionContext) -> list[DescribedTable]:
    """By schema and name."""
    return [found for found in await relations(context) if found.table.view is None]


def names_of(table: TableDescriptor, columns: Sequence[int]) -> str:
    return ", ".join(quote_identifier(table.column_by_id(id).name) for id in columns)


def default_text(column: Column) -> str | None:
    """The default, or the computation, as SQL; an identity column's is not called one."""
    if column.computed is not None or column.identity is not None:
        return column.computed
    return written_default(column)


async def sequences(context: IntrospectionContext) -> list[tuple[str, SequenceDescriptor]]:
    """With the names of their schemas, by schema and name."""
    catalog = context.services.catalog
    return await catalog.list_objects(context.reader, context.database, SequenceDescriptor)


async def identity_columns(context: IntrospectionContext) -> set[tuple[int, int]]:
    """The identity columns that own sequences, each with its table."""
    found: set[tuple[int, int]] = set()
    owners = {s.owner[0] for _, s in await sequences(context) if s.owner is not None}
    for table_id in owners:
        table = await context.services.catalog.descriptors.read(context.reader, table_id)
        if isinstance(table, TableDescriptor):
            found |= {(table_id, c.id) for c in table.columns if c.identity is not None}
    return found
