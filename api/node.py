"""A node: everything that a store needs to serve statements and feeds, put together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from secrets import token_bytes, token_urlsafe

import pyarrow as pa

from ..catalog.descriptors.descriptor import TableDescriptor
from ..catalog.descriptors.names import TableName
from ..catalog.descriptors.system_tables import DEFAULT_DATABASE, DESCRIPTOR, NAMESPACE
from ..catalog.jobs import JobRegistry, Resumer
from ..catalog.leases import LeaseManager, LivenessSession
from ..catalog.rights.audit import Audit, NoAudit
from ..catalog.rights.privileges import Privilege
from ..catalog.rights.rights_watcher import RightsWatcher
from ..catalog.rights.users import ROOT
from ..catalog.schema_change.job import JOB_KIND as SCHEMA_CHANGE
from ..catalog.schema_change.job import SchemaChanger
from ..catalog.schema_change.jobs import SchemaChanges
from ..catalog.schema_change.type_change import JOB_KIND as TYPE_CHANGE
from ..catalog.schema_change.type_change import TypeChanger
from ..catalog.store.catalog import Catalog
from ..catalog.store.cluster_settings import SettingsWatcher
from ..catalog.store.descriptor_store import DescriptorStore
from ..catalog.store.node_ids import FIRST_NODE_ID
from ..catalog.store.secrets import store_secret
from ..catalog.values.errors import SQLError
from ..changefeed import JOB_KIND, Changefeeds, ChangefeedServices, LiveFeed, StoreJobs
from ..changefeed.backup import Bootstrap, KeyspaceBackups
from ..changefeed.connections import Sealer
from ..changefeed.export import Positions
from ..changefeed.jobs.reservations import lives
from ..changefeed.schedules import SCHEDULE_KIND
from ..changefeed.sinks import SinkKinds, default_kinds
from ..changefeed.sinks.delta import SCHEME as DELTA_SCHEME
from ..changefeed.sinks.delta import DeltaKind
from ..changefeed.sinks.duckdb import DuckDBFiles, MirrorSources
from ..changefeed.sinks.duckdb.files import READ_LANES
from ..changefeed.sinks.duckdb.hosting import (
    MirrorWorker,
    PlacedKind,
    PlacedReader,
    Placement,
    start_worker,
)
from ..changefeed.sinks.files import SCHEMES as FILES_SCHEMES
from ..changefeed.sinks.files import FilesKind
from ..changefeed.sinks.iceberg import SCHEME as ICEBERG_SCHEME
from ..changefeed.sinks.iceberg import IcebergKind
from ..changefeed.sinks.kafka import SCHEMES as KAFKA_SCHEMES
from ..changefeed.sinks.kafka import KafkaKind
from ..changefeed.sinks.locations import SCHEME, MirrorLocations
from ..changefeed.sinks.objects import SCHEMES as OBJECTS_SCHEMES
from ..changefeed.sinks.objects import ObjectsKind
from ..changefeed.sinks.postgres import SCHEMES as POSTGRES_SCHEMES
from ..changefeed.sinks.postgres import PostgresKind
from ..changefeed.sinks.spark import FORMATS, SCHEME_PREFIX, LakeServer, SparkKind, SparkReplicaKind
from ..changefeed.sinks.tailrace import SCHEME as TAILRACE_SCHEME
from ..changefeed.sinks.tailrace import SPARK_SCHEME, ReplicaKind
from ..changefeed.sinks.webhook import SCHEMES as WEBHOOK_SCHEMES
from ..changefeed.sinks.webhook import WebhookKind
from ..changefeed.sinks.worker_tokens import WorkerTokens
from ..kvlayer.access import StoreAccess, Transaction
from ..kvlayer.clock import Timestamp
from ..kvlayer.engine import EngineFailed
from ..kvlayer.errors import ClockStopped, KVError
from ..kvlayer.files.data_folder import DataFolderError
from ..kvlayer.log import LogCorrupt
from ..kvlayer.process.memory import share
from ..kvlayer.process.offload import Offload, ThreadOffload
from ..kvlayer.protected_timestamp import ProtectedTimestamps
from ..kvlayer.raw import DELETED_TTL, Leadership
from ..kvlayer.span import Span
from ..kvlayer.store import Store
from ..sql import (
    ROWS_PER_TRANSACTION,
    Analytics,
    Batches,
    LoadMode,
    LoadReport,
    MirrorSession,
    PlacedAnalytics,
    Services,
    Session,
    load,
)
from ..sql.execute.columnar_cache import ColumnarCache
from ..sql.execute.ddl.analytic_rows import AnalyticRows
from ..sql.execute.query.feed_queries import FeedQueries
from ..sql.execute.write.relaxed_load import RelaxedLogs
from ..sql.introspection.registry import find_virtual
from ..sql.runtime.analytic_lanes import Lanes, asker
from ..sql.runtime.authorization import Actor, require_on
from ..sql.runtime.keyspaces import RawKeyspaces
from ..sql.runtime.relations import orphans
from ..sql.runtime.transactions import alone
from ..sql.session.temporary_tables import sweep
from .audit_log import AuditFile
from .backup.served import Backups
from .feeds import ChangefeedResumer, ScheduleResumer
from .joined_store import JoinTarget, OracleStore, identify, join_store
from .loop_delay import LoopDelay
from .loop_steps import LoopSteps
from .mirror_rights import check_mirror, refused
from .node_folder import NodeFolder
from .passwords import Guesses, Passwords
from .refusal import NodeRefused
from .rpc import AuthorityError, JoinToken, JoinTokenError, RpcServer, StoreService
from .secret_key import secret_key
from .served_store import MIRROR_FOLDER, open_storage, start_leadership, start_store

MIRROR_SCHEME = f"{SCHEME}:"
MIRROR_DATABASE = "mirror:"
"""What the names of mirrors begin with, as databases of the Postgres door."""

MIRROR_SUFFIX = ".duckdb"

FULL, SALVAGED = "full", "salvage"
SALVAGED_REASON = (
    "the store is open with --salvage: its files are not compacted, add up and make reads slower; "
    "save what is sound, restore the data folder from a backup and start without --salvage"
)

NO_SUCH_FILE = "58P01"
WORKER_TOKEN_BYTES = 32

FEED_QUERY_LANES = 2
"""Batches of CDC queries that are computed at once: all use the same threads of DuckDB."""

MIRROR_RESULT_BYTES_MAX = share(8, at_most=256 * 1024 * 1024)
"""What a query of a mirror may return: it is held whole until its reply is written."""

PROTECTED_WITH_ALL = (DESCRIPTOR.primary_span, NAMESPACE.primary_span)
"""What a feed needs to read its tables as of any time: kept as long as anything is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    """The options of a node. `mirror_roots` are the folders where mirrors and lakes may lie.

    Without any, they lie in the folder `mirrors` of the data folder. `server` is where the node's
    HTTP door will be, for applications that ask it; None if there will be none.
    """

    mirror_roots: tuple[Path, ...] = ()
    server: LakeServer | None = None
    secret_key_file: Path | None = None
    """The key of sinks' secrets; without it, one in the node's own folder."""
    oracle: JoinTarget | None = None
    """Where a store takes its time from; without it, from this machine."""
    salvage: bool = False
    """Whether the store's files are damaged, and what is sound is to be saved: no compaction."""


