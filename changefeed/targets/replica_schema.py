"""The schema feed of a replica, whose entries are older than the keyspace that holds them.

    CREATE KEYSPACE ks WITH (role = 'replica')      at 900, in this store
    k@120, k@140                                    written in the main, ingested here

A keyspace has one schema for as long as there is one. So what is canonical at 120 is what is
canonical now; and the only event there can be, the drop, ends the feed when it is heard of.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...catalog.descriptors.descriptor import TableDescriptor
from ...kvlayer.access import ClockReading
from ...kvlayer.clock import ZERO, Timestamp
from ...schemafeed.feed import SchemaAnswer, SchemaFeed


class ReplicaSchema:
    """Answers for any timestamp what a feed over descriptors says of the present.

    Implements `SchemaFeed`. Rights that are granted make a new version of the descriptor, which
    equals the one before in all that a row is read by: there are no events.
    """

    def __init__(self, descriptors: SchemaFeed, clock: ClockReading) -> None:
        self._descriptors = descriptors
        self._clock = clock
        self._wanted = ZERO
        """What was the present when an answer was not there at once: it is waited for, and not the
        present of the next try, which nobody would ever catch up with."""

    async def start(self, table_ids: Iterable[int], at: Timestamp) -> None:
        await self._descriptors.start(table_ids, self._present(at))

    def try_peek(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer | None:
        present = self._present(at_or_before)
        answer = self._descriptors.try_pop(table_id, present)
        if answer is None:
            self._wanted = present
            return None
        self._wanted = ZERO
        return SchemaAnswer((), answer.canonical, ZERO)

    async def peek(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer:
        present = self._present(at_or_before)
        answer = await self._descriptors.peek(table_id, present)
        self._wanted = present
        return SchemaAnswer((), answer.canonical, ZERO)

    def try_pop(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer | None:
        return self.try_peek(table_id, at_or_before)

    async def pop(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer:
        return await self.peek(table_id, at_or_before)

    def canonical_at(self, table_id: int, at: Timestamp) -> TableDescriptor:
        return self._descriptors.canonical_at(table_id, self._descriptors.frontier(table_id))

    def frontier(self, table_id: int) -> Timestamp:
        return self._descriptors.frontier(table_id)

    async def close(self) -> None:
        await self._descriptors.close()

    def _present(self, at: Timestamp) -> Timestamp:
        return max(at, self._wanted or self._clock.last)
