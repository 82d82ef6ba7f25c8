"""Dates and times written by patterns. What is expected is what PostgreSQL 15 answers."""

from __future__ import annotations

from tests.harness.simulation import Simulation
from tests.harness.sql_node import sql_node

WRITTEN = {
    "YYYY-MM-DD HH24:MI:SS.MS": "2021-03-02 14:05:06.078",
    "yyyy yy Q IYYY-IW-ID D DDD": "2021 21 1 2021-09-2 3 061",
    'FMDD FMMonth, "at \\" "HH12hMI pm': '2 March, at " 02h05 pm',
    "Day|DY|dy|FMDAY|MON": "Tuesday  |TUE|tue|TUESDAY|MAR",
    "TZ tz OF": "CET cet +01",
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
            for word in ("CC", "J", "RM", "A.D.", "DDth", "FF3", "TMMonth", "FM"):
                error = await node.error(f"SELECT to_char(now(), 'YYYY {word}')")
                assert error.sqlstate == "0A000"
                assert "extract()" in (error.hint or "")
            error = await node.error("SELECT to_char(now(), p) FROM (VALUES ('YYYY')) AS t(p)")
            assert "CASE" in (error.hint or "")

    sim = Simulation(seed=1)
    sim.run(main())
