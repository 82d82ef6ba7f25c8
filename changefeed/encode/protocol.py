"""The protocol of encoders, as sinks of messages use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ...kvlayer.clock import Timestamp
from ..contract.changes import ChangeBatch
from .json_texts import Lines

Headers = Sequence[tuple[str, bytes | None]]
"""The headers of one message: names and values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedBatch:
    """The messages of one `ChangeBatch`, one for each change, in the batch's order.

    `values[i]` belongs to `keys[i]`. A value of None is a message without a value, which is not the
    same as an empty one to a sink that knows both. `headers[i]` are those that a column names.
    """

    topic: str
    keys: Sequence[bytes]
    values: Sequence[bytes | None]
    headers: Sequence[Headers] | None = None

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def size(self) -> int:
        """Bytes of all keys and values."""
        return sum(map(len, self.keys)) + sum(len(value) for value in self.values if value)


class RegisteredSchema:
    """A schema that a registry holds, and that messages name by the id that it has there: `id` is
    None before it is known. `text` is the schema in JSON."""

    def __init__(self, subject: str, text: str) -> None:
        self.subject = subject
        self.text = text
        self.id: int | None = None


class Encoder(Protocol):
    """Encodes the changes of one feed. An encoder keeps what it has compiled for each descriptor
    version, does no I/O, and may be used on any one thread at a time."""

    def encode(self, batch: ChangeBatch) -> EncodedBatch: ...

    def encode_resolved(self, topic: str | None, resolved: Timestamp) -> bytes:
        """The value of the message that says of `topic`, or of the whole feed, that no change at or
        below `resolved` will come that was not seen."""
        ...


class LineEncoder(Encoder, Protocol):
    """An encoder whose messages are texts, and all have a value."""

    def lines(self, batch: ChangeBatch) -> Lines:
        """The values of all messages, with a line break behind each."""
        ...


@runtime_checkable
class RegisteringEncoder(Encoder, Protocol):
    """An encoder whose messages name schemas. Whoever encodes sees to it that they have ids."""

    def schemas(self, batch: ChangeBatch) -> Sequence[RegisteredSchema]:
        """The schemas that the messages of `batch` name."""
        ...

    def resolved_schemas(self, topic: str | None) -> Sequence[RegisteredSchema]:
        """The schemas that a resolved message of `topic` names."""
        ...
