"""The null sink: takes everything, keeps nothing. What a benchmark measures a feed with."""

from __future__ import annotations

from collections.abc import Sequence

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.values.errors import SQLError
from ..contract.changes import ChangeBatch
from ..contract.options import MESSAGE_OPTIONS, PIPELINE_OPTIONS
from .kind import SinkKind
from .protocol import Sink, SinkContext, SinkProgress
from .uri import shown_place


class NullSink(Sink):
    """Drops batches."""

    async def open(self, tables: Sequence[TableDescriptor]) -> None:
        """Prepares nothing."""

    def emit(self, batch: ChangeBatch) -> None:
        """Keeps nothing."""

    async def flush(self, progress: SinkProgress | None) -> None:
        """Makes nothing durable."""

    async def close(self) -> None:
        """Does nothing: nothing was held."""


class NullKind(SinkKind):
    """The kind behind `null://`. It takes any value of an option: nothing is encoded."""

    obeys = PIPELINE_OPTIONS | MESSAGE_OPTIONS
    """A feed into nothing takes what a sink of messages takes: it measures that feed."""

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        if uri.lower() != "null://":
            raise SQLError(
                "22023",
                f"sink {shown_place(uri)!r}: null takes nothing behind the scheme",
                hint="Write null:// alone.",
            )

    def create(self, uri: str, context: SinkContext) -> Sink:
        return NullSink()

    def redacted(self, uri: str) -> str:
        return uri