class Node:
    """A store with its catalog, jobs, feeds and sessions. Made by `open`, ended by `close`."""

    def __init__(
        self,
        services: Services,
        jobs: JobRegistry,
        feeds: Changefeeds,
        placement: Placement,
        *,
        node_id: int,
        served: Store | None,
        worker_tokens: WorkerTokens,
        passwords: Passwords,
        decoy_key: bytes,
        relaxed: RelaxedLogs,
    ) -> None:
        self.id = node_id
        self.store = services.store
        self.served = served
        """The store, where it is this process that serves it."""
        self.backups: Backups | None = None
        """The backups of the data folder that this process serves, if it has one."""
        self.salvaged = False
        """Whether the store is open to save what is sound of damaged files."""
        self.services = services
        self.jobs = jobs
        self.feeds = feeds
        self.relaxed = relaxed
        self.keyspaces = RawKeyspaces(services)
        self.mirrors = PlacedReader(placement)
        self.positions = Positions(
            services.store,
            services.catalog.descriptors,
            ProtectedTimestamps(services.store, always=PROTECTED_WITH_ALL),
        )
        self.worker_tokens = worker_tokens
        self.passwords = passwords
        self.decoy_key = decoy_key
        """What the salts of users who do not exist are made of."""
        self.loop_delay = LoopDelay(services.store.clock.wall)
        self.loop_steps = LoopSteps()
        self._files = placement.files
        self._mirror_lanes = Lanes(READ_LANES)
        self._closing = AsyncExitStack()

    @classmethod
    async def open(cls, path: str | PathLike[str], options: NodeOptions | None = None) -> Node:
        """Opens the store in the folder `path`, or a new one in memory for ":memory:".

        Raises NodeRefused when another process serves the folder, another format version wrote it,
        its files are damaged, its disk is full, or a mirror root is not a folder.
        """
        pa.array([0])  # imports pandas, where there is one: a third of a second, and not later
        async with AsyncExitStack() as closing:
            try:
                options = options or NodeOptions()
                storage = open_storage(path, closing, compaction=not options.salvage)
                options = _with_roots(storage.mirrors, options)
                offload = ThreadOffload()
                closing.callback(offload.close)
                oracle = None if options.oracle is None else OracleStore(options.oracle)
                store = await start_store(storage, offload, closing, oracle)
                leadership = await start_leadership(store, oracle, closing)
                base = _Foundation(store, FIRST_NODE_ID, options, offload, closing, storage.folder)
                node = await _assemble(base, leadership)
                node.salvaged = options.salvage
                if storage.checkpoint is not None and storage.folder is not None:
                    lane = offload.lane("backup", background=True)
                    node.backups = Backups(store, storage.checkpoint, storage.folder, lane)
            except (
                AuthorityError, ClockStopped, DataFolderError, EngineFailed, JoinTokenError,
                LogCorrupt,
            ) as error:  # fmt: skip
                raise NodeRefused(str(error)) from error
            node._closing = closing.pop_all()
        return node

    @classmethod
    async def join(
        cls, path: str | PathLike[str], target: JoinTarget, options: NodeOptions | None = None
    ) -> Node:
        """A node of the store that another process serves; `path` is the node's own folder.

        Raises NodeRefused when nobody answers there, when it is not let in, and when the folder is
        another node's or another store's.
        """
        pa.array([0])
        async with AsyncExitStack() as closing:
            try:
                folder = NodeFolder.open(Path(path))
                closing.callback(folder.close)
                offload = ThreadOffload()
                closing.callback(offload.close)
                store = await join_store(target, closing)
                node_id = await identify(folder, store)
                options = _with_roots(folder.path / MIRROR_FOLDER, options or NodeOptions())
                base = _Foundation(store, node_id, options, offload, closing, folder.path)
                node = await _assemble(base, None)
            except (AuthorityError, DataFolderError, JoinTokenError) as error:
                raise NodeRefused(str(error)) from error
            except KVError as error:
                raise NodeRefused(f"cannot join {target.address}: {error}") from error
            node._closing = closing.pop_all()
        return node

    async def serve_nodes(
        self,
        host: str,
        port: int,
        token: JoinToken,
        certificate: tuple[bytes, bytes] | None = None,
    ) -> int:
        """Serves the store to nodes that join it, until the node closes: by TLS with a certificate
        and its key (PEM), else in the clear. Returns the port."""
        assert self.served is not None, "a joined node has no store to serve"
        server = RpcServer(StoreService(self.served), token)
        try:
            bound = await server.start(host, port, certificate)
        except RuntimeError as error:
            raise NodeRefused(f"cannot listen for nodes on {host}:{port}: {error}") from error
        self._closing.push_async_callback(server.close)
        return bound

    @property
    def notice(self) -> str | None:
        """The work of recovery, in a sentence, where it is worth telling."""
        return None if self.served is None else self.served.log.notice

    @property
    def degraded(self) -> tuple[str, str] | None:
        """The status of a store that answers and is not well, in a word, and the reason."""
        full = None if self.served is None else self.served.log.full
        if full is not None:
            return FULL, f"the log has no room for another segment: {full}"
        return (SALVAGED, SALVAGED_REASON) if self.salvaged else None

    def session(
        self, *, database: str | None = None, user: str = ROOT, address: str = ""
    ) -> Session:
        """A new session of a client at `address`; in `defaultdb` if none is named. Close it."""
        session = Session(self.services, database=database or DEFAULT_DATABASE, user=user)
        session.activity.client_address = address
        return session

    def mirror_session(self, name: str, *, user: str, address: str = "") -> MirrorSession:
        """A session of the mirror in the file `name`, or in `name.duckdb`. Close it.

        Raises SQLError where no mirror can lie.
        """
        plain = self._files.locations.read_target(name).is_file() or name.endswith(MIRROR_SUFFIX)
        location = name if plain else name + MIRROR_SUFFIX
        session = MirrorSession(
            self.services,
            database=f"{MIRROR_DATABASE}{name}",
            user=user,
            read=partial(self._mirror_rows, location),
        )
        session.activity.client_address = address
        return session

    def actor(self, user: str, database: str, reader: Transaction) -> Actor:
        """A user in a database, whose rights are judged as `reader` sees them."""
        return Actor(self.services, user, database, reader)

    async def require(self, user: str, table: TableDescriptor, privileges: Privilege) -> None:
        """Raises SQLError 42501 where the user lacks privileges on the table."""
        await require_on(self.services, user, table, privileges)

    async def transact(self, work: Callable[[Transaction], Awaitable[None]]) -> None:
        """Does work in a transaction of its own, tried until it is committed."""
        await alone(self.services, lambda transaction, _: work(transaction))

    async def load(
        self,
        table: str,
        data: Batches,
        *,
        mode: LoadMode = LoadMode.ERROR,
        database: str = DEFAULT_DATABASE,
        rows_per_transaction: int = ROWS_PER_TRANSACTION,
        user: str = ROOT,
    ) -> LoadReport:
        """Bulk-loads `data` into the table of that name, which may be qualified by dots."""
        name = TableName.resolve(table.split("."), current_database=database)
        return await load(
            self.services,
            name,
            data,
            mode=mode,
            rows_per_transaction=rows_per_transaction,
            user=user,
        )

    async def read_mirror(
        self,
        location: str,
        sql: str,
        parameters: Sequence[object] = (),
        *,
        user: str = ROOT,
        wait_for: Timestamp | None = None,
    ) -> pa.Table:
        """The rows of one SELECT of DuckDB's SQL on a mirror: a statement of a session of its own,
        which is listed, cancelled and timed as any other, and begins when the mirror's feeds hold
        everything at or below `wait_for`. Raises SQLError, 55000 for a feed that does not run."""
        session = self.session(user=user)

        async def read() -> pa.Table:
            try:
                if wait_for is not None:
                    for job_id in await self._feeds_into(location):
                        await self.services.jobs.wait(job_id, wait_for, seconds=None)
            except SQLError:
                # Who may not read the mirror hears that, and nothing of its feeds.
                await self._mirror_rows(location, "SELECT 1", (), user)
                raise
            return await self._mirror_rows(location, sql, parameters, user)

        try:
            return await session.run_apart(sql, read)
        finally:
            await session.close()

    async def _mirror_rows(
        self, location: str, sql: str, parameters: Sequence[object], user: str
    ) -> pa.Table:
        """Judges the right to read by what the file holds as the query sees it, and again at each
        change of rights while it runs."""
        seen: MirrorSources | None = None

        async def check() -> None:
            if seen is not None:
                await check_mirror(self.services, user, location, seen)

        async def permit(sources: MirrorSources) -> None:
            nonlocal seen
            seen = sources
            await check()

        def read() -> Coroutine[None, None, pa.Table]:
            return self.mirrors.read(
                location, sql, parameters, permit=permit, bytes_max=MIRROR_RESULT_BYTES_MAX
            )

        try:
            async with self._mirror_lanes.one(asker()):
                return await self.services.rights.during(check, read)
        except SQLError as error:
            if error.sqlstate == NO_SUCH_FILE and not self.services.rights.current.admin(user):
                raise refused(user, location) from error
            raise

    def feed(self, job_id: int) -> LiveFeed:
        """A changefeed as this node knows it; one that has not begun yet is waited for."""
        return self.feeds.watch(job_id)

    def divide(self, span: Span) -> Sequence[Span]:
        """The span cut at the borders of ranges, which only the process that serves it knows."""
        return [span] if self.served is None else self.served.divide(span)

    async def wait_for_mirror(self, location: str, until: Timestamp | None) -> Timestamp:
        """Waits until all feeds into a mirror hold everything at or below `until` (now if None)."""
        at = await self.store.now() if until is None else until
        for job_id in await self._feeds_into(location):
            await self.feed(job_id).wait_until(at)
        return at

    async def _feeds_into(self, location: str) -> list[int]:
        """The jobs of this node that feed the mirror and have not ended."""
        path = self._files.locations.read_target(location)
        return [
            job.id
            for job in await self.jobs.list()
            if job.kind == JOB_KIND
            and not job.state.final
            and self.feeds.runs_here(job.id, job.payload)
            and self._feeds_file(self.feeds.status(job.id, job.payload, None).target_uri, path)
        ]

    def _feeds_file(self, sink: str, path: Path) -> bool:
        return sink.startswith(MIRROR_SCHEME) and self._path_of(sink) == path

    def _path_of(self, sink: str) -> Path:
        return self._files.locations.target(sink).path

    async def close(self) -> None:
        """Ends feeds, leases and the store. Closing twice is closing once."""
        await self._closing.aclose()


