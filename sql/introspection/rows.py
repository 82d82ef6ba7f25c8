"""The rows of virtual tables, as one statement of a session gets them."""

from __future__ import annotations

import pyarrow as pa

from ...catalog.descriptor import TableDescriptor
from ...kvlayer.txn import Transaction
from ..services import Services
from ..variables import SessionVariables
from .context import IntrospectionContext


class Introspection:
    """Implements `VirtualRows` with a node's services."""

    def __init__(
        self,
        services: Services,
        database: str,
        user: str,
        variables: SessionVariables | None = None,
    ) -> None:
        self._services = services
        self._database = database
        self._user = user
        self._variables = variables or SessionVariables()

    async def read(self, descriptor: TableDescriptor, reader: Transaction) -> pa.Table:
        context = IntrospectionContext(
            services=self._services,
            database=self._database,
            user=self._user,
            variables=self._variables,
            reader=reader,
        )
        return await self._services.virtual_tables.of(descriptor).read(context)
