"""Details: what a changefeed's job row says of it, in bytes.

`ChangefeedDetails` is written with the job, and again by ALTER CHANGEFEED and by the feed itself
when one of its targets has begun, failed or was dropped. `encode_progress` is the job's copy of
how far the feed has come, and `with_end` adds how it ended: from then on what the feed held is
released, and nothing of it runs again. All begin with a format number, so that a later version can
tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import msgspec

from ...catalog.jobs import RETENTION
from ...catalog.store.node_ids import FIRST_NODE_ID
from ...catalog.values.errors import SQLError
from ...kvlayer.clock import ZERO, Timestamp, duration
from ...kvlayer.settings import Settings
from ...kvlayer.span import Span
from ..contract.options import (
    SECRET_OPTIONS,
    ChangefeedOptions,
    DropPolicy,
    ScanChoice,
    parse_options,
)
from ..contract.queries import FeedQuery
from ..pipeline.lag_split import LagSplit
from ..sinks.protocol import BackfillProgress, SinkProgress, TaskKeys
from ..targets import DatabaseTables, KeyspacePart, TargetState

DETAILS_FORMAT = 3
"""Format 1 had one start for all targets, and no states; format 2 no queries and no
databases."""

PROGRESS_FORMAT = 1


class UnknownFormat(Exception):
    """A job row that another version of this program wrote."""


class TargetDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A table or a keyspace that a feed follows: by its id, whatever it is called later.

    It begins at `start_at`, with its rows as of then if it `scans`. `fresh` and `again` are what
    the feed has still to begin: the target anew, whatever the sink has of it, or its rows once more
    as of where it stands.
    """

    table_id: int
    name: str
    """The table's full name when it joined the feed, for show."""
    start_at: Timestamp = ZERO
    scans: bool = True
    state: TargetState = TargetState.RUNNING
    """RUNNING, or why the feed does not follow it."""
    error: str | None = None
    fresh: bool = False
    again: bool = False
    again_at: Timestamp = ZERO
    """The timestamp as of which it is shown again, once that is known."""
    protection_id: bytes = b""
    """The protected timestamp that keeps what is not read of it; empty: it is the feed's own."""
    keyspace: KeyspacePart | None = None
    """The keys that are sent, where it is a raw keyspace."""
    created_at: Timestamp = ZERO
    """The timestamp of the table's creation, if it joined a feed of its database then."""
    dropped_at: Timestamp = ZERO
    """When the feed went on without the table, which was dropped. It is told of for as long as a
    job that has ended (`told_since`)."""

    @property
    def refused(self) -> bool:
        """Whether it could not join the feed of its database: nothing of it is protected, and its
        place at the sink is not the feed's."""
        return self.state is TargetState.FAILED and self.fresh and not self.protection_id


