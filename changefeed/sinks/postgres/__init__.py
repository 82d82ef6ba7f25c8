"""The sink that mirrors tables into a database of PostgreSQL.

Each table is a table there, with the names and types of the source's columns, kept up to date by
upsert and delete. Rows, tombstones and the feed's progress are written in one transaction, so a
change is applied once, whatever crashes.

Never knows: range feeds, who proved a schema, jobs.
"""

from .kind import PostgresKind
from .location import SCHEMES

__all__ = ["SCHEMES", "PostgresKind"]
