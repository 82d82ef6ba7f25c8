"""Dates and times written by patterns. What is expected is what PostgreSQL 15 answers."""

from __future__ import annotations

from tests.harness.simulation import Simulation
from tests.harness.sql_node import sql_node

WRITTEN = {
    "YYYY-MM-DD HH24:MI:SS.MS": "2021-03-02 14:05:06.078",
    "yyyy yy IYYY-IW-ID DDD": "2021 21 2021-09-2 061",
    'FMDD FMMonth, "at 5% "HH12"h"MI PM': "2 March, at 5% 02h05 PM",
    "FMDay|Dy|Mon|100%": "Tuesday|Tue|Mar|100%",
    "TZ OF": "CET +01",
}


def test_moments_are_written_by_their_patterns() -> None:
    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("SET TIME ZONE 'Europe/Berlin'")
            for pattern, text in WRITTEN.items():
                query = f"SELECT to_char(TIMESTAMPTZ '2021-03-02 14:05:06.078', '{pattern}')"
                assert await node.rows(query) == [(text,)]
            assert await node.rows("SELECT to_char(now(), '')") == [(None,)]

    sim = Simulation(seed=1)
    sim.run(main())


def test_other_words_and_computed_patterns_are_refused() -> None:
    async def main() -> None:
        async with sql_node(sim) as node:
            for word in (
                "CC",
                "J",
                "RM",
                "A.D.",
                "DDth",
                "FF3",
                "TMMonth",
                "FM",
                "Month",
                "DAY",
                "MON",
                "tz",
                "Q",
            ):
                error = await node.error(f"SELECT to_char(now(), 'YYYY {word}')")
                assert error.sqlstate == "0A000"
                assert "extract()" in (error.hint or "")
            error = await node.error("SELECT to_char(now(), p) FROM (VALUES ('YYYY')) AS t(p)")
            assert "CASE" in (error.hint or "")

    sim = Simulation(seed=1)
    sim.run(main())
