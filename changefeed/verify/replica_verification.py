"""Compares a keyspace with its replica in another store, at a timestamp that both have resolved.

    main       a=1  b=2       d=4
    replica    a=1       c=3  d=5        b is missing, c is not in the main, d differs

Both sides are read in key order, a page each, so memory is bounded whatever their size.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.values.errors import SQLError
from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import Timestamp
from ...kvlayer.keys import encode_bytes, index_prefix
from ...kvlayer.raw import RawKeyspace
from ..sinks.tailrace import ReplicaRequests
from ..targets import KeyspacePart
from .difference import DIFFERENCES_MAX, Difference

Pairs = AsyncGenerator[tuple[bytes, bytes], None]


async def verify_replica(
    store: StoreAccess, table: TableDescriptor, part: KeyspacePart, requests: ReplicaRequests
) -> list[Difference]:
    """The keys whose values differ as of what the replica has resolved; of very many the first.

    Raises SQLError where it has resolved nothing; SinkError, SinkRefused and KVError.
    """
    resolved = (await requests.look()).resolved
    if not resolved:
        raise SQLError(
            "55000",
            "the replica has not resolved anything yet",
            hint="VERIFY REPLICATION waits for it where it does not say AT RESOLVED.",
        )
    at = Timestamp(resolved)
    found: list[Difference] = []
    prefix = index_prefix(table.id, table.primary_index_id)
    ours, theirs = _ours(store, table, part, at), _theirs(requests, part, at)
    async with aclosing(ours), aclosing(theirs):
        left, right = await anext(ours, None), await anext(theirs, None)
        while (left or right) and len(found) < DIFFERENCES_MAX:
            key, what = b"", ""
            if right is None or (left is not None and left[0] < right[0]):
                assert left is not None
                key, what = left[0], "missing in the sink"
                left = await anext(ours, None)
            elif left is None or right[0] < left[0]:
                key, what = right[0], "not in the keyspace"
                right = await anext(theirs, None)
            else:
                if left[1] != right[1]:
                    key, what = left[0], "differs in value"
                left, right = await anext(ours, None), await anext(theirs, None)
            if what:
                found.append(Difference(table, prefix + encode_bytes(key), what))
    return found


async def _ours(
    store: StoreAccess, table: TableDescriptor, part: KeyspacePart, at: Timestamp
) -> Pairs:
    async with aclosing(RawKeyspace(store, table.id).scan(part.start, part.end, at=at)) as slices:
        async for pairs in slices:
            for pair in pairs:
                yield pair


async def _theirs(requests: ReplicaRequests, part: KeyspacePart, at: Timestamp) -> Pairs:
    start: bytes | None = part.start
    while start is not None:
        page = await requests.page(start, part.end, at)
        for pair in page.pairs:
            yield pair.key, pair.value
        start = page.next
