"""The schema `information_schema`, of SQL's standard: tables, columns, keys."""

from __future__ import annotations

from ...catalog.rights.privileges import securable
from ...catalog.rights.rights import read_rights
from ...catalog.rights.users import ROOT
from ...catalog.values.column_types import ColumnType
from ...catalog.values.type_kinds import TypeKind
from . import described
from .type_rows import standard_words, udt_name, user_types
from .virtual_table import INFORMATION_SCHEMA, IntrospectionContext, Rows, virtual_tables

_BITS = {"INT2": 16, "INT4": 32, "INT8": 64, "FLOAT4": 24, "FLOAT8": 53}
_BYTES_OF_CHARACTER = 4
_OCTETS_MAX = 1 << 30
"""The octet length that PostgreSQL shows for texts without a limit."""
_TIMES = (TypeKind.TIME, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ, TypeKind.INTERVAL)
_UNLIMITED = (TypeKind.STRING, TypeKind.VARCHAR)


def _lengths(type: ColumnType) -> tuple[int | None, int | None]:
    """In characters and in bytes."""
    if type.width is not None:
        return type.width, type.width * _BYTES_OF_CHARACTER
    return None, _OCTETS_MAX if type.kind in _UNLIMITED else None


def _numbers(type: ColumnType) -> tuple[int | None, int | None, int | None]:
    """Precision, what it counts in, and scale."""
    if type.kind is TypeKind.DECIMAL:
        precision, scale = type.decimal
        return precision, 10, scale
    bits = _BITS.get(type.kind.value)
    if bits is None:
        return None, None, None
    return bits, 2, 0 if type.kind.value.startswith("INT") else None


def _time_precision(type: ColumnType) -> int | None:
    if type.precision is not None and type.kind in _TIMES:
        return type.precision
    return 0 if type.kind is TypeKind.DATE else 6 if type.kind in _TIMES else None


_KINDS = {"p": "PRIMARY KEY", "u": "UNIQUE", "c": "CHECK", "f": "FOREIGN KEY"}


async def _visible_tables(context: IntrospectionContext) -> list[described.DescribedTable]:
    """Tables and views that the user has any privilege on, as the standard has it; pg_catalog hides
    none."""
    tables = await described.relations(context)
    if context.user == ROOT:
        return tables
    rights = await read_rights(context.reader)
    return [found for found in tables if rights.held(context.user, securable(found.table))]


@INFORMATION_SCHEMA.table("""schemata 1
    catalog_name schema_name schema_owner default_character_set_catalog
    default_character_set_schema default_character_set_name sql_path""")
async def _schemata(context: IntrospectionContext) -> Rows:
    catalog, reader = context.services.catalog, context.reader
    stored = await catalog.list_schemas(reader, context.database)
    virtual = {table.schema for table in virtual_tables()}
    rights = await read_rights(context.reader)
    for name in [*stored, *sorted(virtual)]:
        owner = ROOT
        if name not in virtual:
            parents = await catalog.descriptors.resolve_schema(reader, context.database, name)
            owner = rights.owner(parents[1])
        yield (context.database, name, owner, None, None, None, None)


@INFORMATION_SCHEMA.table("""tables 2
    table_catalog table_schema table_name table_type self_referencing_column_name
    reference_generation user_defined_type_catalog user_defined_type_schema
    user_defined_type_name is_insertable_into is_typed commit_action""")
async def _tables(context: IntrospectionContext) -> Rows:
    known = [
        (found.schema, found.table.name, "BASE TABLE" if found.table.view is None else "VIEW")
        for found in await _visible_tables(context)
    ]
    virtual = virtual_tables()
    for schema, name, kind in (*known, *((of.schema, of.name, "SYSTEM VIEW") for of in virtual)):
        insertable = _yes(kind == "BASE TABLE")
        yield (context.database, schema, name, kind, *[None] * 5, insertable, "NO", None)


@INFORMATION_SCHEMA.table("""columns 3
    table_catalog table_schema table_name column_name ordinal_position:i column_default
    is_nullable data_type character_maximum_length:i character_octet_length:i
    numeric_precision:i numeric_precision_radix:i numeric_scale:i datetime_precision:i
    interval_type interval_precision:i character_set_catalog character_set_schema
    character_set_name collation_catalog collation_schema collation_name domain_catalog
    domain_schema domain_name udt_catalog udt_schema udt_name scope_catalog scope_schema
    scope_name maximum_cardinality:i dtd_identifier is_self_referencing is_identity
    identity_generation identity_start identity_increment identity_maximum identity_minimum
    identity_cycle is_generated generation_expression is_updatable is_hidden""")
