"""Latencies are kept per stage, bounded, and summed up by percentiles that occurred."""

from __future__ import annotations

from tailrace.changefeed.contract.changes import StageTimes
from tailrace.changefeed.pipeline.stage_times import Stage, StageRecorder

MS = 1_000_000


def stages(**passed: int) -> StageTimes:
    return StageTimes(**{name: at * MS for name, at in passed.items()})


def test_each_stage_counts_from_the_call_of_commit() -> None:
    recorder = StageRecorder()
    passed = stages(gated=13, decoded=14, received=15, sunk=17)
    recorder.note_received([(10 * MS, 12 * MS)], passed)
    recorder.note_sunk([(10 * MS, 12 * MS)], passed)
    found = {stage: recorder.samples_ns(stage)[0] // MS for stage in Stage}
    assert found == {
        Stage.DURABLE: 2,
        Stage.GATED: 3,
        Stage.DECODED: 4,
        Stage.EMIT: 5,
        Stage.SINK: 7,
    }


def test_caught_up_rows_are_not_counted() -> None:
    recorder = StageRecorder()
    recorder.note_received([(0, 0)], stages(received=5))
    recorder.note_sunk([(0, 0)], stages(sunk=6))
    assert recorder.latency(Stage.EMIT) is None
    assert recorder.latency(Stage.SINK) is None


def test_percentiles_are_nearest_ranks() -> None:
    recorder = StageRecorder()
    for number in range(1, 101):
        recorder.note_received([(1, 1)], StageTimes(received=1 + number * MS))
    latency = recorder.latency(Stage.EMIT)
    assert latency is not None
    assert (latency.p50, latency.p95, latency.p99, latency.max) == (50.0, 95.0, 99.0, 100.0)


def test_old_samples_make_room() -> None:
    recorder = StageRecorder(samples_max=3)
    for number in range(1, 6):
        recorder.note_sunk([(1, 1)], StageTimes(sunk=1 + number))
    assert recorder.samples_ns(Stage.SINK) == [3, 4, 5]
    recorder.clear()
    assert recorder.samples_ns(Stage.SINK) == []
