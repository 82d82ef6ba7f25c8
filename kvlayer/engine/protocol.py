"""The interface of an engine to the layers above."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from .. import keys
from ..errors import KVError
from ..range_tombstones import RangeTombstones

APPLIED_KEY = keys.LOCAL + b"applied"
"""Where an engine keeps its applied index: written in each batch, so that both survive or none."""


def encode_applied(index: int) -> bytes:
    return index.to_bytes(8, "big")


def decode_applied(value: bytes | None) -> int:
    """The applied index as `APPLIED_KEY` holds it; zero for a new engine."""
    return 0 if value is None else int.from_bytes(value, "big")


class EngineStall(Exception):
    """The engine cannot take the batch now without stalling the loop: back off and try again."""


class EngineFailed(KVError):
    """The engine's disk has failed it. After a write or a flush it writes nothing more until it is
    opened anew; after a read it goes on."""


class EngineDamaged(EngineFailed):
    """Bytes of the engine's files do not read back. What lies elsewhere is still read."""


class EngineBatch(Struct):
    """Writes that happen together. Deletions are applied before puts.

    Whoever writes below `keys.RANGE_TOMBSTONE` says so in `range_tombstones`.
    """

    puts: list[tuple[bytes, bytes]] = []
    deletes: list[bytes] = []
    range_tombstones: bool = False


class Reader(Protocol):
    """Reads of one state: the engine's newest, or a snapshot's."""

    @property
    def range_tombstones(self) -> RangeTombstones:
        """The range tombstones of this state, in memory: every reader of versions looks at them."""
        ...

    def get(self, key: bytes) -> bytes | None: ...

    def get_fixed_each(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Returns the values of entries that are written once and never again, as versions are.

        For keys that this state is known to hold: a snapshot may answer from the newest state,
        where a lookup costs a seventh of a seek. Costs least where the keys ascend and no other
        lies between two of them.
        """
        ...

    def first(self, start: bytes, end: bytes) -> tuple[bytes, bytes] | None:
        """The least entry in `[start, end)`, or None."""
        ...

    def first_each(self, spans: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes] | None]:
        """Returns the result of `first` for each span. Costs least where the spans ascend."""
        ...

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """The entries of `[start, end)` in key order, or against it.

        On an engine (not a snapshot) the iterator must be used up before the next write.
        """
        ...


class Snapshot(Reader, Protocol):
    """A state that later writes do not change."""

    def close(self) -> None:
        """Frees what the snapshot pins. Reading after it is an error."""
        ...


class Engine(Reader, Protocol):
    """An ordered map of bytes with atomic batches."""

    @property
    def applied_index(self) -> int:
        """The index given with the last batch, zero for a new engine."""
        ...

    @property
    def flushed_index(self) -> int:
        """A lower bound of `applied_index` after a crash at this moment."""
        ...

    def write(self, batch: EngineBatch, *, applied_index: int) -> None:
        """Applies the batch and the index. Raises EngineStall, StoreFull and EngineFailed, having
        changed nothing."""
        ...

    def snapshot(self) -> Snapshot: ...

    def flush(self) -> None:
        """Blocks until all that was applied before the call is durable. Call it by Offload."""
        ...

    def close(self) -> None: ...
