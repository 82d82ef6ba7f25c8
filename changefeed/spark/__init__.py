"""Spark: the source `changefeed`, which reads tables and what changes in them over HTTP.

This code runs in Spark's driver and in its Python workers, next to no store: it knows a server's
address and nothing else of Tailrace, imports pyspark only here, and nothing of the layers below.

    tailrace.register_spark(session)
    session.read.format("changefeed").option("url", "http://…").option("table", "orders").load()

Batch reads are a snapshot at one timestamp, a partition for each span. Streaming reads are the
versions in `(a, b]`, batch by batch; see `stream` for what an offset is.
"""

from .source import ChangefeedSource, register

__all__ = ["ChangefeedSource", "register"]
