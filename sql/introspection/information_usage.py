"""Tables of information_schema on who uses what: constraints and views by their columns, rights on
columns; and those that are empty, because there is nothing here that they could tell of."""

from __future__ import annotations

from collections.abc import Sequence

from ...catalog.rights.privileges import Privilege, SecurableKind, securable
from ...catalog.rights.rights import read_rights
from ...catalog.rights.users import PUBLIC
from ..results.results import Row
from ..runtime.introspection_context import IntrospectionContext
from .described import DescribedTable, constraint_definition, described_relations
from .rights import privileges_on, things

_COLUMN_PRIVILEGES = (Privilege.SELECT, Privilege.INSERT, Privilege.UPDATE)


async def column_privilege_rows(context: IntrospectionContext) -> Sequence[Row]:
    """column_privileges and role_column_grants: a right on a table is one on all its columns."""
    rights = await read_rights(context.reader)
    return [
        (
            rights.owner(found.table.id), grantee, context.database, found.schema,
            found.table.name, column.name, privilege.name, "YES" if grantable else "NO",
        )
        for found in await described_relations(context)
        for grantee, privilege, grantable in privileges_on(rights, securable(found.table))
        if privilege in _COLUMN_PRIVILEGES
        for _, column in found.columns
    ]  # fmt: skip


async def usage_privilege_rows(context: IntrospectionContext) -> Sequence[Row]:
    """usage_privileges and role_usage_grants: of sequences, USAGE alone, as the standard has it."""
    return [
        (owner, grantee, context.database, schema, name, "SEQUENCE", "USAGE", grantable)
        for owner, grantee, schema, name, grantable in await _usage(context, SecurableKind.SEQUENCE)
    ]


async def type_privilege_rows(context: IntrospectionContext) -> Sequence[Row]:
    """udt_privileges and role_udt_grants."""
    return [
        (owner, grantee, context.database, schema, name, "TYPE USAGE", grantable)
        for owner, grantee, schema, name, grantable in await _usage(context, SecurableKind.TYPE)
    ]


async def _usage(
    context: IntrospectionContext, kind: SecurableKind
) -> list[tuple[str, str, str, str, str]]:
    """Owner, grantee, schema, name, and whether USAGE of it may be granted, in their words."""
    rights = await read_rights(context.reader)
    return [
        (
            rights.owner(thing.id),
            "PUBLIC" if grantee == PUBLIC else grantee,
            full_name.partition(".")[0],
            thing.name,
            "YES" if grantable else "NO",
        )
        for full_name, thing in await things(context)
        if thing.kind is kind
        for grantee, privilege, grantable in privileges_on(rights, thing)
        if privilege is Privilege.USAGE
    ]


async def constraint_table_rows(context: IntrospectionContext) -> Sequence[Row]:
    """Rows of information_schema.constraint_table_usage."""
    return [
        (
            context.database, used.schema, used.table.name, context.database, found.schema,
            name,
        )
        for found, name, used, _ in await _uses(context)
    ]  # fmt: skip


async def constraint_column_rows(context: IntrospectionContext) -> Sequence[Row]:
    """The columns that a constraint needs: of a foreign key those that it refers to."""
    return [
        (
            context.database, used.schema, used.table.name, used.table.column_by_id(column_id).name,
            context.database, found.schema, name,
        )
        for found, name, used, columns in await _uses(context)
        for column_id in columns
    ]  # fmt: skip


Use = tuple[DescribedTable, str, DescribedTable, tuple[int, ...]]
"""A table, a constraint of it, and the table and the columns that this one needs."""


async def _uses(context: IntrospectionContext) -> list[Use]:
    relations = await described_relations(context)
    by_id = {found.table.id: found for found in relations}
    uses: list[Use] = []
    for found in relations:
        for constraint in found.constraints:
            key = constraint.key
            used = found if key is None else by_id[key.referenced_id]
            columns = constraint.columns if key is None else key.referenced_columns
            uses.append((found, constraint.name, used, columns))
    return uses


async def check_rows(context: IntrospectionContext) -> Sequence[Row]:
    """Rows of information_schema.check_constraints."""
    relations = await described_relations(context)
    by_id = {found.table.id: found for found in relations}
    rows: list[Row] = []
    for found in relations:
        for constraint in found.constraints:
            if constraint.kind == "c":
                clause = constraint_definition(found, constraint, by_id).removeprefix("CHECK ")
                rows.append((context.database, found.schema, constraint.name, clause))
    return rows


async def view_table_rows(context: IntrospectionContext) -> Sequence[Row]:
    """Rows of information_schema.view_table_usage."""
    return [
        (*_three(context, view), *_three(context, used)) for view, used, _ in await _reads(context)
    ]


async def view_column_rows(context: IntrospectionContext) -> Sequence[Row]:
    """Rows of information_schema.view_column_usage."""
    return [
        (*_three(context, view), *_three(context, used), used.table.column_by_id(column).name)
        for view, used, columns in await _reads(context)
        for column in columns
    ]


