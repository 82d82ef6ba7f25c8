"""Functions that give way: their slices, their results, and how they are ended."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from tailrace.cached import cached_property
from tailrace.kvlayer.process.fibre import (
    SLICE_SECONDS,
    STEPS_PER_SLICE,
    Fibre,
    give_way,
    in_slices,
)
from tests.harness.simulation import Simulation


def test_a_slice_ends_by_count() -> None:
    seen: list[int] = []

    def work() -> str:
        for number in range(STEPS_PER_SLICE + 1):
            give_way()
            seen.append(number)
        return "done"

    fibre = Fibre(work, lambda: 0.0)
    assert not fibre.run_slice()
    assert len(seen) == STEPS_PER_SLICE - 1
    assert fibre.run_slice()
    assert fibre.result() == "done"


def test_a_slice_ends_by_the_clock() -> None:
    now = 0.0

    def work() -> str:
        nonlocal now
        for _ in range(4):
            now += SLICE_SECONDS / 2
            give_way()
        return "done"

    fibre = Fibre(work, lambda: now)
    assert not fibre.run_slice()
    assert now == SLICE_SECONDS
    assert not fibre.run_slice()
    assert fibre.run_slice()
    assert fibre.result() == "done"


def test_other_tasks_run_between_slices() -> None:
    turns: list[int] = []

    def work() -> int:
        for _ in range(10 * STEPS_PER_SLICE):
            give_way()
        return len(turns)

    async def beside() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    async def main() -> int:
        task = asyncio.ensure_future(beside())
        try:
            return await in_slices(work)
        finally:
            task.cancel()

    assert Simulation(1).run(main()) >= 9


def test_an_error_is_raised_where_it_is_awaited() -> None:
    def work() -> None:
        give_way(STEPS_PER_SLICE)
        raise ValueError("a reason")

    with pytest.raises(ValueError, match="a reason"):
        Simulation(1).run(in_slices(work))


def test_a_cancelled_task_ends_its_function() -> None:
    begun: list[bool] = []
    ended: list[bool] = []

    def work() -> None:
        begun.append(True)
        try:
            while True:
                give_way()
        finally:
            ended.append(True)

    async def main() -> None:
        task = asyncio.ensure_future(in_slices(work))
        while not begun:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    Simulation(1).run(main())
    assert ended == [True]


def test_fibres_of_a_loop_take_turns() -> None:
    order: list[str] = []

    def named(name: str) -> None:
        for _ in range(3):
            order.append(name)
            give_way(STEPS_PER_SLICE)

    async def main() -> None:
        await asyncio.gather(in_slices(lambda: named("a")), in_slices(lambda: named("b")))

    Simulation(1).run(main())
    assert sorted(order[:2]) == ["a", "b"]
    assert sorted(order[2:4]) == ["a", "b"]


def test_functions_of_one_step_have_a_turn_each() -> None:
    """The second is not in the step that ended the first: the two would be one long step."""
    turns: list[int] = []

    async def beside() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    async def main() -> tuple[int, int]:
        task = asyncio.ensure_future(beside())
        try:
            first = await in_slices(lambda: len(turns))
            return first, await in_slices(lambda: len(turns))
        finally:
            task.cancel()

    first, second = Simulation(1).run(main())
    assert second > first


def deep(levels: int) -> int:
    if levels:
        return deep(levels - 1) + 1
    give_way(STEPS_PER_SLICE)
    return 0


def test_a_deep_function_survives_a_loop_that_is_faster() -> None:
    """The loop has gone on, and lowered the limit on recursion, before the fibre's thread waits."""

    class Lingering:
        """A lock whose release returns when the loop has gone on."""

        def __init__(self, lock: threading.Lock) -> None:
            self.lock, self.acquire = lock, lock.acquire

        def release(self) -> None:
            self.lock.release()
            while not gone_on:
                pass  # a call, or a comparison, would raise RecursionError by itself
            fibre_goes_on[0] = True

    gone_on: list[bool] = []
    fibre_goes_on = [False]
    levels = sys.getrecursionlimit() + 10
    fibre = Fibre(lambda: deep(levels))
    fibre._paused = Lingering(fibre._paused)  # type: ignore[assignment]
    assert not fibre.run_slice()
    gone_on.append(True)
    while not fibre_goes_on[0]:
        pass
    assert fibre.run_slice()
    assert fibre.result() == levels


def test_a_slice_leaves_the_limit_on_recursion_to_those_of_other_loops() -> None:
    def first() -> None:
        thread.start()
        begun.wait()

    def second() -> int:
        begun.set()
        first_ended.wait()
        return deep(limit + 10)

    limit = sys.getrecursionlimit()
    begun, first_ended = threading.Event(), threading.Event()
    other = Fibre(second)
    thread = threading.Thread(target=other.run_slice)
    assert Fibre(first).run_slice()
    first_ended.set()
    thread.join()
    assert other.run_slice()
    assert other.result() == limit + 10
    assert sys.getrecursionlimit() == limit


def test_without_a_fibre_nothing_gives_way() -> None:
    give_way(10 * STEPS_PER_SLICE)


def test_a_property_that_is_half_computed_holds_nobody_up() -> None:
    """With a lock for the whole class, as functools has it in Python 3.11, the loop stops here."""

    class Plan:
        def __init__(self, steps: int) -> None:
            self.steps = steps

        @cached_property
        def text(self) -> int:
            give_way(self.steps)
            return self.steps

    long, short = Plan(2 * STEPS_PER_SLICE), Plan(1)
    fibre = Fibre(lambda: long.text)
    assert not fibre.run_slice(), "it has given way within the property"
    assert short.text == 1
    assert fibre.run_slice()
    assert fibre.result() == long.text == 2 * STEPS_PER_SLICE
