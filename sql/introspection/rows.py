"""The rows of virtual tables, as one statement of a session gets them."""

from __future__ import annotations

import pyarrow as pa

from ...catalog.descriptor import TableDescriptor
from ...kvlayer.txn import Transaction
from ..services import Services
from .context import IntrospectionContext


class Introspection:
    """Implements `VirtualRows` with a node's services."""

    def __init__(self, services: Services, database: str, user: str) -> None:
        self._services = services
        self._database = database
        self._user = user

    async def read(self, descriptor: TableDescriptor, reader: Transaction) -> pa.Table:
        context = IntrospectionContext(
            services=self._services, database=self._database, user=self._user, reader=reader
        )
        return await self._services.virtual_tables.of(descriptor).read(context)
