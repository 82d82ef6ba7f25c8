"""Readers of lakes that share no code with the sinks, each in an interpreter of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.system.programs import (
    DELTA_LIBRARIES,
    DUCKDB_EXTENSIONS,
    SPARK_OF_DELTA,
    java_libraries,
    python_with,
)

Rows = list[list[Any]]

PATIENCE_SECONDS = 300

BY_DUCKDB = """
import duckdb, glob, json, os, sys
table, shown, *extensions = sys.argv[1:]
folder = os.path.dirname(os.path.dirname(duckdb.__file__))
client = duckdb.connect()
for extension in extensions:
    [path] = glob.glob(f"{folder}/duckdb_ext/extensions/*/*/{extension}.duckdb_extension")
    client.load_extension(path)
print(json.dumps(client.execute(f"SELECT {shown} FROM {table} ORDER BY ALL").fetchall()))
"""

BY_SPARK = """
import json, sys
from pyspark.sql import SparkSession
path, shown, jars = sys.argv[1:]
delta = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
session = (
    SparkSession.builder.master("local[1]")
    .config("spark.jars", jars)
    .config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", delta)
    .config("spark.databricks.delta.snapshotPartitions", "1")
    .getOrCreate()
)
found = session.read.format("delta").load(path).selectExpr(*json.loads(shown)).collect()
print(json.dumps(sorted([*row] for row in found)))
"""


def by_duckdb(extensions: Sequence[str], table: str, shown: Sequence[str]) -> Rows:
    """The rows of a table function of these extensions, in order."""
    python = python_with("duckdb-lakes", *DUCKDB_EXTENSIONS)
    return _told([str(python), "-c", BY_DUCKDB, table, ", ".join(shown), *extensions])


def by_spark(table: Path, shown: Sequence[str]) -> Rows:
    """The rows of a Delta table by Spark with Delta's own libraries, in order."""
    python = python_with("spark", SPARK_OF_DELTA)
    jars = ",".join(map(str, java_libraries(*DELTA_LIBRARIES)))
    return _told([str(python), "-c", BY_SPARK, str(table), json.dumps(shown), jars])


def _told(command: Sequence[str]) -> Rows:
    """The rows that a program prints on its last line."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    rows: Rows = json.loads(done.stdout.splitlines()[-1])
    return rows
