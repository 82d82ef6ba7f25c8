"""The first transaction of a store: the system's tables, and the databases that always exist."""

from __future__ import annotations

from collections.abc import Iterator

from ...kvlayer.access import StoreAccess
from ...kvlayer.txn import Evaluation
from ..descriptors import system_tables
from ..descriptors.descriptor_encoding import encode_descriptor
from ..rows.row_codec import codec_for
from .privileges import Privilege, securable
from .rights import Grant, grant_row, initial_grants
from .users import PUBLIC


async def bootstrap(store: StoreAccess) -> bool:
    """Publishes the initial descriptors in one transaction; says whether the store was new.

    Calling it on a store that has them changes nothing; one that an earlier build made is given
    those that it lacks.
    """
    created, _ = await store.one_phase(_publish_initial)
    return created


def _publish_initial(evaluation: Evaluation) -> bool:
    descriptors = codec_for(system_tables.DESCRIPTOR)
    namespace = codec_for(system_tables.NAMESPACE)
    sequence = codec_for(system_tables.ID_SEQUENCE)
    new = evaluation.get(descriptors.encode_key([system_tables.SYSTEM_DATABASE_ID])) is None
    missing = [
        descriptor
        for descriptor in system_tables.INITIAL_DESCRIPTORS
        if new or evaluation.get(descriptors.encode_key([descriptor.id])) is None
    ]
    if not missing:
        return False
    rows = []
    if new:
        rows.append(
            sequence.encode_row([system_tables.DESCRIPTOR_ID_SEQUENCE, system_tables.FIRST_USER_ID])
        )
    if system_tables.PRIVILEGES in missing:
        rows += [grant_row(*initial) for initial in _initial_rights()]
    for descriptor in missing:
        name = (descriptor.parent_id, descriptor.parent_schema_id, descriptor.name)
        rows.append(descriptors.encode_row([descriptor.id, encode_descriptor(descriptor)]))
        rows.append(namespace.encode_row([*name, descriptor.id]))
    keys, bodies = zip(*rows, strict=True)
    evaluation.put(keys, bodies)
    return new


def _initial_rights() -> Iterator[tuple[int, str, Grant]]:
    for descriptor in system_tables.INITIAL_DESCRIPTORS:
        thing = securable(descriptor)
        privileges = initial_grants(thing.kind, thing.name)
        if privileges:
            if thing.id == system_tables.SYSTEM_PUBLIC_ID:
                privileges = int(Privilege.USAGE)  # nobody makes things among the system's own
            yield thing.id, PUBLIC, Grant(privileges)
