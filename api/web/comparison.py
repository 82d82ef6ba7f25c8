"""The comparison: one workload, three copies of a table, three schema feeds."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

import msgspec

from ...catalog.values.errors import SQLError
from ...kvlayer.errors import KVError
from ..node import Node
from . import compared_tables
from .compared_tables import LEDGER, Subject
from .long_transaction import LongTransaction
from .workload import Track, Workload

SAMPLE_SECONDS = 0.25
POINTS_MAX = 480
"""Two minutes of points, which is what the page draws: every event carries them all."""

MARKS_MAX = 100

RUN_SECONDS_MAX = 1800.0
"""A workload that somebody forgot ends by itself."""


class Refused(Exception):
    """The comparison cannot do that now; the message says why."""


class Point(msgspec.Struct):
    """Latencies in ms at one time (Unix ms), one for each subject in the order of `Subject`."""

    at_ms: float
    latency_ms: list[float | None]


class Mark(msgspec.Struct):
    """Something that was done at a time (Unix ms), and the SQL that did it."""

    at_ms: float
    label: str
    sql: str


class Percentiles(msgspec.Struct):
    """Commit-to-emit over the last half minute, in milliseconds."""

    subject: str
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class ComparisonReply(msgspec.Struct, kw_only=True):
    """The comparison as it stands; `points` are the last two minutes, oldest first."""

    store_id: str
    running: bool
    locked: bool
    transaction_open: bool
    points: list[Point]
    marks: list[Mark]
    percentiles: list[Percentiles]
    error: str | None


class Comparison:
    """The one comparison of a node, whoever watches it. Its actions run one at a time.

    Actions raise Refused when they make no sense now, and SQLError when the store refuses them.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._acting = asyncio.Lock()
        self._points: deque[Point] = deque(maxlen=POINTS_MAX)
        self._marks: deque[Mark] = deque(maxlen=MARKS_MAX)
        self._tracks: dict[Subject, Track] = {}
        self._workload: asyncio.Task[None] | None = None
        self._sampler: asyncio.Task[None] | None = None
        self._transaction = LongTransaction(node, LEDGER, on_end=self._transaction_ended)
        self._locked = False
        self._error: str | None = None

    def reply(self) -> ComparisonReply:
        return ComparisonReply(
            store_id=self._node.store.id,
            running=self.running,
            locked=self._locked,
            transaction_open=self._transaction.open,
            points=list(self._points),
            marks=list(self._marks),
            percentiles=[self._percentiles(subject) for subject in Subject],
            error=self._error,
        )

    @property
    def running(self) -> bool:
        return self._workload is not None and not self._workload.done()

    async def start(self) -> None:
        """Makes what is missing of tables and feeds, locks the copies, and runs the workload."""
        async with self._acting:
            if self.running:
                raise Refused("the workload is running already")
            self._error = None
            await compared_tables.prepare(self._node)
            await self._set_locked(True)
            feeds = await compared_tables.follow(self._node)
            wall = self._node.store.clock.wall
            self._tracks = {subject: Track(live, wall) for subject, live in feeds.items()}
            self._workload = asyncio.create_task(self._work(), name="comparison workload")
            if self._sampler is None or self._sampler.done():
                self._sampler = asyncio.create_task(self._sample(), name="comparison sampler")

    async def stop(self) -> None:
        """Ends the workload. Tables and feeds stay."""
        async with self._acting:
            if not self.running:
                raise Refused("the workload is not running")
            await self._end_workload()
            self._mark("workload stops", "")

    async def lock(self) -> None:
        """Locks the three copies."""
        async with self._acting:
            self._check_prepared()
            await self._set_locked(True)

    async def unlock(self) -> None:
        """Unlocks them: the leasing schema feed must ask, then, as the others do."""
        async with self._acting:
            self._check_prepared()
            await self._set_locked(False)

    async def open_transaction(self) -> None:
        """Opens a transaction that has written, and leaves it open for a while."""
        async with self._acting:
            self._check_prepared()
            if self._transaction.open:
                raise Refused("the long transaction is open already")
            await self._transaction.begin()
            self._mark("long transaction begins", self._transaction.begin_sql)

    async def close_transaction(self) -> None:
        """Commits the long transaction."""
        async with self._acting:
            if not self._transaction.open:
                raise Refused("no long transaction is open")
            await self._transaction.end()

    async def close(self) -> None:
        """The server stops."""
        async with self._acting:
            await self._end_workload()
            await self._transaction.close()
            if self._sampler is not None:
                self._sampler.cancel()
                await asyncio.wait([self._sampler])

    def _check_prepared(self) -> None:
        if not self._tracks:
            raise Refused("there are no tables yet: start the workload first")

    async def _set_locked(self, locked: bool) -> None:
        statements = await compared_tables.set_locked(self._node, locked)
        self._locked = locked
        self._mark("lock" if locked else "unlock", _text(statements))

    async def _work(self) -> None:
        session = self._node.session()
        workload = Workload(session)
        self._mark("workload starts", _text(workload.statements))
        try:
            async with asyncio.timeout(RUN_SECONDS_MAX):
                await workload.run(self._tracks)
        except TimeoutError:
            self._mark("workload ends by itself", "")
        except (SQLError, KVError) as error:
            self._error = f"the workload ended: {error}"
        finally:
            await session.close()

    async def _end_workload(self) -> None:
        if self._workload is not None:
            self._workload.cancel()
            await asyncio.wait([self._workload])
            self._workload = None

    async def _sample(self) -> None:
        """A point every `SAMPLE_SECONDS`, while the workload runs and until its feeds are quiet."""
        while True:
            await asyncio.sleep(SAMPLE_SECONDS)
            latencies = [track.read() for track in self._tracks.values()]
            if not self.running and all(latency is None for latency in latencies):
                return
            self._points.append(Point(self._now_ms(), latencies))

    def _percentiles(self, subject: Subject) -> Percentiles:
        track = self._tracks.get(subject)
        latency = None if track is None else track.latency
        if latency is None:
            return Percentiles(subject.value)
        return Percentiles(subject.value, latency.p50, latency.p95, latency.p99)

    def _transaction_ended(self, statement: str) -> None:
        self._mark("long transaction ends", statement)

    def _mark(self, label: str, sql: str) -> None:
        self._marks.append(Mark(self._now_ms(), label, sql))

    def _now_ms(self) -> float:
        return self._node.store.clock.wall.unix_us() / 1e3


def _text(statements: Sequence[str]) -> str:
    return ";\n".join(statements)
