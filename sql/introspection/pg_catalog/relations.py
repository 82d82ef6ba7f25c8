"""Rows of pg_class, pg_attribute, pg_attrdef, pg_index, pg_constraint and pg_description, of
pg_views and pg_rewrite, which is how PostgreSQL keeps views, and of pg_depend."""

from __future__ import annotations

import re

from ....catalog.descriptors.descriptor import Column
from ....catalog.descriptors.elements import Identity
from ....catalog.descriptors.sequence_value import decode_value
from ....catalog.rights.privileges import securable
from ....catalog.rights.rights import read_rights
from ....catalog.rights.users import ROOT
from ....catalog.values.column_types import ColumnType
from ....catalog.values.type_kinds import TypeKind
from ...analyze.calls import oids
from ...results.client_types import row_of, type_modifier, type_oid
from ...results.results import Row
from .. import described
from ..rights import acl
from ..virtual_table import (
    PG_CATALOG,
    TAILRACE_INTERNAL,
    IntrospectionContext,
    Rows,
    virtual_tables,
)
from .namespaces import namespace_rows, schema_oid, virtual_relation_oid

_INT8_OID = 20
_OWNER = oids.user_oid("root")
_ACTIONS = {"NO ACTION": "a", "RESTRICT": "r", "CASCADE": "c", "SET NULL": "n"}


@PG_CATALOG.table("""pg_class 2
    oid:o relname relnamespace:o reltype:o reloftype:o relowner:o relam:o relfilenode:o
    reltablespace:o relpages:i reltuples:f relallvisible:i reltoastrelid:o relhasindex:b
    relisshared:b relpersistence:c relkind:c relnatts:i relchecks:i relhasrules:b
    relhastriggers:b relhassubclass:b relrowsecurity:b relforcerowsecurity:b relispopulated:b
    relreplident:c relispartition:b relacl:S reloptions:S relpartbound relfrozenxid:i
    relminmxid:i""")
async def class_rows(context: IntrospectionContext) -> Rows:
    """Rows of pg_class: tables, views, sequences and indexes that the user sees."""
    rights = await read_rights(context.reader)
    for found in await described.relations(context):
        table, namespace = found.table, found.table.schema_id
        yield _class(
            table.id,
            table.name,
            namespace,
            "r" if table.view is None else "v",
            len(table.shown_columns),
            checks=sum(constraint.kind == "c" for constraint in found.constraints),
            options=[f"{name}={value}" for name, value in table.parameters.items()] or None,
            rules=table.view is not None,
            # PostgreSQL enforces foreign keys by triggers, and psql looks for them only then.
            triggers=bool(table.foreign_keys or table.referenced_by),
            owner=oids.user_oid(rights.owner(table.id)),
            acl=acl(rights, securable(table)),
        )
        for index in found.indexes:
            oid = oids.index_oid(table.id, index.id)
            yield _class(oid, index.name, namespace, "i", len(index.columns) + len(index.storing))
    for _, sequence in await described.sequences(context):
        yield _class(
            sequence.id, sequence.name, sequence.schema_id, "S", 3,
            owner=oids.user_oid(rights.owner(sequence.id)), acl=acl(rights, securable(sequence)),
        )  # fmt: skip
    for virtual in virtual_tables():
        oid, namespace = virtual_relation_oid(virtual), schema_oid(virtual.schema)
        yield _class(oid, virtual.name, namespace, "v", len(virtual.columns))


_METHODS = {"r": oids.HEAP, "i": oids.BTREE}


def _class(
    oid: int,
    name: str,
    namespace: int,
    kind: str,
    width: int,
    *,
    checks: int = 0,
    options: list[str] | None = None,
    rules: bool = False,
    triggers: bool = False,
    owner: int = _OWNER,
    acl: list[str] | None = None,
) -> Row:
    table, method = kind == "r", _METHODS.get(kind, 0)
    # Prisma reads the columns of what has a type of rows, and does not look for it in pg_type.
    rows = oid if kind in "rv" else 0
    return (
        oid, name, namespace, rows, 0, owner, method, oid if method else 0, 0, 0, -1.0, 0, 0, table,
        False, "p", kind, width, checks, rules, triggers, False, False, False, True,
        "d" if table else "n", False, acl, options, None, 0, 0,
    )  # fmt: skip


