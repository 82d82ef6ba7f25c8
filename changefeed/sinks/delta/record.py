"""How far a feed has come, as the commits of its Delta table tell it.

Each commit bears a transaction of the application `tailrace/<store>/<job>`, whose version is the
feed's resolved timestamp, and beside it the position in the store's log. Delta lets no two commits
of one application pass each other: a feed whose claim was taken over, and that did not see the
commit of its successor, cannot commit any more.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from deltalake import CommitProperties, DeltaTable, Transaction

from ....kvlayer.clock import Timestamp
from ....kvlayer.history import StorePosition
from ....kvlayer.span import Span
from ..protocol import FeedIdentity, SinkProgress, SinkRefused, SinkStand

FIELD = "tailrace"
COMMIT_RETRIES = 20
"""How often a commit gives way to those of others, such as OPTIMIZE."""


class _Record(msgspec.Struct):
    application: str
    resolved: int
    incarnation: str
    index: int
    spans: list[tuple[str, str]]


def application(identity: FeedIdentity) -> str:
    return f"{FIELD}/{identity.store_id}/{identity.job_id}"


def commit_properties(
    identity: FeedIdentity, resolved: Timestamp, spans: Sequence[Span], position: StorePosition
) -> CommitProperties:
    """What a commit says that holds everything of `spans` at or below `resolved`."""
    record = _Record(
        application=application(identity),
        resolved=resolved,
        incarnation=position.incarnation,
        index=position.index,
        spans=[(span.start.hex(), span.end.hex()) for span in spans],
    )
    return CommitProperties(
        custom_metadata={FIELD: msgspec.json.encode(record).decode()},
        app_transactions=[Transaction(application(identity), resolved)],
        max_commit_retries=COMMIT_RETRIES,
    )


def read_stand(table: DeltaTable, identity: FeedIdentity) -> SinkStand | None:
    """Where the feed stands by the table's commits; None where none is of the feed. Raises
    SinkRefused where the log that tells it is gone."""
    resolved = table.transaction_version(application(identity))
    if resolved is None:
        return None
    for commit in table.history():  # the newest first
        text = commit.get(FIELD)
        if text is None:
            continue
        record = msgspec.json.decode(text, type=_Record)
        if record.application == application(identity) and record.resolved == resolved:
            return _stand(record)
    raise SinkRefused(
        "the log of the Delta table no longer has the feed's last commit: cancel the changefeed, "
        "and create another into another folder, with a cursor where this one is resolved"
    )


def other_feed(table: DeltaTable, identity: FeedIdentity) -> bool:
    """Whether the table is not this feed's."""
    return table.transaction_version(application(identity)) is None


def _stand(record: _Record) -> SinkStand:
    resolved = Timestamp(record.resolved)
    frontier = tuple(
        (Span(bytes.fromhex(start), bytes.fromhex(end)), resolved) for start, end in record.spans
    )
    return SinkStand(
        progress=SinkProgress(frontier=frontier, resolved=resolved, scan_complete=True),
        position=StorePosition(incarnation=record.incarnation, index=record.index),
    )
