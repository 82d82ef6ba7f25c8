"""Decoding: versions of keys become changes of a table, under the descriptor that was proven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.rows.row_codec import codec_for
from ...catalog.values.column_types import Datum
from ...kvlayer.clock import Timestamp
from ..contract.changes import ChangeBatch, ChangeKind, Form, StageTimes, decode_bodies
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
    """The number of rows of a table that one step of the loop may decode."""
    rows = SLICE_CELLS // len(descriptor.visible_columns)
    return min(max(rows, SLICE_ROWS_MIN), SLICE_ROWS_MAX)


def decode(
    written: Versions,
    descriptor: TableDescriptor,
    *,
    stages: StageTimes,
    kind: ChangeKind = ChangeKind.LIVE,
    form: Form = Form.COLUMNS,
    versions: Sequence[Timestamp] | None = None,
    previous: PreviousRows | None = None,
) -> ChangeBatch:
    """The changes that `written` is under `descriptor`, in that form: as bodies only where no rows
    before are told. What the store holds is not presented by its target.

    `versions` are the rows' own timestamps, where those written here are a scan's, and `previous`
    the rows that they replaced, where those are not what `written` says.
    """
    keys, timestamps = written.keys, written.timestamps
    if form.undecoded and previous is None and not written.previous:
        return ChangeBatch(
            descriptor=descriptor,
            kind=kind,
            keys=keys,
            timestamps=timestamps,
            bodies=written.values,
            versions=versions,
            stages=stages,
        )
    assert form is not Form.STORED, "a replica's sink asks for no rows before"
    if previous is None and written.previous:
        decode_row = codec_for(descriptor).decode_row
        pairs = zip(keys, written.previous, strict=True)
        replaced = [None if body is None else decode_row(key, body) for key, body in pairs]
        previous = PreviousRows(replaced)
    return ChangeBatch(
        descriptor=descriptor,
        kind=kind,
        keys=keys,
        timestamps=timestamps,
        versions=versions,
        previous=None if previous is None else previous.rows,
        before=None if previous is None else previous.descriptor,
        stages=stages,
        **decode_bodies(descriptor, keys, written.values, columnar=form is not Form.ROWS),
    )
