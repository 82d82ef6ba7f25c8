"""Rights to draw from sequences, to set them, and to ask for their last values.

    nextval     USAGE or UPDATE        currval     USAGE or SELECT        setval     UPDATE

Drawing and setting are writing: a transaction that reads only does neither (25006).

The sequence of an identity column is part of its table: whoever may INSERT there draws from it.
"""

from __future__ import annotations

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.named_objects import SequenceDescriptor
from ....catalog.rights.privileges import Privilege, SecurableKind, securable
from ....catalog.rights.users import ROOT
from ....catalog.values.errors import SQLError
from ....kvlayer.access import Transaction
from ...analyze.calls.sequence_calls import SequenceNeeded
from ...plan.needs import refused
from ...runtime.authorization import current_rights
from ...runtime.services import Services


class SequenceRights:
    """The rights of a user, as its open transaction sees them if it has one."""

    def __init__(
        self,
        services: Services,
        user: str,
        opened: Transaction | None,
        *,
        reads_only: bool = False,
    ) -> None:
        self._services = services
        self._user = user
        self._opened = opened
        self._reads_only = reads_only

    async def check(self, sequence: SequenceDescriptor, needed: SequenceNeeded) -> None:
        """Raises SQLError 42501, and 25006 for what writes where nothing may."""
        if self._reads_only and (needed.draws or needed.set_to is not None):
            what = "nextval()" if needed.draws else "setval()"
            raise SQLError("25006", f"cannot execute {what} in a read-only transaction")
        if self._user == ROOT:
            return
        any_of = _any_of(needed)
        rights = await current_rights(self._services, self._opened)
        if rights.held(self._user, securable(sequence)) & any_of:
            return
        if needed.draws and sequence.owner is not None:
            table = await self._identity_table(*sequence.owner)
            if table and rights.held(self._user, securable(table)) & Privilege.INSERT:
                return
        told = any_of & Privilege.USAGE or any_of
        raise refused(self._user, told, SecurableKind.SEQUENCE, sequence.name)

    async def _identity_table(self, table_id: int, column_id: int) -> TableDescriptor | None:
        """The table of an identity column."""
        descriptors, store = self._services.catalog.descriptors, self._services.store
        if self._opened is not None:
            table = await descriptors.read(self._opened, table_id)
        else:
            table = await descriptors.read_at(table_id, await store.now())
        assert isinstance(table, TableDescriptor), table
        columns = [column for column in table.columns if column.id == column_id]
        return table if any(column.identity is not None for column in columns) else None


def _any_of(needed: SequenceNeeded) -> Privilege:
    """One of these is enough."""
    if needed.set_to is not None:
        return Privilege.UPDATE
    return Privilege.USAGE | (Privilege.UPDATE if needed.draws else Privilege.SELECT)
