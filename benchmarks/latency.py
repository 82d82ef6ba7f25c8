"""Commit-to-emit and commit-to-DuckDB latency, locked and unlocked, beside DuckDB's own floor.

python -m benchmarks.latency [--rows 2000] [--rate 100] [--workers on]
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from benchmarks.floor import measure_floor
from benchmarks.outcome import print_outcome
from tailrace.api.bench.latency import measure_latency


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000, help="commits on the locked table")
    parser.add_argument("--rate", type=float, default=100.0, help="commits a second")
    parser.add_argument("--polling-rows", type=int, default=500, help="on the unlocked table")
    parser.add_argument("--workers", choices=["on", "off"], help="the setting changefeed.workers")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailrace-latency-") as name:
        folder = Path(name)
        rate = arguments.rate
        floor = asyncio.run(measure_floor(folder, rows=arguments.rows // 2, rate=rate))
        locked = asyncio.run(
            measure_latency(
                folder / "locked",
                rows=arguments.rows,
                rate=rate,
                locked=True,
                workers=arguments.workers,
            )
        )
        polling = asyncio.run(
            measure_latency(
                folder / "polling",
                rows=arguments.polling_rows,
                rate=rate,
                locked=False,
                workers=arguments.workers,
            )
        )
    for passed, found in (*locked.stages.items(), *locked.milestones.items()):
        print(f"{passed.value:<10} p50 {found.p50:8.3f} ms   p99 {found.p99:8.3f} ms")
    print_outcome(
        "latency",
        {
            "emit_ms_p50": locked.emit.p50,
            "emit_ms_p99": locked.emit.p99,
            "sink_ms_p50": locked.sink.p50,
            "sink_ms_p99": locked.sink.p99,
            "floor_sink_ms_p50": floor.p50,
            "floor_sink_ms_p99": floor.p99,
            "polling_emit_ms_p50": polling.emit.p50,
            "polling_over_locked": polling.emit.p50 / locked.emit.p50,
        },
    )


if __name__ == "__main__":
    main()
