"""Rows of pg_views, of pg_rewrite, which is how PostgreSQL keeps them, and of pg_depend."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ....catalog.rights.rights import read_rights
from ....catalog.rights.users import ROOT
from ...analyze.calls.oids import (
    PG_ATTRDEF,
    PG_CATALOG,
    PG_CLASS,
    PG_EXTENSION,
    PG_NAMESPACE,
    PG_REWRITE,
    derived,
    user_oid,
)
from ...results.results import Row
from ...runtime.introspection_context import IntrospectionContext
from ..described import described_relations, described_tables, described_views
from ..sequences import described_sequences, identity_columns
from .namespaces import schema_oid, virtual_relation_oid
from .relations import default_oid

_NORMAL, _INTERNAL, _AUTO, _MEMBER = "n", "i", "a", "e"
"""pg_depend.deptype: held back by what it refers to, a part of it, dropped with it, and a part of
an extension."""

OWN_SCHEMA = "tailrace_internal"
OWN_EXTENSION = 16_000
"""The extension's oid: below 16,384 an extension is PostgreSQL's own."""


def rule_oid(view_id: int) -> int:
    """Returns the oid of the rewrite rule of a view."""
    return derived("rule", view_id)


async def view_rows(context: IntrospectionContext) -> Sequence[Row]:
    """pg_views."""
    rights = await read_rights(context.reader)
    return [
        (found.schema, found.table.name, rights.owner(found.table.id), text)
        for found, text in await described_views(context)
    ]


async def rule_rows(context: IntrospectionContext) -> Sequence[Row]:
    """pg_rewrite: a view is a rule that says what to read in its place."""
    return [
        (rule_oid(found.table.id), "_RETURN", found.table.id, "1", "O", True, None, text)
        for found, text in await described_views(context)
    ]


async def dependency_rows(context: IntrospectionContext) -> Sequence[Row]:
    """pg_depend: what views read, the sequences that columns own, and what is built in."""
    rows: list[Row] = []
    for found in await described_relations(context):
        view = found.table.view
        if view is None:
            continue
        rule = rule_oid(found.table.id)
        rows.append((PG_REWRITE, rule, 0, PG_CLASS, found.table.id, 0, _INTERNAL))
        for read in view.reads:
            for column in read.columns or (0,):
                rows.append((PG_REWRITE, rule, 0, PG_CLASS, read.table_id, column, _NORMAL))
    identities = await identity_columns(context)
    for _, sequence in await described_sequences(context):
        if sequence.owner is not None:
            kind = _INTERNAL if sequence.owner in identities else _AUTO
            rows.append((PG_CLASS, sequence.id, 0, PG_CLASS, *sequence.owner, kind))
    rows += await _drawn_defaults(context)
    rows.append(_member(PG_NAMESPACE, schema_oid(OWN_SCHEMA)))
    for table in context.services.virtual_tables:
        if table.schema == OWN_SCHEMA:
            rows.append(_member(PG_CLASS, virtual_relation_oid(table)))
    return rows


async def _drawn_defaults(context: IntrospectionContext) -> list[Row]:
    """Rows of pg_depend for sequences that defaults draw from, so that a dump has the sequence
    before the table."""
    ids = {}
    for schema, sequence in await described_sequences(context):
        ids[f"{schema}.{sequence.name}"] = sequence.id
        if schema == "public":
            ids[sequence.name] = sequence.id
    return [
        (PG_ATTRDEF, default_oid(found.table, number), 0, PG_CLASS, ids[name], 0, _NORMAL)
        for found in await described_tables(context)
        for number, column in found.columns
        for name in _NEXTVAL.findall(column.default_expression or "")
        if name in ids
    ]


_NEXTVAL = re.compile(r"nextval\('([^']+)'", re.IGNORECASE)


async def extension_rows(context: IntrospectionContext) -> Sequence[Row]:
    """pg_extension: `tailrace_internal` is one that is built in, so no dump has it."""
    return [(OWN_EXTENSION, "tailrace", user_oid(ROOT), PG_CATALOG, False, "1", None, None)]


def _member(of: int, oid: int) -> Row:
    return (of, oid, 0, PG_EXTENSION, OWN_EXTENSION, 0, _MEMBER)
