"""The catalog: databases and tables, created, found, altered and dropped inside transactions.

Nothing here commits. A statement's changes become visible, and its descriptors' modification times
known, when its transaction commits; rolled back, it has left nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ...kvlayer.raw import KEYSPACE_ID_MAX
from ...kvlayer.txn import Transaction
from ..descriptors.descriptor import (
    EXPIRES_AT,
    Column,
    DatabaseDescriptor,
    DescriptorState,
    SchemaDescriptor,
    TableDescriptor,
    check_indexable,
)
from ..descriptors.keyspace import Keyspace
from ..descriptors.named_objects import SequenceDescriptor, TypeDescriptor
from ..descriptors.names import TableName
from ..descriptors.publish_rules import LOCK_PARAMETER, check_width
from ..descriptors.storage_parameters import parse_names, parse_parameters
from ..descriptors.system_tables import PUBLIC_SCHEMA
from ..descriptors.temporary_schema import shown_schema
from ..values.column_types import BYTES, INT8, coerce
from ..values.errors import SQLError
from .catalog_changes import CatalogChanges
from .descriptor_store import DescriptorReader, DescriptorStore, name_taken

NamedObject = TypeVar("NamedObject", TypeDescriptor, SequenceDescriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """A table as CREATE TABLE gives it. Its columns get ids by their places, whatever ids they
    have, and a default is any value that `coerce` takes. `primary_key` names columns, in key order;
    `primary_name` is the constraint's, where it is given one."""

    name: TableName
    columns: Sequence[Column]
    primary_key: Sequence[str]
    primary_name: str | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    temporary: bool = False


