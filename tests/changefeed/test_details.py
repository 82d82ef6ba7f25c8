"""What a job row says of a changefeed comes back as it was."""

from __future__ import annotations

import msgspec
import pytest

from tailrace.changefeed.jobs.details import (
    ChangefeedDetails,
    TargetDetails,
    UnknownFormat,
    decode_details,
    decode_progress,
    encode_details,
    encode_progress,
)
from tailrace.changefeed.sinks import SinkProgress
from tailrace.changefeed.targets import TargetState
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.span import Span

DETAILS = ChangefeedDetails(
    store_id="store",
    targets=(TargetDetails(table_id=104, name="defaultdb.public.orders"),),
    sink_uri="null://",
    options={"resolved": "1s", "updated": None},
    user_name="root",
    start_at=Timestamp(1 << 60),
    protection_id=b"id",
)


def test_details_survive_encoding() -> None:
    assert decode_details(encode_details(DETAILS)) == DETAILS
    assert DETAILS.parsed_options.resolved_interval == 1.0


def test_progress_survives_encoding() -> None:
    progress = SinkProgress(
        frontier=((Span(b"a", b"m"), Timestamp(7)), (Span(b"m", b"z"), Timestamp(0))),
        resolved=Timestamp(0),
        scan_complete=False,
    )
    assert decode_progress(encode_progress(progress)) == progress


def test_another_format_is_refused() -> None:
    later = msgspec.structs.replace(DETAILS, format=4)
    with pytest.raises(UnknownFormat, match="format 4"):
        decode_details(encode_details(later))


WRITTEN_IN_FORMAT_1 = (
    b"\x8b\xa6format\x01\xa8store_id\xa5store\xa7targets\x91\x82\xa8table_idh\xa4name\xb7defaultdb."
    b"public.orders\xa8sink_uri\xa7null://\xa7options\x82\xa8resolved\xa21s\xa7updated\xc0\xa9statement\xd91"
    b"CREATE CHANGEFEED FOR TABLE orders INTO 'null://'\xa9user_name\xa4root\xadowner_logs_in\xc2"
    b"\xa8start_at\xcf\x10\x00\x00\x00\x00\x00\x00\x00\xadprotection_id\xc4\x02id\xa7node_id\x01"
)
"""What a job row said before targets had starts and states of their own."""


def test_format_1_is_read() -> None:
    found = decode_details(WRITTEN_IN_FORMAT_1)
    assert found == msgspec.structs.replace(
        DETAILS, targets=(msgspec.structs.replace(DETAILS.targets[0], start_at=DETAILS.start_at),)
    )
    assert found.followed == found.targets
    assert decode_details(encode_details(found)) == found


def test_what_has_begun_asks_for_nothing() -> None:
    [target] = DETAILS.targets
    fresh = DETAILS.with_target(msgspec.structs.replace(target, fresh=True))
    assert fresh.asks_more_than(DETAILS)
    assert not DETAILS.asks_more_than(fresh)
    assert not fresh.asks_more_than(fresh)
    paused = DETAILS.with_target(msgspec.structs.replace(target, state=TargetState.PAUSED))
    assert paused.asks_more_than(DETAILS)
    assert not paused.followed
