"""The lake's application: a structured streaming query from a table into files.

Started by the server (`changefeed.sinks.spark`). It prints `{"resolved": …, "rows": …}` for each
batch that is in the lake, and ends when its standard input does. Exit codes: 0 it was told to end,
or has done its work; 3 the table was altered, so start it again; 1 anything else.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from .source import register

SCHEMA_CHANGED = 3
LOOK_SECONDS = 0.1


def main() -> int:
    arguments = _arguments()
    session = (
        SparkSession.builder.master(arguments.master)
        .appName(arguments.name)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    try:
        register(session)
        query = _start(session, arguments)
        return _watch(query, only_scan=arguments.only_scan == "yes")
    finally:
        session.stop()


def _start(session: SparkSession, arguments: argparse.Namespace) -> StreamingQuery:
    rows = (
        session.readStream.format("changefeed")
        .option("url", arguments.url)
        .option("table", arguments.table)
        .option("start", arguments.start)
        .option("initial_scan", arguments.initial_scan)
        .load()
    )
    writer = (
        rows.writeStream.format(arguments.format)
        .outputMode("append")
        .option("path", arguments.path)
        .option("checkpointLocation", arguments.checkpoint)
        .trigger(processingTime=f"{round(arguments.trigger_seconds * 1000)} milliseconds")
    )
    return writer.start()


def _watch(query: StreamingQuery, *, only_scan: bool) -> int:
    """Reports batches until the query ends or the server does."""
    told = threading.Event()
    threading.Thread(target=_wait_for_end, args=(told,), daemon=True).start()
    reported = -1
    while query.isActive and not told.is_set():
        reported = _report(query, reported)
        if only_scan and reported >= 0:
            break
        time.sleep(LOOK_SECONDS)
    failure = query.exception()
    _report(query, reported)
    query.stop()
    return 0 if failure is None else _code_of(failure)


def _report(query: StreamingQuery, after: int) -> int:
    """Prints the batches above `after` that are in the lake. The last of them."""
    for progress in query.recentProgress:
        batch = progress["batchId"]
        end = progress["sources"][0]["endOffset"] if progress["sources"] else None
        if batch <= after or end is None:
            continue
        offset = json.loads(end) if isinstance(end, str) else end
        print(json.dumps({"resolved": offset["ts"], "rows": progress["numInputRows"]}), flush=True)
        after = batch
    return after


def _code_of(failure: StreamingQueryException) -> int:
    print(failure, file=sys.stderr, flush=True)
    return SCHEMA_CHANGED if "SchemaChanged" in str(failure) else 1


def _wait_for_end(told: threading.Event) -> None:
    while sys.stdin.buffer.read(1024):
        pass
    told.set()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("url", "table", "start", "master", "format", "path", "checkpoint", "name"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("initial-scan", "only-scan"):
        parser.add_argument(f"--{name}", choices=["yes", "no"], required=True)
    parser.add_argument("--trigger-seconds", type=float, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
