"""PostgreSQL's JDBC driver through Spark, as a program of its own: a JVM keeps its class path.

    python -m tests.system.jdbc_program PORT

Reads `rides` in partitions and with a predicate, writes what it read into `rides_back`, asks JDBC's
DatabaseMetaData what a tool with a tree of tables asks, and prints all of it as one line of JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

DRIVER = "/usr/share/java/postgresql.jar"


def main() -> None:
    url = f"jdbc:postgresql://127.0.0.1:{sys.argv[1]}/defaultdb"
    options = {"user": "root", "driver": "org.postgresql.Driver"}
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.extraClassPath", DRIVER)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    rides = spark.read.jdbc(
        url, "rides", column="id", lowerBound=0, upperBound=1000, numPartitions=4,
        properties=options,
    )  # fmt: skip
    late = rides.where("delay > 5 AND carrier = 'UA'").select("id")
    plan = late._jdf.queryExecution().executedPlan().toString()
    rides.write.jdbc(url, "rides_back", mode="append", properties=options)
    print(
        json.dumps(
            {
                "schema": dict(rides.dtypes),
                "partitions": rides.rdd.getNumPartitions(),
                "count": rides.count(),
                "late": sorted(row.id for row in late.collect()),
                "pushed": "GreaterThan(delay" in plan and "EqualTo(carrier,UA)" in plan,
                **_metadata(spark, url),
            }
        )
    )
    spark.stop()


def _metadata(spark: SparkSession, url: str) -> dict[str, Any]:
    jvm: Any = spark._jvm
    connection = jvm.java.sql.DriverManager.getConnection(url, "root", "")
    about = connection.getMetaData()
    found = {
        "product": about.getDatabaseProductName(),
        "schemas": _column(about.getSchemas(), "TABLE_SCHEM"),
        "tables": _column(about.getTables(None, "public", "ride%", None), "TABLE_NAME"),
        "columns": _column(about.getColumns(None, "public", "rides", None), "COLUMN_NAME"),
        "imported": _column(about.getImportedKeys(None, "public", "rides"), "PKTABLE_NAME"),
    }
    connection.close()
    return found


def _column(rows: Any, name: str) -> list[str]:
    found = []
    while rows.next():
        found.append(rows.getString(name))
    rows.close()
    return found


if __name__ == "__main__":
    main()
