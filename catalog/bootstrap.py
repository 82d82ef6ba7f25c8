"""The first transaction of a store: the system's tables, and the databases that always exist."""

from __future__ import annotations

from ..kvlayer.access import StoreAccess
from ..kvlayer.txn import Evaluation
from . import system_tables
from .descriptor_encoding import encode_descriptor
from .row_codec import codec_for


async def bootstrap(store: StoreAccess) -> bool:
    """Publishes the initial descriptors in one transaction; says whether the store was new.

    Calling it on a store that has them changes nothing.
    """
    created, _ = await store.one_phase(_publish_initial)
    return created


def _publish_initial(evaluation: Evaluation) -> bool:
    descriptors = codec_for(system_tables.DESCRIPTOR)
    namespace = codec_for(system_tables.NAMESPACE)
    sequence = codec_for(system_tables.ID_SEQUENCE)
    if evaluation.get(descriptors.encode_key([system_tables.SYSTEM_DATABASE_ID])) is not None:
        return False
    rows = [
        sequence.encode_row([system_tables.DESCRIPTOR_ID_SEQUENCE, system_tables.FIRST_USER_ID])
    ]
    for descriptor in system_tables.INITIAL_DESCRIPTORS:
        name = (descriptor.parent_id, descriptor.parent_schema_id, descriptor.name)
        rows.append(descriptors.encode_row([descriptor.id, encode_descriptor(descriptor)]))
        rows.append(namespace.encode_row([*name, descriptor.id]))
    keys, bodies = zip(*rows, strict=True)
    evaluation.put(keys, bodies)
    return True
