"""The kind of sink behind `tailrace://`: checks URIs and opens sinks of replicas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ....kvlayer.metrics import Metrics
from ...contract.options import PIPELINE_OPTIONS, ChangefeedOptions
from ..kind import Kind, SinkKind
from ..protocol import Sink, SinkContext
from ..uri import redacted_uri
from .location import SCHEME, ReplicaTarget, parse_target
from .requests import ReplicaRequests
from .sink import BackupMaker, ReplicaSink
from .transport import HttpTransport, Transport

__all__ = ["SCHEME", "ReplicaKind", "ReplicatingKind"]


class ReplicatingKind(Kind):
    """A kind of sink that replicates one keyspace into another store, whoever sends the entries.

    A replica outlives its feed, and stays its source's: ALTER KEYSPACE … PROMOTE frees it.
    """

    def __init__(
        self,
        random: Random,
        connect: Callable[[ReplicaTarget], Transport] = HttpTransport,
        backups: BackupMaker | None = None,
    ) -> None:
        self._random = random
        self._connect = connect
        self._backups = backups

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        """Raises SQLError for a URI that cannot be, or for tables. The target need not be there
        yet: the replication waits for it."""
        folder = self.backup_of(uri)
        if folder is not None:
            if self._backups is None:
                raise SQLError("0A000", "this node makes no backups")
            self._backups.check(folder)
        for table in tables:
            if table.keyspace is None:
                raise SQLError(
                    "0A000",
                    f'table "{table.name}" cannot be replicated into another store',
                    hint="A replication is of a raw keyspace.",
                )

    def backup_of(self, uri: str) -> str | None:
        """The folder of the backup that a replica is restored from, if it is to be."""
        return parse_target(uri).backup

    def reserved(self, uri: str, table_names: Iterable[str]) -> frozenset[str]:
        """The keyspace there: it has one source."""
        return frozenset({parse_target(uri).shown})

    def requests(self, uri: str, metrics: Metrics) -> ReplicaRequests:
        """Requests to the replica, beside those that send entries."""
        target = parse_target(uri)
        return ReplicaRequests(target, self._connect(target), self._random, metrics)

    def hosts(self, uri: str) -> Sequence[str]:
        return (parse_target(uri).host,)

    def redacted(self, uri: str) -> str:
        return redacted_uri(uri)


class ReplicaKind(ReplicatingKind, SinkKind):
    """The kind of sink whose entries a node's pipeline sends."""

    transactional = True
    columnar = False
    follows_schema = True
    whole_tables = "The other store has copies of tables, with their keys and columns."
    obeys = PIPELINE_OPTIONS | {"mvcc_timestamp"}

    def check_options(self, options: ChangefeedOptions) -> None:
        """Raises SQLError 0A000 for a feed that would not tell when each row was written."""
        if not options.mvcc_timestamp:
            raise SQLError(
                "0A000",
                "a changefeed cannot write into a keyspace of another store",
                hint="CREATE REPLICATION r FOR KEYSPACE ks INTO 'tailrace://…' does.",
            )

    def create(self, uri: str, context: SinkContext) -> Sink:
        return self.sink(parse_target(uri), context)

    def sink(self, target: ReplicaTarget, context: SinkContext) -> ReplicaSink:
        """A sink of a target, however that was named."""
        requests = ReplicaRequests(
            target,
            self._connect(target),
            self._random,
            context.metrics,
            context.note_trouble,
        )
        return ReplicaSink(target, context, requests, self._backups)
