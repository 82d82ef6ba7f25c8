"""Ending a query that runs in a lane.

HAZARD: DuckDB forgets an interruption that comes before a query has begun to execute, and binding
one may take long. Who tells it once, and goes, may leave it running for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import duckdb

from .....kvlayer.process.offload import Offload

T = TypeVar("T")

AGAIN_SECONDS = 0.01


def interrupt(cursor: duckdb.DuckDBPyConnection) -> bool:
    """Ends what executes on a cursor; False where the cursor is closed already."""
    try:
        cursor.interrupt()
    except duckdb.ConnectionException:
        return False
    return True


async def in_lane(lane: Offload, cursor: duckdb.DuckDBPyConnection, call: Callable[[], T]) -> T:
    """Returns the result of the call, which has ended by then, cancelled or not."""
    task = lane.run(call)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await end_query(cursor, task)
        raise


async def end_query(cursor: duckdb.DuckDBPyConnection, task: asyncio.Future[Any]) -> None:
    """Interrupts the call `task` of a lane until it has ended.

    One that has just ended may have closed its cursor while its answer is still on its way.
    """
    task.add_done_callback(_heard)
    while not task.done() and interrupt(cursor):
        await asyncio.wait([task], timeout=AGAIN_SECONDS)


def _heard(task: asyncio.Future[Any]) -> None:
    """Nobody else asks how it ended."""
    if not task.cancelled():
        task.exception()
