"""The protocol of sinks, as the pipeline uses them, and what is told between the two."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.store.node_ids import FIRST_NODE_ID
from ...catalog.values.errors import SQLError
from ...kvlayer.access import ClockReading
from ...kvlayer.clock import ZERO, Timestamp
from ...kvlayer.frontier import part_of
from ...kvlayer.history import StorePosition
from ...kvlayer.metrics import Metrics
from ...kvlayer.process.offload import Offload
from ...kvlayer.settings import Settings
from ...kvlayer.span import Span
from ...schemafeed.table_events import TableEvent
from ..contract.boundary_kind import BoundaryKind
from ..contract.changes import ChangeBatch, Form
from ..contract.options import ChangefeedOptions
from ..encode import FeedOrigin

Holds = Callable[[StorePosition], Awaitable[bool]]
"""Whether a position lies in the past of this store."""

NoteTrouble = Callable[[str | None], None]
"""Is told why a sink tries again by itself, and None when it need not any more."""


def untold(words: str | None) -> None:
    """Does nothing, for a sink whose trouble nobody asks for."""


class SinkError(Exception):
    """The sink failed in a way that trying again may mend, no sooner than in `retry_after` seconds
    where it asked for time."""

    def __init__(self, text: str, *, retry_after: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after = retry_after


def cannot_connect(error: SinkError) -> SQLError:
    """The error of CREATE CHANGEFEED where the sink, or a server that the sink needs, does not
    answer."""
    return SQLError(
        "08001", str(error), hint="A changefeed is created when its sink can be reached."
    )


class SinkRefused(Exception):
    """The sink will never take this feed: the job fails with this message."""


class RowRefused(SinkRefused):
    """The sink will never take one row. With `pauses` the feed is to be paused, and else it fails,
    whatever its `on_error` says."""

    def __init__(self, text: str, *, pauses: bool) -> None:
        super().__init__(text)
        self.pauses = pauses


class PastUnknown(SinkRefused):
    """The sink has seen what the store never wrote."""

    def __init__(self, store_id: str, seen: StorePosition) -> None:
        super().__init__(
            f"the sink was fed from a past that store {store_id} does not have (incarnation "
            f"{seen.incarnation} up to log index {seen.index}): the store was put back from an "
            "older copy, or another copy of it fed the sink, which may hold changes that this "
            "store has not; create the changefeed again: it begins anew"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedIdentity:
    """The feed that owns a progress record. The epoch is the job's claim: a greater one fences off
    a smaller."""

    store_id: str
    job_id: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillProgress:
    """The progress of a table's backfill at a schema event.

    Rows whose keys are below `position` were shown. One that is done stays here until the table's
    frontier has reached the event, so that a feed that starts again does not begin it again.
    """

    table_id: int
    at: Timestamp
    kind: BoundaryKind
    position: bytes = b""
    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkProgress:
    """The progress of a feed: its frontier, whole, and the resolved timestamp.

    That is the low water of the targets that count for it. A target whose part of the frontier is
    below is behind: it joined the feed later, or is paused, and its rows are not yet as of the
    resolved timestamp. The frontier of a table with a backfill stands below that schema event.
    """

    frontier: tuple[tuple[Span, Timestamp], ...]
    """In key order."""
    resolved: Timestamp
    scan_complete: bool
    backfills: tuple[BackfillProgress, ...] = ()

    def low_water(self, span: Span) -> Timestamp:
        """The least timestamp that all of `span` has reached, as far as the frontier tells of
        it."""
        return min(at for _, at in part_of(self.frontier, span))


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkStand:
    """The progress that a transactional sink holds by its own record.

    It was given nothing of the store's log above `position` when it recorded `progress`.
    """

    progress: SinkProgress
    position: StorePosition


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """A version that a sink will never take.

    `key` is the store's own, `shown_key` as messages have it. `at` is the version's timestamp, or
    that of the scan that read it. `message` is what the sink was to take, where that is a message.
    """

    table_id: int
    key: bytes
    shown_key: str
    at: Timestamp
    deleted: bool
    message: bytes | None


class BadRows(Protocol):
    """Handles rows that a sink will never take."""

    @property
    def isolates(self) -> bool:
        """Whether a sink that is refused several rows at once is to find the one that is why."""
        ...

    async def refuse(self, row: BadRow, error: SinkRefused) -> None:
        """Returns when the row is durably a dead letter: only then may the sink go on behind it.
        Raises RowRefused where the feed is to go on with nothing but this row."""
        ...


class Sink(Protocol):
    """The destination of changes.

    `emit` hands over a batch and never waits. `flush` makes all that was emitted durable in the
    sink together with `progress`; a transactional sink does both in one transaction and tells that
    progress by `stand` after a restart.
    """

    async def stand(self) -> SinkStand | None:
        """The stand of the sink, before it is opened: None where it holds no progress of this feed.

        Asked of transactional sinks alone. Raises SinkRefused when the target is another store's.
        """
        return None

    async def open(self, tables: Sequence[TableDescriptor]) -> None:
        """Prepares the sink for these tables, which are as of where it stands.

        A transactional sink that holds no progress begins anew. What it has of a table that is
        neither among these nor `kept` is the feed's no longer: it stays as it is, for whoever wants
        it. Raises SinkRefused when the target belongs to another feed.
        """
        ...

    def emit(self, batch: ChangeBatch) -> None: ...

    def change_schema(self, event: TableEvent) -> None:
        """A schema event of a table, between the batches of that table: never waits.

        Batches under `event.before` may still follow, with what was committed below the event and
        came late. A sink that has a schema changes it with the next flush. After a restart an event
        may be told again. Messages carry their own schema, and their sinks do nothing.
        """
        return

    async def flush(self, progress: SinkProgress | None) -> None:
        """Returns when all emitted so far is durable. A sink that knows better when that was stamps
        `stages.sunk` of the batches.

        `progress` is None where it has not changed. Raises SinkError.
        """
        ...

    async def emit_resolved(self, resolved: Timestamp) -> None:
        """A resolved message, after everything at or below it was flushed and progress saved.

        May be called while a later flush runs. A sink whose flushes tell it does nothing.
        """
        return

    async def close(self) -> None: ...


KeyInterval = tuple[bytes, bytes | None]
"""The keys of a keyspace in `[start, end)`; None is behind the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskKeys:
    """The keys of a keyspace that one task of a replication sends, and those of all its tasks."""

    own: KeyInterval
    whole: KeyInterval

    @property
    def first(self) -> bool:
        """Whether it is the task that does what only one of them does."""
        return self.own[0] == self.whole[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkContext:
    """The parts of the feeding store that a sink may use. Stage times come from `clock.wall`.

    `position` says how far this process has been given the store's log. `kept` are the ids of
    tables that belong to the feed and that it does not follow now: `Sink.open` is not told of them,
    and what the sink has of them stays the feed's.
    """

    identity: FeedIdentity
    position: Callable[[], StorePosition]
    clock: ClockReading
    offload: Offload
    settings: Settings
    metrics: Metrics
    options: ChangefeedOptions
    names: Mapping[int, str] = field(default_factory=dict)
    """The full names of the feed's tables as they were when they joined it, by id."""
    start_at: Timestamp = ZERO
    """The timestamp at which the feed began: it shows no table's changes below."""
    known: SinkProgress | None = None
    """The job's copy of the feed's progress; None before it has any."""
    kept: frozenset[int] = frozenset()
    begins: Mapping[int, Timestamp] = field(default_factory=dict)
    """Where the feed begins with each table that it begins anew, by id: it shows the changes above,
    and in a scan the rows as of then."""
    task: TaskKeys | None = None
    """The keys that this feed sends, where several feeds make one replication together."""
    node_id: int = FIRST_NODE_ID
    bad_rows: BadRows | None = None
    """Without it, what the sink refuses ends the attempt."""
    freshen: Callable[[], Awaitable[None]] | None = None
    """Makes the progress of an idle feed durable in its sink: for a sink that is read."""
    holds: Holds | None = None
    """Without it, every position lies in the past of the store."""
    note_trouble: NoteTrouble = untold

    def origin(self, sink: str) -> FeedOrigin:
        """The feed as messages describe it. `sink` is CockroachDB's word for the kind of sink."""
        return FeedOrigin(
            sink=sink,
            cluster_id=self.identity.store_id,
            job_id=self.identity.job_id,
            node_id=self.node_id,
            unix_us=self.clock.wall.unix_us,
        )


@runtime_checkable
class FormedSink(Protocol):
    """A sink that says itself in which form it would have rows, and not its kind."""

    @property
    def form(self) -> Form: ...
