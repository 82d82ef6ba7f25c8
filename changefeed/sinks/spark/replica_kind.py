"""The kind of sink behind `spark+tailrace://`: replications whose entries Spark sends.

The epoch is begun and the progress told from here, as a replication without Spark does it; the
application sends entries in that epoch, and nothing else. So a run that outlives its server sends
in vain once there is another.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ....kvlayer.clock import Timestamp, duration
from ....kvlayer.metrics import Metrics
from ....kvlayer.process.offload import Offload
from ....kvlayer.replication.replica import Ingest, origin_of, source_of
from ....kvlayer.settings import Settings
from ...contract.options import ScanChoice
from ..protocol import PastUnknown, SinkError, SinkRefused
from ..tailrace import (
    BackupMaker,
    ReplicaRequests,
    ReplicaTarget,
    ReplicatingKind,
    parse_target,
    read_stand,
    restore_replica,
    written_note,
)
from ..worker import WorkerFeed, WorkerKind
from ..worker_tokens import Worker, WorkerTokens
from .application import LakeServer, SparkApplication, progress_at
from .java import why_no_spark
from .kind import OPTIONS
from .masters import MASTERS, check_master

MODULE = "tailrace.changefeed.spark.replication"


class SparkReplicaKind(ReplicatingKind, WorkerKind):
    """Replicates one keyspace into another store, by a PySpark application that it supervises."""

    local = True
    obeys = OPTIONS | {"mvcc_timestamp"}

    def __init__(
        self,
        random: Random,
        kept_seconds: Callable[[], float],
        backups: BackupMaker,
        offload: Offload,
        server: LakeServer | None,
        tokens: WorkerTokens,
        settings: Settings,
        metrics: Metrics,
    ) -> None:
        """`kept_seconds` says for how long keyspaces of this store keep a deletion."""
        super().__init__(random, backups=backups)
        self._kept_seconds = kept_seconds
        self._lane = offload.lane("spark")
        self._server = server
        self._tokens = tokens
        self._settings = settings
        self._metrics = metrics

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        """Raises SQLError also for a master that cannot be, and where Spark cannot run."""
        await super().validate(uri, tables, store_id=store_id)
        check_master(parse_target(uri).master, self._settings.get(MASTERS))
        self._asked()
        missing = await self._lane.run(why_no_spark)
        if missing is not None:
            raise SQLError("58030", f"a replication by Spark cannot run: {missing}")

    async def run(self, feed: WorkerFeed) -> None:
        target = parse_target(feed.uri)
        try:
            check_master(target.master, self._settings.get(MASTERS))
        except SQLError as error:  # the list of masters was another before
            raise SinkRefused(error.message) from error
        server = self._asked()
        requests = self.requests(feed.uri, self._metrics)
        try:
            if target.backup is not None:
                assert self._backups is not None, "the kind was made with them"
                await restore_replica(
                    requests, self._backups, target.backup, feed.table_id, feed.name, feed.start_at
                )
            with self._tokens.lent(Worker(feed.user, feed.table_id)) as token:
                await _Replication(feed, target, requests, server, token, self).run()
        finally:
            await requests.close()

    @property
    def deletion_kept(self) -> int:
        return duration(seconds=self._kept_seconds())

    async def certificates(self, target: ReplicaTarget) -> str | None:
        """The certificates by which the target is trusted, in PEM. Raises SinkError."""
        if target.root_certificate is None:
            return None
        try:
            return await self._lane.run(Path(target.root_certificate).read_text)
        except (OSError, UnicodeDecodeError):  # why is not told: it would tell of any file
            raise SinkError(
                f"{target.shown}: sslrootcert names no certificates in PEM that the node reads"
            ) from None

    def _asked(self) -> LakeServer:
        if self._server is None:
            raise SinkRefused(
                "a replication by Spark is sent by an application that asks a server: run "
                "`tailrace serve`"
            )
        return self._server


@dataclass(slots=True)
class _Replication:
    """One epoch of a replica: from its resolved timestamp until the application ends."""

    feed: WorkerFeed
    target: ReplicaTarget
    requests: ReplicaRequests
    server: LakeServer
    token: str
    kind: SparkReplicaKind
    epoch: int = 0

    @property
    def _origin(self) -> int:
        return origin_of(self.feed.identity.store_id)

    @property
    def _source(self) -> str:
        return source_of(self.feed.identity.store_id, self.feed.table_id)

    async def run(self) -> None:
        """Raises SinkError and SinkRefused."""
        feed = self.feed
        stand = await self.requests.open(self._source)
        self.epoch = stand.epoch
        begun = read_stand(stand, feed.position())
        if begun is not None and not await feed.holds(begun.position):
            raise PastUnknown(feed.identity.store_id, begun.position)
        start, scans = feed.start_at, feed.options.initial_scan is not ScanChoice.NO
        if begun is not None and begun.progress.scan_complete:
            start, scans = begun.progress.resolved, False
        application = SparkApplication(
            MODULE, self._arguments(start, scans), await self._told(), self.token, self._note
        )
        application.check(await application.run())

    async def _note(self, resolved: Timestamp, rows: int) -> None:
        """The replica has acknowledged a batch, and is told what is resolved with it."""
        feed = self.feed
        progress = progress_at(feed, resolved)
        note = written_note(progress, feed.position())
        order = Ingest(
            source=self._source,
            epoch=self.epoch,
            origin=self._origin,
            resolved=resolved,
            note=note,
        )
        await self.requests.send(order)
        await feed.report(progress, rows)

    def _arguments(self, start: Timestamp, scans: bool) -> list[str]:
        feed, job_id = self.feed, self.feed.identity.job_id
        return [
            f"--start={start}",
            f"--initial-scan={'yes' if scans else 'no'}",
            f"--workers={self.target.workers or 0}",
            f"--master={self.target.master}",
            f"--name=tailrace replication {job_id}",
            f"--trigger-seconds={feed.options.min_checkpoint_frequency}",
        ]

    async def _told(self) -> dict[str, object]:
        target, server = self.target, self.server
        source = {"url": server.url, "table": str(self.feed.table_id), **server.told(self.token)}
        login = base64.b64encode(f"{target.user}:{target.password}".encode()).decode()
        return {
            "source": source,
            "target": {
                "address": target.address,
                "tls": target.tls,
                "certificates": await self.kind.certificates(target),
                "authorization": f"Basic {login}",
                "place": f"/v1/keyspaces/{target.keyspace}/ingest",
                "source": self._source,
                "epoch": self.epoch,
                "origin": self._origin,
                "kept": self.kind.deletion_kept,
                "concurrency": target.concurrency,
                "batch_size": target.batch_size,
                "rate_limit": target.rate_limit,
                "backoff_min": target.backoff_min,
                "backoff_max": target.backoff_max,
            },
        }
