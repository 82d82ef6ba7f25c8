"""Statements that list something, or change what is in no transaction: each by the function that
carries it out for its user. Those of the catalog and of cluster settings are here.

Each raises SQLError 42501 for what its user may not see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.rights.privileges import SYSTEM, Privilege, securable
from ....catalog.store.cluster_settings import reset_setting, set_setting
from ....catalog.store.show_create import default_text, show_create
from ....catalog.values.errors import SQLError
from ....kvlayer.settings import REGISTRY, SettingError
from ...results.results import Result, Row, listing
from ...runtime.authorization import Actor
from ...runtime.relations import resolve
from ...runtime.services import Services
from ...syntax import changefeed_statements as f
from ...syntax import keyspace_statements as k
from ...syntax import statements
from ...syntax.schema_statements import ShowRelaxedLogs
from ...syntax.statement import ObjectName
from ...syntax.statements import Maintain
from ..ddl import keyspaces, relaxed_logs
from . import jobs
from .connections import show_connections
from .ranges import RangeStatement, run_ranges
from .subscriptions import show_subscriptions


async def run_listing(actor: Actor, statement: object, parameters: Sequence[object]) -> Result:
    """Runs one of `LISTINGS`, or a statement about ranges. Raises SQLError 42501."""
    if isinstance(statement, RangeStatement):
        return await run_ranges(actor, statement, parameters)
    return await LISTINGS[type(statement)](actor, statement)


async def show_databases(actor: Actor, statement: statements.ShowDatabases) -> Result:
    names = await actor.services.catalog.list_databases(actor.reader)
    return listing("SHOW DATABASES", "database_name", [(name,) for name in names])


async def show_tables(actor: Actor, statement: statements.ShowTables) -> Result:
    database, catalog = statement.database or actor.database, actor.services.catalog
    rows: list[Row] = [
        (schema, table.name, "table" if table.view is None else "view", table.locked)
        for schema in await catalog.list_schemas(actor.reader, database)
        for table in await catalog.list_tables(actor.reader, database, schema, views=True)
    ]
    return listing("SHOW TABLES", "schema_name table_name type changefeed_optimized:b", rows)


# Tables


async def _table(actor: Actor, name: ObjectName) -> TableDescriptor:
    table = await resolve(actor.services, actor.reader, name, actor.database)
    if table.id > 0 and not (await actor.rights()).held(actor.user, securable(table)):
        raise SQLError("42501", f"user {actor.user} has no privileges on relation {table.name}")
    return table


async def show_create_table(actor: Actor, statement: statements.ShowCreateTable) -> Result:
    table = await _table(actor, statement.table)
    referenced: dict[int, TableDescriptor] = {}
    for key in table.foreign_keys:
        other = await actor.services.catalog.descriptors.read(actor.reader, key.referenced_id)
        assert isinstance(other, TableDescriptor), (key, other)
        referenced[other.id] = other
    text = show_create(table, referenced)
    return listing("SHOW CREATE TABLE", "table_name create_statement", [(table.name, text)])


async def show_columns(actor: Actor, statement: statements.ShowColumns) -> Result:
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


async def maintain(actor: Actor, statement: Maintain) -> Result:
    """VACUUM, ANALYZE and LOCK TABLE. Raises SQLError 42P01 for a table that is not there."""
    for table in statement.tables:
        await resolve(actor.services, actor.reader, table, actor.database)
    return Result(tag=statement.tag, notice=statement.notice)


# Cluster settings


async def show_cluster_settings(actor: Actor, statement: statements.ShowClusterSettings) -> Result:
    await actor.need_system(Privilege.VIEWCLUSTERSETTING, Privilege.MODIFYCLUSTERSETTING)
    if statement.name is not None:
        _check_setting(statement.name, statement.position)
        value = _value(actor.services, statement.name)
        return listing("SHOW CLUSTER SETTING", statement.name, [(value,)])
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


async def set_cluster_setting(actor: Actor, statement: statements.SetClusterSetting) -> Result:
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


LISTINGS: Mapping[type, Callable[[Actor, Any], Awaitable[Result]]] = {
    Maintain: maintain,
    f.ShowConnections: show_connections,
    ShowRelaxedLogs: relaxed_logs.show_relaxed_logs,
    f.RetryDeadLetters: jobs.tell_dead_letters,
    f.ShowDeadLetters: jobs.tell_dead_letters,
    f.ShowFeedLag: jobs.show_feed_lag,
    f.ShowFeedLatency: jobs.show_feed_latency,
    f.ShowSchedules: jobs.show_schedules,
    f.ShowSubscriptions: show_subscriptions,
    f.SkipDeadLetters: jobs.tell_dead_letters,
    k.BackupKeyspace: keyspaces.run_backup,
    k.RestoreKeyspace: keyspaces.run_backup,
    k.ShowKeyspaceRanges: keyspaces.show_keyspace_ranges,
    k.ShowKeyspaces: keyspaces.show_keyspaces,
    k.ShowReplications: jobs.show_replications,
    statements.SetClusterSetting: set_cluster_setting,
    statements.ShowClusterSettings: show_cluster_settings,
    statements.ShowColumns: show_columns,
    statements.ShowCreateTable: show_create_table,
    statements.ShowDatabases: show_databases,
    statements.ShowJobs: jobs.show_jobs,
    statements.ShowTables: show_tables,
    statements.VerifyChangefeed: jobs.verify_changefeed,
}
