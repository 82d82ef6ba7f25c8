"""What is written by columns goes in few batches: the same changes in the same order."""

from __future__ import annotations

from dataclasses import replace

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind, StageTimes, merged
from tailrace.changefeed.pipeline.decode import decode
from tailrace.changefeed.targets import Versions
from tailrace.kvlayer.clock import Timestamp
from tests.harness.descriptors import table

ENDLESS = 1 << 40


def batch(
    first: int,
    count: int = 100,
    *,
    gone: int | None = None,
    descriptor: TableDescriptor | None = None,
) -> ChangeBatch:
    """Rows whose keys and timestamps count from `first`; the one at `gone` is a deletion."""
    codec = codec_for(table())
    pairs = [codec.encode_row((number, f"v{number}")) for number in range(first, first + count)]
    bodies: list[bytes | None] = [body for _, body in pairs]
    if gone is not None:
        bodies[gone] = None
    versions = Versions(
        [key for key, _ in pairs], bodies, [Timestamp(first + place) for place in range(count)]
    )
    return decode(versions, descriptor or table(), stages=StageTimes())


def changes(batches: list[ChangeBatch]) -> list[object]:
    return [
        change
        for each in batches
        for change in zip(each.keys, each.timestamps, each.iterate_rows(), strict=True)
    ]


def test_neighbours_become_one_batch() -> None:
    given = [batch(0), batch(100, gone=7), batch(200, gone=0)]
    found = list(merged(given, bytes_max=ENDLESS))
    assert [len(each) for each in found] == [300]
    assert changes(found) == changes(given)


def test_what_differs_stays_apart() -> None:
    newer = replace(table(), version=table().version + 1)
    given = [
        batch(0),
        batch(100, descriptor=newer),
        batch(200, descriptor=newer),
        replace(batch(300), kind=ChangeKind.BACKFILL),
        batch(400, 3),
        batch(500),
        replace(batch(600), previous=[None] * 100),
    ]
    found = list(merged(given, bytes_max=ENDLESS))
    assert [len(each) for each in found] == [100, 200, 100, 3, 100, 100]
    assert changes(found) == changes(given)


def test_merged_batches_are_bounded_in_bytes() -> None:
    given = [batch(0) for _ in range(9)]
    columns = given[-1].columns
    assert columns is not None
    found = list(merged(given, bytes_max=4 * columns.get_total_buffer_size()))
    assert [len(each) for each in found] == [400, 400, 100]
    assert [len(each) for each in merged(given, bytes_max=1)] == [100] * 9


def test_what_changes_replaced_goes_along() -> None:
    given = [
        replace(batch(first), previous=[(first, "old")] * 100, versions=[Timestamp(first)] * 100)
        for first in (0, 100)
    ]
    (found,) = merged(given, bytes_max=ENDLESS)
    assert found.previous == [(0, "old")] * 100 + [(100, "old")] * 100
    assert found.versions == [Timestamp(0)] * 100 + [Timestamp(100)] * 100
