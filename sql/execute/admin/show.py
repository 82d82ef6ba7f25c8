"""SHOW of the catalog, of cluster settings and of sessions; SET CLUSTER SETTING; CANCEL of
queries and sessions. Each raises SQLError 42501 for what its user may not see."""

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
from ...results.results import STRING, Result, Row, listing, typed_columns
from ...runtime.activity import SessionView, shown, started
from ...runtime.authorization import Actor
from ...runtime.relations import not_a_view, resolve
from ...runtime.services import Services
from ...syntax.maintenance_statements import Chore, Maintain
from ...syntax.names import ObjectName
from ...syntax.show_statements import (
    Cancel,
    ShowConstraints,
    ShowIndexes,
    ShowQueries,
    ShowSchemas,
    ShowSequences,
    ShowSessions,
    ShowTypes,
)
from ...syntax.statements import (
    SetClusterSetting,
    ShowClusterSettings,
    ShowColumns,
    ShowCreateTable,
    ShowDatabases,
    ShowSession,
    ShowTables,
)
from .session_calls import may_end


async def show_database(actor: Actor, statement: ShowSession) -> Result:
    assert statement.name == "database", statement
    return listing("SHOW DATABASE", "database", [(actor.database,)])


async def show_databases(actor: Actor, statement: ShowDatabases) -> Result:
    names = await actor.services.catalog.list_databases(actor.reader)
    return listing("SHOW DATABASES", "database_name", [(name,) for name in names])


async def show_schemas(actor: Actor, statement: ShowSchemas) -> Result:
    database, catalog = statement.database or actor.database, actor.services.catalog
    rights = await actor.rights()
    rows: list[Row] = []
    for name in await catalog.list_schemas(actor.reader, database):
        _, schema_id = await catalog.descriptors.resolve_schema(actor.reader, database, name)
        rows.append((name, rights.owner(schema_id)))
    rows += [(name, None) for name in {table.schema for table in actor.services.virtual_tables}]
    rows.sort(key=lambda row: str(row[0]))
    return listing("SHOW SCHEMAS", "schema_name owner", rows)


async def show_tables(actor: Actor, statement: ShowTables) -> Result:
    database, catalog = statement.database or actor.database, actor.services.catalog
    rows: list[Row] = [
        (schema, table.name, "table" if table.view is None else "view", table.locked)
        for schema in await catalog.list_schemas(actor.reader, database)
        for table in await catalog.list_tables(actor.reader, database, schema, views=True)
    ]
    return listing("SHOW TABLES", "schema_name table_name type changefeed_optimized:b", rows)


async def show_sequences(actor: Actor, statement: ShowSequences) -> Result:
    database, catalog = statement.database or actor.database, actor.services.catalog
    found = await catalog.list_objects(actor.reader, database, SequenceDescriptor)
    rows: list[Row] = [(schema, sequence.name) for schema, sequence in found]
    return listing("SHOW SEQUENCES", "sequence_schema sequence_name", rows)


async def show_types(actor: Actor, statement: ShowTypes) -> Result:
    database, catalog = statement.database or actor.database, actor.services.catalog
    found = await catalog.list_objects(actor.reader, database, TypeDescriptor)
    rights = await actor.rights()
    rows: list[Row] = [
        (schema, type.name, list(type.enum.labels), rights.owner(type.id)) for schema, type in found
    ]
    columns = typed_columns("schema name values owner") | {"values": array_of(STRING)}
    return listing("SHOW TYPES", columns, rows)


# Tables


async def _table(actor: Actor, name: ObjectName) -> TableDescriptor:
    table = await resolve(actor.services, actor.reader, name, actor.database)
    await actor.need_any(table)
    return table


async def _keyed_table(actor: Actor, name: ObjectName) -> TableDescriptor:
    table = await _table(actor, name)
    if table.id < 0:
        raise SQLError("42809", f'"{name}" is computed: it has no keys', position=name.position)
    return table


async def show_create_table(actor: Actor, statement: ShowCreateTable) -> Result:
    table = await _table(actor, statement.table)
    if statement.view and table.view is None:
        raise not_a_view(statement.table)
    text = show_create(table, await _referenced(actor, table))
    return listing("SHOW CREATE TABLE", "table_name create_statement", [(table.name, text)])


async def _referenced(actor: Actor, table: TableDescriptor) -> dict[int, TableDescriptor]:
    """The tables that foreign keys of this one refer to."""
    found: dict[int, TableDescriptor] = {}
    for key in table.foreign_keys:
        other = await actor.services.catalog.descriptors.read(actor.reader, key.referenced_id)
        assert isinstance(other, TableDescriptor), (key, other)
        found[other.id] = other
    return found


async def show_columns(actor: Actor, statement: ShowColumns) -> Result:
    table = await _table(actor, statement.table)
    places = {column_id: place for place, column_id in enumerate(table.primary_key, start=1)}
    rows: list[Row] = [
        (
            column.name, column.type.sql_name, column.nullable, default_text(column),
            places.get(column.id), column.hidden,
        )
        for column in table.visible_columns
    ]  # fmt: skip
    columns = "column_name data_type is_nullable:b column_default key_position:i is_hidden:b"
    return listing("SHOW COLUMNS", columns, rows)


