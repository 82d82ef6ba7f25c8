"""Targets of one feed that begin at different times: what each shows, and what is resolved."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.pipeline.pipeline import Pipeline
from tailrace.changefeed.pipeline.progress import FeedProgress, progress_at
from tailrace.changefeed.sinks import SinkProgress
from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.frontier import Frontier
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.span import Span
from tests.changefeed.test_pipeline import Bench
from tests.harness.descriptors import table
from tests.harness.simulation import Simulation

ROWS = 10_000
"""More than a scan beside others leaves unflushed."""

FIRST, SECOND = table(id=104, name="orders"), table(id=105, name="refunds")


class Joining(Bench):
    """A feed of `orders` that stands at its start; `refunds` has joined it and is not scanned."""

    def __init__(self, sim: Simulation) -> None:
        super().__init__(sim, FIRST, SECOND)
        self.options = ChangefeedOptions()

    def join(self) -> None:
        self.start_at = self.store.clock.now()
        self.target.progress = SinkProgress(
            frontier=((table_span(104), self.start_at), (table_span(105), ZERO)),
            resolved=self.start_at,
            scan_complete=True,
        )


def _keys(bench: Bench, table_id: int) -> list[int]:
    return [
        row[0]
        for batch in bench.sink.emitted
        if batch.descriptor.id == table_id
        for row in batch.iterate_rows()
        if row is not None and isinstance(row[0], int)
    ]


def test_others_go_on_while_a_target_is_scanned() -> None:
    async def scenario() -> None:
        bench = Joining(sim)
        bench.store.slice_rows = 250
        bench.store.write(*[(k, "old") for k in range(ROWS)], table_id=105)
        bench.join()
        bench.sink.seconds = 0.01
        async with bench.running() as pipeline:
            await asyncio.sleep(0.001)
            assert pipeline.progress.behind(105)
            bench.store.write((1, "new"))
            ts = bench.store.resolve()
            await bench.live.wait_until(ts)
            assert _keys(bench, 104) == [1]
            assert pipeline.progress.behind(105)
            await asyncio.sleep(60)
            await bench.caught_up()
            assert not pipeline.progress.behind(105)
        assert bench.target.rows(105) == dict.fromkeys(range(ROWS), "old")
        assert len(_keys(bench, 105)) == ROWS
        assert len(bench.store.feeds) == 2

    sim = Simulation(1)
    sim.run(scenario())


def test_resolved_is_the_others_until_a_target_has_caught_up() -> None:
    progress = FeedProgress(
        SinkProgress(
            frontier=((table_span(104), Timestamp(100)), (table_span(105), ZERO)),
            resolved=Timestamp(100),
            scan_complete=True,
        ),
        {104: table_span(104), 105: table_span(105)},
    )
    progress.forward(table_span(104), Timestamp(120))
    assert progress.resolved == 120
    progress.forward(table_span(105), Timestamp(110))
    assert progress.resolved == 120
    assert progress.behind(105)
    captured = progress.capture()
    assert captured.frontier == (
        (table_span(104), Timestamp(120)),
        (table_span(105), Timestamp(110)),
    )
    progress.forward(table_span(105), Timestamp(121))
    assert not progress.behind(105)
    progress.forward(table_span(104), Timestamp(130))
    assert progress.resolved == 121


def test_whole_transactions_are_claimed_up_to_what_is_resolved() -> None:
    """A table that is ahead, and a half of one that is behind, would pass rows that are held."""
    behind = table_span(105)
    middle = behind.start + b"m"
    progress = FeedProgress(
        SinkProgress(
            frontier=(
                (table_span(103), Timestamp(100)),
                (table_span(104), Timestamp(100)),
                (behind, Timestamp(50)),
            ),
            resolved=Timestamp(100),
            scan_complete=True,
        ),
        {id: table_span(id) for id in (103, 104, 105)},
        whole_transactions=True,
    )
    progress.forward(table_span(103), Timestamp(120))
    progress.forward(table_span(104), Timestamp(130))
    progress.forward(Span(behind.start, middle), Timestamp(60))
    progress.forward(Span(middle, behind.end), Timestamp(70))
    captured = progress.capture()
    assert captured.resolved == 120
    assert [captured.low_water(table_span(id)) for id in (103, 104, 105)] == [120, 120, 60]
    assert max(at for _, at in captured.frontier) == 120
    assert max(at for span, at in captured.frontier if span.overlaps(behind)) == 60


@pytest.mark.parametrize("again", [False, True])
def test_a_scan_above_what_is_resolved_is_claimed_when_it_is_shown(again: bool) -> None:
    """Its rows are of no transaction that would have to be resolved. Claimed at less it would be
    lost: another attempt reads on from there, and scans nothing."""
    spans = {104: table_span(104), 105: table_span(105)}
    start = SinkProgress(
        frontier=((spans[104], Timestamp(100)), (spans[105], ZERO)),
        resolved=Timestamp(100),
        scan_complete=True,
    )
    progress = FeedProgress(start, spans, whole_transactions=True)
    progress.begin_scan(105, Timestamp(150))
    progress.forward(spans[105], Timestamp(150))
    captured = progress.capture()
    assert (captured.resolved, captured.low_water(spans[105])) == (100, 150)
    if again:
        progress = FeedProgress(captured, spans, whole_transactions=True)
    progress.forward(spans[105], Timestamp(170))
    progress.forward(spans[104], Timestamp(120))
    assert progress.capture().frontier == ((spans[104], 120), (spans[105], 150))
    progress.forward(spans[104], Timestamp(160))
    assert progress.capture().frontier == ((spans[104], 160), (spans[105], 160))


@pytest.mark.parametrize("whole_transactions", [False, True])
def test_nothing_is_resolved_in_a_time_that_is_passed_over(whole_transactions: bool) -> None:
    """Of the rows that a backfill left out, later versions may be above, and wait in the sink."""
    spans = {104: table_span(104), 105: table_span(105)}
    progress = FeedProgress(
        progress_at(spans.values(), Timestamp(90), scan_complete=True),
        spans,
        whole_transactions=whole_transactions,
    )
    progress.forward(spans[104], Timestamp(99))
    progress.pass_over(104, Timestamp(99), Timestamp(120))
    progress.forward(spans[104], Timestamp(130))
    progress.forward(spans[105], Timestamp(105))
    captured = progress.capture()
    assert captured.resolved == 99
    assert captured.low_water(spans[104]) == (99 if whole_transactions else 130)
    progress.forward(spans[105], Timestamp(120))
    assert progress.capture().resolved == 120
    progress.forward(spans[105], Timestamp(125))
    assert progress.capture().resolved == 125


def test_a_target_passes_over_a_second_time_before_the_first_is_resolved() -> None:
    spans = {104: table_span(104), 105: table_span(105)}
    progress = FeedProgress(progress_at(spans.values(), Timestamp(90), scan_complete=True), spans)
    for below, whole_from in ((99, 120), (130, 150)):
        progress.forward(spans[104], Timestamp(below))
        progress.pass_over(104, Timestamp(below), Timestamp(whole_from))
    progress.forward(spans[104], Timestamp(160))
    for reached, resolved in ((105, 99), (120, 120), (140, 130), (150, 150)):
        progress.forward(spans[105], Timestamp(reached))
        assert progress.capture().resolved == resolved


def test_a_target_counts_behind_the_time_that_it_passes_over() -> None:
    spans = {104: table_span(104), 105: table_span(105)}
    start = SinkProgress(
        frontier=((spans[104], Timestamp(110)), (spans[105], Timestamp(90))),
        resolved=Timestamp(110),
        scan_complete=True,
    )
    progress = FeedProgress(start, spans, whole_transactions=True)
    progress.forward(spans[105], Timestamp(99))
    progress.pass_over(105, Timestamp(99), Timestamp(120))
    progress.forward(spans[105], Timestamp(130))
    assert progress.behind(105)
    assert progress.capture().frontier == ((spans[104], 110), (spans[105], 99))
    progress.forward(spans[104], Timestamp(125))
    assert not progress.behind(105)
    assert progress.capture().frontier == ((spans[104], 125), (spans[105], 125))


def test_a_lone_target_counts_behind_the_time_that_it_passes_over() -> None:
    """What the feed has resolved lies within that time, and no other target takes it further."""
    span = table_span(105)
    start = SinkProgress(
        frontier=((span, Timestamp(90)),), resolved=Timestamp(110), scan_complete=True
    )
    progress = FeedProgress(start, {105: span}, whole_transactions=True)
    progress.forward(span, Timestamp(99))
    progress.pass_over(105, Timestamp(99), Timestamp(120))
    progress.forward(span, Timestamp(119))
    assert progress.behind(105) and progress.capture().resolved == 110
    progress.forward(span, Timestamp(120))
    assert not progress.behind(105) and progress.capture().resolved == 120


def test_a_restart_goes_on_with_the_scan_of_a_target() -> None:
    async def scenario() -> None:
        bench = Joining(sim)
        bench.store.slice_rows = 250
        bench.store.write(*[(k, "old") for k in range(ROWS)], table_id=105)
        bench.join()
        bench.sink.seconds = 0.01
        first: Pipeline
        async with bench.running() as first:
            while len(bench.target.rows(105)) < 1_000:
                await asyncio.sleep(0.001)
            bench.store.resolve()
            await bench.live.wait_until(bench.store.resolved)
            assert first.progress.behind(105)
        scanned = len(_keys(bench, 105))
        async with bench.running() as second:
            while second.progress.behind(105):
                await asyncio.sleep(0.1)
                bench.store.resolve()
            await bench.caught_up()
        assert bench.target.rows(105) == dict.fromkeys(range(ROWS), "old")
        assert ROWS <= len(_keys(bench, 105)) < scanned + ROWS

    sim = Simulation(1)
    sim.run(scenario())


def test_progress_of_one_target_is_not_asked_of_all_that_are_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spans = {number: table_span(number) for number in range(104, 204)}
    entries = tuple((span, Timestamp(90 + number % 2)) for number, span in spans.items())
    start = SinkProgress(frontier=entries, resolved=Timestamp(91), scan_complete=True)
    progress = FeedProgress(start, spans)
    forward, moved = Frontier.forward, []

    def counted(frontier: Frontier, span: Span, to: Timestamp) -> bool:
        moved.append(frontier)
        return forward(frontier, span, to)

    monkeypatch.setattr(Frontier, "forward", counted)
    progress.forward(spans[104], Timestamp(91))
    assert len(moved) <= 2
    assert not progress.behind(104) and progress.behind(106)
