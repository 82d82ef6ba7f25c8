"""Followers: consumers of feeds that outlive crashes, each judged by all validators."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from random import Random

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.errors import (
    BatchTimestampBeforeGC,
    LockTimeout,
    RangeFeedEnded,
    RetryableTransaction,
    StoreClosed,
    StoreFull,
)
from tailrace.kvlayer.protected_timestamp import ProtectedTimestamps, ProtectionRefused
from tailrace.kvlayer.rangefeed import RangeFeed
from tailrace.kvlayer.span import Span, subtract
from tailrace.kvlayer.store import Store
from tests.harness.validators import Start, Watch
from tests.simulation.kv_clients import KEYS
from tests.simulation.kv_model import KVModel

REFUSED = (RetryableTransaction, LockTimeout, StoreFull)


class Follower:
    """Follows spans from a start, however often its feed ends and its store dies.

    A *protected* follower keeps a protected timestamp where it stands, as a changefeed does: what
    it has yet to read is never collected. Another may come too late, and begins anew.
    """

    def __init__(
        self,
        model: KVModel,
        random: Random,
        counts: Counter[str],
        starts: Sequence[Start],
        *,
        protected: bool,
    ) -> None:
        self.model = model
        self.random = random
        self.counts = counts
        self.protected = protected
        self.failures: list[str] = []
        self.patience = random.choice((0.0, 0.0, 0.02, 0.3))
        self.watch = self._new_watch(starts)
        self._spans = [span for span, _ in starts]
        self._record: tuple[bytes, Timestamp] | None = None
        """The protection that was acknowledged, if one was."""

    def _new_watch(self, starts: Sequence[Start]) -> Watch:
        return Watch(self.model.history, starts, universe=KEYS)

    @property
    def resolved(self) -> Timestamp:
        return self.watch.resolved

    async def follow(self, store: Store) -> None:
        """Follows for one life of the store."""
        records = ProtectedTimestamps(store)
        while not self.model.frozen:
            try:
                if self.protected:
                    await self._protect(store, records)
                await self._read(store, records)
            except BatchTimestampBeforeGC as error:
                self._came_too_late(store, error)
            except REFUSED:
                await asyncio.sleep(0.01)
            except StoreClosed:
                return

    async def _read(self, store: Store, records: ProtectedTimestamps) -> None:
        raise NotImplementedError

    async def _think(self, store: Store, records: ProtectedTimestamps) -> None:
        await asyncio.sleep(self.random.random() * self.patience)
        if self._record is not None and self.random.random() < 0.05:
            await self._advance(store, records)

    # Protection

    async def _protect(self, store: Store, records: ProtectedTimestamps) -> None:
        """Protects where the follower stands, unless it has done so."""
        if self._record is not None:
            return
        at = Timestamp(self.resolved + 1)
        transaction = store.begin(lock_timeout=0.5)
        try:
            record_id = await records.protect(
                transaction, owner="a follower", spans=self._spans, timestamp=at
            )
            await transaction.commit()
        except ProtectionRefused as error:
            await transaction.rollback()
            self.counts["protection refused"] += 1
            self._begin_anew(error.threshold)
        except REFUSED:
            await transaction.rollback()
            raise
        else:
            if not self.model.frozen:
                self._record = (record_id, at)
                self.counts["protected"] += 1

    async def _advance(self, store: Store, records: ProtectedTimestamps) -> None:
        assert self._record is not None
        record_id, at = self._record[0], Timestamp(self.resolved + 1)
        if at <= self._record[1]:
            return
        transaction = store.begin(lock_timeout=0.5)
        try:
            await records.advance(transaction, record_id, at)
            await transaction.commit()
        except REFUSED:
            await transaction.rollback()
        except ProtectionRefused as error:
            raise AssertionError(f"{error}, and {self._record} was protected") from error
        else:
            if not self.model.frozen:
                self._record = (record_id, at)

    def _came_too_late(self, store: Store, error: BatchTimestampBeforeGC) -> None:
        if self.model.frozen:
            return
        assert self._record is None, f"{error}, and {self._record} was protected"
        self._begin_anew(error.threshold)

    def _begin_anew(self, threshold: Timestamp) -> None:
        if self.model.frozen:
            return
        self.counts["began anew"] += 1
        self._close_watch()
        self.watch = self._new_watch([(span, threshold) for span in self._spans])

    # Judgement

    def _close_watch(self) -> None:
        self.watch.give_up()
        self.failures += self.watch.failures

    def finish(self) -> None:
        """All is known, and the follower has seen all."""
        self.watch.finish()
        self.failures += self.watch.failures
        assert not self.failures, self.failures


class SpanFollower(Follower):
    """Follows a span feed, which starts again behind the scenes."""

    def _new_watch(self, starts: Sequence[Start]) -> Watch:
        return Watch(self.model.history, starts, restarts_hidden=True, universe=KEYS)

    async def _read(self, store: Store, records: ProtectedTimestamps) -> None:
        feed = store.span_feed_from(self.watch.entries)
        try:
            for span, at in self.watch.entries:
                self.watch.note_restart(span, at)
            while True:
                events = await feed.next()
                if self.model.frozen:
                    return
                self.watch.note_events(events)
                assert feed.frontier.low_water == self.watch.resolved, (feed, self.watch.entries)
                await self._think(store, records)
        finally:
            feed.close()


class RangeFollower(Follower):
    """Follows range feeds by hand, starting each again when it ends."""

    async def _read(self, store: Store, records: ProtectedTimestamps) -> None:
        feeds: dict[RangeFeed, Span] = {}
        try:
            while True:
                self._open_missing(store, feeds)
                for feed in list(feeds):
                    self._poll(feed, feeds)
                    if self.model.frozen:
                        return
                await self._think(store, records)
                await asyncio.sleep(0.001)
        finally:
            for feed in feeds:
                feed.close()

    def _open_missing(self, store: Store, feeds: dict[RangeFeed, Span]) -> None:
        followed = sorted(feeds.values())
        missing = [
            (gap, at) for entry, at in self.watch.entries for gap in subtract(entry, followed)
        ]
        for gap, at in missing:
            for part in store.divide(gap):
                try:
                    feed = store.range_feed(part, at, with_previous=True)
                except RangeFeedEnded:
                    continue  # the range is being cut: divide again, next time
                self.watch.note_restart(part, at)
                feeds[feed] = part

    def _poll(self, feed: RangeFeed, feeds: dict[RangeFeed, Span]) -> None:
        try:
            events = feed.poll()
        except RangeFeedEnded as end:
            self.counts[f"feed ended: {end.reason.value}"] += 1
            del feeds[feed]
        else:
            if not self.model.frozen:
                self.watch.note_events(events)
