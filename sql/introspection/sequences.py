"""The sequences of the session's database, as introspection describes them."""

from __future__ import annotations

from collections.abc import Sequence

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.descriptors.named_objects import SequenceDescriptor
from ...catalog.descriptors.sequence_value import decode_value
from ...catalog.rights.privileges import Privilege, securable
from ...catalog.rights.rights import read_rights
from ...catalog.rights.users import ROOT
from ..results.results import Row
from .virtual_table import INFORMATION_SCHEMA, PG_CATALOG, TAILRACE_INTERNAL, IntrospectionContext

_INT8_OID = 20


async def described_sequences(
    context: IntrospectionContext,
) -> list[tuple[str, SequenceDescriptor]]:
    """With the names of their schemas, by schema and name."""
    catalog = context.services.catalog
    return await catalog.list_objects(context.reader, context.database, SequenceDescriptor)


@PG_CATALOG.table("""pg_sequence 33
    seqrelid:o seqtypid:o seqstart:i seqincrement:i seqmax:i seqmin:i seqcache:i seqcycle:b""")
async def sequence_rows(context: IntrospectionContext) -> Sequence[Row]:
    return [
        (
            found.id, _INT8_OID, found.options.start, found.options.increment,
            found.options.maximum, found.options.minimum, found.options.cache, found.options.cycle,
        )
        for _, found in await described_sequences(context)
    ]  # fmt: skip


@INFORMATION_SCHEMA.table("""sequences 8
    sequence_catalog sequence_schema sequence_name data_type numeric_precision:i
    numeric_precision_radix:i numeric_scale:i start_value minimum_value maximum_value increment
    cycle_option""")
async def schema_sequence_rows(context: IntrospectionContext) -> Sequence[Row]:
    """information_schema.sequences: identity columns have theirs within."""
    identities = await identity_columns(context)
    return [
        (
            context.database, schema, found.name, "bigint", 64, 2, 0, f"{found.options.start}",
            f"{found.options.minimum}", f"{found.options.maximum}", f"{found.options.increment}",
            "YES" if found.options.cycle else "NO",
        )
        for schema, found in await described_sequences(context)
        if found.owner not in identities
    ]  # fmt: skip


async def identity_columns(context: IntrospectionContext) -> set[tuple[int, int]]:
    """The identity columns that own sequences, each with its table."""
    found: set[tuple[int, int]] = set()
    owners = {s.owner[0] for _, s in await described_sequences(context) if s.owner is not None}
    for table_id in owners:
        table = await context.services.catalog.descriptors.read(context.reader, table_id)
        if isinstance(table, TableDescriptor):
            found |= {(table_id, c.id) for c in table.columns if c.identity is not None}
    return found


@TAILRACE_INTERNAL.table("sequences 7 oid:i last_value:i is_called:b")
async def sequence_value_rows(context: IntrospectionContext) -> Sequence[Row]:
    """Rows of a sequence read as a relation, for users with a right on it. A sequence without
    draws has its start value."""
    rights = await read_rights(context.reader)
    rows: list[Row] = []
    for _, found in await described_sequences(context):
        if context.user == ROOT or rights.held(context.user, securable(found)) & _READING:
            body = await context.reader.get(found.key)
            value = (found.options.start, False) if body is None else decode_value(body)
            rows.append((found.id, *value))
    return rows


_READING = Privilege.USAGE | Privilege.SELECT


@PG_CATALOG.table("""pg_sequences 42
    schemaname sequencename sequenceowner data_type start_value:i min_value:i max_value:i
    increment_by:i cycle:b cache_size:i last_value:i""")
async def sequence_state_rows(context: IntrospectionContext) -> Sequence[Row]:
    """pg_sequences. A sequence that has handed out nothing yet has no last value."""
    rights = await read_rights(context.reader)
    rows: list[Row] = []
    for schema, found in await described_sequences(context):
        options, body = found.options, await context.reader.get(found.key)
        last, called = (None, False) if body is None else decode_value(body)
        rows.append(
            (
                schema, found.name, rights.owner(found.id), "bigint", options.start,
                options.minimum, options.maximum, options.increment, options.cycle, options.cache,
                last if called else None,
            )
        )  # fmt: skip
    return rows
