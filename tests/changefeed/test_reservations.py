"""One feed has a new mirror to itself, from the transaction on that creates it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tailrace.catalog.jobs import JobState
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.sinks.duckdb import DuckDBFiles, DuckDBKind
from tailrace.changefeed.sinks.locations import MirrorLocations
from tailrace.kvlayer.errors import RetryableTransaction
from tailrace.kvlayer.txn import Isolation
from tests.changefeed.feeds import TargetKind
from tests.changefeed.table import Table
from tests.changefeed.test_registry import FeedNode
from tests.harness.nodes import open_nodes
from tests.harness.simulation import Simulation


async def every_job_lives(job_id: int) -> bool:
    return True


@asynccontextmanager
async def idle_node(sim: Simulation) -> AsyncIterator[FeedNode]:
    """A node that writes jobs and runs none: no feed opens its sink."""
    async with open_nodes(sim, 1) as (catalog, [node]):
        table = Table(catalog, await catalog.create(locked=True))
        yield FeedNode(sim, catalog, node, table, TargetKind(sim))


@pytest.mark.parametrize("isolation", Isolation)
def test_one_of_two_transactions_gets_the_mirror(isolation: Isolation) -> None:
    """The second waits for the first, whose feed it may not have seen; then it does not commit, and
    is told when it is run again."""

    async def scenario() -> None:
        async with idle_node(sim) as only:
            bench = only.bench
            first, second = (only.node.store.begin(isolation=isolation) for _ in range(2))
            await bench.feeds.create(first, bench.request(), "target://a")
            other = asyncio.create_task(bench.feeds.create(second, bench.request(), "target://a"))
            await asyncio.sleep(0.1)
            await first.commit()
            with pytest.raises((RetryableTransaction, SQLError)):
                await other
                await second.commit()
            await second.rollback()
            with pytest.raises(SQLError, match="belongs to changefeed job") as refused:
                await bench.create("target://a")
            assert refused.value.sqlstate == "55000"
            await bench.create("target://b")

    sim = Simulation(1)
    sim.run(scenario())


def test_one_transaction_cannot_reserve_twice() -> None:
    async def scenario() -> None:
        async with idle_node(sim) as only:
            transaction = only.node.store.begin()
            await only.bench.feeds.create(transaction, only.bench.request(), "target://a")
            with pytest.raises(SQLError, match="belongs to changefeed job"):
                await only.bench.feeds.create(transaction, only.bench.request(), "target://a")
            await transaction.rollback()
            await only.bench.create("target://a")

    sim = Simulation(2)
    sim.run(scenario())


def test_canceled_feed_reserves_nothing() -> None:
    async def scenario() -> None:
        async with idle_node(sim) as only:
            job_id = await only.bench.create("target://a")
            await only.registry.request_cancel(job_id)
            await only.registry.start()
            await only.registry.wait(job_id, JobState.CANCELED, timeout=10)
            await only.registry.close()
            await only.bench.create("target://a")

    sim = Simulation(3)
    sim.run(scenario())


def test_a_feed_that_is_being_canceled_is_waited_for() -> None:
    """The one that comes next begins again once it is over, and is refused where it does not
    end."""

    async def scenario() -> None:
        async with idle_node(sim) as only:
            job_id = await only.bench.create("target://a")
            await only.registry.request_cancel(job_id)
            with pytest.raises(SQLError, match="belongs to changefeed job") as refused:
                await only.bench.create("target://a")
            assert f"SHOW JOB {job_id}" in (refused.value.hint or "")
            next_one = asyncio.create_task(only.bench.create("target://a"))
            await asyncio.sleep(1)
            assert not next_one.done()
            await only.registry.start()
            with pytest.raises(RetryableTransaction):
                await next_one
            await only.registry.close()
            await only.bench.create("target://a")

    sim = Simulation(5)
    sim.run(scenario())


def test_mirrors_are_told_apart_by_file_and_table(tmp_path: Path) -> None:
    """However their locations are written: DuckDB's names ignore case, and paths are resolved."""
    files = DuckDBFiles(MirrorLocations([tmp_path]), Simulation(4).offload)
    kind = DuckDBKind(files, every_job_lives)
    orders = kind.reserved("duckdb:///m.duckdb", ["orders", "items"])
    assert orders & kind.reserved(f"duckdb:///{tmp_path}/m.duckdb", ["Orders"])
    assert orders & kind.reserved("duckdb:///m.duckdb?table=ITEMS", ["parts"])
    assert not orders & kind.reserved("duckdb:///m.duckdb?table=parts", ["orders"])
    assert not orders & kind.reserved("duckdb:///other.duckdb", ["orders"])
