"""SHOW of schemas, indexes, constraints and sessions; CANCEL of queries and sessions."""

from __future__ import annotations

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.elements import ElementState, Index
from ....catalog.descriptors.named_objects import SequenceDescriptor, TypeDescriptor
from ....catalog.rights.privileges import SYSTEM, Privilege
from ....catalog.values.column_types import array_of
from ....catalog.values.errors import SQLError
from ...introspection.described import DescribedTable, constraint_definition
from ...results.results import STRING, Result, Row, listing, typed_columns
from ...runtime.activity import SessionView, shown, started
from ...runtime.authorization import Actor
from ...runtime.relations import resolve
from ...syntax.names import ObjectName
from ...syntax.show_statements import (
    Cancel,
    ShowConstraints,
    ShowIndexes,
    ShowObjects,
    ShowQueries,
    ShowSchemas,
    ShowSequences,
    ShowSessions,
    ShowTypes,
)
from .session_calls import may_end


async def show_objects(actor: Actor, statement: ShowObjects) -> Result:
    """Lists the objects of a SHOW statement that the user may see."""
    match statement:
        case ShowSchemas(database=database):
            return await _schemas(actor, database or actor.database)
        case ShowIndexes(table=name):
            return _indexes(await _table(actor, name))
        case ShowConstraints(table=name):
            return await _constraints(actor, await _table(actor, name))
        case ShowSequences(database=database):
            return await _sequences(actor, database or actor.database)
        case ShowTypes(database=database):
            return await _types(actor, database or actor.database)
        case ShowSessions():
            return await _sessions(actor)
        case ShowQueries():
            return await _queries(actor)


async def _table(actor: Actor, name: ObjectName) -> TableDescriptor:
    table = await resolve(actor.services, actor.reader, name, actor.database)
    await actor.need_any(table)
    if table.id < 0:
        raise SQLError("42809", f'"{name}" is computed: it has no keys', position=name.position)
    return table


async def _schemas(actor: Actor, database: str) -> Result:
    catalog, rights = actor.services.catalog, await actor.rights()
    rows: list[Row] = []
    for name in await catalog.list_schemas(actor.reader, database):
        _, schema_id = await catalog.descriptors.resolve_schema(actor.reader, database, name)
        rows.append((name, rights.owner(schema_id)))
    virtual = {table.schema for table in actor.services.virtual_tables}
    rows += [(name, None) for name in virtual]
    rows.sort(key=lambda row: str(row[0]))
    return listing("SHOW SCHEMAS", typed_columns("schema_name owner"), rows)


async def _sequences(actor: Actor, database: str) -> Result:
    found = await actor.services.catalog.list_objects(actor.reader, database, SequenceDescriptor)
    rows: list[Row] = [(schema, sequence.name) for schema, sequence in found]
    return listing("SHOW SEQUENCES", typed_columns("sequence_schema sequence_name"), rows)


async def _types(actor: Actor, database: str) -> Result:
    found = await actor.services.catalog.list_objects(actor.reader, database, TypeDescriptor)
    rights = await actor.rights()
    rows: list[Row] = [
        (schema, type.name, list(type.enum.labels), rights.owner(type.id)) for schema, type in found
    ]
    columns = typed_columns("schema name values owner") | {"values": array_of(STRING)}
    return listing("SHOW TYPES", columns, rows)


def _indexes(table: TableDescriptor) -> Result:
    """A row for each column of each index, those of the key that stand behind it included."""
    rows: list[Row] = []
    public = [index for index in table.indexes if index.state is ElementState.PUBLIC]
    keyed = public if table.view is not None else (table.primary_index, *public)
    for index in sorted(keyed, key=lambda index: index.name):
        for place, (column_id, storing, implicit) in enumerate(_parts(table, index), start=1):
            name = table.column_by_id(column_id).name
            direction = "N/A" if storing else "ASC"
            rows.append(
                (
                    table.name,
                    index.name,
                    not index.unique,
                    place,
                    name,
                    direction,
                    storing,
                    implicit,
                )
            )
    columns = typed_columns(
        "table_name index_name non_unique:b seq_in_index:i column_name direction storing:b "
        "implicit:b"
    )
    return listing("SHOW INDEXES", columns, rows)


