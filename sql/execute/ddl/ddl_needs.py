"""The privileges that DDL needs, by its text, checked before the statement waits for anything.

`authorization.check_changes` looks at what the statement has done to descriptors, and holds for
whatever is not named here.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....catalog.rights.privileges import Privilege, securable
from ....catalog.values.errors import SQLError
from ...analyze.binder import tables_of
from ...runtime.authorization import Actor
from ...syntax import schema_statements as s
from ...syntax import statements
from ...syntax.keyspace_statements import KeyspaceStatement
from ...syntax.names import ObjectName
from ...syntax.relaxed_statements import RelaxedStatement
from ...syntax.view_statements import DropView
from ..changer import need_create
from .ddl import DDL
from .enum_types import named_types
from .keyspaces import check_keyspaces
from .relaxed_logs import check_relaxed
from .truncation import truncated_tables


async def check_ddl(actor: Actor, statement: DDL) -> None:
    """Raises SQLError 42501."""
    if await actor.admin():
        return
    match statement:
        case statements.CreateDatabase():
            await actor.need_system(Privilege.CREATEDB)
        case statements.CreateTable():
            if statement.temporary is None:  # anybody makes those in the session's own schema
                await need_create(actor, statement.table)
            await _defined(actor, statement)
        case statements.CreateTableAs(table=table, query=query):
            if statement.temporary is None:
                await need_create(actor, table)
            for read in tables_of(query).names:
                await actor.need_named(read, Privilege.SELECT)
        case _ if isinstance(statement, RelaxedStatement):
            await check_relaxed(actor, statement)
        case _ if isinstance(statement, KeyspaceStatement):
            await check_keyspaces(actor, statement)
        case s.Truncate(tables=tables):
            for table in tables:
                await actor.need_named(table, Privilege.DROP)
            _, others = await truncated_tables(actor, statement)
            for other in others:
                await actor.need_table(other, Privilege.DROP)
        case statements.DropTable(names=names) | DropView(names=names):
            for name in names:
                await actor.need_named(name, Privilege.DROP)
        case s.AlterTable():
            await actor.need_named(statement.table, Privilege.CREATE)
            if any(isinstance(command, s.RenameTable) for command in statement.commands):
                await actor.need_named(statement.table, Privilege.DROP)
            await _defined(actor, statement)
        case s.CommentOn(table=table) | s.CreateIndex(table=table):
            await actor.need_named(table, Privilege.CREATE)
        case s.DropIndex(table=ObjectName() as table) | s.RenameIndex(table=ObjectName() as table):
            await actor.need_named(table, Privilege.CREATE)
        case s.CreateSchema(parts=parts):
            database = actor.database if len(parts) == 1 else parts[0]
            await actor.need_database(database, Privilege.CREATE)
        case s.DropSchema(parts=parts):
            await _drop_schema(actor, (actor.database, *parts)[-2:])
        case s.DropDatabase(name=name):
            await actor.need_database(name, Privilege.DROP)
            catalog = actor.services.catalog
            if statement.cascade and name in await catalog.list_databases(actor.reader):
                schemas = await catalog.list_schemas(actor.reader, name, all_sessions=True)
                await _drop_tables(actor, name, schemas)


async def _defined(actor: Actor, statement: statements.CreateTable | s.AlterTable) -> None:
    """A foreign key holds its target back, so it needs the right to change it; and columns of a
    user's type hold that back."""
    constraints: list[s.TableConstraint] = []
    if isinstance(statement, statements.CreateTable):
        columns = statement.columns
        constraints += statement.elements
    else:
        columns = tuple(c.definition for c in statement.commands if isinstance(c, s.AddColumn))
        constraints += [c.constraint for c in statement.commands if isinstance(c, s.AddConstraint)]
    for constraint in (*constraints, *(each for column in columns for each in column.constraints)):
        if isinstance(constraint, s.Reference):
            await actor.need_named(constraint.table, Privilege.CREATE)
    async for _, found in named_types(actor, statement):
        await actor.need(securable(found), Privilege.USAGE)


async def _drop_schema(actor: Actor, name: tuple[str, ...]) -> None:
    """Only its owner drops a schema."""
    catalog = actor.services.catalog
    database, schema = name
    try:
        _, schema_id = await catalog.descriptors.resolve_schema(actor.reader, database, schema)
    except SQLError:
        return  # the statement says what it is that does not exist
    if not (await actor.rights()).owns(actor.user, schema_id):
        raise SQLError("42501", f"must be owner of schema {schema}")
    await _drop_tables(actor, database, [schema])


async def _drop_tables(actor: Actor, database: str, schemas: Sequence[str]) -> None:
    for schema in schemas:
        for table in await actor.services.catalog.list_tables(
            actor.reader, database, schema, views=True, keyspaces=True
        ):
            await actor.need_table(table, Privilege.DROP)
