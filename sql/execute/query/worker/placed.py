"""The server's side: the choice of the process that computes a query."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from itertools import count

import pyarrow as pa

from .....catalog.values.errors import SQLError
from .....catalog.values.session_zone import zone_name
from .....kvlayer import worker
from .....kvlayer.metrics import Metrics
from .....kvlayer.process.memory import has_spare
from .....kvlayer.settings import Settings, declare_choice
from ....builtins.evaluator_functions import IN_PYTHON
from ....results.results import Answer, ArrowQuery, ResultColumn
from ....runtime.analytic_lanes import asker
from ..duckdb import Analytics, WholeAnswers
from .host import SentAnswer, SentQuery

WORKER_BYTES = 200 << 20
"""Memory of a worker: a server with less than twice as much to spare computes all by itself."""

WORKERS = declare_choice(
    "sql.analytics.workers",
    "on" if has_spare(2 * WORKER_BYTES) else "off",
    ["on", "off"],
    "whether a query that calls functions written in Python (of documents, texts that "
    "are read) for many rows is computed by a process of its own",
)

MODULE = "tailrace.sql.execute.query.worker"

METRICS = "sql_query_worker"
"""The beginning of its metrics' names: `…_alive`, `…_deaths_total`."""

ROWS_HERE_MAX = 2048
"""Rows given to a query that stays here whatever it calls: DuckDB gives a function as many at once,
and Python has computed them in some milliseconds."""

_MAKES_ROWS = re.compile(r"\b(generate_series|range)\(", re.IGNORECASE)


class PlacedAnalytics(WholeAnswers):
    """The evaluator of the server's own DuckDB and of the query worker's.

    Each has lanes of its own, by the same rules.
    """

    def __init__(
        self,
        here: Analytics,
        metrics: Metrics,
        settings: Settings,
        start: Callable[[], Awaitable[worker.Started]] = lambda: worker.start_process(MODULE),
    ) -> None:
        self._here = here
        self._settings = settings
        self._numbers = count(1)
        self._process = worker.WorkerProcess(
            start, {}, version=worker.VERSION, configuration=(), metrics=metrics, name=METRICS
        )

    async def close(self) -> None:
        """Ends the worker, with the queries that it computes."""
        await self._process.close()

    def answers(self, query: ArrowQuery, *, whole: bool = False) -> AsyncGenerator[Answer, None]:
        """As `QueryEvaluator.answers`. Raises SQLError 58030 where the worker has died."""
        if self._for_worker(query):
            return self._answers_of_worker(query)
        return self._here.answers(query, whole=whole)

    async def describe(self, query: ArrowQuery) -> tuple[ResultColumn, ...]:
        """As `QueryEvaluator.describe`."""
        return await self._here.describe(query)

    def _for_worker(self, query: ArrowQuery) -> bool:
        """Whether a query is the worker's."""
        given = sum(table.num_rows for table in query.tables.values())
        if given <= ROWS_HERE_MAX and _MAKES_ROWS.search(query.sql) is None:
            return False
        return IN_PYTHON.search(query.sql) is not None and self._settings.get(WORKERS) == "on"

    async def _answers_of_worker(self, query: ArrowQuery) -> AsyncGenerator[Answer, None]:
        sent_query = SentQuery(
            query.sql, list(query.parameters), query.declared, zone_name(), asker()
        )
        number = next(self._numbers)
        try:
            peer = await self._process.peer()
            try:
                for name, table in query.tables.items():
                    for piece in worker.sent_pieces(table):
                        await peer.call("take", number, name, piece)
                sent: SentAnswer | None = await peer.call("begin", number, sent_query)
                while sent is not None:
                    columns, rows = sent
                    yield Answer(columns, pa.Table.from_batches(worker.received_rows(rows)))
                    sent = await peer.call("next", number)
            finally:
                await _end(peer, number)
        except worker.WorkerGone as error:
            raise SQLError(
                "58030",
                f"query worker: {error}",
                hint="Run the statement again. SET CLUSTER SETTING sql.analytics.workers = 'off' "
                "has queries computed in the server.",
            ) from error


async def _end(peer: worker.Peer, number: int) -> None:
    with suppress(worker.WorkerGone):
        await peer.call("end", number)
