"""Nodes of a catalog on one simulated store, and what a schema change does to its tables.

async with open_nodes(sim, 2) as (catalog, [first, second]):
    table = await catalog.create("orders")
    lease = await first.leases.acquire(table.id, catalog.store.clock.now())
    await catalog.publish(table.id, locked=True)
    second.stop()            # as if its process were stopped
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar, cast

from tailrace.catalog.descriptors.descriptor import Column, DescriptorState, TableDescriptor
from tailrace.catalog.descriptors.system_tables import DEFAULT_DATABASE_ID, DEFAULT_PUBLIC_ID
from tailrace.catalog.leases import LeaseManager, LivenessSession
from tailrace.catalog.rights.bootstrap import bootstrap
from tailrace.catalog.store.descriptor_store import DescriptorStore
from tailrace.catalog.values.column_types import ColumnType
from tailrace.catalog.values.type_kinds import TypeKind
from tailrace.kvlayer.access import Version
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.errors import KVError
from tailrace.kvlayer.events import Event
from tailrace.kvlayer.rangefeed import SpanFeed
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.txn import Evaluation
from tailrace.kvlayer.txn.snapshot import SnapshotReader
from tests.harness.descriptors import KEY, VALUE
from tests.harness.simulation import Simulation
from tests.harness.stores import open_store

T = TypeVar("T")


class CatalogFixture:
    """Tables, changed one version at a time by the rules of the descriptor store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.descriptors = DescriptorStore(store)

    async def create(self, name: str = "orders", *, locked: bool = False) -> TableDescriptor:
        """`name (k INT8 PRIMARY KEY, v STRING)`."""
        transaction = self.store.begin()
        table = TableDescriptor(
            id=await self.descriptors.allocate_id(),
            name=name,
            database_id=DEFAULT_DATABASE_ID,
            schema_id=DEFAULT_PUBLIC_ID,
            columns=(KEY, VALUE),
            primary_key=(1,),
            next_column_id=3,
            locked=locked,
        )
        await self.descriptors.publish(transaction, table)
        await transaction.commit()
        return await self.read(table.id)

    async def read(self, table_id: int) -> TableDescriptor:
        found = await self.descriptors.read_at(table_id, self.store.clock.now())
        assert isinstance(found, TableDescriptor)
        return found

    async def publish(self, table_id: int, **changes: Any) -> TableDescriptor:
        """The next version of a table. Raises what `DescriptorStore.publish` raises."""
        transaction = self.store.begin()
        try:
            current = await self.descriptors.read(transaction, table_id)
            assert isinstance(current, TableDescriptor)
            changed = replace(current, version=current.version + 1, **changes)
            await self.descriptors.publish(transaction, changed)
            await transaction.commit()
        except BaseException:
            await transaction.rollback()
            raise
        return await self.read(table_id)

    async def drop(self, table_id: int) -> TableDescriptor:
        return await self.publish(table_id, state=DescriptorState.DROPPED)

    async def add_column(self, table_id: int, name: str) -> TableDescriptor:
        current = await self.read(table_id)
        column = Column(id=current.next_column_id, name=name, type=ColumnType(TypeKind.INT8))
        return await self.publish(
            table_id,
            columns=(*current.columns, column),
            next_column_id=current.next_column_id + 1,
        )


