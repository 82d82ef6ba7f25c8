"""Faults of a relaxed log, or of the store that it speaks of."""

from __future__ import annotations


class RelaxedLogError(Exception):
    """The root of this room's errors."""


class BatchLimit(RelaxedLogError):
    """A batch holds more events than ordinals can number."""


class QuiescenceOverdue(RelaxedLogError):
    """New batches wait for quiescence, and batches that have not ended keep it away."""


class LateCount(RelaxedLogError):
    """Events were counted into an epoch that is closed, or by a batch that is none of it."""


class SharedStateDamaged(RelaxedLogError):
    """A domain's shared memory holds something else."""


class SlotsTaken(RelaxedLogError):
    """As many processes are attached to a domain as it has slots for."""


class SegmentDamaged(RelaxedLogError):
    """A segment of a log cannot be read, or ends in the middle of a frame."""


class FrameLimit(RelaxedLogError):
    """A batch's events, or a snapshot, are more than a segment keeps at once."""


class ForeignDomain(RelaxedLogError):
    """Lines of another domain were given to a reader of this one."""


class ContradictingLines(RelaxedLogError):
    """Two lines of a log say different things of one event, record or snapshot."""


class TooManyEvents(RelaxedLogError):
    """An epoch has more events than its record counts."""


class SurvivorError(RelaxedLogError):
    """Events of a cell do not leave exactly one value: the store wrote behind the log's back."""


class PendingLimit(RelaxedLogError):
    """More events wait for a quiescence mark than a reader may hold."""