@dataclass(frozen=True, slots=True)
class _Foundation:
    """The store and the options that a node's parts share. `closing` ends their work in reverse."""

    store: StoreAccess
    node_id: int
    options: NodeOptions
    offload: Offload
    closing: AsyncExitStack
    folder: Path | None
    """The node's own; a store in memory has none."""


@dataclass(frozen=True, slots=True)
class _Leased:
    """The catalog as a node holds it: descriptors under leases, rights as of now."""

    descriptors: DescriptorStore
    leases: LeaseManager
    session: LivenessSession
    rights: RightsWatcher


async def _assemble(base: _Foundation, leadership: Leadership | None) -> Node:
    """Puts a node together: the catalog, feeds and their jobs, then what sessions need."""
    store, offload, closing = base.store, base.offload, base.closing
    audit = NoAudit() if base.folder is None else AuditFile(base.folder, store)
    leased = await _start_catalog(base)
    mirrors = _place_mirrors(base)
    worker_tokens = WorkerTokens(lambda: token_urlsafe(WORKER_TOKEN_BYTES))
    analytics = _place_queries(base)
    resumers: dict[str, Resumer] = {}
    registry = JobRegistry(store, leased.session, resumers, accepts=lambda job: feeds.accepts(job))
    feeds = Changefeeds(_feed_services(base, leased, mirrors, worker_tokens), registry)
    rows = AnalyticRows(store, leased.descriptors, analytics)
    resumers[JOB_KIND] = ChangefeedResumer(feeds)
    resumers[SCHEDULE_KIND] = ScheduleResumer(feeds)
    resumers[SCHEMA_CHANGE] = SchemaChanger(store, leased.descriptors, leased.leases, rows)
    resumers[TYPE_CHANGE] = TypeChanger(store, leased.descriptors, leased.leases)
    await _start_jobs(store, registry, feeds, closing)
    services = Services(
        store=store,
        catalog=Catalog(leased.descriptors),
        leases=leased.leases,
        analytics=analytics,
        find_virtual=find_virtual,
        relaxed_lane=offload.lane("relaxed"),
        jobs=StoreJobs(feeds, registry, base.node_id, store),
        changefeeds=feeds,
        schema_changes=SchemaChanges(store, leased.descriptors),
        images=ColumnarCache(store),
        rights=leased.rights,
        audit=audit,
        leadership=leadership,
    )
    if left := await orphans(services):  # by sessions of this node, when it died
        sweeping = asyncio.create_task(sweep(services, left))
        closing.push_async_callback(_cancelled, sweeping)
    leased.rights.on_logins_ended(services.sessions.end_login)
    closing.push_async_callback(services.waiting_results.close)
    node = Node(
        services,
        registry,
        feeds,
        mirrors,
        node_id=base.node_id,
        served=store if isinstance(store, Store) else None,
        worker_tokens=worker_tokens,
        passwords=_passwords(store, offload, audit),
        decoy_key=await store_secret(store, "decoy salts"),
        relaxed=RelaxedLogs(services),
    )
    node.loop_delay.start()
    closing.callback(node.loop_delay.close)
    return node