class StoppableStore:
    """A store as one node sees it: while the node is stopped, no call returns to it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._running = asyncio.Event()
        self._running.set()
        self._answering = asyncio.Event()
        self._answering.set()
        self.speaking = asyncio.Event()
        self.speaking.set()
        self.feed_failures: list[KVError] = []
        self.write_failures: list[KVError] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def stop(self) -> None:
        self._running.clear()

    def withhold_answers(self) -> None:
        self._answering.clear()

    def go_on(self) -> None:
        self._running.set()
        self._answering.set()

    async def one_phase(
        self, evaluate: Callable[[Evaluation], T], **options: Any
    ) -> tuple[T, Timestamp]:
        await self._running.wait()
        if self.write_failures:
            raise self.write_failures.pop()
        result = await self._store.one_phase(evaluate, **options)
        await self._running.wait()
        await self._answering.wait()
        return result

    def snapshot(self, at: Timestamp) -> SnapshotReader:
        return cast(SnapshotReader, StoppableReader(self._store.snapshot(at), self._running))

    def span_feed(
        self, spans: list[Span], start_after: Timestamp, *, checkpoint_seconds: float = 0.0
    ) -> SpanFeed:
        feed = self._store.span_feed(spans, start_after, checkpoint_seconds=checkpoint_seconds)
        return cast(SpanFeed, StoppableFeed(feed, self))

    async def versions(
        self, span: Span, after: Timestamp, upto: Timestamp
    ) -> AsyncIterator[list[Version]]:
        async for found in self._store.versions(span, after, upto):
            await self._running.wait()
            yield found
        await self._running.wait()


class StoppableReader:
    def __init__(self, reader: SnapshotReader, running: asyncio.Event) -> None:
        self._reader = reader
        self._running = running

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    async def get(self, key: bytes) -> bytes | None:
        found = await self._reader.get(key)
        await self._running.wait()
        return found

    async def scan(self, span: Span) -> list[tuple[bytes, bytes]]:
        found = await self._reader.scan(span)
        await self._running.wait()
        return found


class StoppableFeed:
    def __init__(self, feed: SpanFeed, store: StoppableStore) -> None:
        self._feed = feed
        self._held: list[Event] = []
        self._failures = store.feed_failures
        self._running = store._running
        self._speaking = store.speaking

    def __getattr__(self, name: str) -> Any:
        return getattr(self._feed, name)

    async def next(self) -> list[Event]:
        if not self._held:
            self._held = await self._feed.next()
        if self._failures:
            raise self._failures.pop()
        await self._running.wait()
        await self._speaking.wait()
        events, self._held = self._held, []
        return events

    def close(self) -> None:
        self._feed.close()


class Node:
    """A node: its session and its leases, on a store that it can be cut off from."""

    def __init__(self, catalog: CatalogFixture, node_id: int) -> None:
        self._stoppable = StoppableStore(catalog.store)
        self.store = cast(Store, self._stoppable)
        self.session = LivenessSession(self.store, node_id)
        self.leases = LeaseManager(self.store, catalog.descriptors, self.session)

    def stop(self) -> None:
        """Its process gets no more time."""
        self._stoppable.stop()

    def go_on(self) -> None:
        self._stoppable.go_on()

    def withhold_answers(self) -> None:
        """What it asks for is done, and it is not told, until it goes on."""
        self._stoppable.withhold_answers()

    def mute_feeds(self) -> None:
        """Its feeds give nothing more, though everything else works."""
        self._stoppable.speaking.clear()

    def fail_feeds(self, error: KVError) -> None:
        """The next events of one of its feeds are this error."""
        self._stoppable.feed_failures.append(error)

    def fail_writes(self, *errors: KVError) -> None:
        """Its next writes in one phase end with these errors, and write nothing."""
        self._stoppable.write_failures += errors

    async def start(self) -> None:
        await self.session.start()
        await self.leases.start()

    async def close(self) -> None:
        self.go_on()
        self.leases.check_invariants()
        await self.leases.close()
        await self.session.close()


@asynccontextmanager
async def open_catalog(sim: Simulation) -> AsyncIterator[CatalogFixture]:
    store = await open_store(sim)
    await bootstrap(store)
    yield CatalogFixture(store)
    store.check_invariants()
    await store.close()


@asynccontextmanager
async def open_nodes(
    sim: Simulation, count: int
) -> AsyncIterator[tuple[CatalogFixture, list[Node]]]:
    """A catalog and `count` nodes on it, closed in the end if all went well."""
    async with open_catalog(sim) as catalog:
        nodes = [Node(catalog, node_id) for node_id in range(1, count + 1)]
        for node in nodes:
            await node.start()
        yield catalog, nodes
        for node in nodes:
            await node.close()
