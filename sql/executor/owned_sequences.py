"""Sequences that go with what owns them."""

from __future__ import annotations

from dataclasses import replace

from ...catalog.descriptor import DescriptorState
from ...catalog.descriptor_store import decode_stored
from ...catalog.named_objects import SequenceDescriptor
from ...catalog.system_tables import DESCRIPTOR
from ...kvlayer.access import Transaction
from ...kvlayer.clock import ZERO
from ..services import Services


async def drop_sequence(
    services: Services, transaction: Transaction, found: SequenceDescriptor
) -> None:
    descriptors = services.catalog.descriptors
    version = descriptors.next_version(transaction, found)
    dropped = replace(found, state=DescriptorState.DROPPED, version=version)
    await descriptors.publish(transaction, dropped)
    await transaction.delete([found.key])


async def drop_owned(services: Services, transaction: Transaction, table_id: int) -> None:
    """Drops the sequences that go with a table."""
    for key, body in await transaction.scan(DESCRIPTOR.primary_span):
        found = decode_stored(key, body, ZERO)
        if not isinstance(found, SequenceDescriptor) or found.dropped or found.owner is None:
            continue
        if found.owner[0] == table_id:
            await drop_sequence(services, transaction, found)
