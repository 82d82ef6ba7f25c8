"""Runs every benchmark of docs/benchmarks.md, one process each: none warms another's caches."""

from __future__ import annotations

import subprocess
import sys

BENCHMARKS = (
    "latency",
    "bulk",
    "row_codec",
    "json_encode",
    "kv",
    "schema_change",
    "schema_backfill",
    "catchup_scan",
    "resolved_lag",
    "intent_queue",
    "feed_fanout",
    "many_feeds",
    "pgwire",
    "door",
    "peer_logical_replication",
    "protocol_steps",
    "analytics",
    "statements",
    "loop_stalls",
    "heavy_queries",
    "pgbench",
    "ycsb",
    "leases",
    "jobs",
    "feeds",
    "sinks",
    "raw",
    "relaxed",
    "cli",
    "spark",
)


def main() -> int:
    failed = []
    for name in BENCHMARKS:
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
