"""Waits for a feed from any node: a row of `system.feed_waits` asks, its deletion answers.

    node 2    put (job 7, ticket 1) -> wanted 120
    node 1    hears of it, runs job 7, waits until 120 is durable in the sink, deletes the row
    node 2    hears of the deletion

Every node hears of every row, and asks its own `LiveFeed` of the job: only where the feed runs does
that come to an end. So a wait goes on when the feed moves to another node.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from ...catalog.descriptors.system_tables import FEED_WAITS
from ...catalog.rows.row_codec import codec_for
from ...catalog.store.span_follower import RESTART_SECONDS, follow_spans
from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import Timestamp
from ...kvlayer.errors import KVError
from ...kvlayer.events import ValueBatch
from ..pipeline.live import FeedStopped, LiveFeed

_codec = codec_for(FEED_WAITS)


class FeedWaits:
    """A node's part in the waits of all nodes."""

    def __init__(self, store: StoreAccess, watch: Callable[[int], LiveFeed]) -> None:
        """`watch` finds this node's own look at a feed."""
        self._store = store
        self._watch = watch
        self._asked: dict[bytes, asyncio.Event] = {}
        self._serving: dict[bytes, asyncio.Task[None]] = {}
        self._following: asyncio.Task[None] | None = None

    async def start(self, *, alone: bool) -> None:
        """Begins to hear of waits. `alone` tells that no other node has begun yet: rows that are
        there are of processes that are gone."""
        span = FEED_WAITS.primary_span
        if alone:
            rows = await self._store.snapshot(await self._store.now()).scan(span)
            await self._delete([key for key, _ in rows])
        following = follow_spans(
            self._store,
            [span],
            await self._store.now(),
            refresh=self._refresh,
            take=self._take,
            restarts="feed_wait_watcher_restarts_total",
        )
        self._following = asyncio.create_task(following, name="feed waits")

    async def close(self) -> None:
        tasks = list(self._serving.values())
        if self._following is not None:
            tasks.append(self._following)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._serving.clear()

    @asynccontextmanager
    async def asking(self, job_id: int, wanted: Timestamp) -> AsyncIterator[asyncio.Event]:
        """An event that is set when the feed's sink, wherever that runs, holds everything up to
        `wanted`."""
        key, body = _codec.encode_row((job_id, int(await self._store.now()), int(wanted)))
        answered = self._asked[key] = asyncio.Event()
        try:
            await self._store.one_phase(lambda evaluation: evaluation.put([key], [body]))
            yield answered
        finally:
            del self._asked[key]
            if not answered.is_set():
                await self._delete([key])

    async def _delete(self, keys: Sequence[bytes]) -> None:
        if keys:
            await self._store.one_phase(lambda evaluation: evaluation.delete(keys))

    async def _refresh(self) -> None:
        """Reads the rows that were written while nobody listened: waits that came, and answers."""
        rows = await self._store.snapshot(await self._store.now()).scan(FEED_WAITS.primary_span)
        there = {key for key, _ in rows}
        for key, body in rows:
            self._note(key, body)
        for key in [key for key in self._serving if key not in there]:
            self._note(key, None)

    async def _take(self, written: ValueBatch) -> None:
        for key, body in zip(written.keys, written.values, strict=True):
            self._note(key, body)

    def _note(self, key: bytes, body: bytes | None) -> None:
        if body is None:
            if key in self._asked:
                self._asked[key].set()
            serving = self._serving.get(key)
            if serving is not None:
                serving.cancel()
        elif key not in self._serving:
            job_id, _, wanted = _codec.decode_row(key, body)
            assert isinstance(job_id, int), job_id
            assert isinstance(wanted, int), wanted
            task = asyncio.create_task(self._serve(key, job_id, Timestamp(wanted)))
            self._serving[key] = task
            task.add_done_callback(lambda _: self._serving.pop(key, None))

    async def _serve(self, key: bytes, job_id: int, wanted: Timestamp) -> None:
        try:
            await self._watch(job_id).wait_until(wanted)
        except FeedStopped:
            return  # who asked looks at the job too
        while True:
            try:
                return await self._delete([key])
            except KVError:
                self._store.metrics.add("feed_wait_failures_total")
            await asyncio.sleep(RESTART_SECONDS)
