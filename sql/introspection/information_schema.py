"""The schema `information_schema`, of SQL's standard: tables, columns, keys."""

from __future__ import annotations

from collections.abc import Sequence

from ...catalog.privileges import Privilege, securable
from ...catalog.rights import read_rights
from ...catalog.users import ROOT
from ..results import INT8, STRING, Row
from .context import IntrospectionContext
from .described import (
    DescribedTable,
    default_text,
    described_relations,
    described_tables,
    described_views,
)
from .rights import privileges_on
from .sequences import schema_sequence_rows
from .type_rows import standard_words, udt_name
from .virtual_table import RowSource, VirtualTable, virtual_columns

SCHEMA = "information_schema"
_KINDS = {"p": "PRIMARY KEY", "u": "UNIQUE", "c": "CHECK", "f": "FOREIGN KEY"}
_BITS = {"INT2": 16, "INT4": 32, "INT8": 64, "FLOAT4": 24, "FLOAT8": 53}


async def _visible_tables(context: IntrospectionContext) -> list[DescribedTable]:
    """Tables and views that the user has any privilege on, as the standard has it; pg_catalog hides
    none."""
    tables = await described_relations(context)
    if context.user == ROOT:
        return tables
    rights = await read_rights(context.reader)
    return [found for found in tables if rights.held(context.user, securable(found.table))]


async def _schemata(context: IntrospectionContext) -> Sequence[Row]:
    stored = await context.services.catalog.list_schemas(context.reader, context.database)
    virtual = {table.schema for table in context.services.virtual_tables}
    return [(context.database, name, ROOT) for name in [*stored, *sorted(virtual)]]


async def _tables(context: IntrospectionContext) -> Sequence[Row]:
    rows: list[Row] = [
        (context.database, found.schema, found.table.name, *_standard_kind(found))
        for found in await _visible_tables(context)
    ]
    for table in context.services.virtual_tables:
        rows.append((context.database, table.schema, table.name, "SYSTEM VIEW", "NO"))
    return rows


def _standard_kind(found: DescribedTable) -> tuple[str, str]:
    """What the standard calls it, and whether rows can be inserted."""
    return ("BASE TABLE", "YES") if found.table.view is None else ("VIEW", "NO")


async def _columns(context: IntrospectionContext) -> Sequence[Row]:
    rows: list[Row] = []
    for found in await _visible_tables(context):
        for place, (_, column) in enumerate(found.columns, start=1):
            type = column.type
            precision, scale = type.decimal if type.precision is not None else (None, None)
            bits = _BITS.get(type.kind.value)
            if type.kind.value.startswith("INT"):
                scale = 0
            computed = column.computed
            rows.append(
                (
                    context.database, found.schema, found.table.name, column.name, place,
                    default_text(column) if computed is None else None,
                    "YES" if column.nullable else "NO", standard_words(type), type.width,
                    bits or precision, scale, udt_name(type),
                    "NO" if column.identity is None else "YES",
                    None if column.identity is None else column.identity.value,
                    "ALWAYS" if computed is not None else "NEVER", computed,
                    "NO" if computed is not None or found.table.view is not None else "YES",
                )
            )  # fmt: skip
    return rows


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
            found.table.name, _KINDS[constraint.kind], "NO", "NO",
        )
        for found in await _visible_tables(context)
        for constraint in found.constraints
    ]  # fmt: skip


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
    _table(1, "schemata", "catalog_name schema_name schema_owner", _schemata),
    _table(
        2, "tables", "table_catalog table_schema table_name table_type is_insertable_into", _tables
    ),
    _table(
        3,
        "columns",
        "table_catalog table_schema table_name column_name ordinal_position* column_default "
        "is_nullable data_type character_maximum_length* numeric_precision* numeric_scale* "
        "udt_name is_identity identity_generation is_generated generation_expression is_updatable",
        _columns,
    ),
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
