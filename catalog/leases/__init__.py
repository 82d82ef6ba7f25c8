"""Leases: a node's right to use a version of a descriptor, until a timestamp.

What lives here: a node's *liveness session*, which its leases and job claims stand on and fall
with; the *lease manager*, which acquires versions, hears of new ones and lets old ones go; and the
wait until nobody holds an older version. A lease is a row of `system.lease` under a session.

It promises that a claim is never wider than what the store has acknowledged (see `held_versions`
for *coverage*), that version `v+2` of a descriptor is not published while a node may still claim
`v`, and that whoever observes a table hears of every state it comes to, if not of every version.

It must never know what a lease is used for: statements, feeds, locks.
"""

from ..store.lease_rows import LeaseRow, SessionRow
from .errors import (
    DescriptorDropped,
    DescriptorMissing,
    DescriptorUnavailable,
    LeaseBeyondSession,
    LeaseHolder,
    LeaseWaitTimeout,
)
from .incarnation import Incarnation
from .lease import Lease
from .liveness import LivenessSession
from .manager import LeaseManager

__all__ = [
    "DescriptorDropped",
    "DescriptorMissing",
    "DescriptorUnavailable",
    "Incarnation",
    "Lease",
    "LeaseBeyondSession",
    "LeaseHolder",
    "LeaseManager",
    "LeaseRow",
    "LeaseWaitTimeout",
    "LivenessSession",
    "SessionRow",
]
