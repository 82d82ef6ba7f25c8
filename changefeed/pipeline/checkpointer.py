"""The checkpointer: what follows a flush, in an order that no crash can turn round.

    flush (the writer)  ->  the job's progress  ->  the resolved message

It runs beside the writer, so that saving a job's row delays no row of the feed. What it misses
while it saves is covered by the next, later progress.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ..contract.options import ChangefeedOptions
from ..sinks.protocol import Sink, SinkProgress
from .idle_pace import IdlePace

SHOWN_PROGRESS_SECONDS = 1.0
"""How often the job's copy of progress follows where the sink holds the true one."""

CHECKPOINTS_SHOWN = 5
"""At the pace of idle feeds, the job's copy of progress follows every n-th checkpoint."""


class Checkpointer:
    """Saves one feed's progress and sends its resolved messages.

    `save` writes the job's progress. Where the sink is transactional, progress is durable with the
    flush, and the job's copy is for show.
    """

    def __init__(
        self,
        sink: Sink,
        start: SinkProgress,
        *,
        options: ChangefeedOptions,
        transactional: bool,
        save: Callable[[SinkProgress], Awaitable[None]],
        pace: IdlePace,
    ) -> None:
        self._sink = sink
        self._options = options
        self._transactional = transactional
        self._save = save
        self._pace = pace
        self._loop = asyncio.get_running_loop()
        self._flushed = start
        self._saved = start
        self._next_save_at = float("-inf")
        self._resolved_sent = start.resolved
        self._next_resolved_at = float("-inf")
        self._wake = asyncio.Event()
        self._ended = asyncio.Event()

    def note_flushed(self, progress: SinkProgress) -> None:
        """The sink has made `progress` true."""
        self._flushed = progress
        self._wake.set()

    def end(self) -> None:
        """No flush will follow: `run` saves the last progress and returns."""
        self._ended.set()
        self._wake.set()

    async def run(self) -> None:
        """Follows the flushes until `end`. Raises what saving raises: a claim that was lost."""
        while not self._ended.is_set():
            await self._wake.wait()
            self._wake.clear()
            await self._follow(self._flushed)
            await self._pause()
        await self._follow(self._flushed)

    async def _follow(self, flushed: SinkProgress) -> None:
        if flushed is not self._saved and self._save_due():
            await self._save(flushed)
            self._saved = flushed
            seconds = max(SHOWN_PROGRESS_SECONDS, CHECKPOINTS_SHOWN * self._pace.seconds)
            self._next_save_at = self._loop.time() + seconds
        durable = flushed if self._transactional else self._saved
        if self._resolved_due(durable):
            self._next_resolved_at = self._loop.time() + self._options.resolved_interval
            self._resolved_sent = durable.resolved
            await self._sink.emit_resolved(durable.resolved)

    def _save_due(self) -> bool:
        ending = self._ended.is_set()
        return ending or not self._transactional or self._loop.time() >= self._next_save_at

    def _resolved_due(self, durable: SinkProgress) -> bool:
        if not self._options.resolved or durable.resolved <= self._resolved_sent:
            return False
        return self._ended.is_set() or self._loop.time() >= self._next_resolved_at

    async def _pause(self) -> None:
        """Lets `min_checkpoint_frequency` pass, or the end come."""
        try:
            async with asyncio.timeout(self._options.min_checkpoint_frequency):
                await self._ended.wait()
        except TimeoutError:
            pass
