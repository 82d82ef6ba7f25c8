"""A store over a network: what holds of a near store holds of a distant one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest

from tailrace.api.rpc import StoreService
from tailrace.api.rpc.service import FEED_SPACING_SECONDS
from tailrace.kvlayer.access import Evaluation, Feed, StoreAccess
from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.errors import (
    DeadlineExceeded,
    KVError,
    OutcomeUnknown,
    RetryableTransaction,
    StoreClosed,
    StoreUnreachable,
    TransactionAborted,
)
from tailrace.kvlayer.events import Checkpoint, Event, ValueBatch
from tailrace.kvlayer.mvcc import SLICE_ROWS
from tailrace.kvlayer.raw import keyspace_span, raw_key
from tailrace.kvlayer.remote import RemoteStore
from tailrace.kvlayer.remote.messages import Reply, WireEvent, WireValues, decode
from tailrace.kvlayer.replication.replica import (
    Begin,
    End,
    Ingest,
    Look,
    Open,
    ReplicaRefused,
    ReplicaState,
)
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.transaction_modes import WhenLocked
from tests.harness.sim_network import SimNetwork
from tests.harness.simulation import Simulation
from tests.harness.stores import copy_folder, open_store, put_back, reopen

A, B, C = (b"t\x00\x00\x00\x64" + letter for letter in (b"a", b"b", b"c"))
ALL = Span(b"t\x00\x00\x00\x64", b"t\x00\x00\x00\x65")
KEYSPACE = keyspace_span(7)


class Joined:
    """A store, and the same store as two nodes see it."""

    def __init__(self, near: Store, network: SimNetwork, far: RemoteStore, other: RemoteStore):
        self.near = near
        self.network = network
        self.far = far
        self.other = other


@asynccontextmanager
async def joined(sim: Simulation) -> AsyncIterator[Joined]:
    near = await open_store(sim)
    service = StoreService(near)
    service.start()
    network = SimNetwork(sim, service)
    far, other = await network.join(), await network.join()
    setup = Joined(near, network, far, other)
    yield setup
    network.heal()
    await far.close()
    await other.close()
    await network.service.close()
    setup.near.check_invariants()
    await setup.near.close()


def run(seed: int, scenario: Callable[[Joined], Awaitable[None]]) -> None:
    sim = Simulation(seed)

    async def main() -> None:
        async with joined(sim) as setup:
            await scenario(setup)

    sim.run(main())


async def put(store: StoreAccess, key: bytes, body: bytes) -> Timestamp:
    _, at = await store.one_phase(lambda evaluation: evaluation.put((key,), (body,)))
    return at


async def put_all(store: StoreAccess, keys: list[bytes]) -> None:
    await store.one_phase(lambda evaluation: evaluation.put(keys, keys))


async def get(store: StoreAccess, key: bytes) -> bytes | None:
    return await store.snapshot(await store.now()).get(key)


def test_a_distant_node_sees_what_was_acknowledged_elsewhere() -> None:
    async def scenario(on: Joined) -> None:
        for number in range(20):
            body = str(number).encode()
            await put((on.near, on.far, on.other)[number % 3], A, body)
            assert await get((on.far, on.other, on.near)[number % 3], A) == body

    run(1, scenario)


def test_timestamps_are_unique_and_rise_across_nodes() -> None:
    async def scenario(on: Joined) -> None:
        drawn = [await store.now() for _ in range(10) for store in (on.near, on.far, on.other)]
        assert drawn == sorted(set(drawn))
        assert on.far.clock.last <= on.near.clock.last

    run(2, scenario)


@pytest.mark.parametrize("seed", range(10))
def test_increments_of_many_nodes_are_all_counted(seed: int) -> None:
    """Each evaluates against what it read; the store refuses what has changed since."""

    async def increment(store: StoreAccess) -> None:
        def evaluate(evaluation: Evaluation) -> None:
            count = int(evaluation.get(A) or b"0")
            evaluation.put((A,), (str(count + 1).encode(),))

        for _ in range(10):
            await store.one_phase(evaluate)

    async def scenario(on: Joined) -> None:
        await asyncio.gather(*(increment(store) for store in (on.near, on.far, on.other)))
        assert await get(on.far, A) == b"30"

    run(seed, scenario)


def test_a_yes_to_before_holds_at_the_commit() -> None:
    """The message takes longer than what is left until the limit."""

    async def scenario(on: Joined) -> None:
        call, limit = on.network.service.call, Timestamp(await on.far.now() + (100_000 << 12))

        async def slow(method: str, body: bytes) -> bytes:
            if method == "one_phase":
                await asyncio.sleep(0.5)
            return await call(method, body)

        def evaluate(evaluation: Evaluation) -> bool:
            before = evaluation.before(limit)
            evaluation.put((A,), (b"in time" if before else b"late",))
            return before

        on.network.service.call = slow  # type: ignore[method-assign]
        told, at = await on.far.one_phase(evaluate)
        assert told == (at < limit)
        assert await get(on.near, A) == b"late"

    for seed in range(5):
        run(seed, scenario)


def test_no_run_sees_a_mixture_of_two_moments() -> None:
    async def scenario(on: Joined) -> None:
        await put(on.near, A, b"0")
        await put(on.near, B, b"0")

        async def move() -> None:
            for number in range(1, 50):

                def both(evaluation: Evaluation, body: bytes = str(number).encode()) -> None:
                    evaluation.put((A, B), (body, body))

                await on.near.one_phase(both)
                await asyncio.sleep(0.0005)

        def compare(evaluation: Evaluation) -> None:
            assert evaluation.get(A) == evaluation.get(B)

        moving = asyncio.create_task(move())
        while not moving.done():
            await on.far.one_phase(compare)

    run(4, scenario)


def test_an_insert_of_new_keys_takes_one_round_trip() -> None:
    async def scenario(on: Joined) -> None:
        def insert(evaluation: Evaluation) -> None:
            found = evaluation.first_existing((A, B))
            if found is not None:
                raise KeyError(found)
            evaluation.put((A, B), (b"1", b"2"))

        asked: list[str] = []
        call = on.network.service.call

        async def counting(method: str, body: bytes) -> bytes:
            asked.append(method)
            return await call(method, body)

        on.network.service.call = counting  # type: ignore[method-assign]
        await on.far.one_phase(insert)
        assert asked == ["one_phase"]
        with pytest.raises(KeyError):
            await on.far.one_phase(insert)

    run(5, scenario)


def test_a_transaction_reads_several_keys_in_one_round_trip() -> None:
    async def scenario(on: Joined) -> None:
        await put(on.near, A, b"1")
        transaction = on.far.begin()
        await transaction.put([C], [b"own"])
        asked: list[str] = []
        call = on.network.service.call

        async def counting(method: str, body: bytes) -> bytes:
            asked.append(method)
            return await call(method, body)

        on.network.service.call = counting  # type: ignore[method-assign]
        assert await transaction.get_each([B, A, C]) == [None, b"1", b"own"]
        assert await transaction.first_existing([B, C, A]) == 1
        assert await transaction.first_existing([B]) is None
        assert asked == ["transaction"] * 3
        await transaction.rollback()

    run(5, scenario)


def test_the_store_checks_the_deadline_at_the_commit() -> None:
    async def scenario(on: Joined) -> None:
        past = await on.far.now()
        with pytest.raises(DeadlineExceeded):
            await on.far.one_phase(
                lambda evaluation: evaluation.put((A,), (b"1",)), deadline=lambda: past
            )
        transaction = on.far.begin()
        await transaction.put([B], [b"2"])
        with pytest.raises(DeadlineExceeded):
            await transaction.commit(deadline=lambda: past)
        assert await get(on.near, A) is None
        assert await get(on.near, B) is None

    run(6, scenario)


def test_transactions_are_serializable_across_nodes() -> None:
    async def scenario(on: Joined) -> None:
        await put(on.near, A, b"1")
        await put(on.near, B, b"1")
        first, second = on.far.begin(), on.other.begin()
        assert [await first.get(A), await second.get(B)] == [b"1", b"1"]
        await first.put([B], [b"0"])
        await first.commit()
        with pytest.raises(RetryableTransaction):
            await second.put([A], [b"0"])
            await second.commit()
        await second.rollback()
        assert await get(on.near, A) == b"1"

    run(7, scenario)


def test_savepoints_go_back_at_a_distance() -> None:
    async def scenario(on: Joined) -> None:
        transaction = on.far.begin()
        await transaction.put([A], [b"1"])
        mark = await transaction.savepoint()
        await transaction.put([A, B], [b"2", b"2"])
        await transaction.rollback_to(mark)
        assert await transaction.get(A) == b"1"
        assert transaction.write_count == 1
        await transaction.commit()
        assert await get(on.near, B) is None

    run(8, scenario)


def test_a_transaction_ends_with_its_connection() -> None:
    async def scenario(on: Joined) -> None:
        transaction = on.far.begin()
        await transaction.put([A], [b"1"])
        on.network.disconnect()
        await asyncio.sleep(0.5)
        await put(on.near, A, b"2")  # nobody is in its way
        with pytest.raises(TransactionAborted):
            await transaction.commit()
        await transaction.rollback()
        assert await get(on.far, A) == b"2"

    run(9, scenario)


def test_names_are_locked_and_unlocked_from_afar() -> None:
    name = b"l\x00\x00\x00\x64a"

    async def scenario(on: Joined) -> None:
        far, near = on.far.begin(), on.near.begin()
        await far.started()
        assert await far.lock([name]) == [name]
        assert await near.lock([name], when_locked=WhenLocked.SKIP) == []
        await far.unlock([name])
        assert await near.lock([name], when_locked=WhenLocked.SKIP) == [name]
        far.check_running()
        await near.rollback()
        on.network.disconnect()
        await asyncio.sleep(3)
        with pytest.raises(TransactionAborted):
            far.check_running()

    run(1, scenario)


def test_who_waited_afar_sees_what_was_done_meanwhile() -> None:
    name = b"l\x00\x00\x00\x64a"

    async def scenario(on: Joined) -> None:
        near, far = on.near.begin(), on.far.begin()
        await near.lock([name])
        await far.started()
        waiting = asyncio.create_task(far.lock([name]))
        await asyncio.sleep(0.1)
        await put(on.near, A, b"1")
        await near.rollback()
        await waiting
        assert await far.get(A) == b"1"
        await far.rollback()

    run(2, scenario)


def test_a_silent_nodes_locks_are_let_go() -> None:
    async def scenario(on: Joined) -> None:
        transaction = on.far.begin()
        await transaction.put([A], [b"1"])
        on.network.cut()
        await asyncio.sleep(10)
        await put(on.near, A, b"2")
        on.network.heal()
        with pytest.raises(TransactionAborted):
            await transaction.commit()

    run(10, scenario)


@pytest.mark.parametrize("seed", range(20))
def test_an_answer_that_was_lost_is_said_to_be(seed: int) -> None:
    """What was not acknowledged is there or is not; what was refused never is."""

    async def scenario(on: Joined) -> None:
        writing = asyncio.create_task(put(on.far, A, b"1"))
        await asyncio.sleep(seed * 0.0003)
        on.network.disconnect()
        try:
            await writing
        except OutcomeUnknown:
            pass
        except RetryableTransaction:
            assert await get(on.near, A) is None
        else:
            assert await get(on.near, A) == b"1"

    run(seed, scenario)


@pytest.mark.parametrize("seed", range(10))
def test_a_feed_goes_on_from_its_last_checkpoint(seed: int) -> None:
    """Every version arrives, and after a checkpoint nothing at or below it is new."""

    async def scenario(on: Joined) -> None:
        feed = on.far.span_feed([ALL], ZERO)
        seen: set[tuple[bytes, Timestamp]] = set()
        resolved = ZERO

        async def follow() -> None:
            nonlocal resolved
            while True:
                for event in await feed.next():
                    if isinstance(event, ValueBatch):
                        pairs = set(zip(event.keys, event.timestamps, strict=True))
                        assert all(at > resolved for _, at in pairs - seen)
                        seen.update(pairs)
                    elif isinstance(event, Checkpoint):
                        resolved = max(resolved, event.resolved)

        following = asyncio.create_task(follow())
        written = set()
        for number in range(30):
            key = (A, B, C)[number % 3]
            written.add((key, await put(on.near, key, str(number).encode())))
            if number % 10 == 5:
                on.network.disconnect()
            await asyncio.sleep(0.05)
        last = on.near.clock.now()
        while resolved < last:
            await asyncio.sleep(0.1)
        assert seen == written
        feed.close()
        following.cancel()

    run(seed, scenario)


def test_scans_and_versions_come_in_slices() -> None:
    async def scenario(on: Joined) -> None:
        keys = [A + number.to_bytes(2, "big") for number in range(3000)]
        before = await on.far.now()
        _, at = await on.far.one_phase(lambda evaluation: evaluation.put(keys, [b"v"] * len(keys)))
        rows = await on.far.snapshot(at).scan(ALL)
        assert [key for key, _ in rows] == keys
        found = [version async for part in on.far.versions(ALL, before, at) for version in part]
        assert found == [(key, at, b"v") for key in keys]
        transaction = on.far.begin()
        async for part in transaction.scan_slices(ALL):
            assert len(part) < 3000
        await transaction.rollback()

    run(12, scenario)


def test_changes_come_with_own_writes() -> None:
    async def scenario(on: Joined) -> None:
        await put(on.near, A, b"old")
        after = await on.far.now()
        await put(on.near, B, b"new")
        transaction = on.far.begin()
        await transaction.put([C], [b"own"])
        await transaction.delete([A])
        found = [c async for part in transaction.changed_slices(ALL, after) for c in part]
        assert dict(found) == {A: None, B: b"new", C: b"own"}
        await transaction.rollback()

    run(14, scenario)


def test_a_lost_connection_is_told_and_so_is_the_next() -> None:
    async def scenario(on: Joined) -> None:
        told: list[KVError | None] = []
        on.far.on_connection(told.append)
        on.network.cut()
        await asyncio.sleep(10)
        assert [type(change) for change in told] == [StoreUnreachable]
        on.network.heal()
        await asyncio.sleep(10)
        assert told[1:] == [None]

    run(15, scenario)


def test_a_node_that_closed_asks_nothing_more() -> None:
    async def scenario(on: Joined) -> None:
        await on.far.close()
        with pytest.raises(StoreClosed):
            await on.far.now()

    run(13, scenario)


async def serve_again(sim: Simulation, on: Joined) -> None:
    """The server's process ends, and another serves the folder as it is now."""
    await on.network.service.close()
    await on.near.close()
    on.near = await reopen(sim)
    on.network.service = StoreService(on.near)
    on.network.service.start()
    on.network.disconnect()


