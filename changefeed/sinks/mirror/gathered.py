"""The pending changes and schema events of one mirror table.

Rows and schema events gather in the order in which they came, as *parts*:

    rows under v1 | ADD COLUMN at 100 | rows under v2, late ones of v1 among them, conformed

A flush carries out the parts one after the other, in one transaction with everything else of the
feed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ....catalog.descriptors.descriptor import TableDescriptor
from ....kvlayer.clock import Timestamp
from ....schemafeed.table_events import TableEvent
from ...contract.changes import ChangeBatch
from ..protocol import SinkProgress
from .conform import conform


class Schema(Protocol):
    """A mirror table's columns under one version of its descriptor."""

    descriptor: TableDescriptor


class Pending(Protocol):
    """The changes of one table under one version."""

    def __len__(self) -> int: ...

    def add(self, batch: ChangeBatch) -> None: ...


S = TypeVar("S", bound=Schema)
P = TypeVar("P", bound=Pending)
Q = TypeVar("Q")
"""A statement of the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaStep(Generic[S, Q]):
    """The statements of one schema event for a mirror table.

    `floor` tells that no change from below the event is to be applied any more. `staged_at` is
    there where rows gather in another table from here on.
    """

    before: S
    after: S
    statements: Sequence[Q]
    floor: bool = False
    staged_at: Timestamp | None = None

    @property
    def rekeys(self) -> bool:
        """Whether the same rows have other keys in the store than before."""
        return self.before.descriptor.primary_index_id != self.after.descriptor.primary_index_id


class GatheredParts(Generic[S, P, Q]):
    """The parts of one table. A kind of sink says what is pending, and what shows in a mirror."""

    def __init__(self, schema: S, staged_at: Timestamp | None, floor_version: int) -> None:
        self.schema = schema
        self._pending = self._pending_of(schema)
        self._parts: list[P | SchemaStep[S, Q]] = []
        self._staged_at = staged_at
        self._floor_version = floor_version
        self._version_due = False

    def _pending_of(self, schema: S) -> P:
        """No changes yet, under a version."""
        raise NotImplementedError

    def _same_shape(self, after: TableDescriptor) -> bool:
        """Whether nothing of a change of the table to `after` shows in a mirror."""
        raise NotImplementedError

    @property
    def table_id(self) -> int:
        return self.schema.descriptor.id

    def add(self, batch: ChangeBatch) -> None:
        """Changes of the table, under its version now, an earlier one, or a locked neighbour."""
        descriptor, current = batch.descriptor, self.schema.descriptor
        if descriptor is not current:
            if descriptor.version < self._floor_version:
                return  # its rows are in the table, or of no matter to it
            if not self._same_shape(descriptor):
                assert descriptor.version < current.version, (descriptor, current)
                batch = conform(batch, current)
            elif descriptor.version >= current.version:
                # Also the same version, read anew: the batches to come will have this very object.
                self.schema.descriptor = descriptor
                self._version_due |= descriptor.version > current.version
        self._pending.add(batch)

    def _follow(self, event: TableEvent, step: SchemaStep[S, Q]) -> bool:
        """Adds the step of a schema event; False where nothing of it shows."""
        if self._same_shape(event.after) and not step.statements:
            self.schema.descriptor = event.after
            self._version_due = True
            return False
        self._parts = [*self._gathered(), step]
        self.schema = step.after
        self._pending = self._pending_of(step.after)
        if step.floor:
            self._floor_version = event.after.version
        if step.staged_at is not None:
            self._staged_at = step.staged_at
        return True

    def _gathered(self) -> list[P | SchemaStep[S, Q]]:
        """The parts, with the changes that came last."""
        return [*self._parts, self._pending] if len(self._pending) else self._parts

    def due(self, progress: SinkProgress | None) -> bool:
        """Whether a flush with that progress has anything to do here."""
        return bool(
            len(self._pending) or self._parts or self._version_due or self._complete(progress)
        )

    def _complete(self, progress: SinkProgress | None) -> bool:
        """Whether the rows that gathered unseen are all there."""
        if self._staged_at is None or progress is None:
            return False
        return progress.low_water(self.schema.descriptor.span) >= self._staged_at

    def _clear(self) -> None:
        """A flush has taken what gathered."""
        self._pending = self._pending_of(self.schema)
        self._parts, self._version_due = [], False
