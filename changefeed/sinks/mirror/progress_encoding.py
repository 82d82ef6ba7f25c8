"""A feed's progress as bytes, in a mirror's own database.

A frontier is a msgpack array of [start, end, distance], the distance of a span's timestamp being
counted from the resolved timestamp. A feed in step with its tables stands everywhere at that, so
its frontier stays the same bytes, and a commit writes one column less.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from ....kvlayer.clock import Timestamp
from ....kvlayer.history import StorePosition
from ....kvlayer.span import Span
from ...contract.boundary_kind import BoundaryKind
from ..protocol import BackfillProgress, SinkProgress, SinkRefused, SinkStand

_UNIX = datetime(1970, 1, 1, tzinfo=UTC)
_Entries = list[tuple[bytes, bytes, int]]
_Backfills = list[tuple[int, int, str, bytes, bool]]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Entries).decode
_decode_backfills = msgspec.msgpack.Decoder(_Backfills).decode


STAND_COLUMNS = "resolved, frontier, scan_complete, backfills, incarnation, log_index"
"""The columns of a progress table that say where a feed stands."""


class Fenced(SinkRefused):
    """A greater epoch of the same job has opened the sink."""


def wall_datetime(unix_us: int) -> datetime:
    return _UNIX + timedelta(microseconds=unix_us)


def encode_stand(stand: SinkStand) -> tuple[int, bytes, bool, bytes | None, str, int]:
    """The values of `STAND_COLUMNS`."""
    progress, position = stand.progress, stand.position
    return (
        progress.resolved,
        encode_frontier(progress),
        progress.scan_complete,
        encode_backfills(progress),
        position.incarnation,
        position.index,
    )


def decode_stand(values: Sequence[Any]) -> SinkStand:
    """The place of a feed, from the values of `STAND_COLUMNS`."""
    resolved, frontier, scan_complete, backfills, incarnation, index = values
    return SinkStand(
        progress=SinkProgress(
            frontier=decode_frontier(frontier, Timestamp(resolved)),
            resolved=Timestamp(resolved),
            scan_complete=scan_complete,
            backfills=decode_backfills(backfills),
        ),
        position=StorePosition(incarnation=incarnation, index=index),
    )


def encode_frontier(progress: SinkProgress) -> bytes:
    resolved = progress.resolved
    return _encode([(span.start, span.end, ts - resolved) for span, ts in progress.frontier])


def decode_frontier(data: bytes, resolved: Timestamp) -> tuple[tuple[Span, Timestamp], ...]:
    # Earlier mirrors hold frontiers that are not in key order.
    return tuple(
        (Span(start, end), Timestamp(resolved + distance))
        for start, end, distance in sorted(_decode(data))
    )


def encode_backfills(progress: SinkProgress) -> bytes | None:
    """The backfills that are under way; None where there are none, as nearly always."""
    if not progress.backfills:
        return None
    return _encode(
        [
            (each.table_id, each.at, each.kind.value, each.position, each.done)
            for each in progress.backfills
        ]
    )


def decode_backfills(data: bytes | None) -> tuple[BackfillProgress, ...]:
    return tuple(
        BackfillProgress(
            table_id=table_id,
            at=Timestamp(at),
            kind=BoundaryKind(kind),
            position=position,
            done=done,
        )
        for table_id, at, kind, position, done in _decode_backfills(data or _encode([]))
    )
