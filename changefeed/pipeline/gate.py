"""The schema gate: no row passes before its schema is proven.

The gate asks the schema feed about a table up to a time, and turns the answers into *segments*: the
descriptor that is canonical in each interval. For an unlock at 120 and a row list up to 150

    events at 120: v3 -> v4      segments: below 120 under v3, from 120 on under v4

`try_prove` never waits: on a table whose locked version is leased it answers at once, and the rows
go on in the step in which they came. `prove` waits for whatever the schema feed waits for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...catalog.descriptors.descriptor import TableDescriptor
from ...kvlayer.clock import ZERO, Timestamp, format_timestamp
from ...schemafeed.feed import SchemaAnswer, SchemaFeed


@dataclass(frozen=True, slots=True)
class Segment:
    """From `start` (inclusive) on, `descriptor` is canonical, until the next segment's start."""

    start: Timestamp
    descriptor: TableDescriptor


@dataclass(frozen=True, slots=True)
class Proof:
    """The canonical versions of a table for rows up to `upto`. Segments ascend from zero."""

    upto: Timestamp
    segments: tuple[Segment, ...]

    def at(self, ts: Timestamp) -> TableDescriptor:
        """The descriptor canonical at `ts`."""
        assert ts <= self.upto, (ts, self.upto)
        for segment in reversed(self.segments):
            if segment.start <= ts:
                return segment.descriptor
        raise AssertionError(f"no segment holds {format_timestamp(ts)}")

    def before(self, ts: Timestamp) -> TableDescriptor:
        """The descriptor under which a row that was replaced at `ts` is read.

        A version that a column's drop at T replaced still has the column: it is read as of just
        before `ts`, not as of `ts`.
        """
        return self.at(Timestamp(ts - 1))

    def after(self, descriptor: TableDescriptor) -> Segment | None:
        """The segment that follows `descriptor`'s; None where that is the last."""
        for segment in self.segments:
            if segment.descriptor.version > descriptor.version:
                return segment
        return None

    def split(self, timestamps: Sequence[Timestamp]) -> list[tuple[TableDescriptor, Sequence[int]]]:
        """Divides `timestamps` (by index, in order) among the descriptors that are canonical for
        them."""
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
    """Proves schemas for one feed's tables.

    Events are popped as soon as they are proven, so that a locked version behind them answers at
    once again. What they said stays here, as segments, until the table's progress has passed it:
    rows that a restarted range feed delivers again are split at it again. A restarted
    job has a gate and a schema feed of its own, from its durable progress on.
    """

    def __init__(self, schema: SchemaFeed) -> None:
        self._schema = schema
        self._proofs: dict[int, Proof] = {}
        self._divided: set[int] = set()
        """The tables with more than one segment: `consume` looks at no other."""

    def try_prove(self, table_id: int, upto: Timestamp) -> Proof | None:
        """A proof that reaches `upto`, or None when it takes waiting. Raises TableDropped."""
        proof = self._proofs.get(table_id)
        if proof is not None and upto <= proof.upto:
            return proof
        answer = self._schema.try_pop(table_id, upto)
        return None if answer is None else self._note(table_id, upto, answer)

    async def prove(self, table_id: int, upto: Timestamp) -> Proof:
        """The same, waiting for as long as it takes."""
        while (proof := self.try_prove(table_id, upto)) is None:
            await self._schema.peek(table_id, upto)
        return proof

    def consume(self, table_id: int, upto: Timestamp) -> None:
        """No row of the table at or below `upto` will be delivered again: what held there is
        history. A table that is behind the feed has an `upto` of its own."""
        if table_id not in self._divided:
            return
        proof = self._proofs[table_id]
        left = list(proof.segments)
        while len(left) > 1 and left[1].start <= upto:
            del left[0]
        if len(left) < len(proof.segments):
            left[0] = Segment(ZERO, left[0].descriptor)
            self._keep(table_id, Proof(proof.upto, tuple(left)))

    def _note(self, table_id: int, upto: Timestamp, answer: SchemaAnswer) -> Proof:
        """Adds the answer to the proof that was known."""
        known = self._proofs.get(table_id)
        if known is None:
            first = answer.events[0].before if answer.events else answer.canonical
            segments: tuple[Segment, ...] = (Segment(ZERO, first),)
        else:
            segments = known.segments
        segments += tuple(Segment(event.timestamp, event.after) for event in answer.events)
        if answer.canonical.version > segments[-1].descriptor.version:
            # Lock changes that nobody was told of, because a lease covers them.
            segments += (Segment(answer.since, answer.canonical),)
        return self._keep(table_id, Proof(upto, segments))

    def _keep(self, table_id: int, proof: Proof) -> Proof:
        self._proofs[table_id] = proof
        if len(proof.segments) > 1:
            self._divided.add(table_id)
        else:
            self._divided.discard(table_id)
        return proof
