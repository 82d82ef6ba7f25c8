"""A position of a store's log is told apart from that of a copy, whichever of them goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from tailrace.kvlayer.history import INCARNATIONS_MAX, StoreHistory, StorePosition
from tailrace.kvlayer.store import Store
from tests.harness.simulation import Simulation
from tests.harness.stores import copy_folder, crash, key, open_store, put, put_back, reopen

Use = Callable[[Store], Awaitable[None]]


async def nothing(store: Store) -> None:
    """Opens the store and does no more."""


async def write(store: Store) -> None:
    for number in range(3):
        await put(store, {key(f"k{number}"): b"written"})


async def live(sim: Simulation, use: Use) -> StorePosition:
    """One life of a store, and how much of its log was seen in it."""
    store = await reopen(sim)
    await use(store)
    seen = store.position
    await store.close()
    await asyncio.sleep(1)
    return seen


async def held(sim: Simulation, *positions: StorePosition) -> list[bool]:
    """Whether the store, opened again, holds them."""
    store = await reopen(sim)
    answers = [await store.holds(position) for position in positions]
    await store.close()
    return answers


async def begin(sim: Simulation) -> None:
    store = await open_store(sim)
    await write(store)
    await store.close()


def test_every_life_lies_in_the_past_of_the_next() -> None:
    async def scenario() -> None:
        await begin(sim)
        seen = [await live(sim, use) for use in (write, nothing, write)]
        assert len({position.incarnation for position in seen}) == 3
        assert await held(sim, *seen) == [True, True, True]

    sim = Simulation(1)
    sim.run(scenario())


@pytest.mark.parametrize("cut", range(10))
def test_what_was_released_outlives_a_crash(cut: int) -> None:
    async def before() -> StorePosition:
        store = await open_store(sim)
        writing = asyncio.create_task(write(store))
        await asyncio.sleep(sim.random.random() * 0.01)
        seen = store.position
        writing.cancel()
        crash(sim)
        return seen

    async def after(seen: StorePosition) -> None:
        assert await held(sim, seen) == [True]

    sim = Simulation(100 + cut)
    seen = sim.run(before())
    sim.run(after(seen))


@pytest.mark.parametrize("original", [nothing, write])
@pytest.mark.parametrize("copied", [nothing, write])
def test_copy_put_back_is_another_store(original: Use, copied: Use) -> None:
    """Whether or not anything was written in either, beside what every opening writes."""

    async def scenario() -> None:
        await begin(sim)
        before = await live(sim, write)
        copy = copy_folder(sim)
        lost = await live(sim, original)
        put_back(sim, copy)
        kept = await live(sim, copied)
        assert await held(sim, before, lost, kept) == [True, False, True]

    sim = Simulation(2)
    sim.run(scenario())


def test_copy_of_an_open_store_holds_what_came_before_it() -> None:
    """The store that went on never opened again: only the position tells its entries apart."""

    async def scenario() -> None:
        store = await open_store(sim)
        await write(store)
        before = store.position
        copy = copy_folder(sim)
        await write(store)
        after = store.position
        assert before.incarnation == after.incarnation
        await store.close()
        put_back(sim, copy)
        assert await held(sim, before, after) == [True, False]

    sim = Simulation(3)
    sim.run(scenario())


def test_copy_that_was_put_back_twice_is_two_stores() -> None:
    async def scenario() -> None:
        await begin(sim)
        copy = copy_folder(sim)
        first = await live(sim, write)
        put_back(sim, copy)
        second = await live(sim, write)
        assert first.index == second.index
        assert await held(sim, first, second) == [False, True]

    sim = Simulation(4)
    sim.run(scenario())


def test_openings_are_remembered_up_to_a_bound() -> None:
    history, random = StoreHistory([]), Random(5)
    for index in range(1, INCARNATIONS_MAX + 3):
        history.begin(random, at_index=index)
        if index == 2:
            second = history.incarnation
    assert not history.holds(StorePosition(incarnation=second, index=2))
    assert history.holds(StorePosition(incarnation=history.incarnation, index=1 << 40))
