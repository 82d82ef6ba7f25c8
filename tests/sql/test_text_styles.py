"""DateStyle, IntervalStyle and bytea_output: texts as PostgreSQL 15 writes them.

The expected texts are PostgreSQL's own answers to the same statements.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.interval import Interval
from tailrace.catalog.values.interval_text import read_interval
from tailrace.catalog.values.session_zone import SessionZone, follow, forget
from tailrace.catalog.values.text_style import (
    BytesForm,
    DateForm,
    DateOrder,
    IntervalForm,
    style_of,
    writer,
)
from tailrace.catalog.values.type_kinds import TypeKind
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    sim = Simulation(seed=1)

    async def main() -> None:
        async with sql_node(sim) as node:
            await scenario(node)

    sim.run(main())


INTERVALS = (
    ("00:00:00", "@ 0", "0", "PT0S"),
    ("-1 years", "@ 1 year ago", "-1-0", "P-1Y"),
    ("10 mons 3 days", "@ 10 mons 3 days", "+0-10 +3 +0:00:00", "P10M3D"),
    ("-1 days +02:03:04", "@ 1 day -2 hours -3 mins -4 secs ago", "+0-0 -1 +2:03:04",
     "P-1DT2H3M4S"),
    ("-1 years -2 mons -3 days -04:05:06.789",
     "@ 1 year 2 mons 3 days 4 hours 5 mins 6.789 secs ago", "-1-2 -3 -4:05:06.789",
     "P-1Y-2M-3DT-4H-5M-6.789S"),
    ("-00:00:00.5", "@ 0.5 secs ago", "-0:00:00.5", "PT-0.5S"),
    ("00:00:01", "@ 1 sec", "0:00:01", "PT1S"),
    ("3 days 25:00:00", "@ 3 days 25 hours", "3 25:00:00", "P3DT25H"),
)  # fmt: skip


@pytest.mark.parametrize("texts", INTERVALS, ids=lambda texts: texts[0])
def test_an_interval_has_four_forms_and_is_read_from_each(texts: tuple[str, ...]) -> None:
    value = read_interval(texts[0])
    for form, text in zip(IntervalForm, texts, strict=True):
        style = style_of(DateForm.ISO, DateOrder.MDY, form, BytesForm.HEX)
        write = writer(TypeKind.INTERVAL, style) or str
        assert write(value) == text
        before = follow(SessionZone(style=style))
        found = read_interval(text)
        forget(before)
        assert (found.months, found.days, found.microseconds) == (
            value.months, value.days, value.microseconds,
        )  # fmt: skip


def test_a_sign_in_front_counts_for_all_fields_in_the_standards_style() -> None:
    async def scenario(node: SqlNode) -> None:
        query = "SELECT INTERVAL '-1 2:00'"
        assert await node.rows(query) == [(Interval(days=-1, microseconds=7_200_000_000),)]
        await node.sql("SET IntervalStyle = sql_standard")
        assert await node.rows(query) == [(Interval(days=-1, microseconds=-7_200_000_000),)]
        assert await node.rows("SELECT INTERVAL '-1 +2:00'") == [
            (Interval(days=-1, microseconds=7_200_000_000),)
        ]

    run(scenario)


MOMENT = "TIMESTAMPTZ '1997-12-17 07:37:16.25+00'"


@pytest.mark.parametrize(
    ("style", "date", "moment"),
    [
        ("SQL", "12/07/1997", "12/17/1997 08:37:16.25 CET"),
        ("SQL, DMY", "07/12/1997", "17/12/1997 08:37:16.25 CET"),
        ("Postgres", "12-07-1997", "Wed Dec 17 08:37:16.25 1997 CET"),
        ("Postgres, DMY", "07-12-1997", "Wed 17 Dec 08:37:16.25 1997 CET"),
        ("German", "07.12.1997", "17.12.1997 08:37:16.25 CET"),
        ("ISO, DMY", "1997-12-07", "1997-12-17 08:37:16.25+01"),
    ],
)
def test_casts_to_text_are_in_the_style(style: str, date: str, moment: str) -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(f"SET TIME ZONE 'Europe/Berlin'; SET DateStyle = '{style}'")
        (row,) = await node.rows(
            f"SELECT DATE '1997-12-07'::TEXT, {MOMENT}::TEXT, 'on ' || d, concat(d), "
            "(ARRAY[d, NULL])::TEXT, format('%s', d) FROM (VALUES (DATE '1997-12-07')) AS t(d)"
        )
        assert row == (date, moment, f"on {date}", date, f"{{{date},NULL}}", date)

    run(scenario)


def test_intervals_and_bytes_within_texts_are_in_the_style() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("SET IntervalStyle = iso_8601; SET bytea_output = escape")
        (row,) = await node.rows(
            "SELECT INTERVAL '1 day'::TEXT, concat(INTERVAL '1 day', '\\x615c00'::BYTES), "
            "(ARRAY[INTERVAL '1 day'])::TEXT, '\\x615c00'::BYTES::TEXT"
        )
        assert row == ("P1D", "P1Da\\\\\\000", "{P1D}", "a\\\\\\000")

    run(scenario)


def test_documents_do_not_follow_and_say_so() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("SET IntervalStyle = iso_8601; SET DateStyle = German")
        for text in (
            "SELECT to_jsonb(INTERVAL '1 day')",
            "SELECT jsonb_build_array(1, ARRAY[INTERVAL '1 day'])",
            "SELECT row_to_json(t) FROM (VALUES (INTERVAL '1 day')) AS t(v)",
            "SELECT jsonb_agg(v) FROM (VALUES (INTERVAL '1 day')) AS t(v)",
        ):
            error = await node.error(text)
            assert (error.sqlstate, "IntervalStyle" in error.message) == ("0A000", True), text
        assert await node.rows("SELECT to_jsonb(DATE '2020-01-31')::TEXT") == [('"2020-01-31"',)]

    run(scenario)


def test_what_a_table_computes_is_the_same_in_all_sessions() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(
            "CREATE TABLE t (k INT8 PRIMARY KEY, d DATE, s TEXT AS (d::TEXT || '!') STORED, "
            "CHECK (d::TEXT LIKE '20%'))"
        )
        await node.sql("SET DateStyle = German; INSERT INTO t (k, d) VALUES (1, '2020-01-31')")
        assert await node.rows("SELECT s, d::TEXT FROM t") == [("2020-01-31!", "31.01.2020")]

    run(scenario)


def test_a_style_changes_by_parts_and_ends_with_its_transaction() -> None:
    async def scenario(node: SqlNode) -> None:
        text = "SELECT DATE '2020-01-31'::TEXT"
        shown = []
        for change in ("SET DateStyle = SQL, DMY", "SET DateStyle = YMD", "SET datestyle TO iso"):
            await node.sql(change)
            shown += await node.rows("SHOW DateStyle")
        assert shown == [("SQL, DMY",), ("SQL, YMD",), ("ISO, YMD",)]
        await node.sql("BEGIN; SET LOCAL DateStyle = German; SELECT 1")
        assert await node.rows(text) == [("31.01.2020",)]
        await node.sql("ROLLBACK")
        assert await node.rows(text) == [("2020-01-31",)]
        (column,) = (await node.sql("SHOW datestyle")).columns
        assert column.name == "DateStyle"
        assert await node.rows("SELECT setting FROM pg_settings WHERE name = 'DateStyle'") == [
            ("ISO, YMD",)
        ]

    run(scenario)


def test_dates_are_read_in_iso_alone() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("SET DateStyle = SQL, DMY")
        assert (await node.error("SELECT '01/02/2020'::DATE")).sqlstate == "22007"
        assert await node.rows("SELECT '2020-02-01'::DATE::TEXT") == [("01/02/2020",)]

    run(scenario)
