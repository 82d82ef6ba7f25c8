"""A channel: how bytes get to the process that serves the store, and back.

gRPC is one (`grpc_channel`); the simulation's network is another, which loses and delays.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol


class ChannelBroken(Exception):
    """The other end cannot be reached, or has gone away.

    `sent` says whether it may have done what it was asked.
    """

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class ChannelRefused(Exception):
    """The other end will not talk to us: a wrong token, another version of the protocol."""


class Channel(Protocol):
    """Calls and streams to one server. Bodies are whole messages."""

    async def call(self, method: str, body: bytes) -> bytes:
        """One question, one answer. Raises ChannelBroken, ChannelRefused."""
        ...

    def stream(self, method: str, body: bytes) -> AsyncGenerator[bytes, None]:
        """One question, many answers, each sent only when there is room for it at this end.

        Raises ChannelBroken, ChannelRefused. Closing the generator ends it at the other end too.
        """
        ...

    async def reset(self) -> None:
        """Gives up on what is under way: it raises ChannelBroken. Later calls begin afresh."""
        ...

    async def close(self) -> None: ...
