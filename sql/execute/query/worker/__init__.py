"""Queries in a process of their own: the *query worker*, where functions written in Python run.

    server                                              query worker
    PlacedAnalytics   take, begin, next, end  ──▶       QueryHost: Analytics

DuckDB computes without the interpreter's lock: most queries run in threads of the server, and keep
its event loop waiting no more than any other process would. Functions of Python need the lock, for
documents, and of texts that are read as other types are. A query that calls one for many
rows is computed here, over tables that are sent as Arrow, and its result comes back in batches.

The worker is started by the first such query, and holds nothing between two of them: when it dies,
the queries that it was computing fail, and the next one starts another.

Never knows: sessions, tables of the store, rights. A query comes as DuckDB's SQL.
"""

from .placed import PlacedAnalytics

__all__ = ["PlacedAnalytics"]
