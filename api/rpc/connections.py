"""Connections of nodes, and the transactions that live and end with them."""

from __future__ import annotations

import asyncio
from itertools import count

from ...kvlayer.access import StoreAccess, Transaction
from ...kvlayer.errors import KVError, TransactionAborted
from ...kvlayer.savepoint import Savepoint

SILENCE_SECONDS_MAX = 5.0
"""A node that says nothing for so long is stopped or cut off: its locks are not to be waited for.
It heartbeats each second."""

TRANSACTIONS_MAX = 10_000
"""Open transactions of one node: each is a client's, and a client has a socket."""


class ServedTransaction:
    """A transaction that a node drives from afar."""

    def __init__(self, handle: int, transaction: Transaction) -> None:
        self.handle = handle
        self.transaction = transaction
        self.savepoints: dict[int, Savepoint] = {}


class NodeConnection:
    """One connection. It ends once, and everything begun under it ends with it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.heard_at = asyncio.get_running_loop().time()
        self.ended = asyncio.Event()
        self._transactions: dict[int, ServedTransaction] = {}
        self._handles = count(1)

    def heard(self) -> None:
        self.heard_at = asyncio.get_running_loop().time()

    def add(self, transaction: Transaction) -> ServedTransaction:
        if len(self._transactions) >= TRANSACTIONS_MAX:
            raise TransactionAborted(f"the node has {TRANSACTIONS_MAX} transactions open already")
        served = ServedTransaction(next(self._handles), transaction)
        self._transactions[served.handle] = served
        return served

    def find(self, handle: int) -> ServedTransaction:
        """Raises TransactionAborted for one that has ended."""
        served = self._transactions.get(handle)
        if served is None:
            raise TransactionAborted("the transaction has ended at the store")
        return served

    def forget(self, handle: int) -> None:
        self._transactions.pop(handle, None)

    async def end(self) -> None:
        self.ended.set()
        transactions, self._transactions = self._transactions, {}
        for served in transactions.values():
            try:
                await served.transaction.rollback()
            except KVError:
                pass  # it had ended, or the store has


class Connections:
    """The connections of one server, and who watches that they are alive."""

    def __init__(self, store: StoreAccess) -> None:
        self._store = store
        self._open: dict[int, NodeConnection] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._watch(), name="connections of nodes")

    def begin(self) -> NodeConnection:
        """A connection under a number that none had before, not even before a restart."""
        connection = NodeConnection(self._store.random.getrandbits(62) | 1)
        self._open[connection.number] = connection
        self._store.metrics.add("rpc_connections_total")
        return connection

    def find(self, number: int) -> NodeConnection | None:
        connection = self._open.get(number)
        if connection is not None:
            connection.heard()
        return connection

    async def end(self, connection: NodeConnection) -> None:
        if self._open.pop(connection.number, None) is not None:
            await connection.end()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for connection in tuple(self._open.values()):
            await self.end(connection)

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SILENCE_SECONDS_MAX / 5)
            silent_since = loop.time() - SILENCE_SECONDS_MAX
            for connection in tuple(self._open.values()):
                if connection.heard_at < silent_since:
                    self._store.metrics.add("rpc_connections_silent_total")
                    await self.end(connection)
