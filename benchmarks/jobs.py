"""What jobs that have ended cost those who look: 2,000 of them against ten.

    python -m benchmarks.jobs [--looks 100]

Two nodes have ten changefeeds each, and beside them 10 and 2,000 jobs that have ended:
longer ago than they are listed, and not so long ago that they are gone. `jobs_2000_over_10` is the
greatest ratio of the times that SHOW JOBS, SHOW CHANGEFEED JOBS, the metrics and the overview take
on the one and on the other. The nodes are asked in turn and the medians are compared, so that a
noisy machine does not favour one.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from statistics import median

from httpx2 import ASGITransport, AsyncClient

from benchmarks.outcome import print_outcome
from tailrace.api.http import create_app
from tailrace.api.node import Node
from tailrace.api.web.overview import Overview
from tailrace.catalog.jobs import JobRecord, JobState
from tailrace.catalog.jobs.job_store import RECENT
from tailrace.catalog.jobs.record import encode_end, time_of

FEEDS = 10
FEW, MANY = 10, 2_000

Look = Callable[[], Awaitable[object]]


async def node_with(ended: int, folder: Path) -> Node:
    node = await Node.open(folder / f"{ended}")
    session = node.session()
    for number in range(FEEDS):
        await session.execute(f"CREATE TABLE t{number} (k INT8 PRIMARY KEY)")
        await session.execute(f"CREATE CHANGEFEED FOR TABLE t{number} INTO 'null://'")
    await session.close()
    await end_jobs(node, ended)
    return node


async def end_jobs(node: Node, count: int) -> None:
    """Jobs as they are left by lives of their own: each was among the living once."""
    finished = time_of(await node.store.now()) - RECENT - timedelta(hours=1)
    for number in range(1, count + 1):
        job = JobRecord(
            id=number,
            kind="SCHEMA CHANGE",
            description="ALTER TABLE t ADD COLUMN c INT8",
            state=JobState.SUCCEEDED,
            payload=b"p" * 200,
            created=finished,
            finished=finished,
        )
        key, body = job.encode()
        rows = [job.encode_finished(), encode_end(job.id, finished)]
        await node.store.one_phase(lambda e, k=key, b=body: e.put([k], [b]))  # type: ignore[misc]
        await node.store.one_phase(lambda e, k=key: e.delete([k]))  # type: ignore[misc]
        await node.store.one_phase(lambda e, r=rows: e.put(*zip(*r, strict=True)))  # type: ignore[misc]


def looks_at(node: Node) -> dict[str, Look]:
    client = AsyncClient(transport=ASGITransport(create_app(node)), base_url="http://localhost")

    async def get(path: str) -> None:
        answer = await client.get(path)
        assert answer.status_code == 200, answer.text

    return {
        "jobs": lambda: get("/v1/jobs"),
        "changefeeds": lambda: get("/v1/changefeeds"),
        "metrics": lambda: get("/metrics"),
        "overview": lambda: Overview(node).render(),
    }


async def measure(looks: int, folder: Path) -> dict[str, float]:
    nodes = [await node_with(count, folder) for count in (FEW, MANY)]
    few, many = map(looks_at, nodes)
    figures: dict[str, float] = {}
    for name in few:
        spent: dict[str, list[float]] = {"few": [], "many": []}
        for _ in range(looks):
            for which, look in (("few", few[name]), ("many", many[name])):
                began = time.perf_counter()
                await look()
                spent[which].append(time.perf_counter() - began)
        figures[f"{name}_ms"] = 1e3 * median(spent["many"])
        figures[f"{name}_2000_over_10"] = median(spent["many"]) / median(spent["few"])
    for node in nodes:
        await node.close()
    worst = max(value for name, value in figures.items() if name.endswith("_over_10"))
    return {**figures, "jobs_2000_over_10": worst}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--looks", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print_outcome("jobs", asyncio.run(measure(options.looks, Path(folder))))


if __name__ == "__main__":
    main()
