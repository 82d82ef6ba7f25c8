"""The store that a node joins: how it is reached, and who the node is to it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom

from ..catalog.store.node_ids import allocate_node_id
from ..kvlayer.clock import SystemWallClock
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
    channel = GrpcChannel(target.address, JoinToken.read(target.token_path))
    store = await RemoteStore.connect(
        channel,
        SystemWallClock(),
        settings=Settings(),
        metrics=Metrics(),
        random=SystemRandom(),
    )
    closing.push_async_callback(store.close)
    return store


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
