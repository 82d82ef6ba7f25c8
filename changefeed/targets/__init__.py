"""Targets: the units of a feed, each with its own keys, schema, start, state and frontier.

A *target* is what a feed follows: a table, or the keys of a raw keyspace. The pipeline, the scans
and the progress of a feed ask the target which keys are its own and which of them are rows, and
never what kind of thing it is. Sinks see its rows under a `TableDescriptor`, and know nothing else
of it.
"""

from .database_tables import DatabaseTables, find_tables
from .keyspace_target import KeyspacePart, KeyspaceTarget
from .states import TargetState
from .table_target import TableTarget
from .target import FeedTarget, Versions

__all__ = [
    "DatabaseTables",
    "FeedTarget",
    "KeyspacePart",
    "KeyspaceTarget",
    "TableTarget",
    "TargetState",
    "Versions",
    "find_tables",
]
