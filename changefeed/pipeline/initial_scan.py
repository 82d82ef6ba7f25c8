"""The initial scan: every row of the feed's tables as of one timestamp, in slices.

A slice's rows are emitted, then the frontier of its keys moves from zero to the scan's timestamp:

    frontier   [a .. m) scanned   [m .. z) zero        a restart begins again at m

So what a crash repeats is one flush, not the scan. The span feed starts at the scan's timestamp
(exclusive): a row is shown as of then by the scan, and its later versions by the feed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Protocol

from ...catalog.descriptors.descriptor import TableDescriptor
from ...kvlayer.clock import Timestamp, WallClock
from ...kvlayer.keys import table_span
from ...kvlayer.span import Span
from ..contract.changes import ChangeKind, StageTimes
from .budget import ROW_OVERHEAD_BYTES, MemoryBudget
from .decode import Versions, decode, slice_rows
from .gate import SchemaGate
from .lane import Emission
from .live import LiveFeed
from .progress import FeedProgress


class ScanReader(Protocol):
    """A store's rows at one timestamp."""

    def scan_slices(self, span: Span) -> AsyncGenerator[list[tuple[bytes, bytes]], None]:
        """Keys and bodies in key order, some at a time."""
        ...

    async def get_with_timestamp(self, key: bytes) -> tuple[bytes, Timestamp] | None:
        """A row's body, and when it was written."""
        ...


KeyAndBody = tuple[bytes, bytes]


class RowEmitter:
    """Emits rows that were read at one timestamp, and are stamped with it.

    With `with_versions`, batches also say when each row was written.
    """

    def __init__(
        self,
        reader: ScanReader,
        *,
        at: Timestamp,
        kind: ChangeKind,
        wall: WallClock,
        budget: MemoryBudget,
        live: LiveFeed,
        emit: Callable[[Emission], None],
        columnar: bool,
        with_versions: bool,
    ) -> None:
        self._reader = reader
        self._at = at
        self._kind = kind
        self._wall = wall
        self._budget = budget
        self._live = live
        self._emit = emit
        self._columnar = columnar
        self._with_versions = with_versions

    async def emit(
        self,
        rows: Sequence[KeyAndBody],
        descriptor: TableDescriptor,
        *,
        wanted: Callable[[Sequence[KeyAndBody]], Sequence[KeyAndBody]] | None = None,
    ) -> None:
        """Hands rows to the sink: of them those `wanted` in the step in which they go."""
        known = await self._versions_of(rows) if self._with_versions else None
        rows = rows if wanted is None else wanted(rows)
        if not rows:
            return
        own = None if known is None else [known[key] for key, _ in rows]
        versions = Versions(
            [key for key, _ in rows], [body for _, body in rows], [self._at] * len(rows)
        )
        size = sum(len(key) + len(body) + ROW_OVERHEAD_BYTES for key, body in rows)
        self._budget.charge(size)
        batch = decode(
            versions,
            descriptor,
            stages=StageTimes(decoded=self._wall.monotonic_ns()),
            kind=self._kind,
            columnar=self._columnar,
            versions=own,
        )
        self._live.scanned_rows += len(rows)
        self._emit(Emission(batch, (), size))

    async def _versions_of(self, rows: Sequence[KeyAndBody]) -> dict[bytes, Timestamp]:
        """When each row was written. A read a row: only who asked for `mvcc_timestamp` pays it."""
        found = [(key, await self._reader.get_with_timestamp(key)) for key, _ in rows]
        return {key: version[1] for key, version in found if version is not None}


class InitialScan:
    """Scans one feed's tables. It yields to the loop after each slice."""

    def __init__(
        self,
        reader: ScanReader,
        *,
        emitter: RowEmitter,
        at: Timestamp,
        gate: SchemaGate,
        progress: FeedProgress,
        budget: MemoryBudget,
    ) -> None:
        self._reader = reader
        self._emitter = emitter
        self._at = at
        self._gate = gate
        self._progress = progress
        self._budget = budget

    async def run(self, tables: Sequence[TableDescriptor]) -> None:
        """Scans what is not scanned yet, then says so."""
        unscanned = self._progress.unscanned()
        for table in tables:
            proof = await self._gate.prove(table.id, self._at)
            for span in unscanned:
                shared = span.intersect(table.primary_span)
                if shared is not None:
                    await self._scan(shared, proof.at(self._at))
                rest = span.intersect(table_span(table.id))
                if rest is not None:
                    self._progress.forward(rest, self._at)  # its other indexes hold no rows
        self._progress.complete_scan()

    async def _scan(self, span: Span, descriptor: TableDescriptor) -> None:
        rows_max = slice_rows(descriptor)
        start = span.start
        async with aclosing(self._reader.scan_slices(span)) as slices:
            async for rows in slices:
                for first in range(0, len(rows), rows_max):
                    part = rows[first : first + rows_max]
                    await self._emitter.emit(part, descriptor)
                    end = part[-1][0] + b"\x00"
                    self._progress.forward(Span(start, end), self._at)
                    start = end
                    await asyncio.sleep(0)
                    await self._budget.wait_for_room()
        if start < span.end:
            self._progress.forward(Span(start, span.end), self._at)
