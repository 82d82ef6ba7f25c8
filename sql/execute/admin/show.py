"""SHOW of tables, columns and cluster settings; SET and RESET CLUSTER SETTING."""

from __future__ import annotations

from difflib import get_close_matches

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.rights.privileges import SYSTEM, Privilege
from ....catalog.store.cluster_settings import reset_setting, set_setting
from ....catalog.store.show_create import default_text, show_create
from ....catalog.values.errors import SQLError
from ....kvlayer.settings import REGISTRY, SettingError
from ...plan.needs import Need
from ...results.results import Result, Row, listing, typed_columns
from ...runtime.authorization import Actor, check_show, require
from ...runtime.relations import not_a_view, resolve
from ...runtime.services import Services
from ...syntax import statements
from ...syntax.maintenance_statements import Chore, Maintain
from ...syntax.statements import SetClusterSetting

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