_IDENTITIES = {None: "", Identity.ALWAYS: "a", Identity.BY_DEFAULT: "d"}


@PG_CATALOG.table("""pg_attribute 3
    attrelid:o attname:N atttypid:o attstattarget:i attlen:i attnum:i attndims:i attcacheoff:i
    atttypmod:i attbyval:b attstorage:c attalign:c attcompression:c attnotnull:b atthasdef:b
    atthasmissing:b attidentity:c attgenerated:c attisdropped:b attislocal:b attinhcount:i
    attcollation:o attacl:S attoptions:S attmissingval attfdwoptions:S""")
async def attribute_rows(context: IntrospectionContext) -> Rows:
    """Rows of pg_attribute: the columns of every relation of pg_class."""
    for found in await described.relations(context):
        table = found.table
        for column in table.shown_columns:
            default = described.default_text(column) is not None
            generated = "s" if column.computed is not None else ""
            yield _attribute(
                table.id, column.name, column.type, column.id,
                required=not column.nullable, default=default, generated=generated,
                identity=_IDENTITIES[column.identity],
            )  # fmt: skip
        for index in found.indexes:
            oid = oids.index_oid(table.id, index.id)
            for place, column_id in enumerate((*index.columns, *index.storing), start=1):
                column = table.column_by_id(column_id)
                yield _attribute(oid, column.name, column.type, place)
    for virtual in virtual_tables():
        oid = virtual_relation_oid(virtual)
        for place, (name, type) in enumerate(virtual.columns.items(), start=1):
            yield _attribute(oid, name, type, place)


def _attribute(
    relation: int,
    name: str,
    type: ColumnType,
    number: int,
    *,
    required: bool = False,
    default: bool = False,
    generated: str = "",
    identity: str = "",
) -> Row:
    known = None if type.element is not None else row_of(type)
    size = -1 if known is None else known.size
    collation = 100 if known is not None and known.category == "S" else 0
    storage = "m" if type.kind is TypeKind.DECIMAL else "x" if size == -1 else "p"
    return (
        relation, name, type_oid(type), -1, size, number, 0 if type.element is None else 1, -1,
        type_modifier(type), size in (1, 2, 4, 8), storage, "i", "", required,
        default, False, identity, generated, False, True, 0, collation, None, None,
        None, None,
    )  # fmt: skip


def default_oid(found: described.DescribedTable, column: Column) -> int:
    """Returns the oid of a column's default in pg_attrdef."""
    return oids.derived("default", found.table.id, column.id)


@PG_CATALOG.table("pg_attrdef 4 oid:o adrelid:o adnum:i adbin")
async def default_rows(context: IntrospectionContext) -> Rows:
    """Rows of pg_attrdef, one for each column with a default or a computed expression."""
    for found in await described.tables(context):
        for column in found.table.shown_columns:
            text = described.default_text(column)
            if text is not None:
                yield (default_oid(found, column), found.table.id, column.id, text)


@PG_CATALOG.table("""pg_index 6
    indexrelid:o indrelid:o indnatts:i indnkeyatts:i indisunique:b indnullsnotdistinct:b
    indisprimary:b indisexclusion:b indimmediate:b indisclustered:b indisvalid:b indcheckxmin:b
    indisready:b indislive:b indisreplident:b indkey:v indcollation:V indclass:V indoption:v
    indexprs indpred""")
async def index_rows(context: IntrospectionContext) -> Rows:
    """Rows of pg_index, one for each index of a table."""
    for found in await described.tables(context):
        table = found.table
        for index in found.indexes:
            key = [*index.columns, *index.storing]
            count = len(index.columns)
            primary = index.id == table.primary_index_id
            yield (
                oids.index_oid(table.id, index.id), table.id, len(key), count, index.unique, False,
                primary, False, True, False, True, False, True, True, False, key, [0] * count,
                [0] * count, [0] * count, None, None,
            )  # fmt: skip


