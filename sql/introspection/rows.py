"""The rows of virtual tables, as one statement of a session gets them."""

from __future__ import annotations

import pyarrow as pa

from ...catalog.descriptors.descriptor import TableDescriptor
from ...kvlayer.txn import Transaction
from ..runtime.introspection_context import IntrospectionContext
from ..runtime.services import Services
from ..variables.variables import SessionVariables


class Introspection:
    """Implements `VirtualRows` with a node's services."""

    def __init__(
        self,
        services: Services,
        database: str,
        user: str,
        variables: SessionVariables | None = None,
        process_id: int = 0,
    ) -> None:
        self._services = services
        self._database = database
        self._user = user
        self._variables = variables or SessionVariables()
        self._process_id = process_id

    async def read(self, descriptor: TableDescriptor, reader: Transaction) -> pa.Table:
        context = IntrospectionContext(
            services=self._services,
            database=self._database,
            user=self._user,
            variables=self._variables,
            reader=reader,
            process_id=self._process_id,
        )
        return await self._services.virtual_tables.of(descriptor).read(context)
