"""What changefeeds need of the node that runs them."""

from __future__ import annotations

from dataclasses import dataclass

from ..catalog.descriptor_store import DescriptorStore
from ..catalog.leases import LeaseManager
from ..kvlayer.access import StoreAccess
from ..kvlayer.offload import Offload
from ..kvlayer.protected_timestamp import ProtectedTimestamps
from ..schemafeed.feed import SchemaFeed
from ..schemafeed.leasing import LeasingSchemaFeed
from ..schemafeed.polling import PollingSchemaFeed
from .options import SchemaFeedKind
from .sinks import SinkKinds


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangefeedServices:
    """The node's parts, put together once by who assembles it."""

    store: StoreAccess
    descriptors: DescriptorStore
    leases: LeaseManager
    kinds: SinkKinds
    offload: Offload
    protections: ProtectedTimestamps

    def schema_feed(self, kind: SchemaFeedKind) -> SchemaFeed:
        """A schema feed of that kind, not started."""
        polling = PollingSchemaFeed(self.store, self.descriptors, self.leases)
        match kind:
            case SchemaFeedKind.POLLING:
                return polling
            case SchemaFeedKind.LEASING:
                return LeasingSchemaFeed(self.leases, polling)