@pytest.mark.parametrize("restored", [False, True])
def test_a_node_stays_with_the_history_that_it_joined(restored: bool) -> None:
    """A server that started again goes on with its nodes; one whose store was put back does not."""

    async def main() -> None:
        async with joined(sim) as on:
            copy = copy_folder(sim)
            await put(on.far, A, b"1")
            seen = on.far.position
            told: list[KVError | None] = []
            on.far.on_connection(told.append)
            if restored:
                await on.near.close()
                put_back(sim, copy)
            await serve_again(sim, on)
            if restored:
                with pytest.raises(StoreClosed, match="put back from an older copy"):
                    await get(on.far, A)
                assert isinstance(told[-1], StoreClosed)
                far = await on.network.join()
                assert not await far.holds(seen)
                await far.close()
                return
            assert await get(on.far, A) == b"1"
            assert await on.far.holds(seen)
            assert on.far.position.incarnation != seen.incarnation

    sim = Simulation(77)
    sim.run(main())


def test_each_table_has_its_own_threshold_from_afar() -> None:
    other = Span(b"t\x00\x00\x00\x66", b"t\x00\x00\x00\x67")

    async def scenario(on: Joined) -> None:
        await put(on.near, A, b"1")
        collected = await on.near.now()
        await on.near.collect_garbage(other, collected)
        assert await on.far.now() > collected
        assert on.far.gc_threshold == collected
        assert await on.far.gc_threshold_over([ALL]) < collected
        assert await on.far.gc_threshold_over([ALL, other]) == collected

    run(41, scenario)