def _place_queries(base: _Foundation) -> PlacedAnalytics:
    """Returns the evaluator of sessions' queries, which computes here and in a worker."""
    store = base.store
    here = Analytics(base.offload, store.clock.wall)
    base.closing.callback(here.close)
    placed = PlacedAnalytics(here, store.metrics, store.settings)
    base.closing.push_async_callback(placed.close)
    return placed


def _place_mirrors(base: _Foundation) -> Placement:
    """The mirrors of a node, and the worker that may hold them, which outlives the feeds."""
    store, roots = base.store, base.options.mirror_roots
    worker = MirrorWorker(start_worker, partial(lives, store), store.metrics, roots)
    base.closing.push_async_callback(worker.close)
    files = DuckDBFiles(MirrorLocations(roots), base.offload)
    return Placement(files, worker, store.settings)


def _feed_services(
    base: _Foundation, leased: _Leased, mirrors: Placement, worker_tokens: WorkerTokens
) -> ChangefeedServices:
    store, offload = base.store, base.offload
    # Their own, so that no session's query keeps a feed waiting.
    analytics = Analytics(
        offload, store.clock.wall, lanes=FEED_QUERY_LANES, name="changefeed-queries"
    )
    base.closing.callback(analytics.close)
    protections = ProtectedTimestamps(store, always=PROTECTED_WITH_ALL)
    divide = store.divide if isinstance(store, Store) else lambda span: [span]
    backups = KeyspaceBackups(store, protections, divide, offload.lane("backup"))
    return ChangefeedServices(
        store=store,
        descriptors=leased.descriptors,
        leases=leased.leases,
        kinds=_sink_kinds(base, mirrors, worker_tokens, backups, leased.descriptors),
        offload=offload,
        protections=protections,
        rights=leased.rights,
        sealer=Sealer(secret_key(base.folder, base.options.secret_key_file), token_bytes),
        node_id=base.node_id,
        queries=FeedQueries(analytics),
        backups=backups,
    )


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _start_jobs(
    store: StoreAccess, registry: JobRegistry, feeds: Changefeeds, closing: AsyncExitStack
) -> None:
    alone = isinstance(store, Store)  # nobody else has begun to write
    if alone:
        await feeds.release_orphans()
        feeds.subscription_bounds.start()
        closing.push_async_callback(feeds.subscription_bounds.close)
    await feeds.waits.start(alone=alone)
    closing.push_async_callback(feeds.waits.close)
    await registry.start()
    closing.callback(feeds.close)
    closing.push_async_callback(registry.close)


