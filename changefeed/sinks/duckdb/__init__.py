"""The DuckDB sink: tables of the store, mirrored row by row into DuckDB files.

A *mirror file* is a DuckDB database under one of the node's mirror roots; this process holds it
while a feed writes it or somebody reads it. A *mirror table* shows what its source table holds: a
view of the table's name over a base table of ours. Rows, tombstones and the feed's progress commit
together, so what a crash leaves is the state after some flush, and each change is applied once.
Either rows are shown as they come, or the tables move together from one resolved timestamp to the
next.

Promises: the newer commit timestamp wins, a replay changes nothing, a deleted row does not come
back; a smaller epoch is fenced off; one queue of writers a file; readers see one commit and can
neither write nor look outside the file.

Never knows: where changes come from, how their schema was proven, what a job is.
"""

from .files import DuckDBFiles
from .kind import DuckDBKind
from .ownership import MirrorSources
from .reading.reader import MirrorReader
from .sink import DuckDBSink

__all__ = ["DuckDBFiles", "DuckDBKind", "DuckDBSink", "MirrorReader", "MirrorSources"]
