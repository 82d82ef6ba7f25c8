"""Where an executor gets the rows of tables that are not in the store."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from ...catalog.descriptors.descriptor import TableDescriptor
from ...kvlayer.txn import Transaction


class VirtualRows(Protocol):
    """Virtual tables, as `introspection` makes them."""

    async def read(self, descriptor: TableDescriptor, reader: Transaction) -> pa.Table:
        """All rows and columns of a virtual table. What is in the store, `reader` reads."""
        ...