@PG_CATALOG.table("""pg_constraint 7
    oid:o conname connamespace:o contype:c condeferrable:b condeferred:b convalidated:b
    conrelid:o contypid:o conindid:o conparentid:o confrelid:o confupdtype:c confdeltype:c
    confmatchtype:c conislocal:b coninhcount:i connoinherit:b conkey:I confkey:I conpfeqop:O
    conppeqop:O conffeqop:O confdelsetcols:I conexclop:O conbin""")
async def constraint_rows(context: IntrospectionContext) -> Rows:
    """Rows of pg_constraint: keys, foreign keys, checks and unique constraints."""
    for found in await described.tables(context):
        table = found.table
        for constraint in found.constraints:
            index = 0 if constraint.index is None else oids.index_oid(table.id, constraint.index.id)
            other, other_columns, update, delete, match = 0, None, "", "", ""
            deferrable = deferred = False
            if constraint.key is not None:
                key = constraint.key
                other, other_columns, match = key.referenced_id, list(key.referenced_columns), "s"
                deferrable, deferred = key.deferrable, key.initially_deferred
                update, delete = _ACTIONS[key.on_update.value], _ACTIONS[key.on_delete.value]
                index = oids.index_oid(other, found.all_tables[other].referenced_index(key).id)
            yield (
                oids.constraint_oid(table.id, constraint.name), constraint.name, table.schema_id,
                constraint.kind, deferrable, deferred, constraint.validated, table.id, 0, index, 0,
                other, update, delete, match, True, 0, True, list(constraint.columns),
                other_columns, None, None, None, None, None,
                None if constraint.check is None else constraint.check.expression,
            )  # fmt: skip


@PG_CATALOG.table("pg_description 14 objoid:o classoid:o objsubid:i description")
async def description_rows(context: IntrospectionContext) -> Rows:
    """Comments, and what PostgreSQL says of `public`: a dump leaves that out."""
    async for row in namespace_rows(context):
        if row[1] == "public":
            yield (row[0], oids.PG_NAMESPACE, 0, "standard public schema")
    for found in await described.relations(context):
        if found.table.comment is not None:
            yield (found.table.id, oids.PG_CLASS, 0, found.table.comment)
        for column in found.table.shown_columns:
            if column.comment is not None:
                yield (found.table.id, oids.PG_CLASS, column.id, column.comment)


@TAILRACE_INTERNAL.table("definitions 5 oid:i class_oid:i definition")
async def definition_rows(context: IntrospectionContext) -> Rows:
    """Indexes and constraints as the statements that would make them."""
    for found in await described.tables(context):
        for index in found.indexes:
            oid = oids.index_oid(found.table.id, index.id)
            yield (oid, oids.PG_CLASS, found.index_definition(index))
        for constraint in found.constraints:
            oid = oids.constraint_oid(found.table.id, constraint.name)
            yield (oid, oids.PG_CONSTRAINT, found.constraint_definition(constraint))


_NORMAL, _INTERNAL, _AUTO, _MEMBER = "n", "i", "a", "e"
"""pg_depend.deptype: held back by what it refers to, a part of it, dropped with it, and a part of
an extension."""

OWN_SCHEMA = "tailrace_internal"
OWN_EXTENSION = 16_000
"""The extension's oid: below 16,384 an extension is PostgreSQL's own."""


def rule_oid(view_id: int) -> int:
    """Returns the oid of the rewrite rule of a view."""
    return oids.derived("rule", view_id)


@PG_CATALOG.table("pg_views 21 schemaname viewname viewowner definition")
async def view_rows(context: IntrospectionContext) -> Rows:
    rights = await read_rights(context.reader)
    for found, text in await described.views(context):
        yield (found.schema, found.table.name, rights.owner(found.table.id), text)


@PG_CATALOG.table("""pg_rewrite 36
    oid:o rulename ev_class:o ev_type:c ev_enabled:c is_instead:b ev_qual ev_action""")
async def rule_rows(context: IntrospectionContext) -> Rows:
    """Rows of pg_rewrite: a view is a rule that says what to read in its place."""
    for found, text in await described.views(context):
        yield (rule_oid(found.table.id), "_RETURN", found.table.id, "1", "O", True, None, text)