def noted_arrivals(on: Joined) -> list[tuple[float, int]]:
    """When messages of feeds with rows are sent to a node, from now on, and how many rows."""
    arrivals: list[tuple[float, int]] = []
    stream = on.network.service.stream
    time = asyncio.get_running_loop().time

    async def noted(method: str, body: bytes) -> AsyncGenerator[bytes, None]:
        async for message in stream(method, body):
            events = (
                decode(decode(message, Reply).body, list[WireEvent]) if method == "feed" else []
            )
            count = sum(len(each.keys) for each in events if isinstance(each, WireValues))
            if count:
                arrivals.append((time(), count))
            yield message

    on.network.service.stream = noted  # type: ignore[method-assign]
    return arrivals


def test_a_feed_tells_of_close_commits_together_and_of_a_lone_one_at_once() -> None:
    async def scenario(on: Joined) -> None:
        arrivals = noted_arrivals(on)
        feed = on.far.span_feed([ALL], ZERO)

        async def drain() -> None:
            while True:
                await feed.next()

        draining = asyncio.create_task(drain())
        await asyncio.sleep(1.0)
        for number in range(100):
            await put(on.near, A, b"%d" % number)
            await asyncio.sleep(0.001)
        assert sum(count for _, count in arrivals) >= 90
        assert len(arrivals) < 60, arrivals
        await asyncio.sleep(1.0)
        arrivals.clear()
        await put(on.near, B, b"lone")
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(0.5)
        assert [count for _, count in arrivals] == [1]
        assert arrivals[0][0] <= began + FEED_SPACING_SECONDS
        draining.cancel()
        feed.close()

    run(5, scenario)


