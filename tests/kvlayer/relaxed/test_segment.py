"""Segments, whole and damaged."""

from pathlib import Path

import pyarrow as pa
import pytest

from tailrace.kvlayer.relaxed import segment as segment_files
from tailrace.kvlayer.relaxed.errors import FrameLimit, SegmentDamaged
from tailrace.kvlayer.relaxed.events import Event, Line, Record, Snapshot, lines_table
from tailrace.kvlayer.relaxed.segment import SegmentWriter, read_segment

EVENTS = [
    Event(7, 5, 0, "crashes", b"1", "signal", None, b"6"),
    Event(7, 5, 1, "crashes", b"", "signal", b"", None),
]
RECORD = Record(domain=7, begin=0, end=6, count=2)
SNAPSHOT = Snapshot(domain=7, cut=6, cells={("crashes", b"1", "signal"): b"6"})


def _append(writer: SegmentWriter, events: list[Event]) -> None:
    writer.append(7, 5, events[0].ordinal, [event[3:] for event in events])


def _written(folder: Path) -> Path:
    writer = SegmentWriter(folder / "a.relaxed", 7)
    _append(writer, EVENTS)
    writer.record(RECORD)
    writer.snapshot(SNAPSHOT)
    writer.close()
    return writer.path


def test_lines_come_back(tmp_path: Path) -> None:
    lines: list[Line] = [*EVENTS, RECORD, SNAPSHOT]
    segment = read_segment(_written(tmp_path))
    assert segment.domain == 7 and segment.torn_at is None
    assert segment.lines.equals(lines_table(lines))


def test_torn_end_is_found_wherever_it_is(tmp_path: Path) -> None:
    path = _written(tmp_path)
    data = path.read_bytes()
    head = data.index(b"\n") + 1
    for length in range(head + 1, len(data)):
        path.write_bytes(data[:length])
        segment = read_segment(path)
        whole = segment.torn_at is None
        assert whole == (length in _frame_ends(data, head)), length


def _frame_ends(data: bytes, at: int) -> set[int]:
    ends = set()
    while at < len(data):
        at += 8 + int.from_bytes(data[at : at + 4], "little")
        ends.add(at)
    return ends


def test_damage_is_named(tmp_path: Path) -> None:
    path = _written(tmp_path)
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(SegmentDamaged, match=r"a\.relaxed: the frame at byte \d+"):
        read_segment(path)
    path.write_bytes(b"something else")
    with pytest.raises(SegmentDamaged, match="no segment"):
        read_segment(path)


def test_reading_goes_on_where_it_ended(tmp_path: Path) -> None:
    """Also in the midst of a frame that is being written."""
    path = _written(tmp_path)
    whole = read_segment(path)
    data = path.read_bytes()
    seen, end = [], 0
    for length in range(data.index(b"\n") + 1, len(data) + 1, 7):
        path.write_bytes(data[:length])
        segment = read_segment(path, end)
        seen += segment.lines.to_batches()
        end = segment.end
    path.write_bytes(data)
    seen += read_segment(path, end).lines.to_batches()
    assert pa.Table.from_batches(seen).equals(whole.lines)


def test_segment_is_read_in_pieces(tmp_path: Path) -> None:
    """Of whole frames, of which one may be longer than a piece; a cut end is told with the last."""
    path = _written(tmp_path)
    whole = read_segment(path)
    for size in (8, 40, 100, whole.end):
        pieces, end = [], 0
        while (piece := read_segment(path, end, size)).lines.num_rows:
            assert piece.torn_at is None
            pieces.append(piece.lines)
            end = piece.end
        assert pa.concat_tables(pieces).equals(whole.lines), size
        assert (end, len(pieces) == 1) == (whole.end, size == whole.end)
    path.write_bytes(path.read_bytes()[:-1])
    torn = read_segment(path, 0, whole.end)
    assert torn.torn_at == torn.end
    assert read_segment(path, torn.end, 8).torn_at == torn.end


def test_frame_that_is_too_long_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_files, "FRAME_BYTES_MAX", 200)
    writer = SegmentWriter(tmp_path / "a.relaxed", 7)
    long = Event(7, 5, 0, "crashes", b"1", "signal", None, b"6" * 200)
    with pytest.raises(FrameLimit, match=r"a\.relaxed: \d+ bytes at once are more than 200"):
        _append(writer, [long])
    _append(writer, EVENTS)
    assert read_segment(writer.path).lines.num_rows == len(EVENTS)
