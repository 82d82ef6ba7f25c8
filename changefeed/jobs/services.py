"""The interface of the node that runs changefeeds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ...catalog.leases import LeaseManager
from ...catalog.rights.rights_watcher import RightsWatcher
from ...catalog.store.descriptor_store import DescriptorStore
from ...catalog.store.node_ids import FIRST_NODE_ID
from ...kvlayer.access import StoreAccess
from ...kvlayer.process.offload import Offload
from ...kvlayer.protected_timestamp import ProtectedTimestamps
from ...kvlayer.ranges import RangeInfo
from ...kvlayer.settings import declare_choice
from ...kvlayer.span import Span
from ...schemafeed.feed import DelegateSchemaFeed, SchemaFeed
from ...schemafeed.leasing import LeasingSchemaFeed
from ...schemafeed.polling import PollingSchemaFeed
from ...schemafeed.rangefeed import RangeFeedSchemaFeed
from ..backup import KeyspaceBackups
from ..connections import Sealer
from ..contract.options import SchemaFeedKind
from ..contract.queries import QueryCompiler
from ..pipeline.budget import FeedMemory
from ..pipeline.idle_pace import IdlePace
from ..pipeline.shared_decoding import SharedDecoding
from ..sinks import SinkKinds
from ..targets import FeedTarget, KeyspacePart, KeyspaceTarget, TableTarget

SCHEMA_FEED = declare_choice(
    "changefeed.schema_feed",
    SchemaFeedKind.LEASING.value,
    [kind.value for kind in SchemaFeedKind],
    "who proves the schema of a row, for changefeeds that do not say so themselves",
)

DELEGATE = declare_choice(
    "changefeed.schema_feed.delegate",
    SchemaFeedKind.RANGEFEED.value,
    [SchemaFeedKind.RANGEFEED.value, SchemaFeedKind.POLLING.value],
    "who proves what a leasing schema feed has no lease for: polling is the RFC's own arrangement",
)


@runtime_checkable
class RangedStore(Protocol):
    """A store whose ranges are in this process."""

    def ranges(self, span: Span) -> list[RangeInfo]: ...

    async def span_bytes(self, span: Span) -> int | None:
        """About what its versions take; None where that is not known."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangefeedServices:
    """The node's parts, put together once by who assembles it."""

    store: StoreAccess
    descriptors: DescriptorStore
    leases: LeaseManager
    kinds: SinkKinds
    offload: Offload
    protections: ProtectedTimestamps
    rights: RightsWatcher
    sealer: Sealer
    node_id: int = FIRST_NODE_ID
    queries: QueryCompiler | None = None
    """The compiler of feeds' queries; a node without one has no such feeds."""
    backups: KeyspaceBackups | None = None
    pace: IdlePace = field(default_factory=IdlePace)
    decoding: SharedDecoding = field(default_factory=SharedDecoding)
    memory: FeedMemory = field(default_factory=FeedMemory)

    def target(self, table_id: int, part: KeyspacePart | None = None) -> FeedTarget:
        """The target under that id: a table, or with a `part` the keys of a keyspace."""
        if part is not None:
            return KeyspaceTarget(table_id, self.descriptors, part, self.store.clock)
        return TableTarget(table_id, self.descriptors)

    def schema_feed(self, kind: SchemaFeedKind | None = None) -> SchemaFeed:
        """A schema feed of that kind, or of the cluster's, not started."""
        settings = self.store.settings
        match kind or SchemaFeedKind(settings.get(SCHEMA_FEED)):
            case SchemaFeedKind.POLLING:
                return self._proving(SchemaFeedKind.POLLING)
            case SchemaFeedKind.RANGEFEED:
                return self._proving(SchemaFeedKind.RANGEFEED)
            case SchemaFeedKind.LEASING:
                delegate = self._proving(SchemaFeedKind(settings.get(DELEGATE)))
                return LeasingSchemaFeed(self.leases, delegate)

    def _proving(self, kind: SchemaFeedKind) -> DelegateSchemaFeed:
        chosen = PollingSchemaFeed if kind is SchemaFeedKind.POLLING else RangeFeedSchemaFeed
        return chosen(self.store, self.descriptors, self.leases)
