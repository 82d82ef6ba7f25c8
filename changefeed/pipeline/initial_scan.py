"""The initial scan: every row of a target as of one timestamp, in slices.

A slice's rows are emitted, then the frontier of its keys moves from zero to the scan's timestamp:

    frontier   [a .. m) scanned   [m .. z) zero        a restart begins again at m

So what a crash repeats is one flush, not the scan. The span feed starts at the scan's timestamp
(exclusive): a row is shown as of then by the scan, and its later versions by the feed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing

from ...catalog.descriptors.descriptor import TableDescriptor
from ...kvlayer.clock import Timestamp, WallClock
from ...kvlayer.span import Span
from ..contract.changes import ChangeKind, Form, StageTimes
from ..targets import FeedTarget, Versions
from .budget import ROW_OVERHEAD_BYTES, MemoryBudget
from .decode import decode, slice_rows
from .gate import SchemaGate
from .lane import Emission
from .live import LiveFeed
from .progress import FeedProgress
from .rows_before import RowsBefore
from .scan_reader import ScanReader

KeyAndBody = tuple[bytes, bytes]


class RowEmitter:
    """Emits rows that were read at one timestamp, and are stamped with it.

    With `with_versions`, batches also say when each row was written.
    """

    def __init__(
        self,
        reader: ScanReader,
        target: FeedTarget,
        *,
        at: Timestamp,
        kind: ChangeKind,
        wall: WallClock,
        budget: MemoryBudget,
        live: LiveFeed,
        emit: Callable[[Emission], None],
        form: Form,
        with_versions: bool,
        rows_before: RowsBefore | None = None,
    ) -> None:
        """`rows_before` reads what the rows were before the schema event that shows them again."""
        self._rows_before = rows_before
        self._reader = reader
        self._target = target
        self._at = at
        self._kind = kind
        self._wall = wall
        self._budget = budget
        self._live = live
        self._emit = emit
        self._form = form
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
        replaced = None
        if self._rows_before is not None:
            replaced = await self._rows_before.read([key for key, _ in rows])
        rows = rows if wanted is None else wanted(rows)
        if not rows:
            return
        previous = None
        if self._rows_before is not None and replaced is not None:
            previous = self._rows_before.of(replaced, [key for key, _ in rows])
        own = None if known is None else [known[key] for key, _ in rows]
        versions = Versions(
            [key for key, _ in rows], [body for _, body in rows], [self._at] * len(rows)
        )
        shown = self._target.present(versions, descriptor)
        if None in shown.values:  # entries that are absent as of the scan
            there = [place for place, body in enumerate(shown.values) if body is not None]
            if not there:
                return
            shown, versions = shown.pick(there), versions.pick(there)
            rows = [rows[place] for place in there]
            own = None if own is None else [own[place] for place in there]
        size = sum(len(key) + len(body) + ROW_OVERHEAD_BYTES for key, body in rows)
        self._budget.charge(size)
        batch = decode(
            versions if self._form is Form.STORED else shown,
            descriptor,
            stages=StageTimes(decoded=self._wall.monotonic_ns()),
            kind=self._kind,
            form=self._form,
            versions=own,
            previous=previous,
        )
        self._live.scanned_rows += len(rows)
        self._live.scanned_bytes += size - len(rows) * ROW_OVERHEAD_BYTES
        self._emit(Emission(batch, (), size))

    async def _versions_of(self, rows: Sequence[KeyAndBody]) -> dict[bytes, Timestamp]:
        """When each row was written. A read a row: only who asked for `mvcc_timestamp` pays it."""
        found = [(key, await self._reader.get_with_timestamp(key)) for key, _ in rows]
        return {key: version[1] for key, version in found if version is not None}


class InitialScan:
    """Scans one target. It yields to the loop after each slice."""

    def __init__(
        self,
        reader: ScanReader,
        target: FeedTarget,
        *,
        emitter: RowEmitter,
        at: Timestamp,
        gate: SchemaGate,
        progress: FeedProgress,
        budget: MemoryBudget,
        pause: Callable[[], Awaitable[None]],
        rows_max: int,
    ) -> None:
        """`pause` is awaited after each slice, of at most `rows_max` rows: what lets others run."""
        self._reader = reader
        self.target = target
        self._emitter = emitter
        self._at = at
        self._gate = gate
        self._progress = progress
        self._budget = budget
        self._pause = pause
        self._rows_max = rows_max

    async def run(self) -> None:
        """Scans what is not scanned yet."""
        target = self.target
        unscanned = self._progress.unscanned(target.id)
        if not unscanned:
            return
        self._progress.begin_scan(target.id, self._at)
        descriptor = (await self._gate.prove(target.id, self._at)).at(self._at)
        for span in unscanned:
            shared = span.intersect(target.rows_span(descriptor))
            if shared is not None:
                await self._scan(shared, descriptor)
            self._progress.forward(span, self._at)  # its other keys are no rows

    async def _scan(self, span: Span, descriptor: TableDescriptor) -> None:
        rows_max = min(slice_rows(descriptor), self._rows_max)
        start = span.start
        async with aclosing(self._reader.scan_slices(span)) as slices:
            async for rows in slices:
                for first in range(0, len(rows), rows_max):
                    part = rows[first : first + rows_max]
                    await self._emitter.emit(part, descriptor)
                    end = part[-1][0] + b"\x00"
                    self._progress.forward(Span(start, end), self._at)
                    start = end
                    await self._pause()
                    await self._budget.wait_for_room()
