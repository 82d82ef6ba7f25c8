"""Another process's store: the one that a node joins, or that a store takes its time from."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom

from ..catalog.store.node_ids import allocate_node_id
from ..kvlayer.clock import SystemWallClock, Timestamp
from ..kvlayer.metrics import Metrics
from ..kvlayer.remote import RemoteStore
from ..kvlayer.settings import Settings
from .node_folder import NodeFolder, NodeIdentity
from .refusal import NodeRefused
from .rpc import GrpcChannel, JoinToken


@dataclass(frozen=True, slots=True)
class JoinTarget:
    """Where the process is that serves the store (`HOST:PORT`), and the token's file."""

    address: str
    token_path: Path


async def join_store(target: JoinTarget, closing: AsyncExitStack) -> RemoteStore:
    """The store of another process."""
    store = await _connect(target.address, JoinToken.read(target.token_path))
    closing.push_async_callback(store.close)
    return store


async def _connect(address: str, token: JoinToken) -> RemoteStore:
    """Raises StoreUnreachable, StoreClosed."""
    return await RemoteStore.connect(
        GrpcChannel(address, token),
        SystemWallClock(),
        settings=Settings(),
        metrics=Metrics(),
        random=SystemRandom(),
    )


class OracleStore:
    """The store that another takes its time from. It need not be there yet.

    Once it was reached it is that store: another one at its address, or an older copy of it, is
    refused until this process starts anew.
    """

    def __init__(self, target: JoinTarget) -> None:
        """Raises JoinTokenError."""
        self.address = target.address
        self._connecting = asyncio.Lock()
        self._token = JoinToken.read(target.token_path)
        self._store: RemoteStore | None = None

    async def now(self) -> Timestamp:
        """A timestamp that the store has drawn. Raises StoreUnreachable, StoreClosed."""
        return await (await self.reach()).now()

    async def reach(self) -> RemoteStore:
        """The store. Raises StoreUnreachable, StoreClosed."""
        async with self._connecting:
            if self._store is None:
                self._store = await _connect(self.address, self._token)
            return self._store

    async def close(self) -> None:
        if self._store is not None:
            await self._store.close()


async def identify(folder: NodeFolder, store: RemoteStore) -> int:
    """The node's id: that of its folder, or a new one."""
    known = folder.identity
    if known is not None and known.store_id != store.id:
        raise NodeRefused(
            f"{folder.path} is node {known.node_id} of store {known.store_id}, and store "
            f"{store.id} answers: join the other one, or use another folder"
        )
    if known is None:
        known = NodeIdentity(store.id, await allocate_node_id(store))
        folder.keep(known)
    return known.node_id
