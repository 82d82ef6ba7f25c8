"""A sink of PostgreSQL on a database that is as new, for tests: open, emit, flush, read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.sinks.postgres.kind import PostgresKind
from tailrace.changefeed.sinks.postgres.sink import PostgresSink
from tailrace.changefeed.sinks.protocol import FeedIdentity, SinkContext
from tailrace.kvlayer.clock import Clock, MemoryBoundStore, SystemWallClock
from tailrace.kvlayer.history import StorePosition
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.process.offload import ThreadOffload
from tailrace.kvlayer.settings import Settings
from tests.harness.postgres_process import PostgresProcess


class Database:
    """A database with nothing in it, and the node's side of its feeds."""

    def __init__(self, postgres: PostgresProcess) -> None:
        postgres.rows("DROP SCHEMA IF EXISTS _tailrace CASCADE")
        postgres.rows("DROP SCHEMA public CASCADE")
        postgres.rows("CREATE SCHEMA public")
        self.uri = postgres.uri()
        self.rows = postgres.rows
        self.ended: set[int] = set()
        """Jobs that are over."""
        self.kind = PostgresKind(self._lives)
        self._clock = Clock(SystemWallClock(), MemoryBoundStore())
        self._clock.now()  # as a store does when it opens

    async def _lives(self, job_id: int) -> bool:
        return job_id not in self.ended

    def sink(
        self, *, job_id: int = 7, epoch: int = 1, query: str = "", store_id: str = "store-1"
    ) -> PostgresSink:
        context = SinkContext(
            identity=FeedIdentity(store_id=store_id, job_id=job_id, epoch=epoch),
            position=lambda: StorePosition(incarnation="first", index=1),
            clock=self._clock,
            offload=ThreadOffload("unused"),
            settings=Settings(),
            metrics=Metrics(),
            options=ChangefeedOptions(),
        )
        sink = self.kind.create(self.uri + query, context)
        assert isinstance(sink, PostgresSink)
        return sink

    @asynccontextmanager
    async def open(self, *tables: TableDescriptor, **options: Any) -> AsyncIterator[PostgresSink]:
        """A sink, open for the time of the block."""
        sink = self.sink(**options)
        try:
            await sink.stand()
            await sink.open(tables)
            yield sink
        finally:
            await sink.close()

    def run(self, scenario: Callable[[Database], Awaitable[None]]) -> None:
        async def whole() -> None:
            await scenario(self)

        asyncio.run(whole())
