"""The application of a replication: a streaming query from a raw keyspace into a replica of it.

Started by the server (`changefeed.sinks.spark`); see `application` for how they talk. The server
has begun an epoch of the replica, and tells the replica what is resolved when a batch is reported.
Here a batch's parts are sent, each by a task of Spark.

The checkpoint of the query is worth nothing beyond its life, and lies in a temporary folder: where
the replication stands is what the replica says.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from collections.abc import Mapping
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from .application import run_application, watch
from .client import ExportClient, TableAddress
from .entry_sender import SENT, EntrySender


def main() -> int:
    arguments = _arguments()
    return run_application(partial(_run, arguments), master=arguments.master, name=arguments.name)


def _run(
    arguments: argparse.Namespace,
    session: SparkSession,
    told_first: Mapping[str, Any],
    told: threading.Event,
) -> int:
    source, target = told_first["source"], told_first["target"]
    sender = EntrySender(**target)
    rows = (
        session.readStream.format("changefeed")
        .options(**source)
        .option("start", arguments.start)
        .option("initial_scan", arguments.initial_scan)
        .option("own_timestamps", "yes")
        .load()
    )
    with tempfile.TemporaryDirectory(prefix="tailrace-replication-") as checkpoint:
        writer = (
            rows.writeStream.foreachBatch(partial(_send, sender, arguments.workers))
            .option("checkpointLocation", checkpoint)
            .trigger(processingTime=f"{round(arguments.trigger_seconds * 1000)} milliseconds")
        )
        query = writer.start()
        code = watch(query, told)
        progress = query.lastProgress
        if progress is not None:
            _release(source, progress["sources"][0]["endOffset"])
        return code


def _send(sender: EntrySender, workers: int, batch: DataFrame, batch_id: int) -> None:
    """Returns when the replica has acknowledged the batch; each part of it is sent by a task."""
    parts = batch.coalesce(workers) if workers else batch
    parts.mapInArrow(sender.send, f"{SENT} BIGINT").collect()


def _release(source: Mapping[str, str], offset: object) -> None:
    """The position that the query had: another query has another one."""
    found = json.loads(offset) if isinstance(offset, str) else offset
    if isinstance(found, dict):
        address = TableAddress.of(
            source["url"],
            source["table"],
            token=source.get("token"),
            certificate=source.get("certificate"),
        )
        ExportClient(address).release(found["uuid"])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("start", "master", "name"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--initial-scan", choices=["yes", "no"], required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--trigger-seconds", type=float, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
