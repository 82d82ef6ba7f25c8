"""The messages between a node and the store that it has joined.

Each method takes one message and answers with `Reply`s, in msgpack; both sides come from one
release of one program, and `PROTOCOL` says so. Structs are arrays on the wire.

    session      Hello         -> Reply(Welcome), and nothing more until the end of the connection
    heartbeat    Heartbeat     -> Reply(None)
    now          Now           -> Reply(Timestamp)
    holds        Holds         -> Reply(bool)           whether a position is in the store's past
    threshold    Threshold     -> Reply(Timestamp)      of garbage collection in some spans
    replica      OfReplica     -> Reply(ReplicaState or None)
    evaluate     Evaluate      -> Reply(Evaluated)      reads of a one-phase transaction
    one_phase    OnePhase      -> Reply(Committed | Evaluated)
    begin        Begin         -> Reply(TransactionState)
    transaction  Operate       -> Reply(Operated)       one operation of a transaction
    scan         ScanSlices    -> Reply(list of rows) ...        of a snapshot or a transaction
    point        PointRead     -> Reply((body, timestamp) or None)
    versions     VersionsRead  -> Reply(list of versions) ...
    feed         Follow        -> Reply(list of WireEvents) ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from ..clock import Timestamp
from ..history import StorePosition
from ..replication.replica import ReplicaOrder
from ..span import Span

PROTOCOL = 8
"""To be raised with every change of a message."""

WireSpan = tuple[bytes, bytes]
WireRow = tuple[bytes, bytes]
WireVersion = tuple[bytes, Timestamp, bytes | None]


class Message(msgspec.Struct, array_like=True, frozen=True):
    """Anything sent."""


class Failure(Message, frozen=True):
    """An error of the KV layer: see `failures`."""

    name: str
    fields: list[Any]


class Reply(Message, frozen=True):
    """Every answer says how far the store's clock, its garbage threshold and its log are."""

    clock: Timestamp
    threshold: Timestamp
    index: int
    body: msgspec.Raw = msgspec.Raw(b"\xc0")
    failure: Failure | None = None


# The connection


class Hello(Message, frozen=True):
    """`seen` is how much of the store's log the node was given over earlier connections."""

    protocol: int
    seen: StorePosition | None


class Welcome(Message, frozen=True):
    store_id: str
    connection: int
    incarnation: str


class Heartbeat(Message, frozen=True):
    connection: int


class Now(Message, frozen=True):
    connection: int


class Holds(Message, frozen=True):
    connection: int
    position: StorePosition


class Threshold(Message, frozen=True):
    connection: int
    spans: list[WireSpan]


class OfReplica(Message, frozen=True):
    connection: int
    span: WireSpan
    order: ReplicaOrder


# One-phase transactions


class Get(Message, frozen=True, tag="get"):
    key: bytes


class Scan(Message, frozen=True, tag="scan"):
    start: bytes
    end: bytes
    limit: int | None
    bytes_max: int | None = None


class FirstExisting(Message, frozen=True, tag="first"):
    keys: tuple[bytes, ...]


Read = Get | Scan | FirstExisting
Answer = bytes | list[WireRow] | int | None


class Evaluate(Message, frozen=True):
    connection: int
    reads: list[Read]
    lock_timeout: float | None


class Evaluated(Message, frozen=True, tag="evaluated"):
    """The answers of the reads at one timestamp. For a OnePhase: they saw something else before."""

    at: Timestamp
    answers: list[Answer]


class OnePhase(Message, frozen=True):
    """Writes (None deletes), to be committed if the reads still have the answers seen.

    Before them the spans of `deleted` are emptied: start, end, and whether feeds leave that out.
    `seen[i]` is the digest of the answer to `reads[i]`. `before` bounds the commit timestamp as the
    evaluation assumed it, `deadline` as the leases do: the first leads to another evaluation, the
    second to DeadlineExceeded.
    """

    connection: int
    reads: list[Read]
    seen: list[bytes]
    deleted: list[tuple[bytes, bytes, bool]]
    keys: list[bytes]
    bodies: list[bytes | None]
    before: Timestamp | None
    deadline: Timestamp | None
    commit_called_ns: int
    lock_timeout: float | None


class Committed(Message, frozen=True, tag="committed"):
    at: Timestamp


# Transactions


class Begin(Message, frozen=True):
    connection: int
    read_timestamp: Timestamp | None
    read_only: bool
    lock_timeout: float | None
    isolation: str
    priority: int


class TransactionState(Message, frozen=True):
    """The state of a transaction as its client knows it after each operation."""

    handle: int
    id: bytes
    read_timestamp: Timestamp
    write_timestamp: Timestamp
    write_count: int
    untouched: bool


class GetEach(Message, frozen=True, tag="get_each"):
    keys: list[bytes]