def _parts(table: TableDescriptor, index: Index) -> list[tuple[int, bool, bool]]:
    """Column ids, whether they are only stored, and whether the index did not name them."""
    parts = [(column_id, False, False) for column_id in index.columns]
    if index.id == table.primary_index_id:
        others = [c.id for c in table.visible_columns if c.id not in index.columns]
        return parts + [(column_id, True, False) for column_id in others]
    parts += [(column_id, True, False) for column_id in index.storing]
    known = {column_id for column_id, _, _ in parts}
    return parts + [(c, False, True) for c in table.primary_key if c not in known]


_KINDS = {"p": "PRIMARY KEY", "u": "UNIQUE", "c": "CHECK", "f": "FOREIGN KEY"}


async def _constraints(actor: Actor, table: TableDescriptor) -> Result:
    catalog = actor.services.catalog
    by_id = {}
    for table_id in {table.id, *(key.referenced_id for key in table.foreign_keys)}:
        found = await catalog.descriptors.read(actor.reader, table_id)
        assert isinstance(found, TableDescriptor), table_id
        schema = await catalog.descriptors.read(actor.reader, found.schema_id)
        assert schema is not None, found
        by_id[table_id] = DescribedTable(schema.name, found)
    rows: list[Row] = [
        (
            table.name, constraint.name, _KINDS[constraint.kind],
            constraint_definition(by_id[table.id], constraint, by_id), constraint.validated,
        )
        for constraint in by_id[table.id].constraints
    ]  # fmt: skip
    rows.sort(key=lambda row: str(row[1]))
    columns = typed_columns("table_name constraint_name constraint_type details validated:b")
    return listing("SHOW CONSTRAINTS", columns, rows)


# Sessions.


async def _seen(actor: Actor) -> list[SessionView]:
    """The sessions that the actor may see: its own, and with VIEWACTIVITY all."""
    rights = await actor.rights()
    everything = rights.held(actor.user, SYSTEM) & Privilege.VIEWACTIVITY
    return [
        session
        for session in actor.services.sessions
        if everything or session.activity.user == actor.user
    ]


async def _sessions(actor: Actor) -> Result:
    rows: list[Row] = [
        (
            session.activity.id,
            "ACTIVE" if session.activity.text is not None else "IDLE",
            session.activity.user,
            session.database,
            session.activity.client_address,
            session.application_name,
            session.transaction_status,
            shown(session.activity.text),
            shown(session.activity.last_text),
            session.activity.began,
            started(session.activity),
        )
        for session in await _seen(actor)
    ]
    columns = typed_columns(
        "session_id status user_name database_name client_address application_name "
        "transaction_status active_queries last_active_query session_start:t active_query_start:t"
    )
    return listing("SHOW SESSIONS", columns, rows)


async def _queries(actor: Actor) -> Result:
    rows: list[Row] = [
        (
            session.activity.query_id,
            session.activity.id,
            session.activity.user,
            started(session.activity),
            shown(session.activity.text),
            session.activity.client_address,
            session.application_name,
        )
        for session in await _seen(actor)
        if session.activity.text is not None
    ]
    columns = typed_columns(
        "query_id session_id user_name start:t query client_address application_name"
    )
    return listing("SHOW QUERIES", columns, rows)


async def cancel(actor: Actor, statement: Cancel) -> Result:
    """Raises SQLError 42704 for what is not there, or not to be seen by the actor."""
    sessions = actor.services.sessions
    kind = "session" if statement.session else "query"
    found: list[SessionView] = []
    for id in statement.ids:
        session = sessions.find(id) if statement.session else sessions.find_query(id)
        if session is not None and await _may_cancel(actor, session):
            found.append(session)
        elif not statement.if_exists:
            raise SQLError(
                "42704", f"{kind} ID {id} not found", position=statement.position,
                hint=f"SHOW {'SESSIONS' if statement.session else 'QUERIES'} lists those of this "
                "node.",
            )  # fmt: skip
    for session in found:
        if statement.session:
            session.terminate()
        else:
            session.activity.interrupt()
    plural = "SESSIONS" if statement.session else "QUERIES"
    return Result(tag=f"CANCEL {plural} {len(found)}", row_count=len(found))


async def _may_cancel(actor: Actor, session: SessionView) -> bool:
    return may_end(await actor.rights(), actor.user, session.activity.user)
