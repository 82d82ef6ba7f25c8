"""The server's side: the feed worker of a node, and who is using it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from .....kvlayer.metrics import Metrics
from .....kvlayer.process.cores import usable_cores
from .....kvlayer.process.memory import has_spare
from .....kvlayer.settings import declare_choice
from .....kvlayer.worker import (
    VERSION,
    Handler,
    Peer,
    Started,
    WorkerGone,
    WorkerProcess,
    received_rows,
    start_process,
)
from ...protocol import SinkError
from ..orphans import Lives
from ..ownership import MirrorSources
from ..reading.reader import Permit

WORKER_BYTES = 200 << 20
"""Memory of a worker: a server with less than twice as much to spare holds its mirrors itself."""

CORES_MIN = 3
"""Cores of a machine whose server does not have to share its own with a worker."""

WORKERS = declare_choice(
    "changefeed.workers",
    "on" if usable_cores() >= CORES_MIN and has_spare(2 * WORKER_BYTES) else "off",
    ["on", "off"],
    "whether a node's mirrors are written and read by a process of their own; a file that is open "
    "stays where it is until nobody has it open",
)

MODULE = "tailrace.changefeed.sinks.duckdb.hosting"

METRICS = "changefeed_worker"
"""The beginning of its metrics' names: `…_alive`, `…_deaths_total`."""


class MirrorWorker:
    """The feed worker as the node's sinks, readers and kinds use it."""

    def __init__(
        self,
        start: Callable[[], Awaitable[Started]],
        lives: Lives,
        metrics: Metrics,
        roots: Sequence[Path],
    ) -> None:
        """`lives` says of a job whether it may still run, and `roots` are the mirror roots."""
        self._lives = lives
        self._numbers = count(1)
        self._uses: Counter[Path] = Counter()
        self._freshens: dict[int, Callable[[], Awaitable[None]]] = {}
        self._reads: dict[int, tuple[Permit | None, list[pa.RecordBatch]]] = {}
        self.unreadable: set[int] = set()
        """The jobs of which the worker could not decode a row: their batches are decoded here,
        where that is an error of one table and not of the sink."""
        self._process = WorkerProcess(
            start,
            self._handlers(),
            version=VERSION,
            configuration=tuple(map(str, roots)),
            metrics=metrics,
            name=METRICS,
        )

    def _handlers(self) -> Mapping[str, Handler]:
        return {
            "lives": self._lives,
            "freshen": self._freshen,
            "permit": self._permit,
            "rows": self._take_rows,
        }

    def number(self) -> int:
        """A number that no other sink, read or snapshot of the node has had."""
        return next(self._numbers)

    async def peer(self) -> Peer:
        """The worker, which runs. Raises SinkError where it does not start."""
        with worker_errors():
            return await self._process.peer()

    async def call(self, name: str, *arguments: Any) -> Any:
        """A call that begins and ends with itself. Raises SinkError when the worker dies."""
        with worker_errors():
            return await (await self._process.peer()).call(name, *arguments)

    @contextmanager
    def using(self, path: Path) -> Iterator[None]:
        """The file is the worker's for the time of the block: nobody else opens it meanwhile."""
        self._uses[path] += 1
        try:
            yield
        finally:
            self._uses[path] -= 1
            if not self._uses[path]:
                del self._uses[path]

    def uses(self, path: Path) -> bool:
        """Whether the file is the worker's now."""
        return path in self._uses

    @contextmanager
    def freshened(
        self, number: int, freshen: Callable[[], Awaitable[None]] | None
    ) -> Iterator[None]:
        """The worker may ask for the progress of that sink's feed during the block."""
        if freshen is not None:
            self._freshens[number] = freshen
        try:
            yield
        finally:
            self._freshens.pop(number, None)

    @contextmanager
    def reading(self, number: int, permit: Permit | None) -> Iterator[list[pa.RecordBatch]]:
        """The list that the rows of that read come into."""
        found: list[pa.RecordBatch] = []
        self._reads[number] = permit, found
        try:
            yield found
        finally:
            del self._reads[number]

    async def close(self) -> None:
        """Ends the worker. Nobody uses it any more."""
        await self._process.close()

    # What the worker asks

    async def _freshen(self, number: int) -> None:
        freshen = self._freshens.get(number)
        if freshen is not None:
            await freshen()

    async def _permit(self, number: int, sources: MirrorSources) -> None:
        """Raises what the reader's own does; one that has gone is let nothing see."""
        if number not in self._reads:
            raise asyncio.CancelledError
        permit, _ = self._reads[number]
        assert permit is not None, "it said that it has none"
        await permit(sources)

    def _take_rows(self, number: int, sent: bytes) -> None:
        if number in self._reads:
            self._reads[number][1].extend(received_rows(sent))


def start_worker() -> Awaitable[Started]:
    """Starts the process of a feed worker."""
    return start_process(MODULE)


@contextmanager
def worker_errors() -> Iterator[None]:
    """A worker that has gone is a sink that has failed: trying again may mend it."""
    try:
        yield
    except WorkerGone as error:
        raise SinkError(f"feed worker: {error}") from error