class ReplicationTask(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a feed as one task of a replication: the `number`th by its keys, from one on.

    All tasks together send the keys of the `whole`; as many as `workers` may be made of it.
    """

    number: int
    workers: int
    whole: KeyspacePart


class ChangefeedDetails(msgspec.Struct, frozen=True, kw_only=True):
    """The definition of a changefeed: its tables, its sink and its options, as they were asked for.

    `start_at` is the cursor where one was given, else the time of the statement: the targets that
    the feed began with are scanned there, and their changes are those above it.
    """

    format: int = DETAILS_FORMAT
    store_id: str
    targets: tuple[TargetDetails, ...]
    sink_uri: str
    """As anybody may see it: where it holds a secret, `sealed_uri` is the whole."""
    options: Mapping[str, str | None]
    user_name: str
    owner_logs_in: bool = False
    """Whether the owner could log in when the feed was made: then it ends with the login."""
    start_at: Timestamp
    protection_id: bytes
    """The protected timestamp that keeps what the feed has not read yet."""
    node_id: int = FIRST_NODE_ID
    """The node where it was created: a target that is that node's file is written there alone."""
    sealed_uri: bytes = b""
    connection: str = ""
    """The external connection that the feed was created into."""
    replication: str = ""
    """The name of a feed into a replica of its keyspace."""
    task: ReplicationTask | None = None
    """The feed's place where several make the replication."""
    once: tuple[int, ...] = ()
    """The ids of tables that ALTER CHANGEFEED has dropped from the feed: of these the sink may
    still hold something that is the feed's."""
    query: FeedQuery | None = None
    """The query of the changes of its one table, where not all of them are shown."""
    created_at: Timestamp = ZERO
    """The time of the statement that created the feed."""

    whole_database: DatabaseTables | None = None
    """The database that the feed follows: tables join at their creation, dropped ones leave."""

    @property
    def task_keys(self) -> TaskKeys | None:
        """The keys among the replication's that this task sends to the sink, where it has tasks."""
        part = self.targets[0].keyspace if self.targets else None
        if self.task is None or part is None:
            return None
        whole = self.task.whole
        return TaskKeys(own=(part.start, part.end), whole=(whole.start, whole.end))

    def together_with(self, other: ChangefeedDetails) -> bool:
        """Whether both are tasks of one replication."""
        return (
            self.task is not None
            and other.task is not None
            and (self.replication, self.created_at) == (other.replication, other.created_at)
        )

    @property
    def shown_sink(self) -> str:
        """The sink as the feed's owner named it, without secrets."""
        return f"external://{self.connection}" if self.connection else self.sink_uri

    @property
    def parsed_options(self) -> ChangefeedOptions:
        """The options, but for secret ones, which are sealed (`sealed_options`). Raises SQLError
        where another version of this program took an option that this one refuses."""
        return parse_options(self._open_options, self.query)

    @property
    def taken_options(self) -> ChangefeedOptions:
        """The part of `parsed_options` that this version takes: for whoever shows a feed or ends
        it, and runs nothing of it."""
        return parse_options(self._taken, self.query)

    @property
    def refused_options(self) -> frozenset[str]:
        """The names of the options that this version refuses, alone or beside the others."""
        return frozenset(self._open_options.keys() - self._taken.keys())

    @property
    def _open_options(self) -> dict[str, str | None]:
        return {
            name: text for name, text in self.options.items() if name.lower() not in SECRET_OPTIONS
        }

    @property
    def _taken(self) -> dict[str, str | None]:
        found = self._open_options
        with suppress(SQLError):
            parse_options(found, self.query)
            return found
        taken: dict[str, str | None] = {}
        for name, text in found.items():
            with suppress(SQLError):
                parse_options({**taken, name: text}, self.query)
                taken[name] = text
        return taken

    @property
    def drop_policy(self) -> DropPolicy:
        """The action when one of its tables was dropped: a feed of a database goes on, unless it
        was told otherwise."""
        if self.whole_database is not None and "on_table_dropped" not in self.options:
            return DropPolicy.LEAVE
        return self.taken_options.on_table_dropped

    @property
    def followed(self) -> tuple[TargetDetails, ...]:
        return tuple(target for target in self.targets if target.state.followed)

    @property
    def protections(self) -> dict[bytes, list[TargetDetails]]:
        """The records of protected timestamps that the feed needs, and the targets that each is
        for."""
        found: dict[bytes, list[TargetDetails]] = {self.protection_id: []}
        for target in self.targets:
            found.setdefault(target.protection_id or self.protection_id, []).append(target)
        return found

    def target(self, table_id: int) -> TargetDetails | None:
        return next((each for each in self.targets if each.table_id == table_id), None)

    def with_target(self, changed: TargetDetails) -> ChangefeedDetails:
        targets = tuple(
            changed if each.table_id == changed.table_id else each for each in self.targets
        )
        return msgspec.structs.replace(self, targets=targets)

    def dropped_before(self, at: Timestamp) -> tuple[TargetDetails, ...]:
        """The targets that were dropped so long ago that nobody is told of them any more."""
        return tuple(each for each in self.targets if each.state.final and each.dropped_at < at)

    def told_after(self, at: Timestamp) -> ChangefeedDetails:
        """The same, without what was dropped before `at`."""
        forgotten = self.dropped_before(at)
        if not forgotten:
            return self
        left = tuple(each for each in self.targets if each not in forgotten)
        return msgspec.structs.replace(self, targets=left)

    def begun(self) -> ChangefeedDetails:
        """The same, with nothing that is still to begin."""
        targets = tuple(
            msgspec.structs.replace(each, fresh=False, again=False, again_at=ZERO)
            for each in self.targets
        )
        return msgspec.structs.replace(self, targets=targets)

    def asks_more_than(self, earlier: ChangefeedDetails) -> bool:
        """Whether a feed that runs by `earlier` is to do something else."""
        if self.begun() != earlier.begun():
            return True
        pairs = zip(self.targets, earlier.targets, strict=True)
        return any(
            (now.fresh and not was.fresh) or (now.again and not was.again) for now, was in pairs
        )


def told_since(settings: Settings, now: Timestamp) -> Timestamp:
    """The timestamp since when a feed tells of tables that it has gone on without."""
    return Timestamp(now - duration(seconds=settings.get(RETENTION)))


class _Entry(msgspec.Struct, array_like=True, frozen=True):
    start: bytes
    end: bytes
    timestamp: Timestamp


class SendingReport(msgspec.Struct, frozen=True, kw_only=True):
    """The figures that only the node that runs a replication's task knows of it, as it last told
    the others.

    `rows` were sent since that node took the task up, in so many `attempts`. `rows_per_second` is
    how many the replica acknowledged of late; `lag` is where the task's lag arises. Both are None
    where there is nothing to tell them from yet.
    """

    rows: int
    attempts: int
    rows_per_second: float | None = None
    lag: LagSplit | None = None


class _Progress(msgspec.Struct, frozen=True, kw_only=True):
    format: int = PROGRESS_FORMAT
    frontier: list[_Entry]
    resolved: Timestamp
    scan_complete: bool
    backfills: tuple[BackfillProgress, ...] = ()
    end: str | None = None
    sending: SendingReport | None = None


NO_PROGRESS = _Progress(frontier=[], resolved=ZERO, scan_complete=False)

_encode = msgspec.msgpack.Encoder().encode
_details_decoder = msgspec.msgpack.Decoder(ChangefeedDetails)
_progress_decoder = msgspec.msgpack.Decoder(_Progress)


def encode_details(details: ChangefeedDetails) -> bytes:
    return _encode(details)


def decode_details(payload: bytes) -> ChangefeedDetails:
    """Raises UnknownFormat."""
    details = _details_decoder.decode(payload)
    _check(details.format, DETAILS_FORMAT, "details")
    if details.format == 1:
        return _from_format_1(details)
    return msgspec.structs.replace(details, format=DETAILS_FORMAT)


def _from_format_1(details: ChangefeedDetails) -> ChangefeedDetails:
    scans = details.taken_options.initial_scan is not ScanChoice.NO
    targets = tuple(
        msgspec.structs.replace(target, start_at=details.start_at, scans=scans)
        for target in details.targets
    )
    return msgspec.structs.replace(details, format=DETAILS_FORMAT, targets=targets)


def encode_progress(progress: SinkProgress, sending: SendingReport | None = None) -> bytes:
    return _encode(
        _Progress(
            frontier=[_Entry(span.start, span.end, at) for span, at in progress.frontier],
            resolved=progress.resolved,
            scan_complete=progress.scan_complete,
            backfills=progress.backfills,
            sending=sending,
        )
    )


def decode_sending(data: bytes | None) -> SendingReport | None:
    """The report that was saved with the progress, if one was."""
    return _progress_decoder.decode(data).sending if data else None


def decode_progress(data: bytes) -> SinkProgress:
    """Raises UnknownFormat."""
    progress = _progress_decoder.decode(data)
    _check(progress.format, PROGRESS_FORMAT, "progress")
    return SinkProgress(
        # Earlier versions saved frontiers that are not in key order.
        frontier=tuple(
            sorted((Span(entry.start, entry.end), entry.timestamp) for entry in progress.frontier)
        ),
        resolved=progress.resolved,
        scan_complete=progress.scan_complete,
        backfills=progress.backfills,
    )


def with_end(data: bytes | None, why: str) -> bytes:
    """The progress of a feed that has ended: by the error `why`, or with its work done if empty."""
    found = _progress_decoder.decode(data) if data else NO_PROGRESS
    return _encode(msgspec.structs.replace(found, end=why))


def decode_end(data: bytes | None) -> str | None:
    """The reason for which the feed has ended, or None if it has not. Raises UnknownFormat."""
    if not data:
        return None
    progress = _progress_decoder.decode(data)
    _check(progress.format, PROGRESS_FORMAT, "progress")
    return progress.end


def _check(found: int, newest: int, what: str) -> None:
    if not 1 <= found <= newest:
        raise UnknownFormat(f"changefeed {what} of format {found}, this program reads {newest}")
