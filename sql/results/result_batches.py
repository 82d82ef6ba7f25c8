"""Results that are still coming: batches that are computed as their client takes them.

    result = await session.run(prepared, parameters, streamed=True)
    if result.batches is not None:                  # or else it is whole, as short ones are
        async with session.sending(result):
            while (batch := await result.batches.next()) is not None:
                ...                                 # as slowly as its client reads

A result that waits for its client holds a batch or two, and what computes the rest: a view of the
store at the statement's time, or DuckDB's query with its tables. Neither locks anything, and no
schema change waits for it; but versions that garbage collection removes stay on the disk beneath
the view. So there is an end to waiting (`sql.result.idle_timeout`), and to how many wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass

import pyarrow as pa

from ...catalog.values.errors import SQLError
from ...kvlayer.access import StoreAccess
from ...kvlayer.settings import declare_duration

IDLE_TIMEOUT = declare_duration(
    "sql.result.idle_timeout",
    1800.0,
    "how long the rest of a result is kept for a client that does not take it; 0 for ever",
)

WAITING_MAX = 500
"""Results of a node that wait for their clients. Each holds some megabytes, and a view of the
engine or a query of DuckDB's."""

WAITING_OF_USER_MAX = 375
"""Of these, those of one user: the rest is for others, beside a user who reads none to its end."""


class WaitingResults:
    """The results of a node that are not whole, nor closed."""

    def __init__(self, store: StoreAccess) -> None:
        self._store = store
        self.open: set[ResultBatches] = set()

    def of(self, user: str) -> ResultsOfUser:
        return ResultsOfUser(self, user)

    @property
    def idle_timeout(self) -> float:
        return self._store.settings.get(IDLE_TIMEOUT)

    def add(self, batches: ResultBatches) -> None:
        self.open.add(batches)
        self._store.metrics.put("sql_results_waiting", len(self.open))

    def remove(self, batches: ResultBatches) -> None:
        self.open.discard(batches)
        self._store.metrics.put("sql_results_waiting", len(self.open))

    async def close(self) -> None:
        """Ends all of them, before what they read from is closed."""
        for batches in list(self.open):
            await batches.close()


@dataclass(frozen=True, slots=True)
class ResultsOfUser:
    """A node's waiting results, for who makes one for a user."""

    results: WaitingResults
    user: str

    def refuse_more(self) -> None:
        """Raises SQLError 53400 where too many wait, of the user or of all."""
        waiting = self.results.open
        of_user = sum(batches.waiting.user == self.user for batches in waiting)
        for count, most, whose in (
            (len(waiting), WAITING_MAX, ""),
            (of_user, WAITING_OF_USER_MAX, f' of user "{self.user}"'),
        ):
            if count >= most:
                raise SQLError(
                    "53400",
                    f"{most} results{whose} wait for their clients to read them, and there may be "
                    "no more",
                    hint="Read them to their end, or close them; sql.result.idle_timeout closes "
                    "those that nobody reads.",
                )


class ResultBatches:
    """The rows of a result that are still to come.

    `ready` are batches that have come already, `rest` computes the others. One task takes them at a
    time. `row_count` is that of the batches that were taken; they have `ended` where there is
    nothing more to come, or nobody to take it.
    """

    def __init__(
        self,
        ready: Iterable[pa.Table],
        rest: AsyncGenerator[pa.Table, None],
        waiting: ResultsOfUser,
    ) -> None:
        self.row_count = 0
        self._ready = deque(ready)
        self._rest = rest
        self.waiting = waiting
        self.ended = False
        self._taking = False
        self._let_go: SQLError | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None
        waiting.results.add(self)
        self._wait()

    async def next(self) -> pa.Table | None:
        """The next batch, or None at the end. Raises what the statement fails with."""
        if self._let_go is not None:
            raise self._let_go
        batch = self._ready.popleft() if self._ready else await self._pull()
        if batch is not None:
            self.row_count += batch.num_rows
            self._wait()
        return batch

    async def settle(self) -> None:
        """Reads all that is to come, and holds it: what it is computed from is about to end."""
        while (batch := await self._pull()) is not None:
            self._ready.append(batch)

    async def close(self) -> None:
        """Nobody wants the rest."""
        self._ready.clear()
        await self._end()

    async def _pull(self) -> pa.Table | None:
        if self.ended:
            return None
        self._stop_waiting()
        assert not self._taking, "two take batches of one result"
        self._taking = True
        try:
            batch = await anext(self._rest, None)
        except BaseException:
            self._taking = False
            await self.close()
            raise
        self._taking = False
        if batch is None:
            await self._end()
        return batch

    async def _end(self) -> None:
        self._stop_waiting()
        if not self.ended:
            self.ended = True
            self.waiting.results.remove(self)
            await self._rest.aclose()

    def _wait(self) -> None:
        self._stop_waiting()
        seconds = self.waiting.results.idle_timeout
        if seconds and not self.ended:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._give_up, seconds)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self, seconds: float) -> None:
        self._let_go = SQLError(
            "57014",
            f"the rest of the result was not taken for {seconds:g} seconds, and is let go",
            hint="Read faster, fetch less, or set the cluster setting sql.result.idle_timeout.",
        )
        self._closing = asyncio.get_running_loop().create_task(self.close())
