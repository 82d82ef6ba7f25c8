"""Many versions of one key, and the provisional ones.

A *version* is a value at a commit timestamp; the newest of a key sorts first. A *value* is a
header (`version`) and a *body*, which is the writer's bytes; a deletion is a value without a body.
An *intent* is a provisional version of a transaction that has not committed. The *time index*
says which keys were written when.

Everything here is a function of an engine reader: it never waits, never knows who holds an intent
or whether its transaction lives, and promises nothing of durability.

    VERSION    a ~130  ->  header, body          the version of `a` committed at 130
    VERSION    a ~110  ->  header, older body
    TIME_INDEX 110 a   ->  the keys that were written with `a`, where it was not alone
    TIME_INDEX 130 a   ->
    INTENT     b       ->  transaction, 125, sequence, header, body

Spans are bounded by keys, prefixes of keys, or keys with a zero byte appended (just behind a key).
No key is a prefix of another in the same keyspace.
"""

from .garbage import DeadBody, find_garbage, find_tombstones
from .incremental import Changes, changes_between, time_entries
from .intents import (
    Intent,
    decode_intent,
    encode_intent,
    intent_on,
    intents_in,
    intents_on,
    run_of_intents,
)
from .read import (
    newest_each,
    newest_version,
    pausing_scan_at,
    read_at,
    scan_at,
    version_bounds,
)
from .slices import SLICE_BYTES, SLICE_ROWS, take_slice
from .time_index import find_outdated, index_entries, keyspaces_in
from .version import (
    LIVE,
    OMIT_FROM_FEEDS,
    TOMBSTONE,
    Header,
    body_at,
    body_of,
    encode_value,
    header_of,
)

__all__ = [
    "LIVE",
    "OMIT_FROM_FEEDS",
    "SLICE_BYTES",
    "SLICE_ROWS",
    "TOMBSTONE",
    "Changes",
    "DeadBody",
    "Header",
    "Intent",
    "body_at",
    "body_of",
    "changes_between",
    "decode_intent",
    "encode_intent",
    "encode_value",
    "find_garbage",
    "find_outdated",
    "find_tombstones",
    "header_of",
    "index_entries",
    "intent_on",
    "intents_in",
    "intents_on",
    "keyspaces_in",
    "newest_each",
    "newest_version",
    "pausing_scan_at",
    "read_at",
    "run_of_intents",
    "scan_at",
    "take_slice",
    "time_entries",
    "version_bounds",
]
