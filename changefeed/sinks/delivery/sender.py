"""The protocol between delivery and receivers of messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ....kvlayer.clock import Timestamp
from ...contract.changes import ChangeBatch
from ...encode.protocol import Headers
from ..protocol import BadRow, SinkRefused

MESSAGE_OVERHEAD_BYTES = 120
"""Memory of a message beside its key and value: two objects' headers, and a slot in each column."""


class BatchRefused(SinkRefused):
    """The receiver will never take these messages together: perhaps the half of them, or all but
    one. It does take other messages. `too_large` says that it is their size alone."""

    def __init__(self, text: str, *, too_large: bool) -> None:
        super().__init__(text)
        self.too_large = too_large


@dataclass(frozen=True, slots=True)
class MessageRows:
    """The versions of the rows that one batch of messages is of: without what the rows hold, which
    is in memory once, in the messages."""

    table_id: int
    keys: Sequence[bytes]
    timestamps: Sequence[Timestamp]
    deleted: Sequence[int]

    @classmethod
    def of(cls, batch: ChangeBatch) -> MessageRows:
        return cls(batch.descriptor.id, batch.keys, batch.written_at, batch.gone)


class Message(NamedTuple):
    """One message. A value of None is a message without a value.

    Where it is of a row, that is the one at `place` in `rows`.
    """

    topic: str
    key: bytes
    value: bytes | None
    rows: MessageRows | None = None
    place: int = 0
    headers: Headers = ()

    def bad_row(self) -> BadRow | None:
        """The row that the message is of, for a receiver that will never take it."""
        if self.rows is None:
            return None
        return BadRow(
            table_id=self.rows.table_id,
            key=self.rows.keys[self.place],
            shown_key=self.key.decode(errors="replace"),
            at=self.rows.timestamps[self.place],
            deleted=self.place in self.rows.deleted,
            message=self.value,
        )


@dataclass(slots=True)
class Messages:
    """Messages in order, in columns: a `Message` for each would be work for the garbage collector,
    which lists of bytes are not."""

    topics: list[str] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    rows: list[MessageRows | None] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)

    @classmethod
    def of(cls, messages: Iterable[Message]) -> Messages:
        return cls(*map(list, zip(*messages, strict=True)))

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Message]:
        return map(Message._make, zip(*self._columns, strict=True))

    def __getitem__(self, part: slice) -> Messages:
        return Messages(*(column[part] for column in self._columns))

    def extend(self, other: Messages) -> None:
        for column, more in zip(self._columns, other._columns, strict=True):
            column.extend(more)

    def take(self, count: int) -> Messages:
        """Removes the first messages, and returns them."""
        taken = self[:count]
        for column in self._columns:
            del column[:count]
        return taken

    @property
    def _columns(self) -> tuple[list[Any], ...]:
        return self.topics, self.keys, self.values, self.rows, self.places, self.headers


def size_of(key: bytes, value: bytes | None, headers: Headers) -> int:
    """The bytes of a message, as they are counted against bounds of memory."""
    size = len(key) + len(value or b"") + MESSAGE_OVERHEAD_BYTES
    return size + sum(len(name) + len(text or b"") for name, text in headers) if headers else size


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

    async def send(self, messages: Messages) -> None:
        """Returns when the receiver has acknowledged all of them. They are in order per key."""
        ...

    async def send_resolved(self, topic: str | None, value: bytes) -> None:
        """Returns when the receiver has acknowledged the resolved message: of a topic, or of the
        whole feed where `topic` is None."""
        ...

    async def close(self) -> None:
        """Called once, also where `open` failed; requests under way were cancelled."""
        ...
