"""The streaming reader, asked as Spark asks it."""

from __future__ import annotations

from pyspark.sql.types import LongType, StructField, StructType

from tailrace.changefeed.spark.options import SourceOptions
from tailrace.changefeed.spark.stream import ChangefeedStreamReader
from tests.harness.http_door import HttpDoor


def test_the_first_offset_stays_the_same_while_the_table_changes() -> None:
    """Spark asks for it again before the first batch; a later one would lie above its end."""
    with HttpDoor() as door:
        door.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
        options = SourceOptions.read({"url": str(door.client.base_url).rstrip("/"), "table": "t"})
        reader = ChangefeedStreamReader(options, StructType([StructField("k", LongType())]))
        first = reader.initialOffset()
        door.sql("INSERT INTO t VALUES (1)")
        assert reader.initialOffset() == first
