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
from tailrace.kvlayer.store import Store
from tailrace.sql.execute.query import locking

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


@pytest.mark.parametrize("suffix", ["", "SKIP LOCKED"])
@pytest.mark.parametrize("query", ["SELECT k FROM t", "SELECT k FROM t ORDER BY v"])
def test_many_rows_are_locked_a_portion_a_step(
    query: str, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "PORTION_ROWS", 4)

    async def main() -> set[int]:
        node = await Node.open(":memory:")
        session = node.session()
        await session.execute("CREATE TABLE t (k INT8 PRIMARY KEY, v INT8)")
        await session.execute("INSERT INTO t SELECT g, g FROM generate_series(1, 80) s (g)")
        await session.execute("BEGIN")
        store, seen = node.store, set[int]()
        assert isinstance(store, Store)
        asking = asyncio.create_task(session.execute(f"{query} FOR UPDATE {suffix}"))
        while not asking.done():
            await asyncio.sleep(0)
            seen.add(len(store._ranges.locks.locks))
        assert len((await asking)[0].fetch_rows()) == 80
        await session.close()
        await node.close()
        return seen

    seen = asyncio.run(main())
    assert max(seen) == 80
    assert len(seen) > 15
