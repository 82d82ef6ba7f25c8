"""The worker's side: queries of a server, each over the tables that were sent for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from .....catalog.values.session_zone import SessionZone, follow
from .....kvlayer.clock import WallClock
from .....kvlayer.process.offload import Offload
from .....kvlayer.worker import VERSION, Channel, Handler, Peer, received_rows, sent_rows
from ....results.results import Answer, ArrowQuery, Declared, ResultColumn
from ....runtime.analytic_lanes import Asker, ask_as
from ..duckdb import Analytics

SentAnswer = tuple[tuple[ResultColumn, ...], bytes]
"""A batch of a result as it is sent: its columns and its rows."""


@dataclass(frozen=True, slots=True)
class SentQuery:
    """A query as it is sent, with what the context of its session says."""

    sql: str
    parameters: Sequence[object]
    declared: Declared
    zone: str
    asker: Asker | None


class QueryHost:
    """Serves a server over a channel. What the server calls is named in `_handlers`."""

    def __init__(self, channel: Channel, offload: Offload, wall: WallClock) -> None:
        self._analytics = Analytics(offload, wall, name="queries")
        self._tables: dict[int, dict[str, list[pa.RecordBatch]]] = defaultdict(dict)
        """By the number of the query that is to come."""
        self._answers: dict[int, AsyncGenerator[Answer, None]] = {}
        self.peer = Peer(channel, self._handlers())

    def _handlers(self) -> Mapping[str, Handler]:
        return {
            "hello": lambda version: VERSION,
            "take": self._take,
            "begin": self._begin,
            "next": self._next,
            "end": self._end,
        }

    def _take(self, number: int, table: str, rows: bytes) -> None:
        self._tables[number].setdefault(table, []).extend(received_rows(rows))

    async def _begin(self, number: int, query: SentQuery) -> SentAnswer | None:
        """Returns the first batch of a query's result. This call's context is the session's."""
        follow(SessionZone(query.zone))
        ask_as(lambda: query.asker)
        tables = {
            name: pa.Table.from_batches(batches)
            for name, batches in self._tables.pop(number, {}).items()
        }
        self._answers[number] = self._analytics.answers(
            ArrowQuery(query.sql, tables, query.parameters, query.declared)
        )
        return await self._next(number)

    async def _next(self, number: int) -> SentAnswer | None:
        """Returns the next batch of a query's result; None behind the last."""
        answer = await anext(self._answers[number], None)
        if answer is None:
            return None
        batches = answer.table.to_batches()
        empty = [pa.RecordBatch.from_pylist([], answer.table.schema)]
        return answer.columns, sent_rows(batches or empty)

    async def _end(self, number: int) -> None:
        """Forgets a query, whether it was begun or not."""
        self._tables.pop(number, None)
        answers = self._answers.pop(number, None)
        if answers is not None:
            await answers.aclose()
