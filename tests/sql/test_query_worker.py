"""Queries of the query worker: they are what they are in the server, and end as they do there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.catalog.values.session_zone import SessionZone, follow
from tailrace.kvlayer.clock import SystemWallClock
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.process.offload import ThreadOffload
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.worker import Channel, Started
from tailrace.sql.builtins.evaluator_functions import IN_PYTHON
from tailrace.sql.execute.query.duckdb import BATCH_ROWS, Analytics, _open_database
from tailrace.sql.execute.query.evaluator_errors import from_duckdb
from tailrace.sql.execute.query.worker import PlacedAnalytics
from tailrace.sql.execute.query.worker.host import QueryHost
from tailrace.sql.execute.query.worker.placed import ROWS_HERE_MAX
from tailrace.sql.results.results import ArrowQuery
from tailrace.sql.runtime.analytic_lanes import USER_LANES_MAX, Asker, ask_as
from tests.harness.loop_doorbell import LoopDoorbell
from tests.harness.pg_door import PATIENCE_SECONDS

RING_BYTES = 64 * 1024

DOUBLED = "SELECT id, jsonb_concat('[1]'::JSON, '[2]'::JSON) AS d FROM t ORDER BY id"
NUMBERS = pa.table({"id": pa.array(range(3 * BATCH_ROWS), pa.int64())})
ENDLESS = "SELECT count(jsonb_typeof('1'::JSON)) FROM range(10000000) AS a, range(10000000) AS b"


class Workers:
    """Starts query workers that live in the test's own loop, one at a time."""

    def __init__(self, offload: ThreadOffload) -> None:
        self._offload = offload
        self.asked: list[str] = []
        """The calls that have come to the workers."""
        self.kill_at: str | None = None
        """The call at which the worker dies, before it hears of it."""
        self.host: QueryHost | None = None

    async def start(self) -> Started:
        assert self.host is None or self.host.peer.gone, "one at a time"
        there, back = (memoryview(bytearray(RING_BYTES)) for _ in range(2))
        near, far = LoopDoorbell.pair()
        host = QueryHost(Channel(far, back, there), self._offload, SystemWallClock())
        self.host = host
        handlers = host.peer._handlers
        host.peer._handlers = {name: self._noted(host, name, handlers[name]) for name in handlers}

        async def ended() -> str:
            await host.peer.ended
            await self._discard(host)
            return "was killed by signal 9"

        return Started(Channel(near, there, back), ended, lambda: host.peer.end("killed"))

    def _noted(
        self, host: QueryHost, name: str, handler: Callable[..., object]
    ) -> Callable[..., object]:
        def handle(*arguments: object) -> object:
            self.asked.append(name)
            if name == self.kill_at:
                self.kill_at = None
                host.peer.end("killed")
            return None if host.peer.gone else handler(*arguments)

        return handle

    async def _discard(self, host: QueryHost) -> None:
        """Its queries end with it."""
        tasks = list(host.peer._served.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for answers in host._answers.values():
            await answers.aclose()
        host._analytics.close()
        host.peer.end("its server is gone")


@asynccontextmanager
async def placed() -> AsyncIterator[tuple[PlacedAnalytics, Workers]]:
    offload = ThreadOffload("test")
    here = Analytics(offload, SystemWallClock())
    workers = Workers(offload)
    analytics = PlacedAnalytics(here, Metrics(), Settings(), workers.start)
    try:
        yield analytics, workers
    finally:
        await analytics.close()
        here.close()
        offload.close()


def run(scenario: Callable[[PlacedAnalytics, Workers], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), placed() as (analytics, workers):
            await scenario(analytics, workers)

    asyncio.run(main())


def test_the_calls_of_python_are_known_by_their_names() -> None:
    """All functions and macros that the evaluator's DuckDB has beside its own, and whether each
    runs in Python, which a macro does that calls one that does."""
    own = "SELECT DISTINCT function_name, coalesce(macro_definition, '') FROM duckdb_functions()"
    known = {name for name, _ in duckdb.connect().execute(own).fetchall()}
    ours = _open_database(SystemWallClock(), spilled="").execute(own).fetchall()
    added = [(name, body) for name, body in ours if name not in known]
    assert len(added) > 100
    for name, body in added:
        in_python = not body or IN_PYTHON.search(body) is not None
        assert (IN_PYTHON.search(f"SELECT {name}(x)") is not None) == in_python, name


@pytest.mark.parametrize(
    ("sql", "rows", "apart"),
    [
        (DOUBLED, ROWS_HERE_MAX + 1, True),
        (DOUBLED, ROWS_HERE_MAX, False),
        ("SELECT id + 1 FROM t", ROWS_HERE_MAX + 1, False),
        ('SELECT "jsonb_set" FROM (SELECT id AS "jsonb_set" FROM t)', ROWS_HERE_MAX + 1, False),
        ("SELECT jsonb_typeof('1'::JSON), id FROM t, generate_series(1, 2)", 1, True),
    ],
)
def test_python_over_many_rows_is_computed_apart(sql: str, rows: int, apart: bool) -> None:
    async def scenario(analytics: PlacedAnalytics, workers: Workers) -> None:
        answer = await analytics.run(ArrowQuery(sql, {"t": NUMBERS.slice(0, rows)}))
        assert answer.table.num_rows >= rows
        assert bool(workers.asked) == apart

    run(scenario)


def test_a_result_comes_in_batches_in_our_types() -> None:
    sql = (
        "SELECT id, jsonb_typeof('1'::JSON) AS t, sum(id) OVER () AS s, [id] AS l, $1 AS p "
        "FROM t ORDER BY id"
    )

    async def scenario(analytics: PlacedAnalytics, workers: Workers) -> None:
        answers = [each async for each in analytics.answers(ArrowQuery(sql, {"t": NUMBERS}, ["ä"]))]
        assert len(answers) >= 3
        whole = await analytics.run(ArrowQuery(sql, {"t": NUMBERS}, ["ä"]))
        here = await analytics._here.run(ArrowQuery(sql, {"t": NUMBERS}, ["ä"]))
        assert whole == here
        assert pa.concat_tables([each.table for each in answers]) == here.table
        assert here.table.column(2)[0].as_py() == Decimal(sum(range(len(NUMBERS))))

    run(scenario)


def test_a_result_without_rows_has_its_columns() -> None:
    async def scenario(analytics: PlacedAnalytics, workers: Workers) -> None:
        sql = "SELECT jsonb_in('1'::JSON) AS d, id FROM t WHERE id < 0"
        answer = await analytics.run(ArrowQuery(sql, {"t": NUMBERS}))
        assert [column.type.sql_name for column in answer.columns] == ["JSONB", "INT8"]
        empty = await analytics.run(
            ArrowQuery(
                "SELECT jsonb_typeof('1'::JSON), id FROM t, generate_series(1, 2)",
                {"t": NUMBERS.slice(0, 0)},
                [],
            ),
        )
        assert empty.table.num_rows == 0
        assert workers.asked.count("begin") == 2

    run(scenario)


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("SELECT text_as_date('x' || id) FROM t", "22007"),
        ("SELECT 9223372036854775807 + id, jsonb_typeof('1'::JSON) FROM t", "22003"),
        ("SELECT jsonb_typeof(nothing) FROM t", "42703"),
    ],
)
def test_errors_are_those_of_the_server(sql: str, sqlstate: str) -> None:
    async def scenario(analytics: PlacedAnalytics, workers: Workers) -> None:
        texts = []
        for evaluator in (analytics, analytics._here):
            with pytest.raises(duckdb.Error) as raised:
                await evaluator.run(ArrowQuery(sql, {"t": NUMBERS}))
            error = from_duckdb(raised.value, (), {})
            assert error.sqlstate == sqlstate
            texts.append(str(error))
        assert texts[0] == texts[1]
        assert workers.asked.count("end") == 1

    run(scenario)


