"""A keyspace that two main stores hand to one another, under random load and misfortune.

    counts = run_transfer(seed)

A third store is the oracle of both, and keeps the placement. Clients write wherever they believe
the leader to be; what one store writes is replicated into the other, whichever of them leads. The
keyspace is transferred again and again, over a link that loses requests and answers; ranges are
split and merged, and each of the three stores dies and comes back, at any moment and beside every
step of a transfer. Somebody who has a replica in both stores claims the placement for it.

The model is what the clients were answered. Of each key, a write that began when another had been
answered is above it; no timestamp is of an epoch that was over; and in the end both stores have
every write that was acknowledged, and the same of what nobody was answered.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from random import Random
from typing import Any

from tailrace.kvlayer import keys as key_format
from tailrace.kvlayer.access import StoreAccess
from tailrace.kvlayer.clock import ZERO, PhysicalTime, Timestamp
from tailrace.kvlayer.errors import FollowerAway, KVError, NotLeader, RangeRefused, StoreClosed
from tailrace.kvlayer.events import ValueBatch
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.mvcc import body_of
from tailrace.kvlayer.raw import (
    IngestedEntry,
    Leadership,
    OracleTime,
    OracleWatch,
    Placement,
    Placements,
    RawKeyspace,
    ReplicaKeyspace,
    decode_entry,
    keyspace_span,
    raw_key,
    user_key,
)
from tailrace.kvlayer.replication.leadership import Role
from tailrace.kvlayer.replication.replica import (
    Begin,
    Look,
    ReplicaOrder,
    ReplicaRefused,
    ReplicaState,
    RoleChange,
    TakeOver,
)
from tailrace.kvlayer.span import Span
from tests.harness.simulation import Simulation
from tests.simulation.replica_run import SimStore

NAMES = [b"a", b"b", b"m", b"z"]
SETTLE_SECONDS = 300.0
FORGED_ID = 99
"""The claimant's keyspace in each store."""

DEATHS = 0.05
"""How often a store dies at a step of a transfer, before it and behind it."""


class DyingStore:
    """A store's steps, as its `Leadership` takes them: the process may die beside each."""

    def __init__(self, main: MainStore) -> None:
        self._main = main
        self._store, self._life = main.store, main.lives

    @property
    def id(self) -> str:
        return self._store.id

    @property
    def random(self) -> Random:
        return self._store.random

    async def now(self) -> Timestamp:
        return await self._store.now()

    async def replica(self, span: Span, order: ReplicaOrder) -> ReplicaState | None:
        await self._perhaps("before", order)
        state = await self._store.replica(span, order)
        await self._perhaps("behind", order)
        return state

    async def _perhaps(self, when: str, order: ReplicaOrder) -> None:
        run = self._main.run
        if isinstance(order, RoleChange):
            run.counts[f"step: {type(order).__name__}"] += 1
            if self._main.lives == self._life and run.random.random() < DEATHS:
                run.counts[f"died {when} {type(order).__name__}"] += 1
                run.kill(self._main)
        if self._main.lives != self._life:
            raise StoreClosed("the process died")


class DyingPlacements(Placements):
    """The placements, over a link that loses questions and answers."""

    def __init__(self, run: TransferRun) -> None:
        self._run = run
        super().__init__(self._reach)

    async def _reach(self) -> StoreAccess:
        await self._run.pause()
        return self._run.oracle.store

    async def swap(self, group: str, expected: Placement | None, new: Placement) -> bool:
        run = self._run
        run.lose("placement")
        swapped = await super().swap(group, expected, new)
        if run.random.random() < DEATHS:
            run.counts["died behind a swap"] += 1
            run.kill(run.random.choice(run.mains))
        run.lose("placement")
        return swapped