@pytest.mark.parametrize(("rows", "least", "most"), [(1, 30, 55), (40, 9, 14)])
def test_a_busy_keyspace_is_told_of_in_fewer_messages(rows: int, least: int, most: int) -> None:
    async def scenario(on: Joined) -> None:
        arrivals = noted_arrivals(on)
        feed = on.far.span_feed([KEYSPACE], ZERO)

        async def drain() -> None:
            while True:
                await feed.next()

        draining = asyncio.create_task(drain())
        for _ in range(200):
            await put_all(on.near, [raw_key(7, b"%d" % row) for row in range(rows)])
            await asyncio.sleep(0.01)
        now = asyncio.get_running_loop().time()
        assert least <= sum(at > now - 1.0 for at, _ in arrivals) <= most
        draining.cancel()
        feed.close()

    run(7, scenario)


@pytest.mark.parametrize(("span", "prefix"), [(ALL, A), (KEYSPACE, raw_key(7, b"a"))])
def test_a_backlog_is_told_of_as_fast_as_it_is_read(span: Span, prefix: bytes) -> None:
    async def scenario(on: Joined) -> None:
        for number in range(10):
            keys = [prefix + b"%d-%d" % (number, row) for row in range(SLICE_ROWS)]
            await put_all(on.near, keys)
        arrivals = noted_arrivals(on)
        feed = on.far.span_feed([span], ZERO)
        while sum(count for _, count in arrivals) < 10 * SLICE_ROWS:
            await feed.next()
        assert len(arrivals) >= 10
        spaced = (len(arrivals) - 1) * FEED_SPACING_SECONDS
        assert arrivals[-1][0] - arrivals[0][0] < spaced / 2
        feed.close()

    run(6, scenario)


