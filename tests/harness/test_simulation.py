"""The simulation itself: virtual time, seeds, and what fails a run."""

import asyncio

import pytest

from tests.harness.simulation import Simulation, SimulationDeadlock, SimulationTimeout


def test_time_jumps_to_the_next_timer() -> None:
    async def scenario(sim: Simulation) -> tuple[float, int, int]:
        before = sim.wall.unix_us(), sim.wall.monotonic_ns()
        await asyncio.sleep(3000)
        return sim.now, sim.wall.unix_us() - before[0], sim.wall.monotonic_ns() - before[1]

    sim = Simulation(1)
    assert sim.run(scenario(sim)) == (3000.0, 3_000_000_000, 3_000_000_000_000)
    assert sim.run(scenario(sim))[0] == 6000.0, "time goes on from run to run"


def test_wall_clock_jumps_alone() -> None:
    sim = Simulation(1)
    before = sim.wall.unix_us(), sim.wall.monotonic_ns()
    sim.wall.jump(-5)
    assert (sim.wall.unix_us(), sim.wall.monotonic_ns()) == (before[0] - 5_000_000, before[1])


def order_of_wakeups(seed: int) -> list[str]:
    async def worker(name: str, order: list[str]) -> None:
        for _ in range(3):
            await asyncio.sleep(1)
            order.append(name)

    async def scenario() -> list[str]:
        order: list[str] = []
        async with asyncio.TaskGroup() as group:
            for name in "abcde":
                group.create_task(worker(name, order))
        return order

    return Simulation(seed).run(scenario())


def test_seed_orders_wakeups() -> None:
    assert order_of_wakeups(1) == order_of_wakeups(1)
    assert len({tuple(order_of_wakeups(seed)) for seed in range(20)}) > 15


def test_callbacks_keep_their_order() -> None:
    async def scenario() -> list[int]:
        called: list[int] = []
        loop = asyncio.get_running_loop()
        sleepers = [asyncio.create_task(asyncio.sleep(0)) for _ in range(5)]
        for number in range(20):
            loop.call_soon(called.append, number)
        await asyncio.wait(sleepers)
        return called

    for seed in range(10):
        assert Simulation(seed).run(scenario()) == list(range(20))


def test_queues_and_locks_stay_fair() -> None:
    async def scenario() -> list[int]:
        queue: asyncio.Queue[int] = asyncio.Queue(maxsize=2)
        got: list[int] = []

        async def produce() -> None:
            for number in range(50):
                await queue.put(number)

        async def consume() -> None:
            for _ in range(50):
                got.append(await queue.get())

        await asyncio.gather(consume(), produce())
        return got

    for seed in range(10):
        assert Simulation(seed).run(scenario()) == list(range(50))


def test_waiting_for_ever_is_a_deadlock() -> None:
    async def wait_for_godot() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(SimulationDeadlock, match=r"main at .*wait_for_godot"):
        Simulation(1).run(wait_for_godot())


def test_ticking_for_ever_is_a_timeout() -> None:
    async def tick() -> None:
        while True:
            await asyncio.sleep(1)

    with pytest.raises(SimulationTimeout, match="virtual time reached"):
        Simulation(1, time_limit=100).run(tick())


def test_unasked_error_of_a_task_fails_the_run() -> None:
    async def boom() -> None:
        raise ValueError("boom")

    async def scenario() -> None:
        task = asyncio.create_task(boom())
        await asyncio.sleep(1)
        assert task.done()

    with pytest.raises(ValueError, match="boom") as caught:
        Simulation(7).run(scenario())
    assert "seed 7" in caught.value.__notes__[0]


def test_leftover_tasks_are_cancelled_and_clean_up() -> None:
    cleaned: list[str] = []

    async def leftover() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(1)
            cleaned.append("yes")

    async def scenario() -> asyncio.Task[None]:
        task = asyncio.create_task(leftover())
        await asyncio.sleep(1)
        return task

    assert Simulation(1).run(scenario()).cancelled()
    assert cleaned == ["yes"]


def test_threads_are_refused() -> None:
    async def scenario() -> None:
        with pytest.raises(RuntimeError, match="no threads"):
            await asyncio.to_thread(print)

    Simulation(1).run(scenario())
