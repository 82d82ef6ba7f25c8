"""A Delta table that holds every change of a table once, or its rows (`mirror_table`), written by
delta-rs, without Java.

The package `deltalake` is an extra: `pip install tailrace[delta]`. A node without it refuses such
feeds, and says so.
"""

from .kind import DeltaKind
from .location import SCHEME

__all__ = ["SCHEME", "DeltaKind"]
