"""File descriptors: how many the process has, what the store keeps, and what is left for doors.

Each connection holds one, and so does each file of the store. Were connections to take them all,
the store could not open its next file; so the soft limit is raised to the hard one, a part is the
store's, and the doors' bounds are cut to fit into the rest.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass

from .admission import Bounds
from .refusal import NodeRefused

STORE_DESCRIPTORS = 768
"""The engine's open files (`RocksEngine` has 256 at most), segments, mirrors with their WALs,
pipes to children, connections of nodes (100), and connections that are accepted and not yet
counted (`ACCEPTED_AT_ONCE` for each door)."""

ACCEPTED_AT_ONCE = 128
"""The loop accepts so many connections of a listener before it looks at any."""

LIMIT_WANTED = 65_536
"""More is of no use; and some programs that are started as children walk over all of them."""

HTTP_BOUNDS = Bounds(known=1000, unknown=500, unknown_per_address=100, kept_for_admins=20)
POSTGRES_BOUNDS = Bounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorBounds:
    """The bounds of a node's doors."""

    postgres: Bounds = POSTGRES_BOUNDS
    http: Bounds = HTTP_BOUNDS


def raise_limit() -> int:
    """Raises the soft limit of open files as far as it may be. Returns what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = LIMIT_WANTED if hard == resource.RLIM_INFINITY else min(hard, LIMIT_WANTED)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return LIMIT_WANTED if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most


def door_bounds(limit: int) -> DoorBounds:
    """The share of `limit` descriptors that the doors may take. Raises NodeRefused where that is
    nothing."""
    left = limit - STORE_DESCRIPTORS
    wanted = POSTGRES_BOUNDS.descriptors + HTTP_BOUNDS.descriptors
    if left >= wanted:
        return DoorBounds()
    share = left / wanted
    if share < 0.03:
        raise NodeRefused(
            f"the process may open {limit} files, and the store needs {STORE_DESCRIPTORS} of them: "
            "raise the limit (ulimit -n 8192)"
        )
    return DoorBounds(postgres=_cut(POSTGRES_BOUNDS, share), http=_cut(HTTP_BOUNDS, share))


def _cut(bounds: Bounds, share: float) -> Bounds:
    return Bounds(
        known=int(bounds.known * share),
        unknown=int(bounds.unknown * share),
        unknown_per_address=max(1, int(bounds.unknown_per_address * share)),
        kept_for_admins=max(1, int(bounds.kept_for_admins * share)),
    )
