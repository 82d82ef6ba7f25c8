"""Another process's store: the one that a node joins, or that a store takes its time from."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom

from ..catalog.store.node_ids import allocate_node_id
from ..kvlayer.clock import SystemWallClock, Timestamp
from ..kvlayer.errors import StoreUnreachable
from ..kvlayer.metrics import Metrics
from ..kvlayer.remote import RemoteStore
from ..kvlayer.settings import Settings
from .node_folder import NodeFolder, NodeIdentity
from .refusal import NodeRefused
from .rpc import Authority, GrpcChannel, JoinToken, why_unreachable


@dataclass(frozen=True, slots=True)
class JoinTarget:
    """The address of the process that serves the store (`HOST:PORT`), the token's file, and that of
    the authority by which it is known; without one it is spoken to in the clear."""

    address: str
    token_path: Path
    authority_path: Path | None = None


class _Reach:
    """The address, token and authority of a target, read."""

    def __init__(self, target: JoinTarget) -> None:
        """Raises JoinTokenError, AuthorityError."""
        path = target.authority_path
        self._address = target.address
        self._token = JoinToken.read(target.token_path)
        self._authority = None if path is None else Authority.read(path)

    async def connect(self) -> RemoteStore:
        """Raises StoreUnreachable, StoreClosed."""
        try:
            return await RemoteStore.connect(
                GrpcChannel(self._address, self._token, self._authority),
                SystemWallClock(),
                settings=Settings(),
                metrics=Metrics(),
                random=SystemRandom(),
            )
        except StoreUnreachable as error:
            host, _, port = self._address.rpartition(":")
            why = await why_unreachable(host.strip("[]"), int(port), self._authority)
            raise error if why is None else StoreUnreachable(why) from error


async def join_store(target: JoinTarget, closing: AsyncExitStack) -> RemoteStore:
    """The store of another process. Raises what `_Reach` does."""
    store = await _Reach(target).connect()
    closing.push_async_callback(store.close)
    return store


class OracleStore:
    """The store that another takes its time from. It need not be there yet.

    Once it was reached it is that store: another one at its address, or an older copy of it, is
    refused until this process starts anew.
    """

    def __init__(self, target: JoinTarget) -> None:
        """Raises JoinTokenError, AuthorityError."""
        self.address = target.address
        self._connecting = asyncio.Lock()
        self._reach = _Reach(target)
        self._store: RemoteStore | None = None

    async def now(self) -> Timestamp:
        """A timestamp that the store has drawn. Raises StoreUnreachable, StoreClosed."""
        return await (await self.reach()).now()

    async def reach(self) -> RemoteStore:
        """The store. Raises StoreUnreachable, StoreClosed."""
        async with self._connecting:
            if self._store is None:
                self._store = await self._reach.connect()
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
