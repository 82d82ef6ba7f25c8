"""Holdups: what waits in a stage of a running feed, and where."""

from __future__ import annotations

from dataclasses import dataclass

from ...kvlayer.span import Span
from .stage_times import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdup:
    """The rows that wait in `stage`, the oldest since `since_ns` (monotonic) with rows of `span`.

    `batches` is how many wait; of the range feed nobody knows how much is still to come, and it
    says 0. `why` is what they wait for.
    """

    stage: Stage
    batches: int
    since_ns: int
    table_id: int
    span: Span
    why: str
