"""One-phase transactions."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.errors import DeadlineExceeded, TransactionState
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.txn import Evaluation
from tests.harness.simulation import Simulation
from tests.harness.stores import key, put, running_store, submit, unbuffered

A, B, C = key("a"), key("b"), key("c")
SPAN = table_span(7)


def test_evaluation_reads_its_own_writes() -> None:
    sim = Simulation(1)

    def evaluate(evaluation: Evaluation) -> list[tuple[bytes, bytes]]:
        evaluation.put([B, C], [b"2", b"2"])
        evaluation.delete([A])
        evaluation.put([C], [b"3"])
        assert evaluation.get(A) is None
        assert evaluation.get(C) == b"3"
        assert evaluation.first_existing([A, key("z")]) is None
        assert evaluation.first_existing([A, B]) == 1
        return evaluation.scan(SPAN)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"1"})
            seen, ts = await store.one_phase(evaluate)
            assert seen == [(B, b"2"), (C, b"3")]
            assert await store.snapshot(ts).scan(SPAN) == seen

    sim.run(main())


def test_evaluation_waits_for_locks_and_runs_again() -> None:
    sim = Simulation(2)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"1"})
            holder = store.begin()
            await holder.put([A], [b"10"])
            runs: list[Timestamp] = []

            def increment(evaluation: Evaluation) -> None:
                runs.append(evaluation.timestamp)
                body = evaluation.get(A)
                assert body is not None
                evaluation.put([A], [b"%d" % (int(body) + 1)])

            adding = asyncio.create_task(store.one_phase(increment))
            await asyncio.sleep(0.5)
            assert not adding.done()
            committed = await holder.commit()
            _, ts = await adding
            assert len(runs) == 2
            assert runs[1] == ts > max(committed, runs[0])
            assert await store.snapshot(ts).get(A) == b"11"

    sim.run(main())


def test_first_existing_finds_what_is_live() -> None:
    sim = Simulation(3)
    names = [key(f"{i:03}") for i in range(60)]
    live = {name: b"x" for i, name in enumerate(names) if i % 7 == 3}

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, live)
            await put(store, {names[3]: None})

            async def first(*wanted: int) -> int | None:
                wanted_keys = [names[i] for i in wanted]
                found, _ = await store.one_phase(lambda e: e.first_existing(wanted_keys))
                return found

            assert await first() is None
            assert await first(0, 1, 2, 3) is None, "a deleted row does not exist"
            assert await first(59, 5, 6, 3, 31, 40) == 4
            assert await first(11, 9, 10) == 2 or await first(11, 9, 10) == 1
            assert await first(10) == 0
            for i, name in enumerate(names):
                assert (await first(i) == 0) == (name in live and i != 3)

    sim.run(main())


def test_first_existing_waits_for_an_intent() -> None:
    sim = Simulation(4)

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            holder = store.begin()
            await holder.put([B], [b"1"])
            asking = asyncio.create_task(store.one_phase(lambda e: e.first_existing([A, B])))
            await asyncio.sleep(0.5)
            assert not asking.done()
            await holder.rollback()
            assert (await asking)[0] is None

    sim.run(main())


def test_evaluation_that_raises_writes_nothing() -> None:
    sim = Simulation(5)

    def refuse(evaluation: Evaluation) -> None:
        evaluation.put([A], [b"1"])
        raise LookupError("duplicate")

    async def main() -> None:
        async with running_store(sim) as store:
            with pytest.raises(LookupError, match="duplicate"):
                await store.one_phase(refuse)
            assert await store.snapshot(store.clock.last).scan(SPAN) == []

    sim.run(main())


def test_commit_is_below_the_deadline() -> None:
    sim = Simulation(6)

    async def main() -> None:
        async with running_store(sim) as store:
            passed = store.clock.now()
            with pytest.raises(DeadlineExceeded):
                await store.one_phase(lambda e: e.put([A], [b"1"]), deadline=lambda: passed)
            writer = store.begin()
            await writer.put([A], [b"1"])
            with pytest.raises(DeadlineExceeded):
                await writer.commit(deadline=lambda: passed)
            assert await store.snapshot(store.clock.last).scan(SPAN) == []
            writer = store.begin()
            await writer.put([A], [b"1"])
            await writer.commit(deadline=lambda: Timestamp(writer.write_timestamp + 1))

    sim.run(main())


def test_evaluation_ends_with_its_step() -> None:
    sim = Simulation(7)

    async def main() -> None:
        async with running_store(sim) as store:
            kept: list[Evaluation] = []
            await store.one_phase(kept.append)
            with pytest.raises(TransactionState):
                kept[0].put([A], [b"1"])

    sim.run(main())


def test_pipelined_commits_become_durable_in_order() -> None:
    sim = Simulation(8)

    async def main() -> None:
        async with running_store(sim) as store:
            pending = [await submit(store, A, b"%d" % i) for i in range(20)]
            assert store.log.durable_index < pending[-1].index
            times = [(await each.wait())[1] for each in pending]
            assert times == sorted(set(times)), "every commit timestamp is unique"
            assert await store.snapshot(times[7]).get(A) == b"7"

    sim.run(main())