class MainStore(SimStore):
    """A store that may lead, and what runs in its process."""

    def __init__(self, run: TransferRun, name: str, keyspace_id: int) -> None:
        super().__init__(run.sim, name, self._physical)
        self.run = run
        self.id = keyspace_id
        self.span = keyspace_span(keyspace_id)
        self.tasks: set[asyncio.Task[Any]] = set()
        self.leadership: Leadership
        self.failure: AssertionError | None = None
        self._watch: OracleWatch | None = None

    async def _physical(self) -> PhysicalTime:
        time = OracleTime("oracle", self.sim.wall)
        self._watch = OracleWatch(time, self._ask, Metrics())
        await self._watch.start()
        return time

    async def _ask(self) -> Timestamp:
        await self.run.pause()
        return await self.run.oracle.store.now()

    async def start(self) -> None:
        await super().start()
        self.leadership = Leadership(
            DyingStore(self),  # type: ignore[arg-type]
            DyingPlacements(self.run),
        )
        self.spawn(self.leadership.settle_all(self._unsettled))

    def _unsettled(self) -> list[int]:
        between = (Role.DRAINING, Role.TAKING_OVER)
        return [self.id for _, state in self.store.replicas() if state.role in between]

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Runs in this process, and ends with it."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and isinstance(error := task.exception(), AssertionError):
            self.failure = error

    async def die(self) -> None:
        await self.stop()
        await super().die()

    async def stop(self) -> None:
        here = asyncio.current_task()
        tasks = [task for task in self.tasks if task is not here]
        for task in tasks:
            task.cancel()
        if self._watch is not None:
            watch, self._watch = self._watch, None
            await watch.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def state(self) -> ReplicaState | None:
        return await self.store.replica(self.span, Look())

    @property
    def role(self) -> Role:
        found = [state for span, state in self.store.replicas() if span == self.span]
        return found[0].role if found else Role.LEADING

    def versions(self) -> dict[tuple[bytes, Timestamp], bytes]:
        """Every version in the engine by the user's key, read behind the store's back."""
        bounds = key_format.VERSION + self.span.start, key_format.VERSION + self.span.end
        found: dict[tuple[bytes, Timestamp], bytes] = {}
        for engine_key, value in self.engine.scan(*bounds):
            body = body_of(value)
            assert body is not None
            key, at = key_format.split_version_key(engine_key)
            found[user_key(key), at] = body
        return found


class SimFollower:
    """Implements `raw.Follower`: the other store, over the link."""

    def __init__(self, main: MainStore) -> None:
        self._main = main

    async def resolved(self) -> Timestamp:
        await self._reach()
        state = await self._main.state()
        return ZERO if state is None else state.resolved

    async def take_over(self, order: TakeOver, oracle_id: str, secret: bytes) -> None:
        await self._reach()
        main = self._main
        asked = main.spawn(main.leadership.take_over(main.id, order, oracle_id, secret))
        random, counts = main.run.random, main.run.counts
        impatient = random.random() < 0.3  # it goes on there, while the leader swaps for itself
        seconds = random.random() * 0.02 if impatient else 5.0
        done, _ = await asyncio.wait([asked], timeout=seconds)
        if not done or asked.cancelled():
            counts["follower not waited for"] += 1
            raise FollowerAway("no answer")
        error = asked.exception()
        if error is not None:
            raise FollowerAway(str(error)) from error
        self._lose()

    async def _reach(self) -> None:
        await self._main.run.pause()
        self._lose()
        if self._main.down:
            raise FollowerAway("the follower is down")

    def _lose(self) -> None:
        if self._main.run.random.random() < DEATHS:
            self._main.run.counts["follower's answers lost"] += 1
            raise FollowerAway("lost on the way")


