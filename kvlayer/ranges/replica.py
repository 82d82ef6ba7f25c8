"""A replica as its store keeps it: the source, the epoch, and the closing of its ranges."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import msgspec

from .. import keys
from ..clock import ZERO, Timestamp, format_timestamp
from ..command import CommitIntent, DeleteRangeOp, EnginePut, WriteIntent, WriteValue
from ..engine import Reader
from ..errors import NotLeader
from ..replication.leadership import Role
from ..replication.replica import ReplicaRefused, ReplicaState
from ..span import Span, prefix_end
from .division import Parts

PREFIX = keys.LOCAL + b"replica/"


class _Record(msgspec.Struct, array_like=True, frozen=True):
    """The record of a replica, kept under the start of its span."""

    end: bytes
    state: ReplicaState


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(_Record)


class Replica:
    """The `Closing` of the ranges of a replica: their versions come from its source, and nothing
    at or below what the source has resolved is still to come.

        entry 7  k@100, m@120                closed 0
        entry 8  n@130, resolved 125         closed 0      not durable
        entry 8 durable                      closed 125    to all who have seen entry 8

    The store's clock closes nothing here: what is taken lies below it, at times that the source
    chose. `closed` never falls, and never passes what the source resolved in a durable entry.
    """

    store_wide = False

    def __init__(self, span: Span, state: ReplicaState) -> None:
        """`state` is durable."""
        self.span = span
        self.state = state
        """As of the last entry, which may not be durable yet."""
        self._closed = state.resolved
        self._closed_index = 0
        self._undurable: deque[tuple[int, Timestamp]] = deque()

    @property
    def closed(self) -> Timestamp:
        """The source's resolved timestamp in the last durable entry that had one."""
        return self._closed

    @property
    def durable_index(self) -> int:
        """The entry with which `closed` was said: all that it covers lies at or before it."""
        return self._closed_index

    def close(self) -> Timestamp:
        return self._closed

    def record(self, state: ReplicaState) -> EnginePut:
        """The write that keeps `state` across a restart."""
        return EnginePut(PREFIX + self.span.start, _encode(_Record(self.span.end, state)))

    def appended(self, index: int, state: ReplicaState) -> None:
        """An entry that makes `state` the replica's was appended."""
        assert state.epoch >= self.state.epoch, (state, self)
        assert state.resolved >= self.state.resolved, (state, self)
        assert state.term >= self.state.term or not state.group, (state, self)
        old, new = self.state.given_role, state.given_role
        assert (old, new) != (Role.LEADING, Role.LEADING) or state.term == self.state.term, state
        if state.resolved > self.state.resolved:
            self._undurable.append((index, state.resolved))
        self.state = state

    def covers(self, span: Span) -> bool:
        """Whether all keys of the span come from the source."""
        return not self.state.ended and self.span.covers(span)

    def entries_durable(self, upto: int) -> None:
        """Every entry up to index `upto` is durable."""
        undurable = self._undurable
        while undurable and undurable[0][0] <= upto:
            self._closed_index, closed = undurable.popleft()
            assert closed > self._closed, (closed, self)
            self._closed = closed

    def __repr__(self) -> str:
        return (
            f"<Replica {self.span} of {self.state.source!r} epoch={self.state.epoch} "
            f"closed={format_timestamp(self._closed or ZERO)}>"
        )


def check_own_writes(parts: Parts) -> None:
    """Raises ReplicaRefused where a step would write in a replica, as only its source may, and
    NotLeader where this store has handed the span over."""
    for found, operations in parts.items():
        closing = found.closed
        if isinstance(closing, Replica):
            for op in operations:
                if isinstance(op, WriteValue | WriteIntent | CommitIntent | DeleteRangeOp):
                    if closing.state.leader:
                        raise NotLeader(
                            "this store does not lead the keyspace any more: write to "
                            f"{closing.state.leader}"
                        )
                    raise ReplicaRefused(
                        "the keyspace is a replica: it takes what its source sends, and no other "
                        "writes"
                    )


def read_replicas(reader: Reader) -> Iterator[Replica]:
    """The replicas of a store that starts: all that it has found is durable."""
    for engine_key, data in reader.scan(PREFIX, prefix_end(PREFIX)):
        found = _decoder.decode(data)
        yield Replica(Span(engine_key[len(PREFIX) :], found.end), found.state)