async def _columns(context: IntrospectionContext) -> Rows:
    """The columns that are shown. `is_hidden` is CockroachDB's, and Prisma asks for it."""
    database, schemas = context.database, dict[int, str]()
    for enum in await user_types(context):
        schema = await context.services.catalog.descriptors.read(context.reader, enum.schema_id)
        assert schema is not None, enum
        schemas[enum.id] = schema.name
    for found in await _visible_tables(context):
        for place, column in enumerate(found.table.shown_columns, start=1):
            type, computed, identity = column.type, column.computed, column.identity
            own = (type.element or type).enum
            yield (
                database, found.schema, found.table.name, column.name, place,
                described.default_text(column) if computed is None else None,
                _yes(column.nullable), standard_words(type), *_lengths(type), *_numbers(type),
                _time_precision(type), *[None] * 11, database,
                "pg_catalog" if own is None else schemas.get(own.id, "pg_catalog"),
                udt_name(type), *[None] * 4, str(place), "NO", _yes(identity is not None),
                None if identity is None else identity.value, *[None] * 4, "NO",
                "ALWAYS" if computed is not None else "NEVER", computed,
                _yes(computed is None and found.table.view is None), "NO",
            )  # fmt: skip


@INFORMATION_SCHEMA.table("""views 4
    table_catalog table_schema table_name view_definition check_option is_updatable
    is_insertable_into is_trigger_updatable is_trigger_deletable is_trigger_insertable_into""")
async def _views(context: IntrospectionContext) -> Rows:
    """A query is shown to the view's owner and to admins, as PostgreSQL does."""
    rights = await read_rights(context.reader)
    visible = {found.table.id for found in await _visible_tables(context)}
    for found, text in await described.views(context):
        if found.table.id in visible:
            shown = text if rights.owns(context.user, found.table.id) else None
            yield (context.database, found.schema, found.table.name, shown, "NONE", *["NO"] * 5)


@INFORMATION_SCHEMA.table("""table_constraints 5
    constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name
    constraint_type is_deferrable initially_deferred""")
async def _constraints(context: IntrospectionContext) -> Rows:
    for found in await _visible_tables(context):
        for constraint in found.constraints:
            yield (
                context.database, found.schema, constraint.name, context.database, found.schema,
                found.table.name, _KINDS[constraint.kind],
                _yes(constraint.key is not None and constraint.key.deferrable),
                _yes(constraint.key is not None and constraint.key.initially_deferred),
            )  # fmt: skip


def _yes(whether: bool) -> str:
    return "YES" if whether else "NO"


@INFORMATION_SCHEMA.table("""key_column_usage 6
    constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name
    column_name ordinal_position:i position_in_unique_constraint:i""")
async def _key_columns(context: IntrospectionContext) -> Rows:
    for found in await _visible_tables(context):
        for constraint in found.constraints:
            if constraint.kind != "c":
                for place, column_id in enumerate(constraint.columns, start=1):
                    yield (
                        context.database, found.schema, constraint.name, context.database,
                        found.schema, found.table.name, found.table.column_by_id(column_id).name,
                        place, place if constraint.kind == "f" else None,
                    )  # fmt: skip


@INFORMATION_SCHEMA.table("""referential_constraints 7
    constraint_catalog constraint_schema constraint_name unique_constraint_catalog
    unique_constraint_schema unique_constraint_name match_option update_rule delete_rule""")
async def _references(context: IntrospectionContext) -> Rows:
    for found in await _visible_tables(context):
        for key in found.table.foreign_keys:
            other = found.all_tables[key.referenced_id]
            unique = other.referenced_index(key).name
            yield (
                context.database, found.schema, key.name, context.database, other.schema,
                unique, "NONE", key.on_update.value, key.on_delete.value,
            )  # fmt: skip


@INFORMATION_SCHEMA.table("""constraint_column_usage 33
    table_catalog table_schema table_name column_name constraint_catalog constraint_schema
    constraint_name""")
async def _constraint_columns(context: IntrospectionContext) -> Rows:
    """The columns that a constraint needs: of a foreign key those that it refers to."""
    for found in await described.relations(context):
        for constraint in found.constraints:
            key = constraint.key
            used = found if key is None else found.all_tables[key.referenced_id]
            columns = constraint.columns if key is None else key.referenced_columns
            for column in columns:
                yield (
                    context.database, used.schema, used.table.name,
                    used.table.column_by_id(column).name, context.database, found.schema,
                    constraint.name,
                )  # fmt: skip


@INFORMATION_SCHEMA.table("""sequences 8
    sequence_catalog sequence_schema sequence_name data_type numeric_precision:i
    numeric_precision_radix:i numeric_scale:i start_value minimum_value maximum_value increment
    cycle_option""")
async def schema_sequence_rows(context: IntrospectionContext) -> Rows:
    """Rows of information_schema.sequences: identity columns have theirs within."""
    identities = await described.identity_columns(context)
    for schema, found in await described.sequences(context):
        if found.owner not in identities:
            yield (
                context.database, schema, found.name, "bigint", 64, 2, 0, f"{found.options.start}",
                f"{found.options.minimum}", f"{found.options.maximum}",
                f"{found.options.increment}", _yes(found.options.cycle),
            )  # fmt: skip
