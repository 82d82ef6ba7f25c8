"""What commits of lake tables tell of their feeds."""

from __future__ import annotations

from tailrace.changefeed.sinks.lake.record import decode_record
from tailrace.kvlayer.keys import table_span


def test_a_record_without_its_table_is_of_its_span() -> None:
    """As the version wrote them whose Delta feeds had one table."""
    span = table_span(104)
    record = decode_record(
        '{"application": "tailrace/s/1", "resolved": 7, "incarnation": "i", "index": 3, '
        f'"spans": [["{span.start.hex()}", "{span.end.hex()}"]]}}'
    )
    assert record.table_id == 104
    assert record.counts