def test_a_feed_holds_back_checkpoints_that_come_too_soon() -> None:
    async def scenario(on: Joined) -> None:
        feed = on.far.span_feed([Span(A, B)], ZERO)
        told: list[list[Event]] = []

        async def follow() -> None:
            while True:
                told.append(await feed.next())

        following = asyncio.create_task(follow())
        await asyncio.sleep(0.5)
        feed.space_checkpoints(1.0)
        told.clear()
        await asyncio.sleep(4.0)
        assert 3 <= len(told) <= 5
        assert all(len(events) == 1 for events in told)
        told.clear()
        written = await put(on.near, A, b"1")
        await asyncio.sleep(0.3)
        assert any(isinstance(event, ValueBatch) for events in told for event in events)
        feed.space_checkpoints(0.0)
        await asyncio.sleep(0.3)
        assert feed.frontier.low_water >= written
        feed.close()
        following.cancel()

    run(1, scenario)


def test_a_distant_replica_is_fed_and_ended() -> None:
    sim = Simulation(21)
    span = Span(b"r\x00\x00\x00\x07", b"r\x00\x00\x00\x08")
    key = span.start + b"k"

    async def main() -> None:
        async with joined(sim) as setup:
            far = setup.far
            assert await far.replica(span, Look()) is None
            await far.replica(span, Begin())
            opened = await far.replica(span, Open("main"))
            at = await far.now()
            sent = Ingest(
                source="main", epoch=1, origin=9, keys=[key], bodies=[b"v"], timestamps=[at],
                resolved=at, note=b"n",
            )  # fmt: skip
            taken = await far.replica(span, sent)
            assert opened is not None
            assert (opened.epoch, taken) == (
                1,
                ReplicaState(source="main", epoch=1, resolved=at, note=b"n", taken=1),
            )
            followed = {
                origin: far.span_feed([span], ZERO, omitted_origins=frozenset((origin,)))
                for origin in (9, 8)
            }
            assert [len(await resolved(feed, at)) for feed in followed.values()] == [0, 1]
            for feed in followed.values():
                feed.close()
            with pytest.raises(ReplicaRefused, match="no other writes"):
                await far.one_phase(lambda evaluation: evaluation.put([key], [b"mine"]))
            with pytest.raises(ReplicaRefused, match="epoch 7"):
                await far.replica(span, msgspec.structs.replace(sent, epoch=7))
            ended = await far.replica(span, End())
            assert ended is not None
            assert ended.ended
            await far.one_phase(lambda evaluation: evaluation.put([key], [b"mine"]))

    sim.run(main())


async def resolved(feed: Feed, at: Timestamp) -> list[ValueBatch]:
    """The batches that come until the feed has resolved `at`."""
    found: list[ValueBatch] = []
    while feed.frontier.low_water < at:
        found += [event for event in await feed.next() if isinstance(event, ValueBatch)]
    return found
