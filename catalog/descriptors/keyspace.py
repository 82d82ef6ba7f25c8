"""The part of a descriptor that makes a table a raw keyspace: lifetime of values, main or replica.

CREATE KEYSPACE sessions WITH (ttl = '1h')

Keyspace(ttl_seconds=3600), of a table (key BYTES PRIMARY KEY, value BYTES, expires_at INT8)

That is the relation as which feeds, their sinks and exports see it. Its rows are the entries of
`kvlayer.raw`, which no statement writes but the calls `raw_put`, `raw_delete` and their like.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...kvlayer.raw import TTL_SECONDS_MAX
from ..values.errors import SQLError
from ..values.interval_text import read_interval

_MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyspace:
    """`ttl_seconds` is the time to live of a value that is put without one; None: for ever.

    One that was made as a `replica` takes its entries from another store, until it is promoted:
    whether it was, its store says (`kvlayer.replication.replica`).
    """

    ttl_seconds: int | None = None
    replica: bool = False


def whole_seconds(text: str | None, position: int | None = None) -> int:
    """A time to live. Raises SQLError 22023 where it is none, or out of range."""
    try:
        seconds = read_interval(text or "").length / _MICROSECONDS
    except SQLError as error:
        raise SQLError("22023", f"ttl: {error.message}", position=position) from error
    if not 1 <= seconds <= TTL_SECONDS_MAX or seconds != int(seconds):
        raise SQLError(
            "22023",
            f"ttl {text!r} is out of range",
            hint=f"A time to live is whole seconds, from 1 to {TTL_SECONDS_MAX}: '90s', '1h'.",
            position=position,
        )
    return int(seconds)
