"""Tailrace: a transactional SQL store whose tables have changefeeds.

    import tailrace

    with tailrace.open("data") as db:
        db.sql("CREATE TABLE orders (id INT8 PRIMARY KEY, note STRING)")

`open` is for any program, `aopen` for those that run on asyncio. The packages below are the house;
see ARCHITECTURE.md. `register_spark` makes tables readable by a Spark session. Every error is an
`Error`.

Names are loaded when they are first asked for: `tailrace --help` needs none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .api.embedded import (
        AsyncDatabase,
        AsyncMirror,
        AsyncSession,
        Database,
        Mirror,
        Session,
        aopen,
        open,
    )
    from .api.node import NodeOptions
    from .api.refusal import NodeRefused
    from .api.result import Result
    from .api.spark import register_spark
    from .catalog.values.errors import SQLError
    from .error import Error
    from .sql import LoadMode, LoadReport

    __version__: str

_HOMES = {
    "AsyncDatabase": "api.embedded",
    "AsyncMirror": "api.embedded",
    "AsyncSession": "api.embedded",
    "Database": "api.embedded",
    "Error": "error",
    "LoadMode": "sql",
    "LoadReport": "sql",
    "Mirror": "api.embedded",
    "NodeOptions": "api.node",
    "NodeRefused": "api.refusal",
    "Result": "api.result",
    "SQLError": "catalog.values.errors",
    "Session": "api.embedded",
    "aopen": "api.embedded",
    "open": "api.embedded",
    "register_spark": "api.spark",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("tailrace")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "AsyncDatabase",
    "AsyncMirror",
    "AsyncSession",
    "Database",
    "Error",
    "LoadMode",
    "LoadReport",
    "Mirror",
    "NodeOptions",
    "NodeRefused",
    "Result",
    "SQLError",
    "Session",
    "__version__",
    "aopen",
    "open",
    "register_spark",
]
