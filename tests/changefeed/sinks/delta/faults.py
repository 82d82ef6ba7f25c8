"""Delta tables whose commits fail now and then, before or after they are made."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path

from tailrace.changefeed.sinks import Sink, SinkContext, SinkError
from tailrace.changefeed.sinks.delta import DeltaKind
from tailrace.changefeed.sinks.delta.location import delta_target
from tailrace.changefeed.sinks.delta.sink import DeltaSink
from tailrace.changefeed.sinks.delta.table_folder import TableFolder
from tests.changefeed.feeds import FeedBench
from tests.harness.simulation import Simulation


class FaultyFolder(TableFolder):
    """Fails now and then before and after a commit."""

    fail: Callable[[], None]

    def _commit(self, write: Callable[[], object]) -> None:
        self.fail()
        super()._commit(write)
        self.fail()


class FaultySink(DeltaSink):
    fail: Callable[[], None]

    def _folder(self, path: Path) -> TableFolder:
        folder = FaultyFolder(path, self._identity)
        folder.fail = self.fail
        return folder


class FaultyKind(DeltaKind):
    def __init__(self, sim: Simulation, root: Path) -> None:
        super().__init__([root], sim.offload)
        self._root = root
        self._random = sim.random
        self.chance = 0.15
        self.faults = 0

    def create(self, uri: str, context: SinkContext) -> Sink:
        target = delta_target(uri, [self._root])
        sink = FaultySink(target, self._lane(target.path), context)
        sink.fail = self._fail
        return sink

    def _fail(self) -> None:
        if self._random.random() < self.chance:
            self.faults += 1
            raise OSError(errno.EIO, "told to fail")


async def attempt(bench: FeedBench, job_id: int, work: asyncio.Task[None]) -> None:
    bench.jobs.claims[job_id].take_again()
    async with bench.running(job_id) as feed:
        await work
    if feed.done() and not feed.cancelled() and feed.exception() is not None:
        assert isinstance(feed.exception(), SinkError), feed.exception()
