"""Mirrors in a process of their own: the *feed worker*, which holds the DuckDB files of a node.

    server                                         feed worker
    WorkerSink      emit, flush, schema events ──▶  MirrorHost: DuckDBSink
    PlacedReader    read, cancelled, limited   ──▶              MirrorReader
    PlacedKind      validate, release, verify  ──▶              DuckDBKind

DuckDB, the decoding of rows and the reduction of changes leave the server's interpreter and its
memory. A batch goes as the store has it, bodies and all, and is decoded where it is written. The
worker asks back what only the server knows: whether a job lives, whether a reader may see a file,
that an idle feed make its progress durable.

One worker holds all files of a node that are placed there, and each file is held by one process.
The worker is started when a file is first placed there. When it dies, whoever waits for it is told
so as of a sink that failed: a feed's next attempt begins where the file says that it stands, in a
worker that was started anew.

Never knows: what stands in a file; `MirrorHost` calls the rest of `sinks.duckdb` as a server does.
"""

from .kind import PlacedKind, PlacedReader
from .mirror_worker import WORKERS, MirrorWorker, start_worker
from .placement import Placement

__all__ = ["WORKERS", "MirrorWorker", "PlacedKind", "PlacedReader", "Placement", "start_worker"]
