"""Replicas: spans whose versions come from another store, and what is asked of them.

A *replica* takes versions at the timestamps which they were given where they were first written,
and closes timestamps by what its *source* says: nothing at or below a checkpoint is still to come.
The source opens it, and is given an epoch and the last checkpoint, from which it goes on:

    Begin()                                   the span, which is empty, becomes a replica
    Open(source="s")                          epoch 1, resolved 0
    Ingest(s, 1, k@100, k@120)                taken
    Ingest(s, 1, k@120, m@130, resolved=125)  m@130 is taken, k@120 is known, and resolved is 125
    Open(source="s")                          epoch 2, resolved 125: the source was started anew
    Ingest(s, 1, n@140)                       refused: epoch 1 is over
    End()                                     resolved 125: from here on the span is written here
    Open(source="s")                          refused: it has ended, at 125

A source may send parts of the replica each by itself: see `replica_tasks`.
"""

from __future__ import annotations

from uuid import UUID

import msgspec

from ..clock import ZERO, Timestamp
from ..errors import KVError
from ..settings import declare_duration
from ..span import Span
from .leadership import Role
from .replica_tasks import ReplicaTask, Tasks

AHEAD_MAX = declare_duration(
    "kv.raw.ahead_max",
    60.0,
    "how far above this store's physical time a version from another store may lie",
)


def origin_of(store_id: str) -> int:
    """The number of a store, which its versions bear in others."""
    return UUID(store_id).int >> 96


def source_of(store_id: str, span_id: int) -> str:
    """The name of a store as the source of a replica of keyspace `span_id`: the same for whoever
    sends its versions, and whenever."""
    return f"{store_id}/{span_id}"


class ReplicaRefused(KVError):
    """A replica cannot take what it was sent, or there is none; the message says why."""


class ReplicaState(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """The state of a replica. `resolved` is durable: all versions of the source up to it are here.

    `note` is what the source has left for itself, to read when it opens the replica again. Where it
    sends parts of the replica each by itself, these are the `tasks`, which have their own notes and
    epochs; `epoch` is then the greatest that was begun. One that has
    `ended` takes no more. Of an ingest, `taken` versions were new, and `known` were here.

    Where the keyspace was handed from store to store, `group` names it and `term` is the epoch of
    its leader, as this store last heard; `leader` is where writes go from here.
    """

    source: str | None = None
    epoch: int = 0
    resolved: Timestamp = ZERO
    note: bytes = b""
    ended: bool = False
    taken: int = 0
    known: int = 0
    given_role: Role | None = None
    group: str = ""
    term: int = 0
    leader: str = ""
    tasks: Tasks = ()

    def task(self, epoch: int) -> ReplicaTask | None:
        """The task that is sent in that epoch."""
        return next((each for each in self.tasks if epoch and each.epoch == epoch), None)

    def seen_by(self, epoch: int) -> ReplicaState:
        """The state as who sends in that epoch is to see it: of its own task."""
        task = self.task(epoch)
        if task is None:
            return self
        return msgspec.structs.replace(
            self, epoch=task.epoch, resolved=task.resolved, note=task.note
        )

    @property
    def role(self) -> Role:
        """The store's role for the span. One that nobody handed over follows until it ends."""
        return self.given_role or (Role.LEADING if self.ended else Role.FOLLOWING)


class Look(msgspec.Struct, tag="look", array_like=True, frozen=True):
    """Says where the replica stands."""


class Begin(msgspec.Struct, tag="begin", array_like=True, frozen=True):
    """Makes the span a replica, unless it is one or has been. One that holds versions already is
    refused."""


class Open(msgspec.Struct, tag="open", array_like=True, frozen=True):
    """Begins the source's next epoch. A replica has one source for as long as it is one.

    It may be the epoch of a `task`, keys of the `whole` that the source sends.
    """

    source: str
    task: Span | None = None
    whole: Span | None = None


class Ingest(msgspec.Struct, tag="ingest", array_like=True, frozen=True, kw_only=True):
    """Version `timestamps[i]` of `keys[i]` is `bodies[i]`; `origin` is the store that wrote them.

    The versions of a key come in the order of their timestamps. Once these are taken, the source
    has nothing more at or below `resolved`, where that is given, and leaves a `note`.
    """

    source: str
    epoch: int
    origin: int
    keys: list[bytes] = []
    bodies: list[bytes] = []
    timestamps: list[Timestamp] = []
    resolved: Timestamp | None = None
    note: bytes | None = None


class End(msgspec.Struct, tag="end", array_like=True, frozen=True):
    """The span is written here from now on, above everything that was taken."""


class Drain(msgspec.Struct, tag="drain", array_like=True, frozen=True, kw_only=True):
    """The span is written here no more, and resolved up to all that was: see `leadership`."""

    group: str
    term: int
    leader: str


class Reclaim(msgspec.Struct, tag="reclaim", array_like=True, frozen=True):
    """The span that was drained is written here again, in a new term."""

    term: int


class TakeOver(msgspec.Struct, tag="take over", array_like=True, frozen=True, kw_only=True):
    """The replica has everything of its source up to `barrier`, and is to be its next leader."""

    source: str
    group: str
    term: int
    barrier: Timestamp


class Lead(msgspec.Struct, tag="lead", array_like=True, frozen=True):
    """The span is written here from now on, above everything that its leaders before wrote."""

    term: int


class Follow(msgspec.Struct, tag="follow", array_like=True, frozen=True, kw_only=True):
    """The span takes its versions from `source`, which leads it in that term."""

    source: str
    term: int


RoleChange = Drain | Reclaim | TakeOver | Lead | Follow

SourceOrder = Look | Begin | Open | Ingest | End

ReplicaOrder = SourceOrder | RoleChange
