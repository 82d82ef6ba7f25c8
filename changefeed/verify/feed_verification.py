"""Verifies one feed: its mirrors and logs in a DuckDB file, or its replica in another store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ...catalog.store.descriptor_store import DescriptorStore
from ...catalog.values.errors import SQLError
from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import format_timestamp
from ...kvlayer.errors import BatchTimestampBeforeGC
from ..jobs.details import ChangefeedDetails
from ..jobs.services import ChangefeedServices
from ..jobs.sink_uris import whole_uri
from ..pipeline.boundary import plan_boundary
from ..pipeline.live import LiveFeed, NotTaken
from ..sinks.duckdb import DuckDBKind
from ..sinks.duckdb.reading.log_snapshot import SnapshotLog
from ..sinks.duckdb.reading.snapshot import InLane, MirrorSnapshot
from ..sinks.protocol import SinkError, SinkRefused
from ..sinks.tailrace import ReplicatingKind
from ..targets import KeyspacePart
from .difference import DIFFERENCES_MAX, AnyDifference, Difference
from .log_verification import LogReport, LogVerification
from .repair import repair, repair_log
from .replica_verification import verify_replica
from .verification import Verification, VerifiedQuery


@dataclass(frozen=True, slots=True)
class Verified:
    """The differences, and in `notes` the rows that could not be compared."""

    differences: Sequence[AnyDifference]
    notes: Sequence[str] = ()


@dataclass(slots=True)
class _Found:
    rows: list[Difference] = field(default_factory=list)
    logs: list[LogReport] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class FeedVerification:
    """One VERIFY CHANGEFEED."""

    def __init__(
        self,
        services: ChangefeedServices,
        job_id: int,
        details: ChangefeedDetails,
        live: LiveFeed,
    ) -> None:
        self._services = services
        self._job_id = job_id
        self._details = details
        self._live = live

    async def run(self, *, repairs: bool) -> Verified:
        """Compares the sink with the feed's tables, as of what the sink has resolved. With
        `repairs` differences are sent again where that is sound.

        Raises SQLError, and FeedStopped.
        """
        details = self._details
        kind = self._services.kinds.kind_of(details.sink_uri)
        if isinstance(kind, ReplicatingKind):
            return Verified(await self._verify_replica(kind))
        if not isinstance(kind, DuckDBKind):
            raise SQLError("0A000", "only mirrors in DuckDB files can be verified")
        if any(target.keyspace is not None for target in details.targets):
            raise SQLError("0A000", "only mirrors of tables can be verified, and not of a keyspace")
        if details.node_id != self._services.node_id:
            raise SQLError(
                "0A000",
                f"changefeed {self._job_id} is verified on node {details.node_id}, which holds its "
                "file",
            )
        found = await self._compare(kind)
        differences: list[AnyDifference] = [
            *found.rows,
            *(each for report in found.logs for each in report.differences),
        ]
        if repairs and differences:
            await self._repair(found)
            differences = [_repaired(each) for each in differences]
        return Verified(differences[:DIFFERENCES_MAX], found.notes)

    async def _verify_replica(self, kind: ReplicatingKind) -> list[Difference]:
        services, (target,) = self._services, self._details.targets
        requests = kind.requests(whole_uri(services, self._details), services.store.metrics)
        try:
            table = await services.target(target.table_id, target.keyspace).descriptor_at(
                await services.store.now()
            )
            part = target.keyspace or KeyspacePart()
            return await verify_replica(services.store, table, part, requests)
        except (SinkError, SinkRefused) as error:
            raise SQLError("58030", str(error)) from error
        finally:
            await requests.close()

    async def _compare(self, kind: DuckDBKind) -> _Found:
        store, descriptors = self._services.store, self._services.descriptors
        found = _Found()
        try:
            async with kind.snapshot(self._details.sink_uri, self._job_id) as (snapshot, in_lane):
                if not snapshot.resolved:
                    raise SQLError(
                        "55000", f"changefeed {self._job_id} has not resolved anything yet"
                    )
                query = self._query()
                mirror = Verification(store, descriptors, snapshot, in_lane, query)
                found.rows = await mirror.run()
                await self._compare_logs(snapshot, in_lane, found)
        except (SinkError, SinkRefused) as error:
            raise SQLError("58030", str(error)) from error
        except BatchTimestampBeforeGC as error:
            raise SQLError(
                "55000",
                f"changefeed {self._job_id} has a table that stands where its history is gone: "
                f"{error}",
                hint="ALTER CHANGEFEED … RESCAN TABLE shows the rows of a table again.",
            ) from error
        return found

    async def _compare_logs(self, snapshot: MirrorSnapshot, in_lane: InLane, found: _Found) -> None:
        services = self._services
        for log in snapshot.logs:
            verification = log_verification(
                services.store, services.descriptors, self._details, log, in_lane
            )
            report = await verification.run()
            found.logs.append(report)
            if report.collected:
                found.notes.append(
                    f'log "{verification.name}": {report.collected} rows at or below '
                    f"{format_timestamp(report.threshold)} are not compared: the history of the "
                    "table is garbage-collected up to there"
                )

    def _query(self) -> VerifiedQuery | None:
        """The query of a mirror. It asks nothing of a change but its rows, or no mirror would have
        been made: what it shows of the source is what the mirror has to hold."""
        details, query = self._details, self._details.query
        if query is None:
            return None
        assert not (query.versions or query.previous or query.tells_event), query
        assert self._services.queries is not None, "this node runs the feed"
        created_at = details.created_at or details.start_at
        return VerifiedQuery(query, self._services.queries, created_at)

    async def _repair(self, found: _Found) -> None:
        store, job_id = self._services.store, self._job_id
        try:
            await repair(store, self._services.descriptors, self._live, found.rows)
            for report in found.logs:
                lacking = [each for each in report.differences if each.lacks is not None]
                await repair_log(store, self._live, report.history, lacking)
        except NotTaken as error:
            raise SQLError(
                "55000",
                f"changefeed {job_id} takes no rows again: it does not run, or is at a schema "
                "change",
                hint=f"RESUME JOB {job_id}, or repair when its backfill has ended.",
            ) from error
        except BatchTimestampBeforeGC as error:
            raise SQLError("55000", f"what the log lacks cannot be sent again: {error}") from error


def log_verification(
    store: StoreAccess,
    descriptors: DescriptorStore,
    details: ChangefeedDetails,
    log: SnapshotLog,
    in_lane: InLane,
) -> LogVerification:
    """The verification of one log of a feed.

    The log begins with a scan where its table does. One that joined at its creation has none,
    unless history had been collected by the time that the log began.
    """
    row = log.row
    target = details.target(row.table_id)
    scans = False
    if target is not None and row.begins_at is not None:
        scans = target.scans or bool(target.created_at and row.begins_at > target.start_at)
    plan = partial(plan_boundary, options=details.parsed_options, follows_schema=True)
    return LogVerification(store, descriptors, log, in_lane, scans=scans, plan=plan)


def _repaired(difference: AnyDifference) -> AnyDifference:
    """The same, with the reason why it stays where it does."""
    if isinstance(difference, Difference) or difference.lacks is not None:
        return difference
    why = "a truncation is not sent again" if difference.key is None else "a log is only added to"
    return replace(difference, what=f"{difference.what}; not repaired: {why}")
