"""The lake's application: a structured streaming query from a table into files.

Started by the server (`changefeed.sinks.spark`); see `application` for how they talk. The line that
it is told first has the options of the source that are secret or long.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from .application import run_application, watch


def main() -> int:
    arguments = _arguments()
    return run_application(
        partial(_run, arguments),
        master=arguments.master,
        name=arguments.name,
        lock=Path(f"{arguments.checkpoint}.lock"),
    )


def _run(
    arguments: argparse.Namespace,
    session: SparkSession,
    credentials: Mapping[str, str],
    told: threading.Event,
) -> int:
    query = _start(session, arguments, credentials)
    return watch(query, told, only_first=arguments.only_scan == "yes")


def _start(
    session: SparkSession, arguments: argparse.Namespace, credentials: Mapping[str, str]
) -> StreamingQuery:
    rows = (
        session.readStream.format("changefeed")
        .option("url", arguments.url)
        .options(**credentials)
        .option("table", arguments.table)
        .option("start", arguments.start)
        .option("initial_scan", arguments.initial_scan)
        .option("schema_at", arguments.schema_at)
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


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("url", "table", "start", "schema-at"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("master", "format", "path", "checkpoint", "name"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("initial-scan", "only-scan"):
        parser.add_argument(f"--{name}", choices=["yes", "no"], required=True)
    parser.add_argument("--trigger-seconds", type=float, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
