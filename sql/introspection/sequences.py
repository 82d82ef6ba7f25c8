"""The sequences of the session's database, as introspection describes them."""

from __future__ import annotations

from collections.abc import Sequence

from ...catalog.named_objects import SequenceDescriptor
from ..results import Row
from .context import IntrospectionContext

_INT8_OID = 20


async def described_sequences(
    context: IntrospectionContext,
) -> list[tuple[str, SequenceDescriptor]]:
    """With the names of their schemas, by schema and name."""
    descriptors, reader = context.services.catalog.descriptors, context.reader
    database_id = await descriptors.lookup(reader, 0, 0, context.database)
    assert database_id is not None, context.database
    found: list[tuple[str, SequenceDescriptor]] = []
    for schema, schema_id in await descriptors.children(reader, database_id, 0):
        for _, id in await descriptors.children(reader, database_id, schema_id):
            descriptor = await descriptors.read(reader, id)
            if isinstance(descriptor, SequenceDescriptor):
                found.append((schema, descriptor))
    return found


async def sequence_rows(context: IntrospectionContext) -> Sequence[Row]:
    """pg_sequence."""
    return [
        (
            found.id, _INT8_OID, found.options.start, found.options.increment,
            found.options.maximum, found.options.minimum, found.options.cache, found.options.cycle,
        )
        for _, found in await described_sequences(context)
    ]  # fmt: skip


async def schema_sequence_rows(context: IntrospectionContext) -> Sequence[Row]:
    """information_schema.sequences."""
    return [
        (
            context.database, schema, found.name, "bigint", 64, 2, 0, f"{found.options.start}",
            f"{found.options.minimum}", f"{found.options.maximum}", f"{found.options.increment}",
            "YES" if found.options.cycle else "NO",
        )
        for schema, found in await described_sequences(context)
    ]  # fmt: skip