def test_the_zone_and_the_limits_are_the_sessions() -> None:
    async def scenario(analytics: PlacedAnalytics, workers: Workers) -> None:
        follow(SessionZone("Europe/Berlin"))
        moment = "SELECT text_as_timestamptz('2020-07-01 00:00'), id FROM t LIMIT 1"
        answer = await analytics.run(ArrowQuery(moment, {"t": NUMBERS}))
        assert answer.table.column(0)[0].as_py().hour == 22
        ask_as(lambda: Asker("ada", admin=False, seconds=0.05))
        with pytest.raises(SQLError, match="statement timeout") as raised:
            await analytics.run(ArrowQuery(ENDLESS))
        assert raised.value.sqlstate == "57014"

    run(scenario)


def test_endless_queries_of_one_user_leave_lanes_to_others() -> None:
    async def ask(analytics: PlacedAnalytics, sql: str, user: str) -> int:
        ask_as(lambda: Asker(user, admin=False))
        return (await analytics.run(ArrowQuery(sql, {"t": NUMBERS}))).table.num_rows

    async def scenario(analytics: PlacedAnalytics, workers: Workers) -> None:
        asked = [asyncio.create_task(ask(analytics, ENDLESS, "ada")) for _ in range(4)]
        while workers.host is None or len(workers.host._analytics._running) < USER_LANES_MAX:
            await asyncio.sleep(0)
        assert await asyncio.create_task(ask(analytics, DOUBLED, "bo")) == len(NUMBERS)
        assert len(workers.host._analytics._running) == USER_LANES_MAX
        for each in asked:
            each.cancel()
        await asyncio.wait(asked)
        assert not workers.host._analytics._running
        assert not workers.host._answers

    run(scenario)


