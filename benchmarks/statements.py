"""Long statements: how planning grows with them, what it holds up, and what they take beside
PostgreSQL 15.

    python -m benchmarks.statements [--rounds 7] [--seconds 3]

Sixteen shapes of statement are doubled five times and prepared. `exponent_SHAPE` is the slope of
CPU time over size, both in logarithms: 1 is linear. `worst_step_cpu_ms` is the longest step of the
loop while all of them were planned (`worst_step_wall_ms` is what it took on the wall of a machine
that others share). `emit_ms_p99_SHAPE` is a mirror's, while the largest of a shape is prepared over
and over. `…_over_postgres` is the median of an ORM's statement here over its median there.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from statistics import median

import psycopg

from benchmarks.loop_steps import worst_step
from benchmarks.outcome import print_outcome
from benchmarks.servers import postgres_installed, postgres_server, tailrace_server
from benchmarks.statement_shapes import SHAPES, TABLE, sizes
from tailrace import aopen
from tailrace.api.embedded import AsyncDatabase
from tailrace.changefeed.pipeline.stage_times import Milestone
from tailrace.kvlayer.process.tuned_process import tuned_process
from tailrace.sql import Session

REPEATS = 2
COMMITS_PER_SECOND = 50
_numbers = count()


async def prepared(session: Session, text: str) -> None:
    """Plans a text that nobody has sent, in steps of its own."""
    await session.prepare(f"/* {next(_numbers)} */ {text}")
    await asyncio.sleep(0)


async def seconds_to_prepare(session: Session, text: str) -> float:
    """The least of a few times: CPU time of the process, which does nothing else."""
    taken = []
    for _ in range(REPEATS):
        began = time.process_time()
        await prepared(session, text)
        taken.append(time.process_time() - began)
    return min(taken)


def exponent(found: dict[int, float]) -> float:
    """The slope of the line through sizes and times, in logarithms."""
    points = [(math.log(size), math.log(seconds)) for size, seconds in found.items()]
    middle_x, middle_y = (sum(values) / len(points) for values in zip(*points, strict=True))
    above: float = sum((x - middle_x) * (y - middle_y) for x, y in points)
    below: float = sum((x - middle_x) ** 2 for x, _ in points)
    return above / below


async def measure_growth(folder: Path) -> dict[str, float]:
    metrics: dict[str, float] = {}
    async with await aopen(folder) as database:
        await database.sql(TABLE)
        session = database.node.session()
        for shape in SHAPES.values():
            await prepared(session, shape(5))
        with tuned_process(), worst_step() as worst:
            for name, shape in SHAPES.items():
                gc.collect()
                taken = {
                    size: await seconds_to_prepare(session, shape(size)) for size in sizes(name)
                }
                metrics[f"exponent_{name}"] = exponent(taken)
                shown = ", ".join(f"{size}: {taken[size] * 1000:.1f}" for size in taken)
                print(
                    f"{name:<12} exponent {metrics[f'exponent_{name}']:.2f}   ms by size {shown}"
                    f"   worst step so far {worst.cpu_ms:.1f} ms CPU, {worst.wall_ms:.1f} wall",
                    flush=True,
                )
        await session.close()
    metrics["worst_exponent"] = max(metrics.values())
    metrics["worst_step_cpu_ms"] = worst.cpu_ms
    metrics["worst_step_wall_ms"] = worst.wall_ms
    return metrics


async def measure_feed(folder: Path, seconds: float) -> dict[str, float]:
    """The p99 of emit of single-row commits, beside the largest statement of each shape."""
    metrics: dict[str, float] = {}
    async with await aopen(folder) as database:
        await database.sql(TABLE)
        await database.sql("ALTER TABLE shape SET (changefeed_optimized = true)")
        made = await database.sql("CREATE CHANGEFEED FOR TABLE shape INTO 'duckdb:///m.duckdb'")
        job_id = made.fetchall()[0][0]
        assert isinstance(job_id, int)
        live = database.feed(job_id)
        rows = count()
        await commit(database, rows, seconds)
        for name in ["nothing", *SHAPES]:
            await live.wait_until(await database.node.store.now())
            live.stages.clear()
            beside = asyncio.create_task(plan_for_ever(database, name)) if name in SHAPES else None
            with tuned_process():
                await commit(database, rows, seconds)
                await live.wait_until(await database.node.store.now())
            if beside is not None:
                beside.cancel()
                await asyncio.wait([beside])
            emit = live.stages.latency(Milestone.EMIT)
            assert emit is not None, "rows were emitted"
            metrics[f"emit_ms_p99_{name}"] = emit.p99
            print(f"beside {name:<12} emit p50 {emit.p50:.1f}, p99 {emit.p99:.1f} ms", flush=True)
    metrics["emit_ms_p99"] = max(metrics.values())
    return metrics


async def plan_for_ever(database: AsyncDatabase, name: str) -> None:
    session = database.node.session()
    try:
        while True:
            await prepared(session, SHAPES[name](sizes(name)[-1]))
    finally:
        await session.close()


async def commit(database: AsyncDatabase, rows: Iterator[int], seconds: float) -> None:
    began = time.monotonic()
    for place in range(int(seconds * COMMITS_PER_SECOND)):
        await asyncio.sleep(max(0.0, began + place / COMMITS_PER_SECOND - time.monotonic()))
        await database.sql("INSERT INTO shape VALUES ($1, 1, 'a note')", (next(rows),))


Timed = Callable[[psycopg.Connection, int], None]


def _insert(connection: psycopg.Connection, number: int) -> None:
    rows = range(number * 1000, number * 1000 + 1000)
    values = ", ".join(f"({row}, {row % 7}, {row}.25, 'row {row}')" for row in rows)
    connection.execute(f"INSERT INTO orm (id, a, b, note) VALUES {values}".encode())


def _delete(connection: psycopg.Connection, number: int) -> None:
    keys = ", ".join(map(str, range(number * 1000, number * 1000 + 1000)))
    connection.execute(f"DELETE FROM orm WHERE id IN ({keys})".encode())


def _any(connection: psycopg.Connection, number: int) -> None:
    keys = list(range(number, number + 1000))
    found = connection.execute("SELECT id, note FROM orm WHERE id = ANY(%s)", [keys]).fetchall()
    assert len(found) == 1000, found


def _columns(connection: psycopg.Connection, number: int) -> None:
    items = ", ".join(f"a + {place} + {number} AS c{place}" for place in range(30))
    connection.execute(f"SELECT {items} FROM orm WHERE id < 10".encode()).fetchall()


def _join(connection: psycopg.Connection, number: int) -> None:
    text = (
        f"SELECT x.id, y.note, z.a + {number} FROM orm x JOIN orm y ON x.id = y.id "
        "JOIN orm z ON z.id = y.id WHERE x.id < 20 ORDER BY x.id"
    )
    connection.execute(text.encode()).fetchall()


ORM: dict[str, Timed] = {
    "insert_1000": _insert,
    "any_1000": _any,
    "columns_30": _columns,
    "join": _join,
    "in_1000": _delete,  # what the first one inserted
}


def measure_orm(port: int, database: str, rounds: int) -> dict[str, float]:
    """Medians in milliseconds."""
    found: dict[str, float] = {}
    with psycopg.connect(
        host="127.0.0.1", port=port, user="root", dbname=database, autocommit=True
    ) as connection:
        connection.execute(
            "CREATE TABLE orm (id INT8 PRIMARY KEY, a INT8, b DECIMAL(12,2), note TEXT)"
        )
        for name, work in ORM.items():
            taken = []
            for number in range(rounds):
                began = time.perf_counter()
                work(connection, number)
                taken.append((time.perf_counter() - began) * 1000)
            found[name] = median(taken)
    return found


def compare(folder: Path, rounds: int) -> dict[str, float]:
    with tailrace_server(folder) as (_, port):
        ours = measure_orm(port, "defaultdb", rounds)
    metrics = {f"{name}_ms": taken for name, taken in ours.items()}
    if postgres_installed():
        with postgres_server(folder) as port:
            theirs = measure_orm(port, "postgres", rounds)
        for name in ORM:
            metrics[f"{name}_ms_postgres"] = theirs[name]
            metrics[f"{name}_over_postgres"] = ours[name] / theirs[name]
            print(f"{name:<12} {ours[name]:8.2f} ms, there {theirs[name]:8.2f} ms", flush=True)
    return metrics


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="of each statement of an ORM")
    parser.add_argument("--seconds", type=float, default=3.0, help="of commits beside each shape")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailrace-statements-") as name:
        folder = Path(name)
        metrics = compare(folder, arguments.rounds)
        metrics |= asyncio.run(measure_growth(folder / "growth"))
        metrics |= asyncio.run(measure_feed(folder / "feed", arguments.seconds))
    print_outcome("statements", metrics)


if __name__ == "__main__":
    main()
