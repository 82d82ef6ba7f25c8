"""What a schema change costs: rows that a backfill writes a second, and the time to be published.

python -m benchmarks.schema_backfill [--rows 20000]

`publish_ms` is ALTER TABLE with two nodes that hold leases on the table, from the statement to its
return; `backfill_rows_per_s` is a computed column (a new primary index) and a secondary index.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import pyarrow as pa

from benchmarks.outcome import print_outcome
from tailrace.api.node import Node
from tailrace.catalog.leases import LeaseManager, LivenessSession
from tailrace.catalog.store.descriptor_store import DescriptorStore

PUBLISHED = 10
SECOND_NODE = 2


async def measure(folder: Path, rows: int) -> dict[str, float]:
    node = await Node.open(folder)
    try:
        session = node.session()
        await session.execute("CREATE TABLE t (k INT8 PRIMARY KEY, n INT8, v STRING)")
        numbers = list(range(rows))
        await node.load(
            "t", pa.table({"k": numbers, "n": numbers, "v": [f"value {n}" for n in numbers]})
        )
        began = perf_counter()
        await session.execute("ALTER TABLE t ADD COLUMN twice INT8 AS (n * 2) STORED")
        primary = rows / (perf_counter() - began)
        began = perf_counter()
        await session.execute("CREATE INDEX by_v ON t (v)")
        secondary = rows / (perf_counter() - began)
        publish = await _publish(node)
        await session.close()
    finally:
        await node.close()
    return {
        "publish_ms": publish,
        "backfill_rows_per_s": primary,
        "index_backfill_rows_per_s": secondary,
    }


async def _publish(node: Node) -> float:
    """Milliseconds of ALTER TABLE while a second node leases the table, as soon as it may."""
    store = node.store
    liveness = LivenessSession(store, SECOND_NODE)
    leases = LeaseManager(store, DescriptorStore(store), liveness)
    await liveness.start()
    await leases.start()
    session = node.session()
    took: list[float] = []
    try:
        await session.execute("CREATE TABLE p (k INT8 PRIMARY KEY)")
        reader = store.snapshot(await store.now())
        tables = await node.services.catalog.list_tables(reader, "defaultdb")
        table_id = next(table.id for table in tables if table.name == "p")
        for number in range(PUBLISHED):
            await session.execute("SELECT * FROM p WHERE k = 1")
            (await leases.acquire_freshest(table_id)).release()
            began = perf_counter()
            await session.execute(f"ALTER TABLE p ADD COLUMN c{number} INT8 DEFAULT 1")
            took.append((perf_counter() - began) * 1000)
    finally:
        await session.close()
        await leases.close()
        await liveness.close()
    return median(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000, help="rows of the table")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailrace-schema-") as name:
        print_outcome("schema_backfill", asyncio.run(measure(Path(name) / "d", arguments.rows)))


if __name__ == "__main__":
    main()
