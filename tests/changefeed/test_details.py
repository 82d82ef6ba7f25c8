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
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.span import Span

DETAILS = ChangefeedDetails(
    store_id="store",
    targets=(TargetDetails(table_id=104, name="defaultdb.public.orders"),),
    sink_uri="null://",
    options={"resolved": "1s", "updated": None},
    statement="CREATE CHANGEFEED FOR TABLE orders INTO 'null://'",
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
    later = msgspec.structs.replace(DETAILS, format=2)
    with pytest.raises(UnknownFormat, match="format 2"):
        decode_details(encode_details(later))
