"""SHOW of the catalog, of cluster settings and of sessions; SET CLUSTER SETTING; CANCEL of
queries and sessions."""

from __future__ import annotations

from difflib import get_close_matches

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.elements import ElementState, Index
from ....catalog.descriptors.named_objects import SequenceDescriptor, TypeDescriptor
from ....catalog.rights.privileges import SYSTEM, Privilege
from ....catalog.store.cluster_settings import reset_setting, set_setting
from ....catalog.store.show_create import default_text, show_create
from ....catalog.values.column_types import array_of
from ....catalog.values.errors import SQLError
from ....kvlayer.settings import REGISTRY, SettingError
from ...introspection.described import DescribedTable, constraint_definition
from ...plan.needs import Need
from ...results.results import STRING, Result, Row, listing, typed_columns
from ...runtime.activity import SessionView, shown, started
from ...runtime.authorization import Actor, check_show, require
from ...runtime.relations import not_a_view, resolve
from ...runtime.services import Services
from ...syntax import statements
from ...syntax.maintenance_statements import Chore, Maintain
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
from ...syntax.statements import SetClusterSetting
from .session_calls import may_end

Show = (
    statements.ShowTables
    | statements.ShowDatabases
    | statements.ShowCreateTable
    | statements.ShowColumns
    | statements.ShowClusterSettings
    | statements.ShowSession
    | Maintain
)


async def run_show(actor: Actor, statement: Show) -> Result:
    """Runs a SHOW statement as its user may. Raises SQLError 42501."""
    await check_show(actor, statement)
    services, database = actor.services, actor.database
    match statement:
        case statements.ShowTables(database=named):
            return await _tables(actor, named or database)
        case statements.ShowDatabases():
            names = await services.catalog.list_databases(actor.reader)
            return listing("SHOW DATABASES", typed_columns("database_name"), [(n,) for n in names])
        case statements.ShowCreateTable(table=name):
            table = await resolve(services, actor.reader, name, database)
            if statement.view and table.view is None:
                raise not_a_view(name)
            text = show_create(table, await _referenced(actor, table))
            columns = typed_columns("table_name create_statement")
            return listing("SHOW CREATE TABLE", columns, [(table.name, text)])
        case statements.ShowColumns(table=name):
            return _columns(await resolve(services, actor.reader, name, database))
        case statements.ShowClusterSettings(name=None):
            return _settings(services)
        case statements.ShowClusterSettings(name=str(setting), position=position):
            check_setting(setting, position)
            value = _value(services, setting)
            return listing("SHOW CLUSTER SETTING", typed_columns(setting), [(value,)])
        case Maintain():
            return await _maintain(actor, statement)
        case statements.ShowSession(name="database"):
            return listing("SHOW DATABASE", typed_columns("database"), [(database,)])
    raise AssertionError(statement)


async def _referenced(actor: Actor, table: TableDescriptor) -> dict[int, TableDescriptor]:
    """The tables that foreign keys of this one refer to."""
    found: dict[int, TableDescriptor] = {}
    for key in table.foreign_keys:
        other = await actor.services.catalog.descriptors.read(actor.reader, key.referenced_id)
        assert isinstance(other, TableDescriptor), (key, other)
        found[other.id] = other
    return found


async def _tables(actor: Actor, database: str) -> Result:
    catalog, reader = actor.services.catalog, actor.reader
    columns = typed_columns("schema_name table_name type changefeed_optimized:b")
    rows: list[Row] = [
        (schema, table.name, "table" if table.view is None else "view", table.locked)
        for schema in await catalog.list_schemas(reader, database)
        for table in await catalog.list_tables(reader, database, schema, views=True)
    ]
    return listing("SHOW TABLES", columns, rows)


def _columns(table: TableDescriptor) -> Result:
    places = {column_id: place for place, column_id in enumerate(table.primary_key, start=1)}
    rows: list[Row] = [
        (
            column.name,
            column.type.sql_name,
            column.nullable,
            default_text(column),
            places.get(column.id),
            column.hidden,
        )
        for column in table.visible_columns
    ]
    columns = typed_columns(
        "column_name data_type is_nullable:b column_default key_position:i is_hidden:b"
    )
    return listing("SHOW COLUMNS", columns, rows)


def check_setting(name: str, position: int) -> None:
    """Raises SQLError 42704 with a suggestion for a setting that is not declared."""
    if name in REGISTRY:
        return
    near = get_close_matches(name, REGISTRY, n=1, cutoff=0.4)
    raise SQLError(
        "42704",
        f'unknown cluster setting "{name}"',
        position=position,
        hint=f'Did you mean "{near[0]}"?' if near else "SHOW CLUSTER SETTINGS lists them.",
    )


def _settings(services: Services) -> Result:
    rows: list[Row] = [
        (name, _value(services, name), setting.kind, setting.description)
        for name, setting in sorted(REGISTRY.items())
    ]
    columns = typed_columns("variable value setting_type description")
    return listing("SHOW CLUSTER SETTINGS", columns, rows)


def _value(services: Services, name: str) -> str:
    setting = REGISTRY[name]
    value: object = services.store.settings.get(setting)  # type: ignore[misc]
    if setting.kind == "duration":
        return f"{value:g}s"
    return str(value).lower() if isinstance(value, bool) else str(value)


NOTICES = {
    Chore.VACUUM: "VACUUM has nothing to do: old versions go by themselves, once gc.ttlseconds "
    "have passed",
    Chore.ANALYZE: "ANALYZE has nothing to do: plans need no statistics",
}


async def _maintain(actor: Actor, statement: Maintain) -> Result:
    """Raises SQLError 42P01 for a table that is not there."""
    for table in statement.tables:
        await resolve(actor.services, actor.reader, table, actor.database)
    return Result(tag=statement.chore.value, notice=NOTICES.get(statement.chore))


async def set_cluster_setting(
    services: Services, statement: SetClusterSetting, user: str
) -> Result:
    """Raises SQLError 42704, 22023, or 42501 where the user may not."""
    check_setting(statement.name, statement.position)
    await require(services, user, (Need(int(Privilege.MODIFYCLUSTERSETTING), SYSTEM),))
    try:
        if statement.value is None:
            await reset_setting(services.store, statement.name)
        else:
            await set_setting(services.store, statement.name, statement.value)
    except SettingError as error:
        raise SQLError("22023", f"{error}", position=statement.position) from error
    return Result(tag="SET CLUSTER SETTING")


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
