"""Publishing: each rule has its refusal, and reading finds the version of every moment."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace

import pytest

from tailrace.catalog.descriptors.descriptor import DescriptorState, TableDescriptor
from tailrace.catalog.descriptors.publish_rules import StaleDescriptor
from tailrace.catalog.descriptors.system_tables import DESCRIPTOR
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.store.catalog_changes import CatalogChanges
from tailrace.catalog.store.lease_rows import LeaseRow, SessionRow
from tailrace.catalog.store.live_leases import DescriptorLeased
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.clock import MAX_TIMESTAMP, Timestamp, duration
from tailrace.kvlayer.errors import RetryableTransaction
from tailrace.kvlayer.txn import Transaction, TransactionStatus
from tests.harness.nodes import CatalogFixture, open_catalog
from tests.harness.simulation import Simulation
from tests.harness.stores import put

DROPPED = DescriptorState.DROPPED
GC = {"gc.ttlseconds": "60"}


@asynccontextmanager
async def _orders(
    sim: Simulation,
) -> AsyncIterator[tuple[CatalogFixture, TableDescriptor, Transaction]]:
    """A table, and a transaction that is rolled back unless the test commits it."""
    async with open_catalog(sim) as catalog:
        table = await catalog.create()
        transaction = catalog.store.begin()
        yield catalog, table, transaction
        if transaction.state is TransactionStatus.PENDING:
            await transaction.rollback()


async def _hold(
    catalog: CatalogFixture, table: TableDescriptor, *, seconds: float = 5.0, session: bool = True
) -> LeaseRow:
    """A lease on this version, and a session that lives for `seconds`."""
    store = catalog.store
    expiration = Timestamp(store.clock.now() + duration(seconds=seconds))
    lease = LeaseRow(
        descriptor_id=table.id,
        version=table.version,
        node_id=7,
        session_id="s",
        expiration=MAX_TIMESTAMP,
    )
    rows = [lease.encode()]
    if session:
        rows.append(SessionRow(session_id="s", expiration=expiration, node_id=7, epoch=1).encode())
    await put(store, dict(rows))
    return lease


def test_modification_time_is_the_commit_timestamp(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _orders(sim) as (catalog, table, transaction):
            changed = replace(table, version=2, parameters=GC)
            await catalog.descriptors.publish(transaction, changed)
            committed_at = await transaction.commit()
            read = await catalog.read(table.id)
            assert read == replace(changed, modification_time=committed_at)

    sim.run(scenario())


def test_each_moment_has_its_version(sim: Simulation) -> None:
    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            begin = catalog.store.clock.now()
            first = await catalog.create()
            other = await catalog.create("other")
            second = await catalog.add_column(first.id, "w")
            third = await catalog.add_column(first.id, "x")
            read_at, times = catalog.descriptors.read_at, [second, third]
            assert await read_at(first.id, begin) is None
            assert await read_at(first.id, Timestamp(second.modification_time - 1)) == first
            assert await read_at(first.id, second.modification_time) == second
            versions = catalog.descriptors.versions
            now = catalog.store.clock.now()
            assert await versions([first.id], first.modification_time, now) == times
            assert await versions([first.id], begin, second.modification_time) == [first, second]
            assert await versions([first.id, other.id], begin, now) == [first, other, *times]

    sim.run(scenario())


@pytest.mark.parametrize("version", [1, 3])
def test_version_must_follow_the_newest(sim: Simulation, version: int) -> None:
    async def scenario() -> None:
        async with _orders(sim) as (catalog, table, transaction):
            with pytest.raises(StaleDescriptor) as caught:
                await catalog.descriptors.publish(transaction, replace(table, version=version))
            assert isinstance(caught.value, RetryableTransaction)

    sim.run(scenario())


def test_first_version_is_one(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _orders(sim) as (catalog, table, transaction):
            new = replace(table, id=999, name="new", version=2)
            with pytest.raises(StaleDescriptor):
                await catalog.descriptors.publish(transaction, new)

    sim.run(scenario())


def test_of_two_publishers_one_retries(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _orders(sim) as (catalog, table, second):
            first = catalog.store.begin()
            publish = catalog.descriptors.publish
            await publish(first, replace(table, version=2, parameters=GC))
            await first.commit()
            with pytest.raises(RetryableTransaction):
                await publish(second, replace(table, version=2, name="other"))
                await second.commit()
            await second.rollback()
            assert (await catalog.read(table.id)).parameters == GC

    sim.run(scenario())


def test_older_lease_blocks_the_next_version(sim: Simulation) -> None:
    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            table = await catalog.create()
            lease = await _hold(catalog, table)
            await catalog.add_column(table.id, "w")  # the lease is on the version before: fine
            with pytest.raises(
                DescriptorLeased, match=r"node 7 \(session s\) still holds"
            ) as caught:
                await catalog.add_column(table.id, "x")
            assert (caught.value.lease.version, caught.value.lease.session_id) == (1, "s")
            assert isinstance(caught.value, RetryableTransaction)
            await put(catalog.store, {lease.key: None})
            assert (await catalog.add_column(table.id, "x")).version == 3

    sim.run(scenario())


def test_lease_of_an_expired_session_does_not_count(sim: Simulation) -> None:
    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            table = await catalog.create()
            await _hold(catalog, table, seconds=0.001)
            await catalog.add_column(table.id, "w")
            sim.wall.suspend(1)
            assert (await catalog.add_column(table.id, "x")).version == 3

    sim.run(scenario())


def test_lease_of_a_removed_session_does_not_count(sim: Simulation) -> None:
    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            table = await catalog.create()
            await _hold(catalog, table, session=False)
            await catalog.add_column(table.id, "w")
            assert (await catalog.add_column(table.id, "x")).version == 3

    sim.run(scenario())


@pytest.mark.parametrize("leased", [None, 1, 2])
def test_lease_that_slips_in_makes_the_publisher_retry(sim: Simulation, leased: int | None) -> None:
    """The lease is written below where the publisher must commit, which proves its reads anew: one
    of the version before the newest is not there, one of the newest may be."""

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            table = await catalog.create()
            second = await catalog.add_column(table.id, "w")
            transaction = catalog.store.begin()
            third = replace(second, version=3, parameters=GC)
            await catalog.descriptors.publish(transaction, third)
            slips_in = leased == 1
            if leased is not None:
                await _hold(catalog, table if slips_in else second)
            key, body = codec_for(second).encode_row((1, "x", None))
            await put(catalog.store, {key: body})
            with pytest.raises(RetryableTransaction) if slips_in else nullcontext():
                await transaction.put([key], [body])  # must go above the row just committed
                await transaction.commit()
            if slips_in:
                await transaction.rollback()
            assert (await catalog.read(table.id)).version == (2 if slips_in else 3)

    sim.run(scenario())


def test_locked_table_refuses_changes(sim: Simulation) -> None:
    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            table = await catalog.create(locked=True)
            for change in ({"parameters": GC}, {"name": "other"}, {"state": DROPPED}):
                with pytest.raises(SQLError, match="because it is locked") as caught:
                    await catalog.publish(table.id, **change)
                assert caught.value.sqlstate == "57000"
                assert "changefeed_optimized" in str(caught.value.detail)
                assert "ALTER TABLE orders RESET (changefeed_optimized)" in str(caught.value.hint)
            assert (await catalog.publish(table.id, locked=False)).version == 2

    sim.run(scenario())


def test_locked_table_may_be_commented(sim: Simulation) -> None:
    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            table = await catalog.create(locked=True)
            commented = await catalog.publish(table.id, comment="what was ordered")
            assert (commented.version, commented.locked) == (2, True)

    sim.run(scenario())


@pytest.mark.parametrize("locked", [False, True])
def test_lock_bit_changes_alone(sim: Simulation, locked: bool) -> None:
    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            table = await catalog.create(locked=locked)
            with pytest.raises(SQLError, match="must be the only change") as caught:
                await catalog.publish(table.id, locked=not locked, parameters=GC)
            assert caught.value.sqlstate == "25001"

    sim.run(scenario())


def test_unlocking_drop_is_refused(sim: Simulation) -> None:
    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            table = await catalog.create(locked=True)
            with pytest.raises(SQLError) as caught:
                await catalog.publish(table.id, locked=False, state=DROPPED)
            assert caught.value.sqlstate == "57000"

    sim.run(scenario())


def test_lock_after_a_write_is_refused(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _orders(sim) as (catalog, table, transaction):
            key, body = codec_for(table).encode_row((1, "x"))
            await transaction.put([key], [body])
            with pytest.raises(SQLError, match="must be the only change"):
                await catalog.descriptors.publish(
                    transaction, replace(table, version=2, locked=True)
                )

    sim.run(scenario())


def test_write_after_a_lock_fails_the_commit(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _orders(sim) as (catalog, table, transaction):
            await catalog.descriptors.publish(transaction, replace(table, version=2, locked=True))
            CatalogChanges.of(transaction)()  # nothing to say yet
            key, body = codec_for(table).encode_row((1, "x"))
            await transaction.put([key], [body])
            with pytest.raises(SQLError, match="must be the only change"):
                await transaction.commit()
            assert await catalog.read(table.id) == table
            assert await catalog.store.snapshot(catalog.store.clock.now()).get(key) is None

    sim.run(scenario())


@pytest.mark.parametrize("lock_first", [False, True])
def test_lock_beside_another_descriptor_is_refused(sim: Simulation, lock_first: bool) -> None:
    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            table = await catalog.create()
            other = replace(await catalog.create("other"), version=2, parameters=GC)
            transaction = catalog.store.begin()
            changes = [replace(table, version=2, locked=True), other]
            publish = catalog.descriptors.publish
            await publish(transaction, changes[not lock_first])
            with pytest.raises(SQLError, match="must be the only change"):
                await publish(transaction, changes[lock_first])
            await transaction.rollback()

    sim.run(scenario())


def test_lock_and_unlock_need_two_transactions(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _orders(sim) as (catalog, table, transaction):
            await catalog.descriptors.publish(transaction, replace(table, version=2, locked=True))
            with pytest.raises(SQLError, match="must be the only change"):
                await catalog.descriptors.publish(transaction, replace(table, version=2))

    sim.run(scenario())


def test_table_may_be_created_locked_beside_rows(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _orders(sim) as (catalog, table, transaction):
            new_id = await catalog.descriptors.allocate_id()
            new = replace(table, id=new_id, name="new", locked=True)
            await catalog.descriptors.publish(transaction, new)
            key, body = codec_for(new).encode_row((1, "x"))
            await transaction.put([key], [body])
            await transaction.commit()
            assert (await catalog.read(new_id)).locked

    sim.run(scenario())


def test_transaction_publishes_one_version(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _orders(sim) as (catalog, table, transaction):
            for name in ("one", "two"):
                read = await catalog.descriptors.read(transaction, table.id)
                assert isinstance(read, TableDescriptor)
                version = catalog.descriptors.next_version(transaction, read)
                await catalog.descriptors.publish(
                    transaction, replace(read, version=version, name=name)
                )
            await transaction.commit()
            newest = await catalog.read(table.id)
            assert (newest.version, newest.name) == (2, "two")
            lookup, parents = catalog.descriptors.lookup, (table.database_id, table.schema_id)
            reader = catalog.store.snapshot(catalog.store.clock.now())
            found = [await lookup(reader, *parents, name) for name in ("orders", "one", "two")]
            assert found == [None, None, table.id]

    sim.run(scenario())


def test_rollback_leaves_nothing(sim: Simulation) -> None:
    async def scenario() -> None:
        async with _orders(sim) as (catalog, table, transaction):
            await catalog.descriptors.publish(transaction, replace(table, version=2, name="other"))
            await transaction.rollback()
            assert await catalog.read(table.id) == table

    sim.run(scenario())


def test_dropped_table_keeps_its_descriptor(sim: Simulation) -> None:
    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            table = await catalog.create()
            dropped = await catalog.publish(table.id, state=DROPPED)
            assert dropped.dropped
            again = await catalog.create()
            assert again.id != table.id
            with pytest.raises(StaleDescriptor, match="was dropped"):
                await catalog.publish(table.id, name="risen")

    sim.run(scenario())


def test_taken_name_is_refused(sim: Simulation) -> None:
    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            await catalog.create()
            other = await catalog.create("other")
            with pytest.raises(SQLError, match='relation "orders" already exists') as caught:
                await catalog.publish(other.id, name="orders")
            assert caught.value.sqlstate == "42P07"

    sim.run(scenario())


def test_system_descriptors_are_fixed(sim: Simulation) -> None:
    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            with pytest.raises(SQLError, match="is part of the system") as caught:
                await catalog.publish(DESCRIPTOR.id, name="other")
            assert caught.value.sqlstate == "42501"

    sim.run(scenario())
