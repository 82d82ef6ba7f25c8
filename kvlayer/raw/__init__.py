"""Raw keyspaces: keys and values without transactions, under the same feed contract as tables.

A *keyspace* is a span of its own. Each operation on a key is atomic and durable when it returns,
and draws one timestamp from the store's clock in the step that writes. So the timestamps of a key
ascend in the order in which its writes reach the disk; different keys are independent, and no
operation is part of anybody's transaction.

    put(b"k", b"1")          r 000068 "k" ~100    "1" 00
    put(b"k", b"2", ttl=9)   r 000068 "k" ~120    "2" <expires at> 01
    delete(b"k")             r 000068 "k" ~140    <expires at> 02

An *entry* (`entry`) is a user's value, the timestamp at which it ends, and flags. A deletion is an
entry too, so that feeds tell of it; garbage collection removes it when its own time is over.

After the RawKV cross-cluster replication RFC of TiKV (rfcs#86), sections 2 to 4.
"""

from .entry import Entry, EntryUnreadable, dead_at, decode_entry, encode_deletion, encode_entry
from .ingest import IngestedEntry, ReplicaKeyspace
from .keyspace import (
    DELETED_TTL,
    KEYSPACE_ID_MAX,
    START_WINDOW,
    TTL_SECONDS_MAX,
    Deleted,
    RawKeyspace,
    Swap,
    check_key,
    keyspace_of,
    keyspace_part,
    keyspace_span,
    raw_key,
    user_key,
)
from .leadership import Leadership, Placement, Placements
from .oracle import OracleTime, OracleWatch

__all__ = [
    "DELETED_TTL",
    "KEYSPACE_ID_MAX",
    "START_WINDOW",
    "TTL_SECONDS_MAX",
    "Deleted",
    "Entry",
    "EntryUnreadable",
    "IngestedEntry",
    "Leadership",
    "OracleTime",
    "OracleWatch",
    "Placement",
    "Placements",
    "RawKeyspace",
    "ReplicaKeyspace",
    "Swap",
    "check_key",
    "dead_at",
    "decode_entry",
    "encode_deletion",
    "encode_entry",
    "keyspace_of",
    "keyspace_part",
    "keyspace_span",
    "raw_key",
    "user_key",
]
