"""Foreign keys need what they refer to: a primary key, or a unique index of just those columns."""

from __future__ import annotations

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.elements import ForeignKey
from ....catalog.schema_change.references import referenced_index
from ....catalog.schema_change.targets import IndexElement
from ....catalog.values.errors import SQLError
from ....kvlayer.access import Transaction
from ...runtime.services import Services
from .element_targets import ElementChanges


async def refuse_lost_references(
    services: Services, transaction: Transaction, changes: ElementChanges
) -> None:
    """Raises SQLError 2BP01 where a change of a table leaves a foreign key without its index."""
    table = changes.table
    if table.dropped or not any(
        isinstance(target.element, IndexElement) and not target.present
        for target in changes.targets
    ):
        return
    for referrer_id in table.referenced_by:
        referrer = table
        if referrer_id != table.id:
            found = await services.catalog.descriptors.read(transaction, referrer_id)
            assert isinstance(found, TableDescriptor), (table, referrer_id, found)
            referrer = found
        for key in referrer.foreign_keys:
            if key.referenced_id == table.id and referenced_index(table, key) is None:
                raise _depended_on(changes.before, key, referrer)


def _depended_on(table: TableDescriptor, key: ForeignKey, referrer: TableDescriptor) -> SQLError:
    index = referenced_index(table, key)
    what = "what the foreign key refers to" if index is None else f'index "{index.name}"'
    return SQLError(
        "2BP01",
        f'cannot drop {what} of table "{table.name}" because other objects depend on it',
        detail=f'Foreign key "{key.name}" of table "{referrer.name}" depends on it.',
        hint=f'Run ALTER TABLE {referrer.name} DROP CONSTRAINT "{key.name}" first.',
    )
