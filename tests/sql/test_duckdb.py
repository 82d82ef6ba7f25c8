"""DuckDB as an evaluator: what it may not touch, and what its answers become."""

from __future__ import annotations

import asyncio
import stat
import tempfile
import threading
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.clock import SystemWallClock
from tailrace.kvlayer.process.offload import ThreadOffload
from tailrace.sql.execute.query import duckdb as evaluator
from tailrace.sql.execute.query.duckdb import Analytics
from tailrace.sql.execute.query.evaluator_errors import from_duckdb
from tailrace.sql.results.errors import passed_on
from tailrace.sql.results.results import Answer, ArrowQuery
from tailrace.sql.runtime.analytic_lanes import LANES_MAX, USER_LANES_MAX, Asker, ask_as
from tests.harness.pg_door import PATIENCE_SECONDS
from tests.harness.simulation import Simulation


def run(scenario: Callable[[Analytics], Awaitable[None]]) -> None:
    async def main() -> None:
        offload = ThreadOffload("test")
        analytics = Analytics(offload, SystemWallClock())
        try:
            await scenario(analytics)
        finally:
            analytics.close()
            offload.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM glob('/*')",
        "COPY (SELECT 1) TO '{file}'",
        "ATTACH '{file}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '100GB'",
        "SELECT * FROM secret",
    ],
)
def test_nothing_outside_can_be_reached(sql: str, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("a\n1\n")
    secret = pa.table({"a": [1]})  # a variable of the caller, which DuckDB could find

    async def scenario(analytics: Analytics) -> None:
        with pytest.raises(duckdb.Error):
            await analytics.run(ArrowQuery(sql.format(file=file)))
        assert secret.num_rows == 1

    run(scenario)


def test_duckdb_is_opened_once_and_in_a_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes a tenth of a second of CPU time, for which the loop would stand still."""
    opened: list[str] = []
    connect = duckdb.connect

    def noted(*args: Any, **named: Any) -> duckdb.DuckDBPyConnection:
        opened.append(threading.current_thread().name)
        return connect(*args, **named)

    async def scenario(analytics: Analytics) -> None:
        await asyncio.gather(*(analytics.run(ArrowQuery("SELECT 1")) for _ in range(3)))
        assert len([answer async for answer in analytics.answers(ArrowQuery("SELECT 1"))]) == 1

    monkeypatch.setattr(duckdb, "connect", noted)
    run(scenario)
    assert opened == ["test-analytics-opening"]


def test_queries_at_once_see_their_own_tables() -> None:
    async def scenario(analytics: Analytics) -> None:
        async def one(number: int) -> Answer:
            tables = {"scan_0": pa.table({"a": [number]})}
            return await analytics.run(ArrowQuery("SELECT a FROM scan_0", tables))

        answers = await asyncio.gather(*(one(number) for number in range(10)))
        assert [answer.table.column(0).to_pylist() for answer in answers] == [
            [number] for number in range(10)
        ]
        with pytest.raises(duckdb.Error):
            await analytics.run(ArrowQuery("SELECT a FROM scan_0"))

    run(scenario)


def test_answers_come_in_our_types() -> None:
    async def scenario(analytics: Analytics) -> None:
        answer = await analytics.run(
            ArrowQuery(
                "SELECT 1::TINYINT, sum(2), 1.5::FLOAT, NULL, INTERVAL '1 day', [1], $1, 'a' AS x, "
                "2 AS x, max('2020-01-01'::TIMESTAMP_NS)",
                {},
                ["p"],
            ),
        )
        types = [column.type.sql_name for column in answer.columns]
        assert types == [
            "INT8", "DECIMAL(38,0)", "FLOAT4", "STRING", "INTERVAL", "INT8[]", "STRING", "STRING",
            "INT8", "TIMESTAMP",
        ]  # fmt: skip
        values = [column.to_pylist()[0] for column in answer.table.columns]
        assert values[:9] == [1, Decimal(2), 1.5, None, (0, 1, 0), [1], "p", "a", 2]

    run(scenario)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("sum(-x) FROM range(3) AS t (x)", Decimal(-3)),
        ("CAST(99999999999999999999999999999999999999 AS HUGEINT)", Decimal(10**38 - 1)),
        ("CAST(18446744073709551615 AS UBIGINT)", Decimal(2**64 - 1)),
        ("[1::HUGEINT, NULL, -5::HUGEINT]", [Decimal(1), None, Decimal(-5)]),
        ("CAST(100000000000000000000000000000000000000 AS HUGEINT)", None),
        ("[-100000000000000000000000000000000000000::HUGEINT]", None),
        ("CAST(340282366920938463463374607431768211455 AS UHUGEINT)", None),
    ],
)
def test_wide_integers_are_decimals_or_out_of_range(sql: str, value: object) -> None:
    async def scenario(analytics: Analytics) -> None:
        if value is None:
            with pytest.raises(duckdb.ConversionException) as raised:
                await analytics.run(ArrowQuery(f"SELECT {sql}"))
            assert from_duckdb(raised.value, (), {}).sqlstate == "22003"
        else:
            answer = await analytics.run(ArrowQuery(f"SELECT {sql}"))
            assert answer.table.column(0).to_pylist() == [value]

    run(scenario)


ENDLESS = "SELECT count(*) FROM range(10000000) AS a, range(10000000) AS b"


def test_cancelled_query_stops() -> None:
    async def scenario(analytics: Analytics) -> None:
        running = [asyncio.create_task(analytics.run(ArrowQuery(ENDLESS))) for _ in range(2)]
        await asyncio.sleep(0.2)  # until DuckDB is at it; a query that ends early ends the test too
        for task in running:
            task.cancel()
        await asyncio.wait(running)
        answer = await analytics.run(ArrowQuery("SELECT 1"))
        assert answer.table.num_rows == 1

    run(scenario)


@pytest.mark.parametrize("streamed", [False, True])
def test_endless_queries_of_one_user_leave_lanes_to_others(streamed: bool) -> None:
    async def ask(analytics: Analytics, sql: str, user: str) -> int:
        ask_as(lambda: Asker(user, admin=False))
        if not streamed:
            return (await analytics.run(ArrowQuery(sql))).table.num_rows
        answers = analytics.answers(ArrowQuery(sql))
        try:
            return (await anext(answers)).table.num_rows
        finally:
            await answers.aclose()

    async def scenario(analytics: Analytics) -> None:
        asked = [asyncio.create_task(ask(analytics, ENDLESS, "ada")) for _ in range(LANES_MAX)]
        while len(analytics._running) < USER_LANES_MAX:
            await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await asyncio.create_task(ask(analytics, "SELECT 1", "bo")) == 1
        assert len(analytics._running) == USER_LANES_MAX
        for each in asked:
            each.cancel()
        await asyncio.wait(asked)

    run(scenario)


def test_a_query_that_is_cancelled_while_it_is_bound_does_not_go_on() -> None:
    """DuckDB forgets what comes before it executes: the query kept its lane for ever."""
    bound, cancelled = threading.Event(), threading.Event()

    class Tables(dict[str, pa.Table]):
        def items(self) -> Any:
            bound.set()
            cancelled.wait()
            return super().items()

    async def scenario() -> None:
        analytics = Analytics(ThreadOffload("test"), SystemWallClock(), lanes=1)
        endless = "SELECT count(*) FROM range(10000000) AS a, range(10000000) AS b"
        query = asyncio.create_task(analytics.run(ArrowQuery(endless, Tables())))
        await asyncio.to_thread(bound.wait)
        query.cancel()
        await asyncio.sleep(0)
        cancelled.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.wait([query])
            answer = await analytics.run(ArrowQuery("SELECT 1"))
        assert query.cancelled()
        assert answer.table.num_rows == 1
        analytics.close()

    asyncio.run(scenario())


def test_cancelled_query_that_has_just_ended_is_cancelled() -> None:
    """Its thread has closed its cursor, and the loop has not heard of its answer."""

    async def scenario() -> None:
        analytics = Analytics(sim.offload, SystemWallClock())
        await analytics.run(ArrowQuery("SELECT 1"))  # DuckDB is open: what waits is the query
        for lane in sim.offload._lanes:
            lane.mute()
        query = asyncio.create_task(analytics.run(ArrowQuery("SELECT 1")))
        await asyncio.sleep(1.0)
        query.cancel()
        with pytest.raises(asyncio.CancelledError):
            await query
        analytics.close()

    sim = Simulation(1)
    sim.run(scenario())


def test_an_error_of_a_function_passes_whole_whatever_it_quotes() -> None:
    raised = SQLError("22023", 'what is "a\x1fb\n\x1f"?', detail="It is a sign.", hint="Ask.")
    said = duckdb.InvalidInputException(f"Invalid Input Error: ValueError: {passed_on(raised)}")
    told = from_duckdb(said, [], {})
    assert (told.sqlstate, told.message) == (raised.sqlstate, raised.message)
    assert (told.detail, told.hint) == (raised.detail, raised.hint)


def test_a_text_of_two_lines_that_is_no_date_is_told_whole() -> None:
    async def scenario(analytics: Analytics) -> None:
        with pytest.raises(duckdb.Error) as caught:
            await analytics.run(ArrowQuery("SELECT text_as_date('a' || chr(10) || 'b')"))
        told = from_duckdb(caught.value, [], {})
        assert told.sqlstate == "22007" and "a\nb" in told.message

    run(scenario)


@pytest.mark.parametrize(
    "made", ["repeat('x', 70000000)", "lpad('', 70000000, 'xy')", "unhex(repeat('00', 70000000))"]
)
def test_values_of_results_are_bounded_whatever_made_them(made: str) -> None:
    async def scenario(analytics: Analytics) -> None:
        with pytest.raises(SQLError) as caught:
            await analytics.run(ArrowQuery(f"SELECT 1, {made}"))
        assert caught.value.sqlstate == "54000"
        answers = analytics.answers(ArrowQuery(f"SELECT 1, {made}"))
        with pytest.raises(SQLError, match="has 70000000 bytes"):
            await anext(answers)
        await answers.aclose()
        found = await analytics.run(ArrowQuery(f"SELECT octet_length(({made})::BLOB)"))
        assert found.table.column(0).to_pylist() == [70_000_000]

    run(scenario)


def test_what_does_not_fit_into_memory_goes_to_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(evaluator, "MEMORY_LIMIT", "100MB")

    async def scenario(analytics: Analytics) -> None:
        ordered = "SELECT range AS n FROM range(15000000) ORDER BY hash(range)"
        async with aclosing(analytics.answers(ArrowQuery(ordered))) as answers:
            assert (await anext(answers)).table.num_rows > 0
            (folder,) = tmp_path.iterdir()
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            assert list(folder.iterdir())

    run(scenario)
    assert list(tmp_path.iterdir()) == []
