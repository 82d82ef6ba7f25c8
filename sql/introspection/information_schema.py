"""The schema `information_schema`, of SQL's standard: tables, columns, keys."""

from __future__ import annotations

from collections.abc import Sequence

from ...catalog.rights.privileges import Privilege, securable
from ...catalog.rights.rights import read_rights
from ...catalog.rights.users import ROOT
from ..results.results import INT8, STRING, Row
from ..runtime.introspection_context import IntrospectionContext
from .described import (
    DescribedTable,
    described_relations,
    described_tables,
    described_views,
)
from .information_columns import COLUMNS, ELEMENT_TYPES, column_rows, element_type_rows
from .information_usage import USAGE_TABLES
from .rights import privileges_on
from .sequences import schema_sequence_rows
from .virtual_table import RowSource, VirtualTable, virtual_columns

SCHEMA = "information_schema"
_KINDS = {"p": "PRIMARY KEY", "u": "UNIQUE", "c": "CHECK", "f": "FOREIGN KEY"}


async def _visible_tables(context: IntrospectionContext) -> list[DescribedTable]:
    """Tables and views that the user has any privilege on, as the standard has it; pg_catalog hides
    none."""
    tables = await described_relations(context)
    if context.user == ROOT:
        return tables
    rights = await read_rights(context.reader)
    return [found for found in tables if rights.held(context.user, securable(found.table))]


async def _schemata(context: IntrospectionContext) -> Sequence[Row]:
    catalog, reader = context.services.catalog, context.reader
    stored = await catalog.list_schemas(reader, context.database)
    virtual = {table.schema for table in context.services.virtual_tables}
    rights = await read_rights(context.reader)
    rows: list[Row] = []
    for name in [*stored, *sorted(virtual)]:
        owner = ROOT
        if name not in virtual:
            parents = await catalog.descriptors.resolve_schema(reader, context.database, name)
            owner = rights.owner(parents[1])
        rows.append((context.database, name, owner, None, None, None, None))
    return rows


async def _tables(context: IntrospectionContext) -> Sequence[Row]:
    rows: list[Row] = [
        _table_row(context.database, found.schema, found.table.name, *_standard_kind(found))
        for found in await _visible_tables(context)
    ]
    for table in context.services.virtual_tables:
        rows.append(_table_row(context.database, table.schema, table.name, "SYSTEM VIEW", "NO"))
    return rows


def _table_row(database: str, schema: str, name: str, kind: str, insertable: str) -> Row:
    return (database, schema, name, kind, *[None] * 5, insertable, "NO", None)


def _standard_kind(found: DescribedTable) -> tuple[str, str]:
    """Returns the standard's name of a table's kind, and whether rows can be inserted."""
    return ("BASE TABLE", "YES") if found.table.view is None else ("VIEW", "NO")


async def _columns(context: IntrospectionContext) -> Sequence[Row]:
    return await column_rows(context, await _visible_tables(context))


async def _element_types(context: IntrospectionContext) -> Sequence[Row]:
    return await element_type_rows(context, await _visible_tables(context))


async def _views(context: IntrospectionContext) -> Sequence[Row]:
    """A query is shown to the view's owner and to admins, as PostgreSQL does."""
    rights = await read_rights(context.reader)
    visible = {found.table.id for found in await _visible_tables(context)}
    rows: list[Row] = []
    for found, text in await described_views(context):
        if found.table.id in visible:
            shown = text if rights.owns(context.user, found.table.id) else None
            rows.append(
                (context.database, found.schema, found.table.name, shown, "NONE", *["NO"] * 5)
            )
    return rows


async def _constraints(context: IntrospectionContext) -> Sequence[Row]:
    return [
        (
            context.database, found.schema, constraint.name, context.database, found.schema,
            found.table.name, _KINDS[constraint.kind],
            _yes(constraint.key is not None and constraint.key.deferrable),
            _yes(constraint.key is not None and constraint.key.initially_deferred),
        )
        for found in await _visible_tables(context)
        for constraint in found.constraints
    ]  # fmt: skip


def _yes(whether: bool) -> str:
    return "YES" if whether else "NO"


async def _key_columns(context: IntrospectionContext) -> Sequence[Row]:
    return [
        (
            context.database, found.schema, constraint.name, context.database, found.schema,
            found.table.name, found.table.column_by_id(column_id).name, place,
            place if constraint.kind == "f" else None,
        )
        for found in await _visible_tables(context)
        for constraint in found.constraints
        if constraint.kind != "c"
        for place, column_id in enumerate(constraint.columns, start=1)
    ]  # fmt: skip