def test_a_result_that_nobody_reads_to_its_end_is_forgotten() -> None:
    async def scenario(analytics: PlacedAnalytics, workers: Workers) -> None:
        answers = analytics.answers(ArrowQuery(DOUBLED, {"t": NUMBERS}))
        await anext(answers)
        assert workers.host is not None
        assert len(workers.host._answers) == 1
        await answers.aclose()
        assert not workers.host._answers
        assert not workers.host._tables
        assert not workers.host._analytics._open

    run(scenario)


@pytest.mark.parametrize("step", ["hello", "take", "begin", "next", "end"])
def test_a_worker_that_dies_fails_its_query_and_is_replaced(step: str) -> None:
    async def scenario(analytics: PlacedAnalytics, workers: Workers) -> None:
        await analytics.run(ArrowQuery(DOUBLED, {"t": NUMBERS}))
        if step == "hello":
            assert workers.host is not None
            workers.host.peer.end("killed")
            while analytics._process._peer is not None:
                await asyncio.sleep(0)
        workers.kill_at = step
        if step == "end":  # all of it has come
            assert (await analytics.run(ArrowQuery(DOUBLED, {"t": NUMBERS}))).table.num_rows
        else:
            with pytest.raises(SQLError, match=r"query worker: .*killed") as raised:
                await analytics.run(ArrowQuery(DOUBLED, {"t": NUMBERS}))
            assert raised.value.sqlstate == "58030"
        if step == "hello":
            analytics._process._retry_at = 0.0
        assert (await analytics.run(ArrowQuery(DOUBLED, {"t": NUMBERS}))).table.num_rows == len(
            NUMBERS
        )

    run(scenario)


def test_the_setting_keeps_queries_in_the_server() -> None:
    async def scenario(analytics: PlacedAnalytics, workers: Workers) -> None:
        analytics._settings.set("sql.analytics.workers", "off")
        assert (await analytics.run(ArrowQuery(DOUBLED, {"t": NUMBERS}))).table.num_rows == len(
            NUMBERS
        )
        assert not workers.asked

    run(scenario)
