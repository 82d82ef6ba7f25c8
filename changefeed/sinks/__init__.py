"""Sinks: where a changefeed's rows go.

A *sink* takes decoded batches (`emit`, which never waits) and makes them durable together with the
feed's progress (`flush`). A *transactional* sink keeps that progress itself, in one transaction
with the rows, and returns it after a restart: rows arrive effectively once. Any other is given
at least once what it was given.

`SinkKinds` knows what stands behind each scheme of a sink URI; `default_kinds` has those that need
nothing but the store. `SinklessSink` is for a feed without a URI, whose rows stream to a client.

Never knows: range feeds, who proved a schema, jobs.
"""

from .kind import SinkKind
from .kinds import SinkKinds, default_kinds
from .protocol import (
    FeedIdentity,
    Sink,
    SinkContext,
    SinkError,
    SinkProgress,
    SinkRefused,
    SinkStand,
)
from .sinkless import ChangefeedRow, SinklessSink

__all__ = [
    "ChangefeedRow",
    "FeedIdentity",
    "Sink",
    "SinkContext",
    "SinkError",
    "SinkKind",
    "SinkKinds",
    "SinkProgress",
    "SinkRefused",
    "SinkStand",
    "SinklessSink",
    "default_kinds",
]
