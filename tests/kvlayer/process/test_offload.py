"""Offloads: threads, and the simulation's stand-in for them, keep one set of promises."""

import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from tailrace.kvlayer.process.offload import Offload, OffloadPool, ThreadOffload
from tests.harness.simulation import Simulation

Scenario = Callable[[Offload], Coroutine[Any, Any, None]]


def run_on_threads(scenario: Scenario) -> None:
    offload = ThreadOffload()
    try:
        asyncio.run(scenario(offload))
    finally:
        offload.close()


def run_in_simulation(scenario: Scenario) -> None:
    sim = Simulation(1)
    sim.run(scenario(sim.offload))


both = pytest.mark.parametrize("run", [run_on_threads, run_in_simulation])


@both
def test_calls_run_in_order_one_at_a_time(run: Callable[[Scenario], None]) -> None:
    async def scenario(offload: Offload) -> None:
        ran: list[int] = []
        answered: list[int] = []

        async def call(number: int) -> None:
            await offload.run(lambda: ran.append(number))
            answered.append(number)

        async with asyncio.TaskGroup() as group:
            for number in range(50):
                group.create_task(call(number))
        assert sorted(ran) == list(range(50))
        # Tasks start in any order, and each lane keeps the order of submission.
        assert len(answered) == 50

    run(scenario)


@both
def test_results_and_errors_come_back(run: Callable[[Scenario], None]) -> None:
    async def scenario(offload: Offload) -> None:
        assert await offload.run(lambda: 7) == 7
        with pytest.raises(ZeroDivisionError):
            await offload.run(lambda: 1 // 0)
        assert await offload.run(lambda: 8) == 8

    run(scenario)


@both
def test_cancelled_waiter_does_not_stop_the_lane(run: Callable[[Scenario], None]) -> None:
    async def scenario(offload: Offload) -> None:
        waiting = offload.run(lambda: None)
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await offload.run(lambda: 9) == 9

    run(scenario)


@both
def test_closed_offload_refuses_calls(run: Callable[[Scenario], None]) -> None:
    async def scenario(offload: Offload) -> None:
        lane = offload.lane("other")
        assert await lane.run(lambda: 1) == 1
        offload.close()
        for each in (offload, lane):
            with pytest.raises(RuntimeError, match="close"):
                await each.run(lambda: 2)

    run(scenario)


def test_lanes_do_not_queue_behind_each_other() -> None:
    async def scenario(offload: Offload) -> None:
        go_on = threading.Event()
        blocked = offload.run(go_on.wait)
        await asyncio.sleep(0)
        assert await offload.lane("other").run(lambda: 1) == 1
        go_on.set()
        assert await blocked

    run_on_threads(scenario)


def test_calls_do_not_run_on_the_loops_thread() -> None:
    async def scenario(offload: Offload) -> None:
        assert await offload.run(threading.get_ident) != threading.get_ident()

    run_on_threads(scenario)


def test_close_waits_for_the_call_under_way() -> None:
    finished: list[bool] = []
    offload = ThreadOffload()

    async def scenario() -> None:
        under_way = threading.Event()

        def call() -> None:
            under_way.set()
            finished.append(True)

        waiting = offload.run(call)
        await asyncio.sleep(0)
        under_way.wait()
        waiting.cancel()

    asyncio.run(scenario())
    offload.close()
    assert finished == [True]


def on_a_pool(
    threads_max: int, scenario: Callable[[OffloadPool], Coroutine[Any, Any, None]]
) -> None:
    offload = ThreadOffload()
    try:
        asyncio.run(scenario(offload.pool("files", threads_max)))
    finally:
        offload.close()


@pytest.mark.parametrize("threads_max", [1, 3])
def test_pooled_lane_keeps_order_one_at_a_time(threads_max: int) -> None:
    async def scenario(pool: OffloadPool) -> None:
        under_way: Counter[int] = Counter()
        ran: dict[int, list[int]] = defaultdict(list)

        def call(lane: int, number: int) -> None:
            under_way[lane] += 1
            assert under_way[lane] == 1
            ran[lane].append(number)
            under_way[lane] -= 1

        lanes = [pool.lane(f"{number}") for number in range(5)]
        calls = [
            lanes[place].run(partial(call, place, number))
            for number in range(40)
            for place in range(5)
        ]
        await asyncio.gather(*calls)
        assert ran == {place: list(range(40)) for place in range(5)}

    on_a_pool(threads_max, scenario)


def test_pool_starts_no_more_threads_than_it_may() -> None:
    async def scenario(pool: OffloadPool) -> None:
        lanes = [pool.lane(f"{number}") for number in range(20)]
        used = await asyncio.gather(*(lane.run(threading.get_ident) for lane in lanes * 5))
        assert len(set(used)) <= 3

    on_a_pool(3, scenario)


def test_lone_pooled_lane_stays_on_one_thread() -> None:
    async def scenario(pool: OffloadPool) -> None:
        lane = pool.lane("lone")
        assert len({await lane.run(threading.get_ident) for _ in range(50)}) == 1

    on_a_pool(3, scenario)


def test_busy_pooled_lane_delays_another_by_one_call() -> None:
    async def scenario(pool: OffloadPool) -> None:
        ran: list[str] = []
        go_on = threading.Event()
        busy, other = pool.lane("busy"), pool.lane("other")
        held = busy.run(go_on.wait)
        calls = [busy.run(partial(ran.append, "busy")) for _ in range(3)]
        calls.append(other.run(partial(ran.append, "other")))
        go_on.set()
        await asyncio.gather(held, *calls)
        assert ran[0] == "other"

    on_a_pool(1, scenario)


def test_closing_pool_runs_what_was_submitted() -> None:
    ran: list[int] = []
    offload = ThreadOffload()

    async def scenario() -> None:
        go_on = threading.Event()
        pool = offload.pool("files", 1)
        pool.lane("held").run(go_on.wait)
        for number in range(5):
            pool.lane(f"{number}").run(partial(ran.append, number))
        go_on.set()

    asyncio.run(scenario())
    offload.close()
    assert ran == list(range(5))


def test_simulated_call_waits_while_held() -> None:
    async def scenario(sim: Simulation) -> None:
        sim.offload.hold()
        waiting = sim.offload.run(lambda: sim.now)
        await asyncio.sleep(10)
        assert not waiting.done()
        sim.offload.release()
        assert await waiting >= 10

    sim = Simulation(2)
    sim.run(scenario(sim))
