"""The null sink: takes everything, keeps nothing. What a benchmark measures a feed with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.values.errors import SQLError
from ...kvlayer.clock import Timestamp
from ...schemafeed.table_events import TableEvent
from ..contract.changes import ChangeBatch
from ..contract.options import MESSAGE_OPTIONS, PIPELINE_OPTIONS, ChangefeedOptions
from .protocol import FeedIdentity, Sink, SinkContext, SinkProgress, SinkStand
from .uri import shown_place


class NullSink:
    """Drops batches."""

    async def stand(self) -> SinkStand | None:
        return None

    async def open(self, tables: Sequence[TableDescriptor]) -> None:
        """Prepares nothing."""

    def emit(self, batch: ChangeBatch) -> None:
        """Keeps nothing."""

    def change_schema(self, event: TableEvent) -> None:
        """Changes nothing."""

    async def flush(self, progress: SinkProgress | None) -> None:
        """Makes nothing durable."""

    async def emit_resolved(self, resolved: Timestamp) -> None:
        """Nobody reads it."""

    async def close(self) -> None:
        """Does nothing: nothing was held."""


class NullKind:
    """The kind behind `null://`."""

    transactional = False
    local = False
    columnar = True
    follows_schema = False
    obeys = PIPELINE_OPTIONS | MESSAGE_OPTIONS
    """A feed into nothing takes what a sink of messages takes: it measures that feed."""

    def check_options(self, options: ChangefeedOptions) -> None:
        """Takes any value: nothing is encoded."""

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        if uri.lower() != "null://":
            raise SQLError(
                "22023",
                f"sink {shown_place(uri)!r}: null takes nothing behind the scheme",
                hint="Write null:// alone.",
            )

    def reserved(self, uri: str, table_names: Iterable[str]) -> frozenset[str]:
        """The empty set: there is room for all."""
        return frozenset()

    def create(self, uri: str, context: SinkContext) -> Sink:
        return NullSink()

    async def release(self, uri: str, identity: FeedIdentity) -> None:
        """Does nothing: nothing was held."""

    def redacted(self, uri: str) -> str:
        return uri
