"""A streaming query in a process of its own, to be killed: a table's versions into Parquet files.

    python -m tests.system.spark_stream SETTINGS URL TABLE START FOLDER

SETTINGS is JSON: what the session is configured with. Prints a line for each batch.
"""

from __future__ import annotations

import json
import sys
import time

from pyspark.sql import SparkSession

from tailrace import register_spark


def main() -> None:
    settings, url, table, start, folder = sys.argv[1:]
    builder = SparkSession.builder.appName("stream")
    for key, value in json.loads(settings).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    register_spark(session)
    rows = session.readStream.format("changefeed").option("url", url).option("table", table)
    query = (
        rows.option("start", start)
        .load()
        .writeStream.format("parquet")
        .option("path", f"{folder}/out")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .start()
    )
    reported = -1
    while query.isActive:
        for progress in query.recentProgress:
            if progress["batchId"] > reported:
                reported = progress["batchId"]
                end = progress["sources"][0]["endOffset"]
                offset = json.loads(end) if isinstance(end, str) else end
                print(offset["ts"] if offset else 0, flush=True)
        time.sleep(0.05)
    print(query.exception(), file=sys.stderr)


if __name__ == "__main__":
    main()
