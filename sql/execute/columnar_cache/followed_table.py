"""A table that is held in columns, and the feed that says what has changed in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ....kvlayer.access import StoreAccess, Transaction
from ....kvlayer.clock import Timestamp
from ....kvlayer.errors import KVError
from ....kvlayer.events import Checkpoint, DeleteRange, Event, ValueBatch
from ....kvlayer.fibre import end_slice, give_way, in_slices_where
from ....kvlayer.span import Span
from .image import Image

PENDING_ROWS_MAX = 20_000
"""Changes that wait for a reader. More are folded into the image without one: that costs about as
much as they would cost the next reader, and bounds what waits."""

UNREAD_SHARE_MAX = 0.5
"""An image is let go once so many of its rows (each change counted) have changed since it was read:
from there on following it costs more than scanning the table again would."""

UNREAD_ROWS_MIN = 100_000
"""Fewer changes than these are no reason to let go of an image, however small it is."""


_KEYS_PER_STEP = 32


@dataclass(frozen=True, slots=True)
class _Pending:
    """Changes that wait, none above `upto`."""

    batch: ValueBatch
    upto: Timestamp
    byte_count: int


def settled_below(transaction: Transaction) -> Timestamp:
    """Up to where what the transaction has read without writing stays what it is.

    HAZARD: not at its read timestamp itself. It may go on to write, and commit there; nobody else
    can.
    """
    return Timestamp(transaction.read_timestamp - 1)


class FollowedTable:
    """An image, and the changes above it that its table's range feed has brought.

    The feed starts where the image stands. A change is *pending* until it is folded into the image,
    which is done up to a timestamp at or below the feed's resolved one: then no change is missing
    below it. What lies above, a reader asks its transaction for; so a read neither waits for the
    closed timestamp nor depends on how far the feed has come.
    """

    def __init__(
        self, store: StoreAccess, image: Image, on_end: Callable[[FollowedTable], None]
    ) -> None:
        self.image = image
        self._on_end = on_end
        self._pending: list[_Pending] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        self._unread_rows = 0
        self._folding = asyncio.Lock()
        self._feed = store.span_feed([image.descriptor.primary_span], image.at)
        self._task = asyncio.create_task(
            self._follow(), name=f"columnar cache of table {image.descriptor.id}"
        )

    @property
    def byte_count(self) -> int:
        return self.image.byte_count + self._pending_bytes

    async def close(self) -> None:
        """Ends the feed. What reads the image goes on."""
        self._feed.close()
        self._on_end(self)
        self._task.cancel()
        if self._task is not asyncio.current_task():
            await asyncio.wait([self._task])

    async def read(
        self, transaction: Transaction, spans: Sequence[Span]
    ) -> tuple[Image, int] | None:
        """The table as the transaction sees it, as far as it lies in `spans`; rows outside of them
        may be older. And how many keys had changed since the image was made.

        None for a transaction that reads below the image: it must scan.
        """
        at = transaction.read_timestamp
        async with self._folding:
            if at < self.image.at:
                return None
            changed = await self._fold(min(at, self._resolved))
            image = self.image
        changes: dict[bytes, bytes | None] = {}
        for span in spans:
            async for found in transaction.changed_slices(span, image.at):
                changes.update(found)
        seen = await image.changed(changes, at)
        self._unread_rows = 0
        if image.descriptor.primary_span in spans and not transaction.write_count:
            # What was read can no more change, but by the reader: see `settled_below`.
            settled = replace(seen, at=settled_below(transaction))
            async with self._folding:
                if self.image.at < settled.at:
                    self.image = settled
        return seen, changed + len(changes)

    @property
    def _resolved(self) -> Timestamp:
        return self._feed.frontier.low_water

    async def _fold(self, upto: Timestamp) -> int:
        """Puts the pending changes at or below `upto` into the image, and returns how many.

        The image and what is pending change in one step, at the end: a reader may be cancelled.
        """
        assert upto <= self._resolved, (upto, self._resolved)
        image = self.image
        if upto <= image.at:
            return 0
        folded = list(self._pending)  # others come while this goes on
        changes = await in_slices_where(
            self._pending_rows > _KEYS_PER_STEP, lambda: _newest(folded, image.at, upto)
        )
        self.image = await image.changed(changes, upto)
        later = [each for each in folded if each.upto > upto]
        self._pending = [*later, *self._pending[len(folded) :]]
        self._pending_rows = sum(len(each.batch) for each in self._pending)
        self._pending_bytes = sum(each.byte_count for each in self._pending)
        return len(changes)

    # The feed

    async def _follow(self) -> None:
        try:
            while True:
                for event in await self._feed.next():
                    if not self._take(event):
                        return
                if self._pending_rows > PENDING_ROWS_MAX:
                    async with self._folding:
                        await self._fold(self._resolved)
        except KVError:
            pass  # the feed's end: the table is scanned again, and followed anew if it is hot
        finally:
            self._feed.close()
            self._on_end(self)

    def _take(self, event: Event) -> bool:
        """Says whether the image is still worth following."""
        match event:
            case ValueBatch():
                self._keep(event)
                self._unread_rows += len(event)
                bound = max(UNREAD_ROWS_MIN, self.image.row_count * UNREAD_SHARE_MAX)
                return self._unread_rows <= bound
            case DeleteRange():
                return False  # the rows are gone, and a new image of what is left is cheap
            case Checkpoint():
                return True
            case _:
                return True

    def _keep(self, batch: ValueBatch) -> None:
        pending = _Pending(batch, max(batch.timestamps), _bytes_of(batch.keys, batch.values))
        self._pending.append(pending)
        self._pending_rows += len(batch)
        self._pending_bytes += pending.byte_count


def _newest(
    pending: Iterable[_Pending], above: Timestamp, upto: Timestamp
) -> dict[bytes, bytes | None]:
    """The newest change of each key above the one timestamp and up to the other."""
    newest: dict[bytes, tuple[Timestamp, bytes | None]] = {}
    for each in pending:
        batch = each.batch
        changes = zip(batch.keys, batch.values, batch.timestamps, strict=True)
        for number, (key, body, ts) in enumerate(changes):
            if not number % _KEYS_PER_STEP:
                give_way()
            if above < ts <= upto and (key not in newest or newest[key][0] < ts):
                newest[key] = (ts, body)
    end_slice()
    return {key: body for key, (_, body) in newest.items()}


def _bytes_of(keys: Sequence[bytes], values: Sequence[bytes | None]) -> int:
    return sum(map(len, keys)) + sum(map(len, filter(None, values)))
