"""The schema gate: no row passes before its schema is proven.

The gate asks the schema feed about a table up to a time, and turns the answer into *segments*: the
descriptor that is canonical in each interval. For an unlock at 120 and a row list up to 150

    events at 120: v3 -> v4      segments: below 120 under v3, from 120 on under v4

`try_prove` never waits: on a table whose locked version is leased it answers at once, and the rows
go on in the step in which they came. `prove` waits for whatever the schema feed waits for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..catalog.descriptor import TableDescriptor
from ..kvlayer.clock import ZERO, Timestamp, format_timestamp
from ..schemafeed.feed import SchemaAnswer, SchemaFeed


@dataclass(frozen=True, slots=True)
class Segment:
    """From `start` (inclusive) on, `descriptor` is canonical, until the next segment's start."""

    start: Timestamp
    descriptor: TableDescriptor


@dataclass(frozen=True, slots=True)
class Proof:
    """What is canonical for a table's rows up to `upto`. Segments ascend from zero."""

    upto: Timestamp
    segments: tuple[Segment, ...]

    def at(self, ts: Timestamp) -> TableDescriptor:
        """The descriptor canonical at `ts`."""
        assert ts <= self.upto, (ts, self.upto)
        for segment in reversed(self.segments):
            if segment.start <= ts:
                return segment.descriptor
        raise AssertionError(f"no segment holds {format_timestamp(ts)}")

    def split(self, timestamps: Sequence[Timestamp]) -> list[tuple[TableDescriptor, Sequence[int]]]:
        """Which of `timestamps` (by index, in order) fall under which descriptor."""
        groups: list[tuple[TableDescriptor, Sequence[int]]] = []
        for number, segment in enumerate(self.segments):
            last = number + 1 == len(self.segments)
            end = Timestamp(self.upto + 1) if last else self.segments[number + 1].start
            inside = [index for index, ts in enumerate(timestamps) if segment.start <= ts < end]
            if inside:
                groups.append((segment.descriptor, inside))
        assert sum(len(inside) for _, inside in groups) == len(timestamps), self
        return groups


class SchemaGate:
    """Proves schemas for one feed's tables, and consumes schema events behind its progress.

    An event stays in the schema feed until the feed's resolved timestamp has passed it: rows that a
    restarted range feed delivers again are split at it again. A restarted job has a schema feed of
    its own, from its durable progress on.
    """

    def __init__(self, schema: SchemaFeed) -> None:
        self._schema = schema
        self._proofs: dict[int, Proof] = {}

    def try_prove(self, table_id: int, upto: Timestamp) -> Proof | None:
        """A proof that reaches `upto`, or None when it takes waiting."""
        proof = self._proofs.get(table_id)
        if proof is not None and upto <= proof.upto:
            return proof
        answer = self._schema.try_peek(table_id, upto)
        return None if answer is None else self._note(table_id, upto, answer)

    async def prove(self, table_id: int, upto: Timestamp) -> Proof:
        """The same, waiting for as long as it takes."""
        answer = await self._schema.peek(table_id, upto)
        return self._note(table_id, upto, answer)

    def consume(self, resolved: Timestamp) -> None:
        """Nothing at or below `resolved` will be delivered again: its events are history.

        In the same step, so that the row behind a lock already finds the lease answering.
        """
        for table_id, proof in list(self._proofs.items()):
            if len(proof.segments) > 1 and proof.segments[1].start <= resolved:
                popped = self._schema.try_pop(table_id, resolved)
                assert popped is not None, "what is resolved was proven"
                # What was proven further ahead still begins with the events popped just now.
                del self._proofs[table_id]

    def _note(self, table_id: int, upto: Timestamp, answer: SchemaAnswer) -> Proof:
        proof = _proof(upto, answer)
        known = self._proofs.get(table_id)
        if known is None or known.upto <= upto:
            self._proofs[table_id] = proof
        return proof


def _proof(upto: Timestamp, answer: SchemaAnswer) -> Proof:
    # Below the first event, its `before` holds: the events from the feed's flushed progress on are
    # all here, and nothing older is decoded.
    events = answer.events
    first = events[0].before if events else answer.canonical
    later = [Segment(event.timestamp, event.after) for event in events]
    return Proof(upto, (Segment(ZERO, first), *later))
