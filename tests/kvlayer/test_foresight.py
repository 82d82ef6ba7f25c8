"""Who is told of a write on its way, and when."""

from __future__ import annotations

from tailrace.kvlayer.span import Span
from tests.harness.simulation import Simulation
from tests.harness.stores import key, put, running_store

SPAN = Span(key("a"), key("m"))


def test_a_watcher_is_told_before_the_write_is_durable_and_of_its_own_span_only() -> None:
    sim = Simulation(1)

    async def story() -> None:
        async with running_store(sim) as store:
            durable_then: list[int] = []
            forget = store.foresee([SPAN], lambda: durable_then.append(store.log.durable_index))
            await put(store, {key("z"): b"v"})
            assert not durable_then
            await put(store, {key("b"): b"v"})
            assert len(durable_then) == 1
            assert durable_then[0] < store.log.durable_index
            forget()
            await put(store, {key("c"): b"v"})
            assert len(durable_then) == 1

    sim.run(story())


def test_an_intent_tells_nobody_and_its_commit_does() -> None:
    sim = Simulation(2)

    async def story() -> None:
        async with running_store(sim) as store:
            told: list[str] = []
            store.foresee([SPAN], lambda: told.append("told"))
            transaction = store.begin()
            await transaction.put([key("b")], [b"v"])
            assert not told
            await transaction.commit()
            assert told == ["told"]

    sim.run(story())