def _three(context: IntrospectionContext, found: DescribedTable) -> tuple[str, str, str]:
    return context.database, found.schema, found.table.name


async def _reads(
    context: IntrospectionContext,
) -> list[tuple[DescribedTable, DescribedTable, tuple[int, ...]]]:
    """Views, what they read, and the columns of it that they name."""
    relations = await described_relations(context)
    by_id = {found.table.id: found for found in relations}
    return [
        (view, by_id[read.table_id], read.columns)
        for view in relations
        if view.table.view is not None
        for read in view.table.view.reads
        if read.table_id in by_id
    ]


async def enabled_role_rows(context: IntrospectionContext) -> Sequence[Row]:
    rights = await read_rights(context.reader)
    return [(role,) for role in sorted(rights.roles_of(context.user))]


async def catalog_name_rows(context: IntrospectionContext) -> Sequence[Row]:
    return [(context.database,)]


async def character_set_rows(context: IntrospectionContext) -> Sequence[Row]:
    return [(context.database, None, "UTF8", "UCS", "UTF8", context.database, "pg_catalog", "C")]


async def collation_rows(context: IntrospectionContext) -> Sequence[Row]:
    return [(context.database, "pg_catalog", name, "NO PAD") for name in ("default", "C")]


async def no_rows(context: IntrospectionContext) -> Sequence[Row]:
    return ()


_ROUTINE = "specific_catalog specific_schema specific_name"

USAGE_TABLES = (
    (
        30,
        "column_privileges",
        "grantor grantee table_catalog table_schema table_name column_name privilege_type "
        "is_grantable",
        column_privilege_rows,
    ),
    (
        31,
        "role_column_grants",
        "grantor grantee table_catalog table_schema table_name column_name privilege_type "
        "is_grantable",
        column_privilege_rows,
    ),
    *(
        (
            number,
            name,
            "grantor grantee object_catalog object_schema object_name object_type privilege_type "
            "is_grantable",
            usage_privilege_rows,
        )
        for number, name in ((48, "usage_privileges"), (49, "role_usage_grants"))
    ),
    *(
        (
            number,
            name,
            "grantor grantee udt_catalog udt_schema udt_name privilege_type is_grantable",
            type_privilege_rows,
        )
        for number, name in ((50, "udt_privileges"), (51, "role_udt_grants"))
    ),
    (
        32,
        "constraint_table_usage",
        "table_catalog table_schema table_name constraint_catalog constraint_schema "
        "constraint_name",
        constraint_table_rows,
    ),
    (
        33,
        "constraint_column_usage",
        "table_catalog table_schema table_name column_name constraint_catalog constraint_schema "
        "constraint_name",
        constraint_column_rows,
    ),
    (
        34,
        "check_constraints",
        "constraint_catalog constraint_schema constraint_name check_clause",
        check_rows,
    ),
    (
        35,
        "view_table_usage",
        "view_catalog view_schema view_name table_catalog table_schema table_name",
        view_table_rows,
    ),
    (
        36,
        "view_column_usage",
        "view_catalog view_schema view_name table_catalog table_schema table_name column_name",
        view_column_rows,
    ),
    (38, "enabled_roles", "role_name", enabled_role_rows),
    (39, "information_schema_catalog_name", "catalog_name", catalog_name_rows),
    (
        40,
        "character_sets",
        "character_set_catalog character_set_schema character_set_name character_repertoire "
        "form_of_use default_collate_catalog default_collate_schema default_collate_name",
        character_set_rows,
    ),
    (
        41,
        "collations",
        "collation_catalog collation_schema collation_name pad_attribute",
        collation_rows,
    ),
    (
        42,
        "routines",
        f"{_ROUTINE} routine_catalog routine_schema routine_name routine_type data_type "
        "type_udt_catalog type_udt_schema type_udt_name routine_body routine_definition "
        "external_language is_deterministic security_type",
        no_rows,
    ),
    (
        43,
        "parameters",
        f"{_ROUTINE} ordinal_position* parameter_mode is_result parameter_name data_type "
        "udt_catalog udt_schema udt_name parameter_default",
        no_rows,
    ),
    (
        44,
        "triggers",
        "trigger_catalog trigger_schema trigger_name event_manipulation event_object_catalog "
        "event_object_schema event_object_table action_order* action_condition action_statement "
        "action_orientation action_timing",
        no_rows,
    ),
    (
        45,
        "domains",
        "domain_catalog domain_schema domain_name data_type character_maximum_length* "
        "numeric_precision* numeric_scale* domain_default udt_catalog udt_schema udt_name",
        no_rows,
    ),
    (
        46,
        "domain_constraints",
        "constraint_catalog constraint_schema constraint_name domain_catalog domain_schema "
        "domain_name is_deferrable initially_deferred",
        no_rows,
    ),
    (
        47,
        "foreign_tables",
        "foreign_table_catalog foreign_table_schema foreign_table_name foreign_server_catalog "
        "foreign_server_name",
        no_rows,
    ),
)
"""Numbers, names, columns (a star behind those that are numbers), and where rows come from."""
