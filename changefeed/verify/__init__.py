"""Verification: whether a mirror holds what its source holds, while the feed runs.

Both sides are read as of one timestamp, the mirror's resolved one: the source by a snapshot of the
store, the mirror by a transaction of DuckDB. Key range by key range both have a *fingerprint*, the
number of rows and the sum of their hashes; where those differ, the range is compared row by row.

    range          source        mirror
    up to 50000    50000, 8f3…   50000, 8f3…
    up to 100000   50000, 1c4…   49999, e02…     -> 73112 is missing

The source of a CDC query's mirror is what the query shows of the table's rows. A log of changes is
compared with the history of its table, as far as that is not garbage-collected.

A *repair* sends keys that differ again, as they are now, through the feed that runs, and changes
that a log lacks with the timestamps that they had.
"""

from .feed_verification import FeedVerification, Verified

__all__ = ["FeedVerification", "Verified"]