async def show_indexes(actor: Actor, statement: ShowIndexes) -> Result:
    """A row for each column of each index, those of the key that stand behind it included."""
    table = await _keyed_table(actor, statement.table)
    rows: list[Row] = []
    public = [index for index in table.indexes if index.state is ElementState.PUBLIC]
    keyed = public if table.view is not None else (table.primary_index, *public)
    for index in sorted(keyed, key=lambda index: index.name):
        for place, (column_id, storing, implicit) in enumerate(_parts(table, index), start=1):
            name, direction = table.column_by_id(column_id).name, "N/A" if storing else "ASC"
            shared = not index.unique
            rows.append((table.name, index.name, shared, place, name, direction, storing, implicit))
    columns = (
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


async def show_constraints(actor: Actor, statement: ShowConstraints) -> Result:
    table = await _keyed_table(actor, statement.table)
    by_id: dict[int, DescribedTable] = {}
    for found in (table, *(await _referenced(actor, table)).values()):
        schema = await actor.services.catalog.descriptors.read(actor.reader, found.schema_id)
        assert schema is not None, found
        by_id[found.id] = DescribedTable(schema.name, found)
    rows: list[Row] = [
        (
            table.name, constraint.name, _KINDS[constraint.kind],
            constraint_definition(by_id[table.id], constraint, by_id), constraint.validated,
        )
        for constraint in by_id[table.id].constraints
    ]  # fmt: skip
    rows.sort(key=lambda row: str(row[1]))
    columns = "table_name constraint_name constraint_type details validated:b"
    return listing("SHOW CONSTRAINTS", columns, rows)


NOTICES = {
    Chore.VACUUM: "VACUUM has nothing to do: old versions go by themselves, once gc.ttlseconds "
    "have passed",
    Chore.ANALYZE: "ANALYZE has nothing to do: plans need no statistics",
}


async def maintain(actor: Actor, statement: Maintain) -> Result:
    """VACUUM, ANALYZE and LOCK TABLE. Raises SQLError 42P01 for a table that is not there."""
    for table in statement.tables:
        await resolve(actor.services, actor.reader, table, actor.database)
    return Result(tag=statement.chore.value, notice=NOTICES.get(statement.chore))


# Cluster settings


async def show_cluster_settings(actor: Actor, statement: ShowClusterSettings) -> Result:
    await actor.need_system(Privilege.VIEWCLUSTERSETTING, Privilege.MODIFYCLUSTERSETTING)
    if statement.name is not None:
        _check_setting(statement.name, statement.position)
        value = _value(actor.services, statement.name)
        return listing("SHOW CLUSTER SETTING", typed_columns(statement.name), [(value,)])
    rows: list[Row] = [
        (name, _value(actor.services, name), setting.kind, setting.description)
        for name, setting in sorted(REGISTRY.items())
    ]
    return listing("SHOW CLUSTER SETTINGS", "variable value setting_type description", rows)


def _check_setting(name: str, position: int) -> None:
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


def _value(services: Services, name: str) -> str:
    setting = REGISTRY[name]
    value: object = services.store.settings.get(setting)  # type: ignore[misc]
    if setting.kind == "duration":
        return f"{value:g}s"
    return str(value).lower() if isinstance(value, bool) else str(value)


async def set_cluster_setting(actor: Actor, statement: SetClusterSetting) -> Result:
    """Raises SQLError 42704, 22023, or 42501 where the user may not."""
    _check_setting(statement.name, statement.position)
    await actor.need(SYSTEM, Privilege.MODIFYCLUSTERSETTING)
    store = actor.services.store
    try:
        if statement.value is None:
            await reset_setting(store, statement.name)
        else:
            await set_setting(store, statement.name, statement.value)
    except SettingError as error:
        raise SQLError("22023", f"{error}", position=statement.position) from error
    return Result(tag="SET CLUSTER SETTING")


# Sessions


async def _seen(actor: Actor) -> list[SessionView]:
    """The sessions that the actor may see: its own, and with VIEWACTIVITY all."""
    everything = (await actor.rights()).held(actor.user, SYSTEM) & Privilege.VIEWACTIVITY
    return [
        session
        for session in actor.services.sessions
        if everything or session.activity.user == actor.user
    ]


async def show_sessions(actor: Actor, statement: ShowSessions) -> Result:
    rows: list[Row] = [
        (
            session.activity.id, "ACTIVE" if session.activity.text is not None else "IDLE",
            session.activity.user, session.database, session.activity.client_address,
            session.application_name, session.transaction_status, shown(session.activity.text),
            shown(session.activity.last_text), session.activity.began, started(session.activity),
        )
        for session in await _seen(actor)
    ]  # fmt: skip
    columns = (
        "session_id status user_name database_name client_address application_name "
        "transaction_status active_queries last_active_query session_start:t active_query_start:t"
    )
    return listing("SHOW SESSIONS", columns, rows)


async def show_queries(actor: Actor, statement: ShowQueries) -> Result:
    rows: list[Row] = [
        (
            session.activity.query_id, session.activity.id, session.activity.user,
            started(session.activity), shown(session.activity.text),
            session.activity.client_address, session.application_name,
        )
        for session in await _seen(actor)
        if session.activity.text is not None
    ]  # fmt: skip
    columns = "query_id session_id user_name start:t query client_address application_name"
    return listing("SHOW QUERIES", columns, rows)


async def cancel(actor: Actor, statement: Cancel) -> Result:
    """Raises SQLError 42704 for what is not there, or not to be seen by the actor."""
    sessions, rights = actor.services.sessions, await actor.rights()
    kind = "session" if statement.session else "query"
    plural = "SESSIONS" if statement.session else "QUERIES"
    found: list[SessionView] = []
    for id in statement.ids:
        session = sessions.find(id) if statement.session else sessions.find_query(id)
        if session is not None and may_end(rights, actor.user, session.activity.user):
            found.append(session)
        elif not statement.if_exists:
            raise SQLError(
                "42704",
                f"{kind} ID {id} not found",
                position=statement.position,
                hint=f"SHOW {plural} lists those of this node.",
            )
    for session in found:
        if statement.session:
            session.terminate()
        else:
            session.activity.interrupt()
    return Result(tag=f"CANCEL {plural} {len(found)}", row_count=len(found))