class Catalog:
    """Databases and tables by name. Every method works inside the transaction that it is given."""

    def __init__(self, descriptors: DescriptorStore) -> None:
        self.descriptors = descriptors

    # Databases

    async def create_database(
        self, transaction: Transaction, name: str, *, if_not_exists: bool = False
    ) -> DatabaseDescriptor | None:
        """The new database, with its schema `public`; None if it was there and may be."""
        if await self.descriptors.lookup(transaction, 0, 0, name) is not None:
            if if_not_exists:
                return None
            raise name_taken(DatabaseDescriptor(id=0, name=name))
        database = DatabaseDescriptor(id=await self.descriptors.allocate_id(), name=name)
        schema = SchemaDescriptor(
            id=await self.descriptors.allocate_id(), name=PUBLIC_SCHEMA, database_id=database.id
        )
        await self.descriptors.publish(transaction, database)
        await self.descriptors.publish(transaction, schema)
        return database

    async def list_databases(self, reader: DescriptorReader) -> list[str]:
        """Names, in order."""
        return [name for name, _ in await self.descriptors.children(reader, 0, 0)]

    async def list_schemas(
        self, reader: DescriptorReader, database: str, *, all_sessions: bool = False
    ) -> list[str]:
        """Names, in order; those of other sessions' temporary tables only for `all_sessions`.
        Raises SQLError 3D000."""
        database_id = await self.descriptors.lookup(reader, 0, 0, database)
        if database_id is None:
            raise SQLError("3D000", f'database "{database}" does not exist')
        names = [name for name, _ in await self.descriptors.children(reader, database_id, 0)]
        return [name for name in names if all_sessions or shown_schema(name)]

    async def create_schema(
        self, transaction: Transaction, database: str, name: str, *, if_not_exists: bool = False
    ) -> SchemaDescriptor | None:
        """The new schema; None if it was there and may be."""
        database_id = await self.descriptors.lookup(transaction, 0, 0, database)
        if database_id is None:
            raise SQLError("3D000", f'database "{database}" does not exist')
        if await self.descriptors.lookup(transaction, database_id, 0, name) is not None:
            if if_not_exists:
                return None
            raise name_taken(SchemaDescriptor(id=0, name=name, database_id=database_id))
        schema = SchemaDescriptor(
            id=await self.descriptors.allocate_id(), name=name, database_id=database_id
        )
        await self.descriptors.publish(transaction, schema)
        return schema

    async def drop_namespace(
        self, transaction: Transaction, descriptor_id: int
    ) -> DatabaseDescriptor | SchemaDescriptor:
        """Drops a database or a schema, which holds nothing any more."""
        found = await self.descriptors.read(transaction, descriptor_id)
        assert isinstance(found, DatabaseDescriptor | SchemaDescriptor), found
        version = self.descriptors.next_version(transaction, found)
        dropped = replace(found, state=DescriptorState.DROPPED, version=version)
        await self.descriptors.publish(transaction, dropped)
        return dropped

    # Tables

    async def find(
        self,
        reader: DescriptorReader,
        name: TableName,
        *,
        views: bool = False,
        keyspaces: bool = False,
    ) -> TableDescriptor | None:
        """The table, or None. Raises SQLError 3D000 or 3F000 for an unknown database or schema, and
        42809 for a view or a keyspace, where it is not asked for `views` or `keyspaces` too."""
        found = await self.descriptors.resolve(reader, name.database, name.schema, name.name)
        if found is not None and found.view is not None and not views:
            raise not_a_table(found)
        if found is not None and found.keyspace is not None and not keyspaces:
            raise is_a_keyspace(found)
        return found

    async def resolve(self, reader: DescriptorReader, name: TableName) -> TableDescriptor:
        """The table. Raises SQLError 42P01 where there is none."""
        table = await self.find(reader, name)
        if table is None:
            raise unknown_table(name)
        return table

    async def list_tables(
        self,
        reader: DescriptorReader,
        database: str,
        schema: str = PUBLIC_SCHEMA,
        *,
        views: bool = False,
        keyspaces: bool = False,
    ) -> list[TableDescriptor]:
        """The tables of a schema, and its `views` and `keyspaces` if they are asked for, by
        name."""
        parents = await self.descriptors.resolve_schema(reader, database, schema)
        tables: list[TableDescriptor] = []
        for _, table_id in await self.descriptors.children(reader, *parents):
            table = await self.descriptors.read(reader, table_id)
            if not isinstance(table, TableDescriptor):
                continue
            if (views or table.view is None) and (keyspaces or table.keyspace is None):
                tables.append(table)
        return tables

    async def list_objects(
        self, reader: DescriptorReader, database: str, kind: type[NamedObject]
    ) -> list[tuple[str, NamedObject]]:
        """The types or the sequences of a database with their schemas' names, by schema and name.

        Raises SQLError 3D000.
        """
        found: list[tuple[str, NamedObject]] = []
        for schema in await self.list_schemas(reader, database):
            parents = await self.descriptors.resolve_schema(reader, database, schema)
            for _, id in await self.descriptors.children(reader, *parents):
                descriptor = await self.descriptors.read(reader, id)
                if isinstance(descriptor, kind):
                    found.append((schema, descriptor))
        return found

    async def create_table(
        self, transaction: Transaction, definition: TableDefinition, *, if_not_exists: bool = False
    ) -> TableDescriptor | None:
        """The new table; None if one of that name was there and may be."""
        name = definition.name
        database_id, schema_id = await self.descriptors.resolve_schema(
            transaction, name.database, name.schema
        )
        taken = await self.descriptors.lookup(transaction, database_id, schema_id, name.name)
        if taken is not None and if_not_exists:
            return None
        check_width(len(definition.columns))
        columns = _columns(definition)
        parameters = parse_parameters(definition.parameters)
        table = TableDescriptor(
            id=await self.descriptors.allocate_id(),
            name=name.name,
            database_id=database_id,
            schema_id=schema_id,
            columns=columns,
            primary_key=_primary_key(definition, columns),
            primary_name=definition.primary_name,
            next_column_id=len(columns) + 1,
            locked=parameters.locked or False,
            parameters=parameters.others,
            temporary=definition.temporary,
        )
        if taken is not None:
            raise name_taken(table)
        await self.descriptors.publish(transaction, table)
        return table

    async def create_keyspace(
        self,
        transaction: Transaction,
        name: TableName,
        keyspace: Keyspace,
        *,
        if_not_exists: bool = False,
    ) -> TableDescriptor | None:
        """The new keyspace; None if something of that name was there and may be.

        Its descriptor is locked, for it never changes: a feed waits for no schema of it.
        """
        parents = await self.descriptors.resolve_schema(transaction, name.database, name.schema)
        taken = await self.descriptors.lookup(transaction, *parents, name.name)
        if taken is not None and if_not_exists:
            return None
        descriptor = TableDescriptor(
            id=await self.descriptors.allocate_id(),
            name=name.name,
            database_id=parents[0],
            schema_id=parents[1],
            columns=KEYSPACE_COLUMNS,
            primary_key=(KEYSPACE_COLUMNS[0].id,),
            next_column_id=len(KEYSPACE_COLUMNS) + 1,
            locked=True,
            keyspace=keyspace,
        )
        if taken is not None:
            raise name_taken(descriptor)
        if descriptor.id > KEYSPACE_ID_MAX:
            raise SQLError("54000", f"no keyspace can be made: ids have come to {descriptor.id}")
        await self.descriptors.publish(transaction, descriptor)
        return descriptor

    async def drop_tables(
        self, transaction: Transaction, names: Iterable[TableName], *, if_exists: bool = False
    ) -> list[TableDescriptor]:
        """The dropped tables' last versions, those that did not exist left out."""
        dropped: list[TableDescriptor] = []
        for name in names:
            table = await self.find(transaction, name)
            if table is None:
                if if_exists:
                    continue
                raise unknown_table(name)
            dropped.append(
                await self._change(transaction, replace(table, state=DescriptorState.DROPPED))
            )
        return dropped

    async def set_parameters(
        self, transaction: Transaction, table: TableDescriptor, given: Mapping[str, object]
    ) -> TableDescriptor:
        """The table with the parameters; its version is the same if nothing changed."""
        parameters = parse_parameters(given)
        locked = table.locked if parameters.locked is None else parameters.locked
        others = {**table.parameters, **parameters.others}
        return await self._set(transaction, table, locked=locked, others=others)

    async def reset_parameters(
        self, transaction: Transaction, table: TableDescriptor, given: Iterable[str]
    ) -> TableDescriptor:
        """The table with the parameters back at their defaults."""
        names = parse_names(given)
        locked = table.locked and LOCK_PARAMETER not in names
        others = {key: value for key, value in table.parameters.items() if key not in names}
        return await self._set(transaction, table, locked=locked, others=others)

    async def _set(
        self,
        transaction: Transaction,
        table: TableDescriptor,
        *,
        locked: bool,
        others: Mapping[str, str],
    ) -> TableDescriptor:
        if locked == table.locked and others == table.parameters:
            return table
        return await self._change(transaction, replace(table, locked=locked, parameters=others))

    async def _change(self, transaction: Transaction, table: TableDescriptor) -> TableDescriptor:
        """Publishes `table`, changed from what the transaction read, under its next version."""
        version = CatalogChanges.of(transaction).next_version(table)
        changed = replace(table, version=version)
        await self.descriptors.publish(transaction, changed)
        return changed


