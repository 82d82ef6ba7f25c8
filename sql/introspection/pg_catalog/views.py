"""Rows of pg_views, of pg_rewrite, which is how PostgreSQL keeps them, and of pg_depend."""

from __future__ import annotations

from collections.abc import Sequence

from ....catalog.rights.rights import read_rights
from ...analyze.calls.oids import PG_CLASS, PG_REWRITE, derived
from ...results.results import Row
from ...runtime.introspection_context import IntrospectionContext
from ..described import described_relations, described_views
from ..sequences import described_sequences

_NORMAL, _INTERNAL, _AUTO = "n", "i", "a"
"""pg_depend.deptype: held back by what it refers to, a part of it, and dropped with it."""


def rule_oid(view_id: int) -> int:
    """Of the rule that a view is."""
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
    """pg_depend: what views read, and the sequences that columns own."""
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
    for _, sequence in await described_sequences(context):
        if sequence.owner is not None:
            table_id, column_id = sequence.owner
            rows.append((PG_CLASS, sequence.id, 0, PG_CLASS, table_id, column_id, _AUTO))
    return rows
