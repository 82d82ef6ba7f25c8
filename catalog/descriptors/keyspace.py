"""The part of a descriptor that makes a table a raw keyspace: lifetime of values, main or replica.

CREATE KEYSPACE sessions WITH (ttl = '1h')

Keyspace(ttl_seconds=3600), of a table (key BYTES PRIMARY KEY, value BYTES, expires_at INT8)

That is the relation as which feeds, their sinks and exports see it. Its rows are the entries of
`kvlayer.raw`, which no statement writes but the calls `raw_put`, `raw_delete` and their like.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyspace:
    """`ttl_seconds` is the time to live of a value that is put without one; None: for ever.

    One that was made as a `replica` takes its entries from another store, until it is promoted:
    whether it was, its store says (`kvlayer.replication.replica`).
    """

    ttl_seconds: int | None = None
    replica: bool = False
