"""Exports: a table as of a timestamp, or its versions in an interval, for readers outside.

A reader asks for the spans of a table, and reads each as a stream of Arrow batches, as fast as it
likes: what it has not read costs a slice of rows and no more. Each batch bears a *mark* from which
the stream can be taken up again. A reader that comes back again and again (a streaming query) holds
a protected timestamp, and learns up to where the table is resolved under one schema.

Promises: an export says what the store held at its timestamps, or fails; the garbage-collection
threshold is checked before it and after it. Never knows how it is carried (HTTP, Spark).
"""

from .position import NextBatch, Positions, PositionUnknown, TableAltered
from .row_filter import Comparison, FilterRefused, RowFilter
from .spans import cut_table
from .table_export import (
    ExportBatch,
    MarkUnreadable,
    export_snapshot,
    export_versions,
    stamped_schema,
    version_schema,
)

__all__ = [
    "Comparison",
    "ExportBatch",
    "FilterRefused",
    "MarkUnreadable",
    "NextBatch",
    "PositionUnknown",
    "Positions",
    "RowFilter",
    "TableAltered",
    "cut_table",
    "export_snapshot",
    "export_versions",
    "stamped_schema",
    "version_schema",
]
