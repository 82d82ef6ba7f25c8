"""Waiting until no lease on an older version of a descriptor is left."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import ZERO, Timestamp
from ..descriptor_store import decode_stored, descriptor_key
from .errors import DescriptorMissing, LeaseHolder, LeaseWaitTimeout
from .rows import SESSIONS, LeaseRow, SessionRow, leases_of

POLL_SECONDS_MIN = 0.002
POLL_SECONDS_MAX = 0.1
"""Leases are let go within milliseconds of a notice, or when something long ends."""


@dataclass(frozen=True, slots=True)
class OlderLeases:
    """The newest version of a descriptor, and the live leases on older ones."""

    version: int
    rows: tuple[tuple[LeaseRow, SessionRow], ...]


async def wait_for_one_version(store: StoreAccess, descriptor_id: int, *, timeout: float) -> int:
    """Returns the newest version once no live lease on an older one is left.

    Raises LeaseWaitTimeout, which names the holders. It may be cancelled.
    """
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + timeout
    pause = POLL_SECONDS_MIN
    while True:
        older = await older_leases(store, descriptor_id)
        if not older.rows:
            return older.version
        if loop.time() >= give_up_at:
            holders = [await _holder(store, *row) for row in older.rows]
            raise LeaseWaitTimeout(descriptor_id, older.version, timeout, holders)
        await asyncio.sleep(min(pause, max(give_up_at - loop.time(), 0.0)))
        pause = min(2 * pause, POLL_SECONDS_MAX)


async def older_leases(store: StoreAccess, descriptor_id: int) -> OlderLeases:
    """Reads descriptor, leases and sessions as of one timestamp, and counts by that timestamp.

    So nobody is taken for alive from memory: a session that is not there now is dead.
    """
    transaction = store.begin(read_only=True)
    await transaction.started()
    at = transaction.read_timestamp
    key = descriptor_key(descriptor_id)
    body = await transaction.get(key)
    if body is None:
        raise DescriptorMissing(descriptor_id)
    newest = decode_stored(key, body, ZERO).version
    leases = [LeaseRow.decode(*row) for row in await transaction.scan(leases_of(descriptor_id))]
    sessions = [SessionRow.decode(*row) for row in await transaction.scan(SESSIONS)]
    await transaction.commit()
    alive = {row.session_id: row for row in sessions if row.alive_at(at)}
    rows = [
        (lease, alive[lease.session_id])
        for lease in leases
        if lease.version < newest and at < lease.expiration and lease.session_id in alive
    ]
    return OlderLeases(newest, tuple(rows))


async def _holder(store: StoreAccess, lease: LeaseRow, session: SessionRow) -> LeaseHolder:
    return LeaseHolder(
        version=lease.version,
        node_id=lease.node_id,
        session_id=lease.session_id,
        since=await _held_since(store, lease),
        session_expiration=session.expiration,
    )


async def _held_since(store: StoreAccess, lease: LeaseRow) -> Timestamp:
    """When the row was written; ZERO if it went away meanwhile."""
    found = await store.snapshot(await store.now()).get_with_timestamp(lease.key)
    return ZERO if found is None else found[1]
