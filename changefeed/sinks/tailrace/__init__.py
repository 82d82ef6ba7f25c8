"""The sink that replicates a raw keyspace into a replica of it, in another store.

Entries keep their timestamps. The replica keeps the feed's progress beside them, so a feed goes on
from where the replica stands; and it numbers the epochs of its source, so what an earlier attempt
still sends is refused.

Never knows: range feeds, jobs, what a replica is made of.
"""

from .follower import ReplicaFollower
from .kind import SCHEME, ReplicaKind, ReplicatingKind
from .location import SPARK_SCHEME, ReplicaTarget, parse_target
from .requests import ReplicaRequests
from .sink import BackupMaker, read_stand, restore_replica, written_note
from .transport import Reply

__all__ = [
    "SCHEME",
    "SPARK_SCHEME",
    "BackupMaker",
    "ReplicaFollower",
    "ReplicaKind",
    "ReplicaRequests",
    "ReplicaTarget",
    "ReplicatingKind",
    "Reply",
    "parse_target",
    "read_stand",
    "restore_replica",
    "written_note",
]
