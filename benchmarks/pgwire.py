"""The Postgres door beside PostgreSQL 15, one client, one connection each.

    python -m benchmarks.pgwire [--selects 5000] [--updates 1500] [--rows 200000]

`select_per_s`: prepared point SELECTs; `update_per_s`: single-row UPDATEs, each a commit that is
durable; `copy_rows_per_s`: rows by COPY FROM STDIN in text. Each also `…_over_postgres`, against a
PostgreSQL that is started in a temporary folder, with its own defaults, and driven alike. Where
PostgreSQL is not installed there are no ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg

from benchmarks.outcome import print_outcome
from benchmarks.servers import postgres_installed, postgres_server, tailrace_server

ROWS_OF_POINTS = 10_000


async def measure(port: int, database: str, sizes: argparse.Namespace) -> dict[str, float]:
    """The rates of one server."""
    client = await asyncpg.connect(host="127.0.0.1", port=port, user="root", database=database)
    try:
        for name in ("points", "copied"):
            await client.execute(
                f"CREATE TABLE {name} (id INT8 PRIMARY KEY, note TEXT, n INT8 NOT NULL)"
            )
        data = b"".join(b"%d\tnote %d\t%d\n" % (i, i, i * 7) for i in range(sizes.rows))
        await client.copy_to_table("points", source=_pieces(data[: data.index(b"\n10000\t") + 1]))
        select = await client.prepare("SELECT id, note, n FROM points WHERE id = $1")
        update = await client.prepare("UPDATE points SET n = n + 1 WHERE id = $1")
        for number in range(200):
            await select.fetch(number)
        began = time.perf_counter()
        for number in range(sizes.selects):
            await select.fetch(number * 7919 % ROWS_OF_POINTS)
        selected = time.perf_counter()
        for number in range(sizes.updates):
            await update.fetch(number * 7919 % ROWS_OF_POINTS)
        updated = time.perf_counter()
        await client.copy_to_table("copied", source=_pieces(data))
        copied = time.perf_counter()
    finally:
        await client.close()
    return {
        "select_per_s": sizes.selects / (selected - began),
        "update_per_s": sizes.updates / (updated - selected),
        "copy_rows_per_s": sizes.rows / (copied - updated),
    }


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), 64 * 1024):
        yield data[start : start + 64 * 1024]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--selects", type=int, default=5000)
    parser.add_argument("--updates", type=int, default=1500)
    parser.add_argument("--rows", type=int, default=200_000)
    sizes = parser.parse_args()
    assert sizes.rows > ROWS_OF_POINTS, "COPY needs more rows than the points"
    with tempfile.TemporaryDirectory(prefix="tailrace-pgwire-") as name:
        folder = Path(name)
        with tailrace_server(folder) as (_, port):
            metrics = asyncio.run(measure(port, "defaultdb", sizes))
        if postgres_installed():
            with postgres_server(folder) as port:
                beside = asyncio.run(measure(port, "postgres", sizes))
            for metric, value in beside.items():
                metrics[f"{metric}_over_postgres"] = metrics[metric] / value
    print_outcome("pgwire", metrics)


if __name__ == "__main__":
    main()
