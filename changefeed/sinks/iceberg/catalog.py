"""The catalog of a folder of Iceberg tables: a SQLite file.

The module imports pyiceberg, which takes a second: it is imported in a lane.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.catalog.sql import SqlCatalog

from .location import IcebergTarget

NAME = "default"
"""The catalog's name, as readers give it."""


@contextmanager
def open_catalog(target: IcebergTarget) -> Iterator[SqlCatalog]:
    """The catalog, which is made where there is none."""
    target.path.mkdir(parents=True, exist_ok=True)
    catalog = SqlCatalog(
        NAME, uri=f"sqlite:///{target.catalog}", warehouse=f"file://{target.path.absolute()}"
    )
    try:
        yield catalog
    finally:
        catalog.close()
