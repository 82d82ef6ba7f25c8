"""The kinds of boundary, as progress records them. `boundary` says what they mean."""

from __future__ import annotations

from enum import Enum


class BoundaryKind(Enum):
    NONE = "none"  # rows go on under the new schema
    BACKFILL = "backfill"  # the table's rows as of the event are shown again beside them
    END = "end"  # the feed ends with everything below the event
