"""Databases, schemas, the tables in them, and comments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.named_objects import SequenceDescriptor, TypeDescriptor
from ....catalog.descriptors.system_tables import FIRST_USER_ID, PUBLIC_SCHEMA
from ....catalog.rights.privileges import Privilege, securable
from ....catalog.values.errors import SQLError
from ...syntax import statements
from ...syntax.schema_statements import CommentOn, CreateSchema, DropDatabase, DropSchema
from ..changer import Changer, Skipped, found_of, skipped
from .enum_types import drop_type
from .schema_changes import SchemaChangeStatements
from .sequences import drop_sequence, owned_by, refuse_users
from .views import drop_readers, drop_views, publish


async def drop_tables(changer: Changer, statement: statements.DropTable) -> str | None:
    """DROP TABLE of every table named. Raises SQLError 42P01, 42809 and 2BP01."""
    find = partial(changer.find, if_exists=statement.if_exists)
    found, notice = await found_of(changer, statement, find, "tables")
    await _drop_all(changer, found, cascade=statement.cascade, what="DROP TABLE")
    return notice


async def _drop_all(
    changer: Changer, tables: Iterable[TableDescriptor], *, cascade: bool, what: str
) -> None:
    """Drops tables, those first that refer to others, and the views among them. Raises 2BP01 where
    another table refers, or a view reads one."""
    given = list(tables)
    for table in given:
        if table.keyspace is not None:
            # Its lock goes first, in a transaction of its own.
            raise SQLError(
                "2BP01",
                f'{what} cannot drop keyspace "{table.name}"',
                hint=f"Run DROP KEYSPACE {table.name} first, as a statement of its own.",
            )
    left = {table.id: table for table in given if table.view is None}
    await drop_views(changer, [t for t in given if t.view is not None], cascade=cascade)
    await drop_readers(changer, list(left.values()), cascade=cascade)
    schema_changes = SchemaChangeStatements(changer)
    for table in left.values():
        for referrer in table.referenced_by:
            if referrer in left:
                continue
            if not cascade:
                raise SQLError(
                    "2BP01",
                    f'cannot drop table "{table.name}" because a foreign key refers to it',
                    hint="Use CASCADE to drop the foreign key too.",
                )
            await schema_changes.drop_references(referrer, table)
    beside_locked = any(table.locked for table in left.values())
    for table in sorted(left.values(), key=lambda table: -len(table.foreign_keys)):
        current = await changer.table(table.id)
        await schema_changes.drop(current, what, beside_locked=beside_locked)
        if not beside_locked:  # an unlocking stands alone in its transaction
            for sequence in await owned_by(changer.transaction, table.id):
                await drop_sequence(changer, sequence)


# Schemas and databases.


async def create_schema(changer: Changer, statement: CreateSchema) -> None:
    """CREATE SCHEMA. Raises SQLError 42P06 for a schema that exists, and 42501."""
    parent, name = changer.database, statement.name
    await changer.need_database(parent, Privilege.CREATE)
    if name.startswith("pg_"):
        raise SQLError(
            "42939",
            f'unacceptable schema name "{name}"',
            detail='The prefix "pg_" is reserved for system schemas.',
        )
    created = await changer.services.catalog.create_schema(
        changer.transaction, parent, name, if_not_exists=statement.if_not_exists
    )
    if not created:
        raise Skipped(f'schema "{name}" already exists')


async def drop_schema(changer: Changer, statement: DropSchema) -> None:
    """DROP SCHEMA by its owner, with CASCADE its objects too. Raises SQLError 3F000, 42501 and
    2BP01."""
    parent, name = changer.database, statement.name
    catalog = changer.services.catalog
    if name not in await catalog.list_schemas(changer.transaction, parent):
        raise skipped(SQLError("3F000", f'schema "{name}" does not exist'), statement.if_exists)
    _, schema_id = await catalog.descriptors.resolve_schema(changer.transaction, parent, name)
    if not (await changer.rights()).owns(changer.user, schema_id):
        raise SQLError("42501", f"must be owner of schema {name}")
    if name == PUBLIC_SCHEMA:
        raise SQLError(
            "42501",
            'the schema "public" cannot be dropped',
            hint="Drop what is in it, by DROP TABLE, or DROP DATABASE.",
        )
    await _drop_schemas(changer, statement, parent, [name])


async def drop_database(changer: Changer, statement: DropDatabase) -> None:
    """DROP DATABASE, with the objects in it. Raises SQLError 3D000, 42501 and 2BP01."""
    catalog, name = changer.services.catalog, statement.name
    database_id = await catalog.descriptors.lookup(changer.transaction, 0, 0, name)
    if database_id is None:
        raise skipped(SQLError("3D000", f'database "{name}" does not exist'), statement.if_exists)
    await changer.need_database(name, Privilege.DROP)
    if database_id < FIRST_USER_ID or name == changer.database:
        raise SQLError(
            "42501" if database_id < FIRST_USER_ID else "55006",
            f'database "{name}" is {"built in" if database_id < FIRST_USER_ID else "in use"}',
        )
    schemas = await catalog.list_schemas(changer.transaction, name, all_sessions=True)
    await _drop_schemas(changer, statement, name, schemas)
    await catalog.drop_namespace(changer.transaction, database_id)


_SHOWN_MAX = 10
"""Objects that an error names."""


async def _drop_schemas(
    changer: Changer, statement: DropSchema | DropDatabase, database: str, schemas: Sequence[str]
) -> None:
    """Drops schemas of a database, and the objects in them. Raises SQLError 2BP01 where DROP SCHEMA
    without CASCADE finds some, and 42501 without DROP on one of these."""
    catalog, transaction = changer.services.catalog, changer.transaction
    tables = [
        table
        for schema in schemas
        for table in await catalog.list_tables(
            transaction, database, schema, views=True, keyspaces=True
        )
    ]
    found: list[tuple[str, SequenceDescriptor | TypeDescriptor]] = [
        *await catalog.list_objects(transaction, database, SequenceDescriptor),
        *await catalog.list_objects(transaction, database, TypeDescriptor),
    ]
    others = [thing for schema, thing in found if schema in schemas]
    what = "DROP DATABASE"
    if isinstance(statement, DropSchema):
        what = "DROP SCHEMA"
        names = ", ".join(thing.name for thing in (*tables, *others)[:_SHOWN_MAX])
        if names and not statement.cascade:
            raise SQLError(
                "2BP01",
                f'schema "{schemas[0]}" is not empty',
                detail=f"Objects in it: {names}.",
                hint="Use CASCADE to drop them too.",
            )
    for each in (*tables, *others):
        await changer.need(securable(each), Privilege.DROP)
    await _drop_all(changer, tables, cascade=True, what=what)
    going = {table.id for table in tables}
    for thing in others:
        left = await changer.descriptors.read(transaction, thing.id)
        if left is None or left.dropped:
            continue  # it went with the table that owned it
        if isinstance(thing, TypeDescriptor):
            await drop_type(changer, thing, going)
        else:
            await refuse_users(transaction, thing, going)
            await drop_sequence(changer, thing)
    for schema in schemas:
        _, schema_id = await catalog.descriptors.resolve_schema(transaction, database, schema)
        await catalog.drop_namespace(transaction, schema_id)


# Comments.


async def comment_on(changer: Changer, statement: CommentOn) -> None:
    """A comment changes no row, so a locked table takes it without being unlocked."""
    named = await changer.found(statement.table, views=True)
    if named.view is not None:
        await publish(changer, named, _with_comment(named, statement))
        return
    table = await SchemaChangeStatements(changer).prepared(named, unlocks=False)
    changed = _with_comment(table, statement)
    if changed != table:
        await changer.publish_next(changed)


def _with_comment(table: TableDescriptor, statement: CommentOn) -> TableDescriptor:
    """A table or view with a comment on itself, or on a column. Raises SQLError 42703."""
    if statement.column is None:
        return replace(table, comment=statement.text)
    commented = table.column(statement.column)
    columns = tuple(
        replace(found, comment=statement.text) if found.id == commented.id else found
        for found in table.columns
    )
    return replace(table, columns=columns)
