"""A transaction that has written and stays open: what resolved timestamps must wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from ...catalog.values.errors import SQLError
from ...kvlayer.errors import KVError
from ...sql import Session, SessionState
from ..node import Node

HOLD_SECONDS_MAX = 60.0
"""One that somebody forgot ends by itself: it delays what is resolved for everybody."""


class LongTransaction:
    """At most one open transaction that holds a write in `table`."""

    def __init__(self, node: Node, table: str, *, on_end: Callable[[str], None]) -> None:
        """`on_end` is told the statement that ended it, whoever asked for that."""
        self._node = node
        self._on_end = on_end
        # A transaction holds others' resolved timestamps from where its writes outgrow its buffer.
        self.begin_sql = (
            f"BEGIN; UPSERT INTO {table} SELECT k, repeat('open', 250000) "
            "FROM generate_series(1, 2) AS g(k)"
        )
        self._holder: Session | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None

    @property
    def open(self) -> bool:
        return self._holder is not None

    async def begin(self) -> None:
        """Raises SQLError, and then nothing is open."""
        assert self._holder is None
        holder = self._node.session()
        try:
            await holder.execute(self.begin_sql)
        except BaseException:
            await holder.close()
            raise
        self._holder = holder
        self._timer = asyncio.get_running_loop().call_later(HOLD_SECONDS_MAX, self._forgotten)

    async def end(self) -> None:
        """Commits; or rolls back what has failed meanwhile. Ending what has ended is nothing."""
        holder, self._holder = self._holder, None
        if holder is None:
            return
        self._cancel_timer()
        statement = "COMMIT" if holder.state is SessionState.IN_TRANSACTION else "ROLLBACK"
        try:
            await holder.execute(statement)
        finally:
            await holder.close()
            self._on_end(statement)

    async def close(self) -> None:
        """Rolls back what is open, without a word."""
        self._cancel_timer()
        holder, self._holder = self._holder, None
        if holder is not None:
            await holder.close()

    def _forgotten(self) -> None:
        self._ending = asyncio.create_task(self._end_quietly())

    async def _end_quietly(self) -> None:
        with suppress(SQLError, KVError):
            await self.end()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
