"""Futures whose waiters go on in the step that has the result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tailrace.kvlayer.prompt_future import PromptFuture


def in_loop(work: Callable[[PromptFuture[int], list[object]], Awaitable[None]]) -> list[object]:
    """What a task that awaits the future has noted, and `work` beside it."""

    async def run() -> list[object]:
        future, noted = PromptFuture[int](asyncio.get_running_loop()), list[object]()

        async def waits() -> None:
            try:
                noted.append(await future)
            except BaseException as error:
                noted.append(type(error))

        task = asyncio.create_task(waits())
        await asyncio.sleep(0)
        await work(future, noted)
        await asyncio.wait([task])
        return noted

    return asyncio.run(run())


def test_waiter_runs_within_a_callback_that_sets() -> None:
    async def work(future: PromptFuture[int], noted: list[object]) -> None:
        def sets() -> None:
            future.set_result(7)
            noted.append("set")

        asyncio.get_running_loop().call_soon(sets)
        await asyncio.sleep(0)

    assert in_loop(work) == [7, "set"]


def test_waiter_runs_behind_a_task_that_sets() -> None:
    async def work(future: PromptFuture[int], noted: list[object]) -> None:
        future.set_result(7)
        noted.append("set")

    assert in_loop(work) == ["set", 7]


def test_waiter_is_told_of_an_error() -> None:
    async def work(future: PromptFuture[int], noted: list[object]) -> None:
        asyncio.get_running_loop().call_soon(future.set_exception, KeyError("k"))

    assert in_loop(work) == [KeyError]


def test_task_that_waits_is_cancelled() -> None:
    async def work(future: PromptFuture[int], noted: list[object]) -> None:
        waiter = next(task for task in asyncio.all_tasks() if task is not asyncio.current_task())
        waiter.cancel()
        noted.append("cancelled")

    assert in_loop(work) == ["cancelled", asyncio.CancelledError]


def test_future_that_is_done_is_not_waited_for() -> None:
    async def run() -> int:
        future = PromptFuture[int](asyncio.get_running_loop())
        future.set_result(7)
        return await future

    assert asyncio.run(run()) == 7


def test_callback_that_is_removed_does_not_run() -> None:
    async def run() -> None:
        future = PromptFuture[int](asyncio.get_running_loop())
        future.add_done_callback(pytest.fail)
        assert future.remove_done_callback(pytest.fail) == 1
        future.set_result(7)
        await asyncio.sleep(0)

    asyncio.run(run())