async def _references(context: IntrospectionContext) -> Sequence[Row]:
    tables = await described_tables(context)
    by_id = {found.table.id: found for found in tables}
    rows: list[Row] = []
    for found in await _visible_tables(context):
        for key in found.table.foreign_keys:
            other = by_id[key.referenced_id]
            unique = next(
                index.name
                for index in other.indexes
                if index.unique and set(index.columns) == set(key.referenced_columns)
            )
            rows.append(
                (
                    context.database, found.schema, key.name, context.database, other.schema,
                    unique, "NONE", key.on_update.value, key.on_delete.value,
                )
            )  # fmt: skip
    return rows


async def _table_privileges(context: IntrospectionContext) -> Sequence[Row]:
    """table_privileges and role_table_grants."""
    rights = await read_rights(context.reader)
    return [
        (
            rights.owner(found.table.id), grantee, context.database, found.schema,
            found.table.name, privilege.name, "YES" if grantable else "NO",
            "YES" if privilege is Privilege.SELECT else "NO",
        )
        for found in await described_relations(context)
        for grantee, privilege, grantable in privileges_on(rights, securable(found.table))
    ]  # fmt: skip


async def _applicable_roles(context: IntrospectionContext) -> Sequence[Row]:
    rights = await read_rights(context.reader)
    return [
        (member, role, "YES" if admin else "NO") for role, member, admin in rights.memberships()
    ]


_PRIVILEGE_COLUMNS = (
    "grantor grantee table_catalog table_schema table_name privilege_type is_grantable "
    "with_hierarchy"
)


def _table(number: int, name: str, columns: str, rows: RowSource) -> VirtualTable:
    """Columns are text, but for those with a star, which are numbers."""
    types = {
        column.rstrip("*"): INT8 if column.endswith("*") else STRING for column in columns.split()
    }
    return VirtualTable(
        id=-300 - number, schema=SCHEMA, name=name, columns=virtual_columns(**types), rows=rows
    )


INFORMATION_SCHEMA = (
    _table(
        8,
        "sequences",
        "sequence_catalog sequence_schema sequence_name data_type numeric_precision* "
        "numeric_precision_radix* numeric_scale* start_value minimum_value maximum_value "
        "increment cycle_option",
        schema_sequence_rows,
    ),
    _table(
        1,
        "schemata",
        "catalog_name schema_name schema_owner default_character_set_catalog "
        "default_character_set_schema default_character_set_name sql_path",
        _schemata,
    ),
    _table(
        2,
        "tables",
        "table_catalog table_schema table_name table_type self_referencing_column_name "
        "reference_generation user_defined_type_catalog user_defined_type_schema "
        "user_defined_type_name is_insertable_into is_typed commit_action",
        _tables,
    ),
    _table(3, "columns", COLUMNS, _columns),
    _table(9, "element_types", ELEMENT_TYPES, _element_types),
    *(_table(*usage) for usage in USAGE_TABLES),
    _table(
        4,
        "views",
        "table_catalog table_schema table_name view_definition check_option is_updatable "
        "is_insertable_into is_trigger_updatable is_trigger_deletable is_trigger_insertable_into",
        _views,
    ),
    _table(
        5,
        "table_constraints",
        "constraint_catalog constraint_schema constraint_name table_catalog table_schema "
        "table_name constraint_type is_deferrable initially_deferred",
        _constraints,
    ),
    _table(
        6,
        "key_column_usage",
        "constraint_catalog constraint_schema constraint_name table_catalog table_schema "
        "table_name column_name ordinal_position* position_in_unique_constraint*",
        _key_columns,
    ),
    _table(20, "table_privileges", _PRIVILEGE_COLUMNS, _table_privileges),
    _table(21, "role_table_grants", _PRIVILEGE_COLUMNS, _table_privileges),
    _table(22, "applicable_roles", "grantee role_name is_grantable", _applicable_roles),
    _table(
        7,
        "referential_constraints",
        "constraint_catalog constraint_schema constraint_name unique_constraint_catalog "
        "unique_constraint_schema unique_constraint_name match_option update_rule delete_rule",
        _references,
    ),
)
