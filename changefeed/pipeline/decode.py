"""Decoding: versions of keys become changes of a table, under the descriptor that was proven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.rows.row_codec import codec_for
from ...catalog.values.column_types import Datum
from ...kvlayer.clock import Timestamp
from ..contract.changes import COLUMNAR_ROWS_MIN, ChangeBatch, ChangeKind, StageTimes
from ..targets import Versions

SLICE_CELLS = 24_576
"""Values decoded in one step of the loop, about two milliseconds' worth: commits wait no longer."""

SLICE_ROWS_MIN = 256
SLICE_ROWS_MAX = 4_096


@dataclass(frozen=True, slots=True)
class PreviousRows:
    """The rows that changes replaced, None where there was none, in the columns of `descriptor`
    where that is another one than the changes'."""

    rows: Sequence[tuple[Datum, ...] | None]
    descriptor: TableDescriptor | None = None


def slice_rows(descriptor: TableDescriptor) -> int:
    """How many rows of a table one step of the loop may decode."""
    rows = SLICE_CELLS // len(descriptor.visible_columns)
    return min(max(rows, SLICE_ROWS_MIN), SLICE_ROWS_MAX)


def undecoded(
    written: Versions,
    descriptor: TableDescriptor,
    *,
    stages: StageTimes,
    kind: ChangeKind = ChangeKind.LIVE,
    versions: Sequence[Timestamp] | None = None,
) -> ChangeBatch:
    """As `decode`, for a sink that takes what the store holds."""
    return ChangeBatch(
        descriptor=descriptor,
        kind=kind,
        keys=written.keys,
        timestamps=written.timestamps,
        stored=written.values,
        versions=versions,
        stages=stages,
    )


def decode(
    written: Versions,
    descriptor: TableDescriptor,
    *,
    stages: StageTimes,
    kind: ChangeKind = ChangeKind.LIVE,
    columnar: bool = True,
    versions: Sequence[Timestamp] | None = None,
    previous: PreviousRows | None = None,
) -> ChangeBatch:
    """The changes that `written` is under `descriptor`: Arrow from `COLUMNAR_ROWS_MIN` rows on.

    With `columnar` false always a list of rows, for sinks that write messages. `versions` are the
    rows' own timestamps, where those written here are a scan's, and `previous` the rows that they
    replaced, where those are not what `written` says.
    """
    keys, values, timestamps = written.keys, written.values, written.timestamps
    codec = codec_for(descriptor)
    if previous is None and written.previous:
        pairs = zip(keys, written.previous, strict=True)
        replaced = [None if body is None else codec.decode_row(key, body) for key, body in pairs]
        previous = PreviousRows(replaced)
    rows_before = None if previous is None else previous.rows
    before = None if previous is None else previous.descriptor
    if not columnar or len(keys) < COLUMNAR_ROWS_MIN:
        decode_row = codec.decode_row
        rows = [
            None if value is None else decode_row(key, value)
            for key, value in zip(keys, values, strict=True)
        ]
        return ChangeBatch(
            descriptor=descriptor,
            kind=kind,
            keys=keys,
            timestamps=timestamps,
            rows=rows,
            versions=versions,
            previous=rows_before,
            before=before,
            stages=stages,
        )
    bodies = [value for value in values if value is not None]
    deleted: Sequence[int] = ()
    if len(bodies) != len(values):
        deleted = [index for index, value in enumerate(values) if value is None]
    return ChangeBatch(
        descriptor=descriptor,
        kind=kind,
        keys=keys,
        timestamps=timestamps,
        columns=codec.decode_columns(bodies),
        deleted=deleted,
        versions=versions,
        previous=rows_before,
        before=before,
        stages=stages,
    )
