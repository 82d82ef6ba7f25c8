"""The command log: the truth of a store.

A log is a sequence of *entries*, each an index and bytes, kept in *segments* (files of fixed size)
as *groups* (what was written and synced at once). An entry is *durable* when its group's sync has
returned; the *durable index* says how far that is. The log promises that a durable entry is
recovered after any crash, that what is recovered is a prefix of what was appended, and that an
index is never given twice.

Never knows: what an entry means, the engine, ranges, time.
"""

from .command_log import CommandLog, FailureListener
from .errors import LogCorrupt, LogTruncated
from .inspection import entries_on
from .retention import RETAINED_BYTES_MAX, Retention
from .segment import segment_name

__all__ = [
    "RETAINED_BYTES_MAX",
    "CommandLog",
    "FailureListener",
    "LogCorrupt",
    "LogTruncated",
    "Retention",
    "entries_on",
    "segment_name",
]