class TransferRun:
    """One seed's run."""

    def __init__(self, seed: int) -> None:
        self.sim = Simulation(seed)
        self.random = self.sim.random
        self.counts: Counter[str] = Counter()
        self.oracle = SimStore(self.sim, "oracle")
        self.mains = [MainStore(self, "first", 7), MainStore(self, "second", 8)]
        self.acknowledged: dict[bytes, dict[Timestamp, bytes | None]] = {}
        self.unanswered: set[bytes] = set()
        self._deaths: set[asyncio.Task[None]] = set()
        self._numbers = iter(range(1, 1_000_000))

    def run(self) -> Counter[str]:
        self.sim.run(self._run())
        return self.counts

    async def _run(self) -> None:
        first, second = self.mains
        await self.oracle.start()
        for main in self.mains:
            await main.start()
        await second.store.replica(second.span, Begin())
        for main in self.mains:
            await main.store.replica(keyspace_span(FORGED_ID), Begin())
        stop = asyncio.Event()
        captures = [
            asyncio.create_task(self._replicate(*pair))
            for pair in ((first, second), (second, first))
        ]
        works = [
            self._write(stop),
            self._write(stop),
            self._transfer(stop),
            self._strike(stop),
            self._claim(stop),
            self._watch(stop),
        ]
        tasks = [asyncio.create_task(work) for work in works]
        await asyncio.sleep(self.random.uniform(0.5, 4.0))
        stop.set()
        await asyncio.gather(*tasks)
        await asyncio.gather(*self._deaths)
        await self._settle(captures)
        self._judge()
        for capture in captures:
            capture.cancel()
        await asyncio.gather(*captures, return_exceptions=True)
        for main in self.mains:
            await main.stop()
            main.store.check_invariants()
            await main.store.close()
        await self.oracle.store.close()

    # The network

    async def pause(self) -> None:
        await asyncio.sleep(self.random.random() * self.random.choice((0.002, 0.005, 0.05)))

    def lose(self, what: str) -> None:
        if self.random.random() < DEATHS:
            self.counts[f"lost: {what}"] += 1
            raise KVError("lost on the way")

    def kill(self, main: SimStore) -> None:
        """In this step the process is dead; it is back a while later."""
        if main.down:
            return
        self.counts[f"{main.name} died"] += 1
        death = asyncio.create_task(main.die())
        self._deaths.add(death)

    def _leader(self) -> MainStore | None:
        leaders = [main for main in self.mains if not main.down and main.role is Role.LEADING]
        assert len(leaders) <= 1, "both lead"
        return leaders[0] if leaders else None

    # Load

    async def _write(self, stop: asyncio.Event) -> None:
        random, main = self.random, self.mains[0]
        while not stop.is_set():
            name = random.choice(NAMES)
            value = None if random.random() < 0.2 else b"%d" % next(self._numbers)
            if value is not None:
                self.unanswered.add(value)
            floor = max(self.acknowledged.get(name, {}), default=ZERO)
            life, keyspace = main.lives, RawKeyspace(main.store, main.id)
            try:
                if value is None:
                    at = await keyspace.delete(name)
                else:
                    at = await keyspace.put(name, value)
            except (NotLeader, ReplicaRefused) as error:
                self.counts[f"refused: {type(error).__name__}"] += 1
                main = self.mains[1 - self.mains.index(main)]
                await asyncio.sleep(0.005)
                continue
            except KVError:
                self.counts["unanswered"] += 1
                await asyncio.sleep(0.02)
                continue
            if life == main.lives:
                assert at > floor, f"{name!r} at {at} began behind {floor}"
                self.acknowledged.setdefault(name, {})[at] = value
                self.counts["writes"] += 1
            await asyncio.sleep(random.choice((0.001, 0.005, 0.02)))

    async def _replicate(self, source: MainStore, target: MainStore) -> None:
        while True:
            with suppress(KVError):
                await self._capture(source, target)
            await asyncio.sleep(0.02)

    async def _capture(self, source: MainStore, target: MainStore) -> None:
        life = source.lives, target.lives
        name = source.leadership.place(source.id)
        replica = ReplicaKeyspace(target.store, target.id)
        state = await replica.open(name)
        feed = source.store.span_feed([source.span], state.resolved)
        try:
            told = state.resolved
            while (source.lives, target.lives) == life:
                entries: list[IngestedEntry] = []
                async with asyncio.timeout(5.0):
                    events = await feed.next()
                for event in events:
                    if isinstance(event, ValueBatch):
                        rows = zip(event.keys, event.values, event.timestamps, strict=True)
                        entries += [_entry(key, body, at) for key, body, at in rows]
                resolved = feed.frontier.low_water
                if entries or resolved > told:
                    await self.pause()
                    if self.random.random() < 0.02:
                        raise KVError("lost on the way")
                    told = max(told, resolved)
                    await replica.ingest(
                        entries, source=name, epoch=state.epoch, origin=source.id, resolved=told
                    )
        except TimeoutError:
            return
        finally:
            feed.close()

    # Transfers and misfortune

    async def _transfer(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await asyncio.sleep(self.random.random() * 0.5)
            leader = self._leader()
            if leader is None:
                continue
            other = self.mains[1 - self.mains.index(leader)]
            if self.random.random() < 0.5:
                await self._reshape(leader)
            asked = leader.spawn(
                leader.leadership.transfer(leader.id, SimFollower(other), f"store {other.name}")
            )
            await asyncio.wait([asked], timeout=60.0)
            if not asked.done() or asked.cancelled():
                self.counts["transfers cut off"] += 1
            elif isinstance(asked.exception(), KVError):
                self.counts["transfers failed"] += 1
            else:
                assert asked.result().role is Role.FOLLOWING, asked.result()
                self.counts["transfers"] += 1

    async def _reshape(self, main: MainStore) -> None:
        with suppress(KVError):
            await main.store.split(raw_key(main.id, self.random.choice(NAMES)), sticky_until=ZERO)
            self.counts["splits"] += 1
            found = [each.descriptor.id for each in main.store._ranges.ranges]
            with suppress(RangeRefused):
                await main.store.merge(self.random.choice(found))
                self.counts["merges"] += 1

    async def _strike(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await asyncio.sleep(self.random.random() * 2)
            self.kill(self.random.choice((self.oracle, *self.mains)))

    async def _claim(self, stop: asyncio.Event) -> None:
        """What is known to everybody is the place of the leader, and what an epoch may be."""
        group = self.mains[0].leadership.place(self.mains[0].id)
        while not stop.is_set():
            await asyncio.sleep(self.random.random() * 0.1)
            leader, main = self._leader(), self.random.choice(self.mains)
            if leader is None or main.down:
                continue
            keyspace_id = FORGED_ID if main is leader else self.random.choice((FORGED_ID, main.id))
            try:
                placement = await Placements(self._own_oracle).read(group)
                if placement is None:
                    continue
                order = TakeOver(
                    source=leader.leadership.place(leader.id),
                    group=group,
                    term=placement.epoch + self.random.randrange(2),
                    barrier=ZERO,
                )
                if keyspace_id == FORGED_ID:
                    await ReplicaKeyspace(main.store, FORGED_ID).open(order.source)
                secret = self.random.randbytes(32)
                oracle_id = self.oracle.store.id
                taken = await main.leadership.take_over(keyspace_id, order, oracle_id, secret)
            except KVError as error:
                self.counts[f"claims refused: {type(error).__name__}"] += 1
            else:
                assert keyspace_id == main.id, "a claimant leads"
                assert taken.term == order.term, (taken, order)
                self.counts["claims of what is led already"] += 1

    async def _own_oracle(self) -> StoreAccess:
        return self.oracle.store

    # Judgement

    async def _watch(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            self._leader()
            for main in self.mains:
                if main.failure is not None:
                    raise main.failure
            await asyncio.sleep(0.002)

    async def _settle(self, captures: list[asyncio.Task[None]]) -> None:
        """Nobody writes or dies: one store leads, and the other comes to have everything."""
        async with asyncio.timeout(SETTLE_SECONDS):
            while True:
                for capture in captures:
                    assert not capture.done(), capture
                self._leader()
                roles = {main.role: main for main in self.mains if not main.down}
                if roles.keys() == {Role.LEADING, Role.FOLLOWING}:
                    end = await roles[Role.LEADING].store.now()
                    break
                await asyncio.sleep(0.05)
            follower = roles[Role.FOLLOWING]
            while (state := await follower.state()) is None or state.resolved < end:
                await asyncio.sleep(0.05)
        self.counts["settled"] += 1

    def _judge(self) -> None:
        first, second = (main.versions() for main in self.mains)
        assert first == second, sorted(first.items() ^ second.items())[:4]
        for name, writes in self.acknowledged.items():
            for at, value in writes.items():
                body = first.get((name, at))
                assert body is not None, f"{name!r} at {at} was acknowledged, and is lost"
                entry = decode_entry(body)
                assert (None if entry.deleted else entry.value) == value, (name, at, entry)
        for (name, at), body in first.items():
            entry = decode_entry(body)
            known = at in self.acknowledged.get(name, {})
            assert known or entry.deleted or entry.value in self.unanswered, (name, at, entry)


def _entry(key: bytes, body: bytes | None, at: Timestamp) -> IngestedEntry:
    assert body is not None, key
    entry = decode_entry(body)
    return IngestedEntry(
        user_key(key), None if entry.deleted else entry.value, at, entry.expires_at
    )


def run_transfer(seed: int) -> Counter[str]:
    """Runs a seed; what happened in it. Raises AssertionError, or whatever else went wrong."""
    return TransferRun(seed).run()
