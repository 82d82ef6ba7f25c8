"""The range queue: splits what is too large or too busy, and merges what is too small."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ..clock import ZERO
from ..command import EnginePut
from ..engine import EngineStall
from ..errors import KVError
from ..settings import declare_bool, declare_bytes, declare_duration, declare_int
from ..span_config import RANGE_BYTES_LEAST, SpanConfigs
from ..txn.steps import run_step
from .descriptor import size_key
from .range import Range
from .range_store import RangeStore
from .reshape import merge, split

RANGE_MAX_BYTES = declare_bytes(
    "kv.range_max_bytes",
    128 * 1024 * 1024,
    "bytes of versions above which a range is split, where its span says nothing else",
)
RANGE_MIN_BYTES = declare_bytes(
    "kv.range_min_bytes",
    16 * 1024 * 1024,
    "bytes of versions below which a range is merged with a neighbour",
)
LOAD_SPLIT = declare_bool(
    "kv.range_split.by_load.enabled", False, "whether ranges are split that are busy"
)
LOAD_THRESHOLD = declare_int(
    "kv.range_split.load_threshold",
    50_000,
    "operations on keys a second above which a range is split, if by_load is enabled",
)
MERGE_ENABLED = declare_bool("kv.range_merge.enabled", True, "whether small ranges are merged")
QUEUE_INTERVAL = declare_duration(
    "kv.range_queue.interval", 10.0, "how often ranges are looked at for splits and merges"
)

FILL = 0.75
"""How full the parts of a large range are to be, so that they do not split again at once; and how
full two small ones may be together."""

RANGES_AT_ONCE = 100
"""Ranges looked at in one step."""


class RangeQueue:
    """Looks at all ranges now and then, as long as there is something new to see.

    It is woken by writes (`wake`), and sleeps again when a look found nothing to do and no load to
    watch fall. So an idle store has no timer of its own.

    A border that somebody asked for stays while it is sticky. What was split for its load merges
    again only when both parts together carry less than half of what splits a range.
    """

    def __init__(
        self,
        store: RangeStore,
        configs: SpanConfigs,
        run: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._store = store
        self._configs = configs
        self._run = run
        self._timer: asyncio.TimerHandle | None = None
        self._looking = False
        self._looked_at = 0.0
        self._stopped = False

    def wake(self) -> None:
        """Something was written. Cheap."""
        if self._timer is None and not self._looking and not self._stopped:
            loop = asyncio.get_running_loop()
            self._looked_at = loop.time()
            interval = self._store.settings.get(QUEUE_INTERVAL)
            self._timer = loop.call_later(interval, self._due)

    def stop(self) -> None:
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def look(self) -> int:
        """Splits and merges what should be. How many of them there were."""
        seconds = max(asyncio.get_running_loop().time() - self._looked_at, 0.001)
        changed = await self._split_all() + await self._merge_all()
        for found in self._store.ranges:
            found.load.end_window(seconds)
        await self.save_sizes()
        return changed

    def _due(self) -> None:
        self._timer = None
        if not self._stopped:
            self._looking = True
            self._run(self._look_and_sleep())

    async def _look_and_sleep(self) -> None:
        changed = 0
        try:
            changed = await self.look()
        except (KVError, EngineStall):
            # The store closes, or cannot write now: what is left is for another look.
            self._store.metrics.add("kv_range_queue_failures_total")
        finally:
            self._looking = False
        if changed or any(found.load.per_second >= 1 for found in self._store.ranges):
            self.wake()

    # Splits.

    async def _split_all(self) -> int:
        changed = 0
        for number, found in enumerate(list(self._store.ranges), 1):
            for key in self._borders(found):
                await run_step(
                    self._store,
                    lambda _, key=key: split(self._store, key, ZERO),  # type: ignore[misc]
                    waiter=None,
                    lock_timeout=None,
                )
                changed += 1
                await asyncio.sleep(0)
            if number % RANGES_AT_ONCE == 0:
                await asyncio.sleep(0)
        return changed

    def _borders(self, found: Range) -> list[bytes]:
        """The keys at which the range should be split."""
        size, bytes_max = found.size.byte_count, self._bytes_max(found)
        if size > bytes_max:
            return found.size.borders(max(2, round(size / (bytes_max * FILL))))
        settings = self._store.settings
        if settings.get(LOAD_SPLIT) and found.load.per_second > settings.get(LOAD_THRESHOLD):
            key = found.load.split_key()
            return [] if key is None or key == found.span.start else [key]
        return []

    def _bytes_max(self, found: Range) -> int:
        wanted = self._configs.for_span(found.span).range_max_bytes
        if wanted is None:
            wanted = self._store.settings.get(RANGE_MAX_BYTES)
        return max(wanted, RANGE_BYTES_LEAST)

    # Merges.

    async def _merge_all(self) -> int:
        if not self._store.settings.get(MERGE_ENABLED):
            return 0
        changed = looked = 0
        left = next(iter(self._store.ranges))
        while (right := self._store.ranges.after(left)) is not None:
            if not self._mergeable(left, right):
                left = right
            else:
                await run_step(
                    self._store,
                    lambda _, range_id=left.id: merge(self._store, range_id),  # type: ignore[misc]
                    waiter=None,
                    lock_timeout=None,
                )
                changed += 1
                await asyncio.sleep(0)
                left = self._store.ranges.holding(left.span.start)
            looked += 1
            if looked % RANGES_AT_ONCE == 0:
                await asyncio.sleep(0)
                left = self._store.ranges.holding(left.span.start)
        return changed

    def _mergeable(self, left: Range, right: Range) -> bool:
        settings = self._store.settings
        if right.descriptor.sticky_at(self._store.clock.last) or left.closed is not right.closed:
            return False
        sizes = left.size.byte_count, right.size.byte_count
        if min(sizes) >= settings.get(RANGE_MIN_BYTES):
            return False
        if sum(sizes) > FILL * min(self._bytes_max(left), self._bytes_max(right)):
            return False
        load = left.load.per_second + right.load.per_second
        return not settings.get(LOAD_SPLIT) or load < settings.get(LOAD_THRESHOLD) / 2

    async def save_sizes(self) -> None:
        """Writes down the sizes that have changed since. Raises EngineStall, StoreFull or
        StoreClosed."""
        changed = [found for found in self._store.ranges if not found.size.saved]
        for start in range(0, len(changed), RANGES_AT_ONCE):
            portion = changed[start : start + RANGES_AT_ONCE]
            sizes = [
                EnginePut(size_key(found.id), found.size.encode())
                for found in portion
                if not found.replaced
            ]
            if sizes:
                self._store.propose_plain(sizes)
            for found in portion:
                found.size.saved = True
            await asyncio.sleep(0)
