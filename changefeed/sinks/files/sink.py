"""The sink of files: what is written when, and when a mark may say that all is there.

    emit     a  b      c                d
    flush    [a b]     [c] + progress   [d]
    files    begun     complete         another one begun

A flush without progress appends to files that nobody sees yet; one with progress completes every
file first, so progress that is saved is never ahead of the complete files. After a crash what was
not complete is removed and comes again.

Names begin with a *floor*: a timestamp that never goes back and that no change behind it is below,
but for changes that come again. It follows the progress that was flushed, and after a restart it
begins at the greatest name that is there, or at the clock's time where files may still appear that
an earlier attempt has given up (`Folder.late`). A mark is written where it is at or above the floor
of the attempt's beginning and at or below everything that the feed's targets have yet to show: so
every change at or below a mark stands in a file that sorts before it, and none is written later.
A table that joins the feed when marks have passed its beginning, and one that is shown again, are
behind: until they have caught up there is no mark.

The folder bears an owner mark of the incarnation of the store that writes into it. A copy of the
store writes by the same job, under names that differ in nothing else: whichever of the two meets an
owner mark that lies in no past of its own writes no more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from ....catalog.descriptors.descriptor import TableDescriptor
from ....kvlayer.clock import ZERO, Timestamp
from ....kvlayer.process.offload import OffloadLane
from ...contract.changes import ChangeBatch, merged
from ...contract.message_form import Format
from ...contract.options import ChangefeedOptions
from ...encode import Topics, line_encoder_for
from ..protocol import PastUnknown, Sink, SinkContext, SinkError, SinkProgress
from .folder import Folder
from .layout import FilesLayout
from .names import NameMaker, marked_position, owner_mark
from .written_file import WrittenFile, begin_file, suffix_of

T = TypeVar("T")

PIECE_BYTES = 4 << 20
"""Arrow bytes that are encoded and written at a time."""


class FilesSink(Sink):
    """Writes the changes of one attempt of one feed, those under each version of a schema to a file
    of their own. I/O is done in `lane`, one call at a time."""

    def __init__(
        self,
        layout: FilesLayout,
        folder: Folder,
        lane: OffloadLane,
        context: SinkContext,
        options: ChangefeedOptions,
        *,
        attempt: int,
    ) -> None:
        self._folder = folder
        self._lane = lane
        self._clock = context.clock
        self._store_id = context.identity.store_id
        self._position = context.position
        self._holds = context.holds
        self._known_owners: set[str] = set()
        """The owner marks that are of this store's past."""
        self._options = options
        self._topics = Topics(
            full_names=context.names,
            full_table_name=options.full_table_name,
            topic_prefix=layout.topic_prefix,
        )
        # Marks are JSON beside files of any format.
        origin = context.origin("cloudstorage")
        self._marks = line_encoder_for(replace(options, format=Format.JSON), self._topics, origin)
        csv = options.format is Format.CSV
        self._encoder = line_encoder_for(options, self._topics) if csv else self._marks
        self._names = NameMaker(
            job_id=context.identity.job_id,
            epoch=context.identity.epoch,
            attempt=attempt,
            partition_format=layout.partition_format,
            suffix=suffix_of(options),
        )
        self._file_bytes = layout.file_bytes
        self._pending: list[ChangeBatch] = []
        self._low_water = low_water(context.known)
        self._floor = max(context.start_at, Timestamp(self._low_water + 1))
        self._found = ZERO
        """The greatest timestamp that a file was named by before this attempt."""
        self._marked = ZERO
        self._open: dict[tuple[int, int], tuple[int, str, WrittenFile]] = {}
        """By table and version, what is being written: its number, its name and itself."""
        self._count = 0

    async def open(self, tables: Sequence[TableDescriptor]) -> None:
        self._found = await self._run(self._prepare)
        if self._folder.late:
            # What an earlier attempt has sent may appear yet, under a name below this.
            self._found = max(self._found, self._clock.last)
        self._floor = max(self._floor, self._found)
        await self._claim()

    def emit(self, batch: ChangeBatch) -> None:
        self._pending.append(batch)

    async def flush(self, progress: SinkProgress | None) -> None:
        batches, self._pending = self._pending, []
        if progress is not None and (batches or self._open):
            await self._check_owners()
        await self._run(partial(self._write, batches, complete=progress is not None))
        if progress is not None:
            self._low_water = low_water(progress)
            self._floor = max(self._floor, Timestamp(self._low_water + 1))

    async def emit_resolved(self, resolved: Timestamp) -> None:
        at = min(resolved, self._low_water)
        if at <= self._marked or at < self._found:
            return
        await self._run(partial(self._mark, at))
        self._marked = at

    async def close(self) -> None:
        self._pending.clear()
        await self._lane.run(self._abandon)

    async def _claim(self) -> None:
        """Marks the folder as this incarnation's. Raises PastUnknown where it is another's."""
        earlier = await self._check_owners()
        position = self._position()
        if not any(name.startswith(position.incarnation) for name in earlier):
            await self._run(partial(self._folder.mark_owner, owner_mark(position)))
            for name in earlier:
                await self._run(partial(self._folder.forget_owner, name))

    async def _check_owners(self) -> list[str]:
        """The names of the owner marks, each of an incarnation in this store's past."""
        found = await self._run(self._folder.owners)
        for name in set(found) - self._known_owners:
            seen = marked_position(name)
            if seen is not None and self._holds is not None and not await self._holds(seen):
                raise PastUnknown(self._store_id, seen)
            self._known_owners.add(name)
        return found

    async def _run(self, call: Callable[[], T]) -> T:
        try:
            return await self._lane.run(call)
        except OSError as error:
            raise SinkError(f"files in {self._folder.shown}: {error}") from error

    # In the lane

    def _prepare(self) -> Timestamp:
        self._folder.open()
        return self._folder.last_time()

    def _write(self, batches: Sequence[ChangeBatch], *, complete: bool) -> None:
        for batch in merged(batches, bytes_max=PIECE_BYTES):
            key = (batch.descriptor.id, batch.descriptor.version)
            if key not in self._open:
                self._open[key] = self._begin(batch.descriptor)
            file = self._open[key][2]
            file.append(batch)
            if file.size >= self._file_bytes:
                self._complete(key)
        if complete:
            for key in list(self._open):
                self._complete(key)

    def _begin(self, table: TableDescriptor) -> tuple[int, str, WrittenFile]:
        number, topic = self._next_number(), self._topics.of(table)
        name = self._names.data_file(self._floor, number, topic, table.version)
        return number, name, begin_file(self._folder.begin(number), self._options, self._encoder)

    def _complete(self, key: tuple[int, int]) -> None:
        number, name, file = self._open.pop(key)
        file.finish()
        self._folder.publish(number, name)

    def _mark(self, at: Timestamp) -> None:
        number = self._next_number()
        with self._folder.begin(number) as file:
            file.write(self._marks.encode_resolved(None, at))
        self._folder.publish(number, self._names.mark(at))

    def _abandon(self) -> None:
        for _, _, file in self._open.values():
            file.abandon()
        self._open.clear()
        self._folder.close()

    def _next_number(self) -> int:
        self._count += 1
        return self._count


def low_water(progress: SinkProgress | None) -> Timestamp:
    """The least timestamp that every target has reached, also those that do not count for what is
    resolved."""
    if progress is None:
        return ZERO
    return min((at for _, at in progress.frontier), default=ZERO)
