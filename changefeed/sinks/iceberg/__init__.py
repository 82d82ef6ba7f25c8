"""Iceberg tables that hold every change of a table once, written by pyiceberg, without Java.

The package `pyiceberg` is an extra: `pip install tailrace[iceberg]`. A node without it refuses such
feeds, and says so. The catalog is a SQLite file beside the tables.
"""

from .kind import IcebergKind
from .location import SCHEME

__all__ = ["SCHEME", "IcebergKind"]
