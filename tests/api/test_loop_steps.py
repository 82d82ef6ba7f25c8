"""Steps of the event loop that take long are counted, and the log names their statements."""

from __future__ import annotations

import asyncio
import gc
import time
from asyncio import Handle

import pytest

from tailrace.api.loop_steps import LoopSteps
from tailrace.api.node import Node
from tailrace.kvlayer.process.fibre import in_slices

LONG_NS = 5_000_000


def busy() -> None:
    until = time.thread_time_ns() + 2 * LONG_NS
    while time.thread_time_ns() < until:
        pass


@pytest.mark.parametrize("in_fibre", [False, True])
def test_long_step_is_counted_and_its_statement_logged(
    caplog: pytest.LogCaptureFixture, in_fibre: bool
) -> None:
    before, callbacks = Handle._run, list(gc.callbacks)
    caplog.set_level("INFO", "tailrace.loop")

    async def main() -> LoopSteps:
        steps = LoopSteps(LONG_NS)
        node = await Node.open(":memory:")
        session = node.session()
        text = "ALTER USER ada PASSWORD 'hidden'"
        with steps.watched(asyncio.get_running_loop()), session.activity.running(text):
            await asyncio.sleep(0)
            if in_fibre:
                await in_slices(busy)
            else:
                busy()
            await asyncio.sleep(0)
        await session.close()
        await node.close()
        return steps

    steps = asyncio.run(main())
    assert steps.count >= 1
    assert steps.longest_ns > LONG_NS
    assert "ALTER USER ada PASSWORD" in caplog.text
    assert "hidden" not in caplog.text
    assert (Handle._run, gc.callbacks) == (before, callbacks), "the interpreter is as it was"


def test_long_step_of_no_statement_names_its_task(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tailrace.loop")

    async def work() -> None:
        await asyncio.sleep(0)
        busy()

    async def main() -> None:
        with LoopSteps(LONG_NS).watched(asyncio.get_running_loop()):
            await asyncio.create_task(work(), name="feed of orders")
            await asyncio.sleep(0)

    asyncio.run(main())
    assert "names_its_task.<locals>.work (feed of orders) (" in caplog.text


def test_the_longest_step_is_known_where_none_is_long() -> None:
    async def main() -> LoopSteps:
        steps = LoopSteps(1000 * LONG_NS)
        with steps.watched(asyncio.get_running_loop()):
            await asyncio.sleep(0)
            busy()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        return steps

    steps = asyncio.run(main())
    assert steps.count == 0
    assert steps.longest_ns > LONG_NS