def _passwords(store: StoreAccess, offload: Offload, audit: Audit) -> Passwords:
    guesses = Guesses(store.metrics, asyncio.get_running_loop().time, audit)
    return Passwords(offload.lane("passwords"), guesses)


async def _start_catalog(base: _Foundation) -> _Leased:
    store, closing = base.store, base.closing
    settings = SettingsWatcher(store)
    await settings.start()
    closing.push_async_callback(settings.close)
    rights = RightsWatcher(store)
    await rights.start()
    closing.push_async_callback(rights.close)
    descriptors = DescriptorStore(store)
    session = LivenessSession(store, base.node_id)
    await session.start()
    closing.push_async_callback(session.close)
    leases = LeaseManager(store, descriptors, session)
    await leases.start()
    closing.push_async_callback(leases.close)
    return _Leased(descriptors, leases, session, rights)


def _sink_kinds(
    base: _Foundation,
    mirrors: Placement,
    worker_tokens: WorkerTokens,
    backups: KeyspaceBackups,
    descriptors: DescriptorStore,
) -> SinkKinds:
    """Every sink that a node can feed: mirrors, lakes, folders of files, and nothing."""
    store, options, offload = base.store, base.options, base.offload
    kinds = default_kinds()
    duckdb = PlacedKind(mirrors, partial(lives, store), offload.lane("mirrors"))
    kinds.register(SCHEME, duckdb)
    postgres = PostgresKind(partial(lives, store))
    for scheme in POSTGRES_SCHEMES:
        kinds.register(scheme, postgres)
    lakes = SparkKind(options.mirror_roots, offload, options.server, worker_tokens, store.settings)
    for format in FORMATS:
        kinds.register(f"{SCHEME_PREFIX}{format}", lakes)
    kinds.register(DELTA_SCHEME, DeltaKind(options.mirror_roots, offload))
    kinds.register(ICEBERG_SCHEME, IcebergKind(options.mirror_roots, offload))
    folders = FilesKind(options.mirror_roots, offload, node_id=base.node_id)
    bootstrap = Bootstrap(backups, descriptors, folders.folder_of)
    kept = partial(store.settings.get, DELETED_TTL)
    kinds.register(TAILRACE_SCHEME, ReplicaKind(store.random, backups=bootstrap))
    by_spark = SparkReplicaKind(
        store.random,
        kept,
        bootstrap,
        offload,
        options.server,
        worker_tokens,
        store.settings,
        store.metrics,
    )
    kinds.register(SPARK_SCHEME, by_spark)
    for scheme in FILES_SCHEMES:
        kinds.register(scheme, folders)
    kafka = KafkaKind(offload)
    for scheme in KAFKA_SCHEMES:
        kinds.register(scheme, kafka)
    webhooks = WebhookKind(store.settings)
    for scheme in WEBHOOK_SCHEMES:
        kinds.register(scheme, webhooks)
    buckets = ObjectsKind(offload, store.settings)
    for scheme in OBJECTS_SCHEMES:
        kinds.register(scheme, buckets)
    return kinds


def _with_roots(own: Path, options: NodeOptions) -> NodeOptions:
    """The options with `own` behind the folders named. Raises NodeRefused."""
    for root in options.mirror_roots:
        if not root.is_dir():
            raise NodeRefused(f"mirror root {root} is not a folder: make it, or name another")
    own.mkdir(exist_ok=True, mode=0o700)
    return replace(options, mirror_roots=(*options.mirror_roots, own))