class GetForUpdate(Message, frozen=True, tag="get_for_update"):
    key: bytes


class GetWithTimestamp(Message, frozen=True, tag="get_with_timestamp"):
    key: bytes


class ScanRows(Message, frozen=True, tag="scan_rows"):
    span: WireSpan
    limit: int | None
    reverse: bool
    when_locked: str


class Lock(Message, frozen=True, tag="lock"):
    keys: list[bytes]
    mode: str
    when_locked: str


class Unlock(Message, frozen=True, tag="unlock"):
    keys: list[bytes]
    mode: str


class Insert(Message, frozen=True, tag="insert"):
    keys: list[bytes]
    bodies: list[bytes]


class Put(Message, frozen=True, tag="put"):
    keys: list[bytes]
    bodies: list[bytes]


class Delete(Message, frozen=True, tag="delete"):
    keys: list[bytes]


class BeginStatement(Message, frozen=True, tag="begin_statement"):
    pass


class MakeSavepoint(Message, frozen=True, tag="savepoint"):
    """Answered with the savepoint's sequence, by which the next three name it."""


class LookAgain(Message, frozen=True, tag="look_again"):
    savepoint: int
    key: bytes


class Release(Message, frozen=True, tag="release"):
    savepoint: int


class RollbackTo(Message, frozen=True, tag="rollback_to"):
    savepoint: int


class Commit(Message, frozen=True, tag="commit"):
    deadline: Timestamp | None
    commit_called_ns: int


class Rollback(Message, frozen=True, tag="rollback"):
    pass


Operation = (
    Get
    | GetEach
    | FirstExisting
    | GetForUpdate
    | GetWithTimestamp
    | ScanRows
    | Lock
    | Unlock
    | Insert
    | Put
    | Delete
    | BeginStatement
    | MakeSavepoint
    | LookAgain
    | Release
    | RollbackTo
    | Commit
    | Rollback
)


class Operate(Message, frozen=True):
    """One operation. `tracked` are spans that the client has read by other ways since the last."""

    connection: int
    handle: int
    operation: Operation
    tracked: list[WireSpan]
    tracking: bool
    lock_timeout: float | None


class Operated(Message, frozen=True):
    state: TransactionState
    result: msgspec.Raw = msgspec.Raw(b"\xc0")


# Reads at a timestamp, and feeds


class ScanSlices(Message, frozen=True):
    """Asks for slices as the transaction `handle` reads, or without one a snapshot at `at`.

    With `after`, which only a transaction takes, what has changed since then: bodies may be None.
    """

    connection: int
    span: WireSpan
    at: Timestamp | None = None
    handle: int | None = None
    tracking: bool = True
    when_locked: str = "wait"
    lock_timeout: float | None = None
    after: Timestamp | None = None


class PointRead(Message, frozen=True):
    connection: int
    key: bytes
    at: Timestamp
    lock_timeout: float | None


class VersionsRead(Message, frozen=True):
    connection: int
    span: WireSpan
    after: Timestamp
    upto: Timestamp


class Follow(Message, frozen=True):
    connection: int
    starts: list[tuple[bytes, bytes, Timestamp]]
    with_previous: bool
    checkpoint_seconds: float
    omitted_origins: list[int] = []


class WireValues(Message, frozen=True, tag="values"):
    keys: list[bytes]
    values: list[bytes | None]
    timestamps: list[Timestamp]
    previous: list[bytes | None] | None
    commit_called_ns: int
    appended_ns: int
    durable_ns: int


class WireDeleteRange(Message, frozen=True, tag="delete_range"):
    span: WireSpan
    timestamp: Timestamp


class WireCheckpoint(Message, frozen=True, tag="checkpoint"):
    spans: list[WireSpan]
    resolved: Timestamp


class WireSteadyState(Message, frozen=True, tag="steady"):
    span: WireSpan


WireEvent = WireValues | WireDeleteRange | WireCheckpoint | WireSteadyState

Raw = msgspec.Raw

M = TypeVar("M")

encode = msgspec.msgpack.Encoder().encode
NOTHING = encode(None)
_decoders: dict[object, msgspec.msgpack.Decoder[Any]] = {}


def decode(data: bytes | msgspec.Raw, type: type[M]) -> M:
    """The message in `data`. Raises msgspec.ValidationError for any other."""
    decoder = _decoders.get(type)
    if decoder is None:
        decoder = _decoders[type] = msgspec.msgpack.Decoder(type)
    decoded: M = decoder.decode(data)
    return decoded


def wire(span: Span) -> WireSpan:
    return span.start, span.end


def spans_of(spans: Sequence[WireSpan]) -> tuple[Span, ...]:
    return tuple(Span(*span) for span in spans)
