"""Tailrace: a transactional SQL store whose tables have changefeeds.

    import tailrace

    with tailrace.open("data") as db:
        db.sql("CREATE TABLE orders (id INT8 PRIMARY KEY, note STRING)")

`open` is for any program, `aopen` for those that run on asyncio. The packages below are the house;
see ARCHITECTURE.md. `register_spark` makes tables readable by a Spark session.
"""

from .api.embedded import AsyncDatabase, AsyncMirror, Database, Mirror, aopen, open
from .api.node import NodeOptions
from .api.refusal import NodeRefused
from .api.spark import register_spark
from .catalog.errors import SQLError
from .sql import LoadMode, LoadReport, Result

__all__ = [
    "AsyncDatabase",
    "AsyncMirror",
    "Database",
    "LoadMode",
    "LoadReport",
    "Mirror",
    "NodeOptions",
    "NodeRefused",
    "Result",
    "SQLError",
    "aopen",
    "open",
    "register_spark",
]
