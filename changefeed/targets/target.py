"""The interface of a target to its feed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ...catalog.descriptors.descriptor import TableDescriptor
from ...kvlayer.clock import Timestamp
from ...kvlayer.span import Span
from ...schemafeed.feed import SchemaFeed


@dataclass(slots=True)
class Versions:
    """Versions of one target's keys, gathered from one or several batches of its range feed.

    `previous[i]` is the value that the version replaced, None where there was none; the list is
    empty in a feed that does not ask for previous values.
    """

    keys: list[bytes] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    timestamps: list[Timestamp] = field(default_factory=list)
    previous: list[bytes | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.keys)

    def pick(self, positions: Sequence[int]) -> Versions:
        """The versions at `positions`, in that order."""
        keys, values, timestamps = self.keys, self.values, self.timestamps
        return Versions(
            [keys[index] for index in positions],
            [values[index] for index in positions],
            [timestamps[index] for index in positions],
            [self.previous[index] for index in positions] if self.previous else [],
        )


class FeedTarget(Protocol):
    """A target: the unit that a feed follows.

    `id` is the target's own for ever, whatever it is called, and is the `id` of its descriptors;
    no two targets of a feed have the same one, and their spans do not overlap.

    A target shows itself as a relation: `descriptor_at` says which columns that has. The keys and
    values of the store need not be those of a table's rows: `select` says which of them are rows,
    and `present` turns these into keys and bodies that `codec_for(descriptor)` decodes.
    """

    @property
    def id(self) -> int: ...

    @property
    def span(self) -> Span:
        """The span of all keys of which its range feed may tell."""
        ...

    def schema_over(self, descriptors: SchemaFeed) -> SchemaFeed:
        """The schema feed of the target, by means of a feed over descriptors, which it may be
        itself."""
        ...

    async def descriptor_at(self, at: Timestamp) -> TableDescriptor:
        """The relation as of `at`. Raises TableUnknown where there was none."""
        ...

    def rows_span(self, descriptor: TableDescriptor) -> Span:
        """The part of `span` in which the rows under `descriptor` lie: what a scan reads."""
        ...

    def select(self, versions: Versions, descriptor: TableDescriptor) -> Versions:
        """The versions that are rows under `descriptor`, as they are in the store."""
        ...

    def present(self, versions: Versions, descriptor: TableDescriptor) -> Versions:
        """The same rows, as `codec_for(descriptor)` decodes them: as many, in the same order. One
        without a body is absent as of its timestamp."""
        ...
