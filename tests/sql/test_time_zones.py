"""SET TIME ZONE: what moments are shown in, and what texts, days and clocks without a zone mean."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta

import pytest

from tailrace.catalog.values.session_zone import SessionZone, clock_of, follow, forget, instant
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

BERLIN = "SET TIME ZONE 'Europe/Berlin'"
MIDNIGHT = datetime(2020, 6, 30, 22, tzinfo=UTC)
"""Of the first of July 2020 in Berlin."""


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (id INT8 PRIMARY KEY, t TIMESTAMPTZ, l TIMESTAMP)")
            await scenario(node)

    sim = Simulation(59)
    sim.run(whole())


@pytest.mark.parametrize(
    ("clock", "moment"),
    [
        (datetime(2020, 7, 1), MIDNIGHT),
        (datetime(2020, 10, 25, 2, 30), datetime(2020, 10, 25, 1, 30, tzinfo=UTC)),  # twice
        (datetime(2020, 3, 29, 2, 30), datetime(2020, 3, 29, 1, 30, tzinfo=UTC)),  # never
    ],
)
def test_a_clock_shows_one_moment(clock: datetime, moment: datetime) -> None:
    before = follow(SessionZone("Europe/Berlin"))
    assert instant(clock) == moment
    assert instant(clock_of(moment)) == moment
    forget(before)
    assert instant(clock) == clock.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("'2020-07-01 00:00'::TIMESTAMPTZ", MIDNIGHT),
        ("DATE '2020-07-01'::TIMESTAMPTZ", MIDNIGHT),
        ("TIMESTAMP '2020-07-01 00:00'::TIMESTAMPTZ", MIDNIGHT),
        ("(TIMESTAMPTZ '2020-06-30 22:00Z')::DATE", date(2020, 7, 1)),
        ("(TIMESTAMPTZ '2020-06-30 22:00Z')::TEXT", "2020-07-01 00:00:00+02"),
        ("extract(hour FROM TIMESTAMPTZ '2020-06-30 22:00Z')::INT8", 0),
        ("date_trunc('day', TIMESTAMPTZ '2020-07-01 12:00Z')", MIDNIGHT),
        ("to_char(TIMESTAMPTZ '2020-06-30 22:00Z', 'YYYY-MM-DD HH24:MI')", "2020-07-01 00:00"),
        ("to_jsonb(TIMESTAMPTZ '1890-01-01 00:00Z')", '"1890-01-01T00:53:28+00:53:28"'),
        ("TIMESTAMPTZ '2020-03-28 12:00' + INTERVAL '1 day'",
         datetime(2020, 3, 29, 10, tzinfo=UTC)),
        ("TIMESTAMPTZ '2020-03-28 12:00' + INTERVAL '24 hours'",
         datetime(2020, 3, 29, 11, tzinfo=UTC)),
        ("(TIMESTAMPTZ '2020-07-01' - TIMESTAMPTZ '2020-01-01')::TEXT", "181 days 23:00:00"),
        ("(SELECT x::TIMESTAMPTZ FROM (VALUES ('2020-07-01 00:00')) AS v(x))", MIDNIGHT),
        ("TIMESTAMPTZ '2020-07-01 00:00' AT TIME ZONE 'UTC'", datetime(2020, 6, 30, 22)),
    ],
)  # fmt: skip
def test_expressions_are_of_the_zone(query: str, value: object) -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(BERLIN)
        assert await node.rows(f"SELECT {query}") == [(value,)]

    run(scenario)


def test_what_is_stored_is_of_the_zone() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(BERLIN)
        await node.sql(
            "INSERT INTO t VALUES (1, '2020-07-01 00:00', TIMESTAMPTZ '2020-06-30 22:00Z')"
        )
        await node.sql("INSERT INTO t SELECT 2, l, t FROM t WHERE id = 1")
        await node.sql("INSERT INTO t VALUES (3, $1, $2)", "2020-07-01 00:00", MIDNIGHT)
        rows = await node.rows("SELECT t, l FROM t ORDER BY id")
        assert rows == [(MIDNIGHT, datetime(2020, 7, 1))] * 3
        found = "SELECT count(*) FROM t WHERE t = '2020-07-01 00:00' AND t = l"
        assert await node.rows(found) == [(3,)]

    run(scenario)


def test_a_plan_is_of_the_zone_that_it_was_made_in() -> None:
    async def scenario(node: SqlNode) -> None:
        query = "SELECT '2020-07-01 00:00'::TIMESTAMPTZ"
        other = node.session()
        assert await node.rows(query) == [(datetime(2020, 7, 1, tzinfo=UTC),)]
        await node.sql(BERLIN)
        assert await node.rows(query) == [(MIDNIGHT,)]
        (result,) = await other.execute(query)
        assert result.fetch_rows() == [(datetime(2020, 7, 1, tzinfo=UTC),)]
        await node.sql("BEGIN; SET LOCAL TIME ZONE 'Asia/Kolkata'")
        assert await node.rows(query) == [(datetime(2020, 6, 30, 18, 30, tzinfo=UTC),)]
        await node.sql("ROLLBACK")
        assert await node.rows(query) == [(MIDNIGHT,)]
        await node.sql("RESET TIME ZONE")
        assert await node.rows("SHOW TIME ZONE") == [("UTC",)]

    run(scenario)


def test_names_of_zones_are_known_in_any_case() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("SET timezone = 'asia/TOKYO'")
        assert await node.rows("SHOW timezone") == [("Asia/Tokyo",)]
        assert (await node.error("SET timezone = 'Mars/Base'")).sqlstate == "22023"
        assert (await node.error("SET timezone = '../etc/passwd'")).sqlstate == "22023"
        query = "SELECT to_char(TIMESTAMPTZ '2020-07-01 00:00Z', 'HH24 TZ')"
        assert await node.rows(query) == [("09 JST",)]

    run(scenario)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("'+2'", "02"), ("-3", "21"), ("'-03'", "21"), ("'+02:00'", "22"), ("'GMT+1'", "23"),
        ("'UTC-3'", "03"), ("'<+02>-02'", "02"),
        ("'GMT-0'", "00"),
        ("INTERVAL '+02:00' HOUR TO MINUTE", "02"),  # Sequelize, of each connection
    ],
)  # fmt: skip
def test_offsets_in_whole_hours_count_as_in_postgresql(written: str, shown: str) -> None:
    """A plain number to the east; a name, or hours and minutes, to the west, as POSIX has it."""

    async def scenario(node: SqlNode) -> None:
        await node.sql(f"SET TIME ZONE {written}")
        assert await node.rows("SELECT to_char(TIMESTAMPTZ '2020-07-01Z', 'HH24')") == [(shown,)]
        assert (await node.error("SET TIME ZONE '+05:30'")).sqlstate == "22023"

    run(scenario)


def test_queries_of_many_zones_are_under_way_at_once() -> None:
    """One DuckDB computes all of them: the zone is that of a query's cursor."""
    query = (
        "SELECT extract(hour FROM TIMESTAMPTZ '2020-01-01 12:00+00' + g * INTERVAL '1 day'), "
        "('2020-01-0' || least(g, 9))::TIMESTAMPTZ FROM generate_series(1, 100000) g"
    )

    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN")
        for west in range(-11, 12):
            zone = f"SET LOCAL TIME ZONE 'Etc/GMT{west:+d}'"
            await node.sql(f"{zone}; DECLARE c{west + 11} CURSOR FOR {query}")
        await node.sql("SET LOCAL TIME ZONE 'Asia/Tokyo'")
        for west in range(-11, 12):
            moment = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(hours=west)
            assert await node.rows(f"FETCH c{west + 11}") == [(12 - west, moment)]
            assert len(await node.rows(f"FETCH 9000 IN c{west + 11}")) == 9000

    run(scenario)
