"""Rows of system tables as records: the stored bytes are those of the columns' values."""

from datetime import UTC, datetime

from tailrace.catalog.descriptors.system_tables import FINISHED_JOBS, JOBS, LEASE
from tailrace.catalog.jobs.record import JobRecord
from tailrace.catalog.jobs.states import JobState
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.store.lease_rows import LeaseRow
from tailrace.kvlayer.clock import MAX_TIMESTAMP

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
JOB = JobRecord(
    id=(1 << 62) + 5,
    kind="k",
    description="d",
    state=JobState.PAUSE_REQUESTED,
    payload=b"\x00\xff",
    created=AT,
    finished=AT,
    claim_session_id="s",
    epoch=4,
)


def test_job_is_a_row_of_its_values() -> None:
    head = ("k", "d", "pause-requested", b"\x00\xff", AT)
    tail = ("s", None, 4, None, None, None)
    assert JOB.encode() == codec_for(JOBS).encode_row((JOB.id, *head, AT, *tail))
    assert JOB.encode_finished() == codec_for(FINISHED_JOBS).encode_row((AT, JOB.id, *head, *tail))
    assert JobRecord.decode(*JOB.encode()) == JOB
    assert JobRecord.decode_finished(*JOB.encode_finished()) == JOB


def test_lease_keeps_the_greatest_timestamp() -> None:
    lease = LeaseRow(
        descriptor_id=7, version=2, node_id=1, session_id="x", expiration=MAX_TIMESTAMP
    )
    assert lease.encode() == codec_for(LEASE).encode_row((7, 2, 1, "x", MAX_TIMESTAMP))
    assert LeaseRow.decode(*lease.encode()) == lease
