"""What delivery asks of a receiver of messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ...contract.changes import ChangeBatch
from ..protocol import SinkRefused

MESSAGE_OVERHEAD_BYTES = 136
"""What a message costs in memory beside its key and value: a tuple, and two objects' headers."""


class BatchRefused(SinkRefused):
    """The receiver will never take these messages together: perhaps the half of them, or all but
    one. It does take other messages. `too_large` says that it is their size alone."""

    def __init__(self, text: str, *, too_large: bool) -> None:
        super().__init__(text)
        self.too_large = too_large


class Message(NamedTuple):
    """One message. A value of None is a message without a value.

    Where it is of a row, that is the one at `place` in `batch`.
    """

    topic: str
    key: bytes
    value: bytes | None
    batch: ChangeBatch | None = None
    place: int = 0


def size_of(key: bytes, value: bytes | None) -> int:
    """The bytes of a message, as they are counted against bounds of memory."""
    return len(key) + len(value or b"") + MESSAGE_OVERHEAD_BYTES


class MessageSender(Protocol):
    """Sends messages to one receiver. Calls of `send` may overlap, with other keys.

    Each method raises SinkError where trying again may help, and SinkRefused where it never will;
    both name the receiver, and hold no secret. `send` raises BatchRefused where that is because of
    these messages, and others would be taken.
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
