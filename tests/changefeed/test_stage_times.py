"""Latencies are kept per stage, bounded, and summed up by percentiles that occurred."""

from __future__ import annotations

from tailrace.changefeed.contract.changes import StageTimes
from tailrace.changefeed.pipeline.stage_times import Milestone, Stage, StageRecorder

MS = 1_000_000


def stages(**passed: int) -> StageTimes:
    return StageTimes(**{name: at * MS for name, at in passed.items()})


def test_stages_add_up_to_the_time_from_commit_to_sink() -> None:
    recorder = StageRecorder()
    passed = stages(gated=23, decoded=27, received=32, flushing=38, sunk=45)
    commit = (10 * MS, 11 * MS, 13 * MS, 20 * MS)
    recorder.note_received([commit], passed)
    recorder.note_sunk([commit], passed)
    took = [recorder.samples_ns(stage)[0] // MS for stage in Stage]
    assert took == [1, 2, 7, 3, 4, 5, 6, 7]
    reached = [recorder.samples_ns(milestone)[0] // MS for milestone in Milestone]
    assert reached == [3, 22, 35]
    assert sum(took) == reached[-1]


def test_caught_up_rows_are_not_counted() -> None:
    recorder = StageRecorder()
    recorder.note_received([(0, 0, 0, 4)], stages(received=5))
    recorder.note_sunk([(0, 0, 0, 4)], stages(sunk=6))
    assert recorder.latency(Milestone.EMIT) is None
    assert recorder.latency(Milestone.SINK) is None


def test_percentiles_are_nearest_ranks() -> None:
    recorder = StageRecorder()
    for number in range(1, 101):
        recorder.note_received([(1, 1, 1, 1)], StageTimes(received=1 + number * MS))
    latency = recorder.latency(Milestone.EMIT)
    assert latency is not None
    assert (latency.p50, latency.p95, latency.p99, latency.max) == (50.0, 95.0, 99.0, 100.0)


def test_old_samples_make_room() -> None:
    recorder = StageRecorder(samples_max=3)
    for number in range(1, 6):
        recorder.note_sunk([(1, 1, 1, 1)], StageTimes(sunk=1 + number))
    assert recorder.samples_ns(Milestone.SINK) == [3, 4, 5]
    recorder.clear()
    assert recorder.samples_ns(Milestone.SINK) == []
