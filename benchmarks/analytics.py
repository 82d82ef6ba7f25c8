"""Analytic SELECTs over one table, through the Postgres door, beside PostgreSQL 15.

    python -m benchmarks.analytics [--rows 1000000] [--repeat 5] [--changed 100]

`scan_over_postgres`: how much faster than PostgreSQL the queries are on a table that is in the
columnar cache (the geometric mean of the queries' ratios, the best of `--repeat` runs of each).
`changed_over_postgres`: the same where `--changed` rows are updated before each run.
`uncached_seconds` is the first query of a server that has just been loaded, `building_seconds` the
second one, which makes the image. PostgreSQL's tables are analyzed and in its cache.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from math import prod
from pathlib import Path

import asyncpg

from benchmarks.outcome import print_outcome
from benchmarks.servers import postgres_installed, postgres_server, tailrace_server

QUERIES = {
    "count": "SELECT count(*) FROM sales",
    "filtered_sum": "SELECT sum(amount) FROM sales WHERE store < 10 AND quantity > 5",
    "by_store": "SELECT store, count(*), sum(amount), avg(quantity) FROM sales GROUP BY store",
    "top_notes": (
        "SELECT note, sum(quantity) AS total FROM sales GROUP BY note ORDER BY total DESC, note"
        " LIMIT 10"
    ),
    "months": (
        "SELECT date_trunc('month', sold) AS month, sum(amount) FROM sales GROUP BY 1 ORDER BY 1"
    ),
}


async def measure(port: int, database: str, sizes: argparse.Namespace) -> dict[str, float]:
    """Seconds of one server."""
    client = await asyncpg.connect(host="127.0.0.1", port=port, user="root", database=database)
    try:
        await client.execute(
            "CREATE TABLE sales (id INT8 PRIMARY KEY, store INT8 NOT NULL, quantity INT8 NOT NULL,"
            " amount FLOAT8 NOT NULL, note TEXT, sold TIMESTAMP NOT NULL)"
        )
        await client.copy_records_to_table("sales", records=_records(sizes.rows))
        if database == "postgres":
            await client.execute("VACUUM ANALYZE sales")
        seconds = {}
        for name in ("uncached", "building"):
            seconds[name] = await _timed(client, QUERIES["by_store"])
        for name, query in QUERIES.items():
            runs = [await _timed(client, query) for _ in range(sizes.repeat)]
            seconds[f"cached {name}"] = min(runs)
        for name, query in QUERIES.items():
            runs = []
            for run in range(sizes.repeat):
                await client.execute(
                    f"UPDATE sales SET quantity = quantity + 1 WHERE id >= {run * 977}"
                    f" AND id < {run * 977 + sizes.changed}"
                )
                runs.append(await _timed(client, query))
            seconds[f"changed {name}"] = min(runs)
    finally:
        await client.close()
    return seconds


def _records(count: int) -> list[tuple[object, ...]]:
    from datetime import datetime, timedelta

    began = datetime(2026, 1, 1)
    minute = timedelta(minutes=1)
    return [
        (i, i * 7919 % 100, i % 13, i * 0.25, f"note {i * 31 % 1000}", began + i % 500_000 * minute)
        for i in range(count)
    ]


async def _timed(client: asyncpg.Connection, query: str) -> float:
    began = time.perf_counter()
    await client.fetch(query)
    return time.perf_counter() - began


def ratio(ours: dict[str, float], theirs: dict[str, float], kind: str) -> float:
    """The geometric mean of how much faster we are."""
    ratios = [theirs[name] / ours[name] for name in ours if name.startswith(kind)]
    return float(prod(ratios) ** (1 / len(ratios)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--changed", type=int, default=100)
    sizes = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailrace-analytics-") as name:
        folder = Path(name)
        with tailrace_server(folder) as (_, port):
            ours = asyncio.run(measure(port, "defaultdb", sizes))
        metrics = {f"{name.replace(' ', '_')}_seconds": taken for name, taken in ours.items()}
        if postgres_installed():
            with postgres_server(folder) as port:
                theirs = asyncio.run(measure(port, "postgres", sizes))
            for name, taken in theirs.items():
                metrics[f"{name.replace(' ', '_')}_over_postgres"] = taken / ours[name]
            metrics["scan_over_postgres"] = ratio(ours, theirs, "cached ")
            metrics["changed_over_postgres"] = ratio(ours, theirs, "changed ")
    print_outcome("analytics", metrics)


if __name__ == "__main__":
    main()