@PG_CATALOG.table("""pg_depend 37
    classid:o objid:o objsubid:i refclassid:o refobjid:o refobjsubid:i deptype:c""")
async def dependency_rows(context: IntrospectionContext) -> Rows:
    """Rows of pg_depend: what views read, the sequences that columns own, and what is built in."""
    for found in await described.relations(context):
        view = found.table.view
        if view is None:
            continue
        rule = rule_oid(found.table.id)
        yield (oids.PG_REWRITE, rule, 0, oids.PG_CLASS, found.table.id, 0, _INTERNAL)
        for read in view.reads:
            for column in read.columns or (0,):
                yield (oids.PG_REWRITE, rule, 0, oids.PG_CLASS, read.table_id, column, _NORMAL)
    identities = await described.identity_columns(context)
    for _, sequence in await described.sequences(context):
        if sequence.owner is not None:
            kind = _INTERNAL if sequence.owner in identities else _AUTO
            yield (oids.PG_CLASS, sequence.id, 0, oids.PG_CLASS, *sequence.owner, kind)
    for row in await _drawn_defaults(context):
        yield row
    yield _member(oids.PG_NAMESPACE, schema_oid(OWN_SCHEMA))
    for table in virtual_tables():
        if table.schema == OWN_SCHEMA:
            yield _member(oids.PG_CLASS, virtual_relation_oid(table))


async def _drawn_defaults(context: IntrospectionContext) -> list[Row]:
    """Rows of pg_depend for sequences that defaults draw from, so that a dump has the sequence
    before the table."""
    ids = {}
    for schema, sequence in await described.sequences(context):
        ids[f"{schema}.{sequence.name}"] = sequence.id
        if schema == "public":
            ids[sequence.name] = sequence.id
    return [
        (oids.PG_ATTRDEF, default_oid(found, column), 0, oids.PG_CLASS, ids[name], 0, _NORMAL)
        for found in await described.tables(context)
        for column in found.table.shown_columns
        for name in _NEXTVAL.findall(column.default_expression or "")
        if name in ids
    ]


_NEXTVAL = re.compile(r"nextval\('([^']+)'", re.IGNORECASE)


@PG_CATALOG.table("""pg_extension 34
    oid:o extname extowner:o extnamespace:o extrelocatable:b extversion extconfig:O
    extcondition:S""")
async def extension_rows(context: IntrospectionContext) -> Rows:
    """Rows of pg_extension: `tailrace_internal` is one that is built in, so no dump has it."""
    yield (OWN_EXTENSION, "tailrace", oids.user_oid(ROOT), oids.PG_CATALOG, False, "1", None, None)


def _member(of: int, oid: int) -> Row:
    return (of, oid, 0, oids.PG_EXTENSION, OWN_EXTENSION, 0, _MEMBER)


@PG_CATALOG.table("""pg_sequence 33
    seqrelid:o seqtypid:o seqstart:i seqincrement:i seqmax:i seqmin:i seqcache:i seqcycle:b""")
async def sequence_rows(context: IntrospectionContext) -> Rows:
    for _, found in await described.sequences(context):
        yield (
            found.id, _INT8_OID, found.options.start, found.options.increment,
            found.options.maximum, found.options.minimum, found.options.cache, found.options.cycle,
        )  # fmt: skip


@PG_CATALOG.table("""pg_sequences 42
    schemaname sequencename sequenceowner data_type start_value:i min_value:i max_value:i
    increment_by:i cycle:b cache_size:i last_value:i""")
async def sequence_state_rows(context: IntrospectionContext) -> Rows:
    """Rows of pg_sequences. A sequence that has handed out nothing yet has no last value."""
    rights = await read_rights(context.reader)
    for schema, found in await described.sequences(context):
        options, body = found.options, await context.reader.get(found.key)
        last, called = (None, False) if body is None else decode_value(body)
        yield (
            schema, found.name, rights.owner(found.id), "bigint", options.start,
            options.minimum, options.maximum, options.increment, options.cycle, options.cache,
            last if called else None,
        )  # fmt: skip
