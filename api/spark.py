"""The door for those who have a Spark session. PySpark is imported only when it is called."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register_spark(session: SparkSession) -> None:
    """Registers the data source `changefeed` with a session; see `docs/spark.md`.

    Its code travels with the queries: Spark's workers need PySpark and pyarrow, and not Tailrace.
    Raises ImportError where PySpark is not installed.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise ImportError("PySpark is not installed: pip install 'tailrace[spark]'")
    from ..changefeed.spark import register

    register(session)