KEYSPACE_COLUMNS = (
    Column(id=1, name="key", type=BYTES, nullable=False),
    Column(id=2, name="value", type=BYTES),
    Column(id=3, name=EXPIRES_AT, type=INT8),
)


def not_a_table(view: TableDescriptor) -> SQLError:
    """The error of a view where only a table will do."""
    return SQLError(
        "42809",
        f'"{view.name}" is not a table',
        hint="It is a view: CREATE OR REPLACE VIEW and DROP VIEW change it.",
    )


def is_a_keyspace(table: TableDescriptor) -> SQLError:
    """The error of a raw keyspace where only a table will do."""
    return SQLError(
        "42809",
        f'"{table.name}" is a raw keyspace',
        hint="raw_get, raw_put and raw_delete read and write it, CREATE CHANGEFEED FOR KEYSPACE "
        "follows it, and DROP KEYSPACE drops it.",
    )


def unknown_table(name: TableName) -> SQLError:
    return SQLError("42P01", f'relation "{name}" does not exist')


def _columns(definition: TableDefinition) -> tuple[Column, ...]:
    key = set(definition.primary_key)
    columns: list[Column] = []
    seen: set[str] = set()
    for place, given in enumerate(definition.columns, start=1):
        if given.name in seen:
            raise SQLError("42701", f'column "{given.name}" specified more than once')
        seen.add(given.name)
        nullable = given.nullable and given.name not in key
        default = coerce(given.type, given.default, column=given.name)
        columns.append(replace(given, id=place, nullable=nullable, default=default))
    return tuple(columns)


def _primary_key(definition: TableDefinition, columns: Sequence[Column]) -> tuple[int, ...]:
    if not definition.primary_key:
        raise SQLError(
            "42P16",
            f'table "{definition.name.name}" has no primary key',
            hint="Write PRIMARY KEY behind a column, or PRIMARY KEY (a, b) as an element.",
        )
    ids = {column.name: column.id for column in columns}
    for column in columns:
        if column.name in definition.primary_key:
            check_indexable(column)
    key: list[int] = []
    for name in definition.primary_key:
        if name not in ids:
            raise SQLError("42703", f'column "{name}" named in key does not exist')
        if ids[name] in key:
            raise SQLError("42701", f'column "{name}" appears twice in primary key constraint')
        key.append(ids[name])
    return tuple(key)
