"""`apply=transaction`: changes wait until their timestamp is resolved."""

from __future__ import annotations

from pathlib import Path

from tailrace.changefeed.contract.changes import ChangeKind
from tailrace.changefeed.sinks.protocol import SinkProgress
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.span import Span
from tests.changefeed.sinks.duckdb.test_effectively_once import Change, delete, upsert
from tests.harness.descriptors import table
from tests.harness.mirrors import Mirrors, begin, progress_of, rows_batch, run

URI = "duckdb:///mirror.duckdb?apply=transaction"
ORDERS = table()
SHOWN = "FROM orders ORDER BY k"
STAGES = "SELECT count(*) FROM duckdb_tables() WHERE starts_with(table_name, 'staged_')"


def test_each_resolved_timestamp_shows_the_newest_versions_below_it(tmp_path: Path) -> None:
    few = [upsert(1, 10), upsert(2, 11), upsert(1, 12), delete(2, 13), upsert(2, 15)]
    many = [upsert(key, 14) for key in range(100, 200)]
    for changes in (few, [*few, *many]):

        async def scenario(mirrors: Mirrors, changes: list[Change] = changes) -> None:
            async with mirrors.open(ORDERS, uri=URI) as sink:
                sink.emit(rows_batch(ORDERS, changes))
                await sink.flush(progress_of(ORDERS, 10))
                assert await mirrors.read(SHOWN) == [(1, "1@10")]
                await sink.flush(progress_of(ORDERS, 11))
                assert await mirrors.read(SHOWN) == [(1, "1@10"), (2, "2@11")]
                await sink.flush(progress_of(ORDERS, 13))
                assert await mirrors.read(SHOWN) == [(1, "1@12")]
                await sink.flush(progress_of(ORDERS, 15))
                assert (await mirrors.read(SHOWN))[:2] == [(1, "1@12"), (2, "2@15")]

        run(tmp_path / str(len(changes)), scenario)


def test_what_is_staged_is_read_again(tmp_path: Path) -> None:
    span = ORDERS.primary_span
    middle = span.start + b"\x80"
    ahead = SinkProgress(
        frontier=(
            (Span(span.start, middle), Timestamp(50)),
            (Span(middle, span.end), Timestamp(30)),
        ),
        resolved=Timestamp(30),
        scan_complete=True,
    )

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS, uri=URI) as sink:
            sink.emit(rows_batch(ORDERS, [upsert(1, 20), upsert(2, 40)]))
            await sink.flush(ahead)
            assert await mirrors.read(SHOWN) == [(1, "1@20")]
        sink = mirrors.sink(URI, epoch=2)
        progress = await begin(sink, [ORDERS])
        assert progress is not None
        assert {at for _, at in progress.frontier} == {30}, progress
        assert await mirrors.read(STAGES) == [(0,)]
        sink.emit(rows_batch(ORDERS, [upsert(2, 40)]))
        await sink.flush(progress_of(ORDERS, 40))
        assert await mirrors.read(SHOWN) == [(1, "1@20"), (2, "2@40")]
        await sink.close()

    run(tmp_path, scenario)


def test_a_table_that_is_behind_moves_when_it_has_caught_up(tmp_path: Path) -> None:
    other = table(id=ORDERS.id + 1, name="refunds")
    refunds = "FROM refunds ORDER BY k"

    def stands(resolved: int, behind: int) -> SinkProgress:
        return SinkProgress(
            frontier=(
                (ORDERS.primary_span, Timestamp(resolved)),
                (other.primary_span, Timestamp(behind)),
            ),
            resolved=Timestamp(resolved),
            scan_complete=True,
        )

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS, uri=URI) as sink:
            await sink.flush(progress_of(ORDERS, 10))
        sink = mirrors.sink(URI, epoch=2)
        await begin(sink, [ORDERS, other])
        sink.emit(rows_batch(other, [upsert(1, 20)], kind=ChangeKind.INITIAL_SCAN))
        sink.emit(rows_batch(ORDERS, [upsert(5, 25)]))
        await sink.flush(stands(30, 20))
        sink.emit(rows_batch(other, [upsert(1, 24)]))
        await sink.flush(stands(32, 25))
        assert await mirrors.read(SHOWN) == [(5, "5@25")]
        assert await mirrors.read(refunds) == []
        await sink.close()
        sink = mirrors.sink(URI, epoch=3)
        assert await begin(sink, [ORDERS, other]) == stands(32, 20)
        sink.emit(rows_batch(other, [upsert(1, 24)]))
        await sink.flush(stands(40, 40))
        assert await mirrors.read(refunds) == [(1, "1@24")]
        await sink.close()

    run(tmp_path, scenario)


def test_a_job_that_is_over_leaves_nothing_staged(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS, uri=URI) as sink:
            sink.emit(rows_batch(ORDERS, [upsert(1, 20), upsert(2, 40)]))
            await sink.flush(progress_of(ORDERS, 30))
        await mirrors.kind.release(URI, mirrors.identity(), mirrors.holds)
        assert await mirrors.read(STAGES) == [(0,)]
        assert await mirrors.read(SHOWN) == [(1, "1@20")]

    run(tmp_path, scenario)


def test_a_table_whose_scan_found_no_row_is_not_shown_below_it(tmp_path: Path) -> None:
    """Nor does a restart find it there: its versions below the scan never came."""
    other = table(id=ORDERS.id + 1, name="refunds")

    def stands(resolved: int, empty: int) -> SinkProgress:
        return SinkProgress(
            frontier=(
                (ORDERS.primary_span, Timestamp(resolved)),
                (other.primary_span, Timestamp(empty)),
            ),
            resolved=Timestamp(resolved),
            scan_complete=True,
        )

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS, other, uri=URI) as sink:
            sink.emit(rows_batch(ORDERS, [upsert(1, 10)], kind=ChangeKind.INITIAL_SCAN))
            await sink.flush(stands(15, 20))
        sink = mirrors.sink(URI, epoch=2)
        assert await begin(sink, [ORDERS, other]) == stands(15, 0)
        sink.emit(rows_batch(other, [upsert(2, 30)]))
        await sink.flush(stands(19, 35))
        assert await mirrors.read("FROM refunds") == []
        await sink.flush(stands(40, 40))
        assert await mirrors.read("FROM refunds") == [(2, "2@30")]
        await sink.close()

    run(tmp_path, scenario)
