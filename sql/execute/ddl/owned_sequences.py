"""Sequences that go with what owns them."""

from __future__ import annotations

from dataclasses import replace

from ....catalog.descriptors.descriptor import Column, DescriptorState, TableDescriptor
from ....catalog.descriptors.named_objects import SequenceDescriptor
from ....catalog.descriptors.system_tables import DESCRIPTOR
from ....catalog.store.descriptor_store import decode_stored
from ....kvlayer.access import Transaction
from ....kvlayer.clock import ZERO
from ...runtime.services import Services

DISOWNED = 0
"""The column of a sequence that is to go when its table's schema change is done: no column has
this id."""


async def drop_sequence(
    services: Services, transaction: Transaction, found: SequenceDescriptor
) -> None:
    """Drops a sequence and its stored value. Does not commit."""
    descriptors = services.catalog.descriptors
    version = descriptors.next_version(transaction, found)
    dropped = replace(found, state=DescriptorState.DROPPED, version=version)
    await descriptors.publish(transaction, dropped)
    await transaction.delete([found.key])


async def owned_by(transaction: Transaction, table_id: int) -> list[SequenceDescriptor]:
    """The sequences that a table's columns own."""
    return [
        found
        for found in await _sequences(transaction)
        if found.owner is not None and found.owner[0] == table_id
    ]


async def drop_owned(services: Services, transaction: Transaction, table_id: int) -> None:
    """Drops the sequences that go with a table."""
    for found in await owned_by(transaction, table_id):
        await drop_sequence(services, transaction, found)


def draws_from(column: Column, sequence: SequenceDescriptor) -> bool:
    """Whether a column's default names the sequence, whatever the schema."""
    text = (column.default_expression or "").lower()
    return "nextval" in text and sequence.name.lower() in _named_in(text)


def _named_in(text: str) -> list[str]:
    """The last parts of the names in an expression's text literals."""
    return [literal.split(".")[-1].strip('"') for literal in text.split("'")[1::2]]


async def settle_owned(services: Services, transaction: Transaction) -> None:
    """Drops the sequences whose columns are gone, or draw from them no longer.

    A column whose type was changed is another one that draws from the same sequence, and owns it.
    """
    descriptors = services.catalog.descriptors
    for found in await _sequences(transaction):
        if found.owner is None:
            continue
        table_id, column_id = found.owner
        table = await descriptors.read(transaction, table_id)
        assert isinstance(table, TableDescriptor), (found, table)
        if table.schema_change_job is not None or any(c.id == column_id for c in table.columns):
            continue
        heir = next((column for column in table.columns if draws_from(column, found)), None)
        if heir is None:
            await drop_sequence(services, transaction, found)
        else:
            version = descriptors.next_version(transaction, found)
            owned = replace(found, owner=(table_id, heir.id), version=version)
            await descriptors.publish(transaction, owned)


async def _sequences(transaction: Transaction) -> list[SequenceDescriptor]:
    rows = await transaction.scan(DESCRIPTOR.primary_span)
    found = [decode_stored(key, body, ZERO) for key, body in rows]
    return [one for one in found if isinstance(one, SequenceDescriptor) and not one.dropped]
