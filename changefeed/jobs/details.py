"""Details: what a changefeed's job row says of it, in bytes.

`ChangefeedDetails` is written once, with the job. `encode_progress` is the job's copy of how far
the feed has come, and `with_end` adds how it ended: from then on what the feed held is released,
and nothing of it runs again. All begin with a format number, so that a later version can tell.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ...catalog.store.node_ids import FIRST_NODE_ID
from ...kvlayer.clock import ZERO, Timestamp
from ...kvlayer.span import Span
from ..contract.boundary_kind import BoundaryKind
from ..contract.options import ChangefeedOptions, parse_options
from ..sinks.protocol import BackfillProgress, SinkProgress

FORMAT = 1


class UnknownFormat(Exception):
    """A job row that another version of this program wrote."""


class TargetDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A table that a feed follows: by its id, whatever it is called later."""

    table_id: int
    name: str
    """Its full name when the feed was created, for show."""


class ChangefeedDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What a changefeed is: its tables, its sink and its options, as they were asked for.

    `start_at` is the cursor where one was given, else the time of the statement: the initial scan
    reads there, and changes are those above it.
    """

    format: int = FORMAT
    store_id: str
    targets: tuple[TargetDetails, ...]
    sink_uri: str
    options: Mapping[str, str | None]
    statement: str
    user_name: str
    owner_logs_in: bool = False
    """Whether the owner could log in when the feed was made: then it ends with the login."""
    start_at: Timestamp
    protection_id: bytes
    """The protected timestamp that keeps what the feed has not read yet."""
    node_id: int = FIRST_NODE_ID
    """The node where it was created: a target that is that node's file is written there alone."""

    @property
    def parsed_options(self) -> ChangefeedOptions:
        return parse_options(self.options)


class _Entry(msgspec.Struct, array_like=True, frozen=True):
    start: bytes
    end: bytes
    timestamp: Timestamp


class _Backfill(msgspec.Struct, frozen=True, kw_only=True):
    table_id: int
    at: Timestamp
    kind: str
    position: bytes
    done: bool


class _Progress(msgspec.Struct, frozen=True, kw_only=True):
    format: int = FORMAT
    frontier: list[_Entry]
    resolved: Timestamp
    scan_complete: bool
    backfills: list[_Backfill] = []
    end: str | None = None


NO_PROGRESS = _Progress(frontier=[], resolved=ZERO, scan_complete=False)

_encode = msgspec.msgpack.Encoder().encode
_details_decoder = msgspec.msgpack.Decoder(ChangefeedDetails)
_progress_decoder = msgspec.msgpack.Decoder(_Progress)


def encode_details(details: ChangefeedDetails) -> bytes:
    return _encode(details)


def decode_details(payload: bytes) -> ChangefeedDetails:
    """Raises UnknownFormat."""
    details = _details_decoder.decode(payload)
    _check(details.format, "details")
    return details


def encode_progress(progress: SinkProgress) -> bytes:
    return _encode(
        _Progress(
            frontier=[_Entry(span.start, span.end, at) for span, at in progress.frontier],
            resolved=progress.resolved,
            scan_complete=progress.scan_complete,
            backfills=[
                _Backfill(
                    table_id=each.table_id,
                    at=each.at,
                    kind=each.kind.value,
                    position=each.position,
                    done=each.done,
                )
                for each in progress.backfills
            ],
        )
    )


def decode_progress(data: bytes) -> SinkProgress:
    """Raises UnknownFormat."""
    progress = _progress_decoder.decode(data)
    _check(progress.format, "progress")
    return SinkProgress(
        frontier=tuple(
            (Span(entry.start, entry.end), entry.timestamp) for entry in progress.frontier
        ),
        resolved=progress.resolved,
        scan_complete=progress.scan_complete,
        backfills=tuple(
            BackfillProgress(
                table_id=each.table_id,
                at=each.at,
                kind=BoundaryKind(each.kind),
                position=each.position,
                done=each.done,
            )
            for each in progress.backfills
        ),
    )


def with_end(data: bytes | None, why: str) -> bytes:
    """The progress of a feed that has ended: by the error `why`, or with its work done if empty."""
    found = _progress_decoder.decode(data) if data else NO_PROGRESS
    return _encode(msgspec.structs.replace(found, end=why))


def decode_end(data: bytes | None) -> str | None:
    """Why the feed has ended, or None if it has not. Raises UnknownFormat."""
    if not data:
        return None
    progress = _progress_decoder.decode(data)
    _check(progress.format, "progress")
    return progress.end


def _check(found: int, what: str) -> None:
    if found != FORMAT:
        raise UnknownFormat(f"changefeed {what} of format {found}, this program reads {FORMAT}")
