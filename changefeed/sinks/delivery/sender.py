"""What delivery asks of a receiver of messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

MESSAGE_OVERHEAD_BYTES = 120
"""What a message costs in memory beside its key and value: a tuple, and two objects' headers."""


class Message(NamedTuple):
    """One message. A value of None is a message without a value."""

    topic: str
    key: bytes
    value: bytes | None

    @property
    def size(self) -> int:
        """Bytes, as they are counted against bounds of memory."""
        return len(self.key) + len(self.value or b"") + MESSAGE_OVERHEAD_BYTES


class MessageSender(Protocol):
    """Sends messages to one receiver. Calls of `send` may overlap, with other keys.

    Each method raises SinkError where trying again may help, and SinkRefused where it never will;
    both name the receiver, and hold no secret.
    """

    @property
    def resolved_by_topic(self) -> bool:
        """Whether a resolved message goes to each topic, or one to the receiver as a whole."""
        ...

    async def open(self) -> None:
        """Called once, before anything is sent."""
        ...

    async def send(self, messages: Sequence[Message]) -> None:
        """Returns when the receiver has acknowledged all of them. They are in order per key."""
        ...

    async def send_resolved(self, topic: str | None, value: bytes) -> None:
        """Returns when the receiver has acknowledged the resolved message: of a topic, or of the
        whole feed where `topic` is None."""
        ...

    async def close(self) -> None:
        """Called once, also where `open` failed; requests under way were cancelled."""
        ...
