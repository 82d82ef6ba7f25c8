"""A mirror's sink in a feed worker: what it is given as the store has it, and what fails there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tailrace.catalog.rows.row_codec import codec_for
from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind, Form
from tailrace.changefeed.sinks.duckdb.hosting.messages import DESCRIPTORS_KEPT_MAX
from tailrace.changefeed.sinks.duckdb.hosting.worker_sink import WorkerSink
from tailrace.changefeed.sinks.protocol import SinkError
from tailrace.kvlayer.clock import Timestamp
from tests.harness.descriptors import table
from tests.harness.mirrors import Mirrors, begin, progress_of, run

ORDERS = table()
pytestmark = pytest.mark.parametrize("place", ["apart"], indirect=True)


def bodies_batch(changes: Sequence[tuple[int, int, str | None]]) -> ChangeBatch:
    """Keys, timestamps, and notes or None for a deletion, as the store has them."""
    codec = codec_for(ORDERS)
    pairs = [codec.encode_row((key, note)) for key, _, note in changes]
    return ChangeBatch(
        descriptor=ORDERS,
        kind=ChangeKind.LIVE,
        keys=[key for key, _ in pairs],
        timestamps=[Timestamp(at) for _, at, _ in changes],
        bodies=[
            None if note is None else body
            for (_, body), (_, _, note) in zip(pairs, changes, strict=True)
        ],
    )


@pytest.fixture
def here(tmp_path: Path) -> Callable[[Callable[[Mirrors], Awaitable[None]]], None]:
    return lambda scenario: run(tmp_path, scenario)


Run = Callable[[Callable[[Mirrors], Awaitable[None]]], None]


def test_rows_are_decoded_where_they_are_written(here: Run) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            assert isinstance(sink, WorkerSink)
            assert sink.form is Form.BODIES
            many = bodies_batch([(key, 10, f"note {key}") for key in range(500)])
            few = bodies_batch([(1, 11, "changed"), (2, 11, None), (3, 9, "older")])
            sink.emit(many)
            sink.emit(few)
            await sink.flush(progress_of(ORDERS, 12))
            assert many.stages.sunk == few.stages.sunk > 0
            found = await mirrors.read("FROM orders WHERE k < 4 ORDER BY k")
            assert found == [(0, "note 0"), (1, "changed"), (3, "note 3")]
            assert await mirrors.read("SELECT count(*) FROM orders") == [(499,)]

    here(scenario)


def test_a_body_that_is_no_row_is_decoded_in_the_server_from_then_on(here: Run) -> None:
    """There it is an error of one table, and not of the sink."""

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            sink.emit(replace(bodies_batch([(1, 10, "a")]), bodies=[b"\xffno row"]))
            sink.emit(bodies_batch([(2, 11, "b")]))
            with pytest.raises(SinkError):
                await sink.flush(progress_of(ORDERS, 12))
            with pytest.raises(SinkError):
                await sink.flush(progress_of(ORDERS, 13))
        async with mirrors.open(ORDERS, epoch=2) as sink:
            assert isinstance(sink, WorkerSink)
            assert sink.form is Form.COLUMNS
            assert await mirrors.read("FROM orders") == []
        await mirrors.kind.release("duckdb:///mirror.duckdb", mirrors.identity(), mirrors.holds)
        again = mirrors.sink()
        assert isinstance(again, WorkerSink)
        assert again.form is Form.BODIES

    here(scenario)


def test_a_sink_of_a_dead_worker_fails_and_the_next_one_stands_where_it_was(here: Run) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            sink.emit(bodies_batch([(1, 10, "a")]))
            await sink.flush(progress_of(ORDERS, 10))
            sink.emit(bodies_batch([(2, 11, "b")]))
            mirrors.loop_worker.kill()
            sink.emit(bodies_batch([(3, 12, "c")]))
            with pytest.raises(SinkError, match="feed worker: the worker process was killed"):
                await sink.flush(progress_of(ORDERS, 12))
        again = mirrors.sink(epoch=2)
        assert await begin(again, [ORDERS]) == progress_of(ORDERS, 10)
        assert await mirrors.read("FROM orders") == [(1, "a")]
        await again.close()
        assert mirrors.metrics.get("changefeed_worker_deaths_total") == 1

    here(scenario)


def test_descriptors_that_are_read_anew_are_forgotten_again(here: Run) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            for number in range(3 * DESCRIPTORS_KEPT_MAX):
                batch = bodies_batch([(number, 10 + number, "x")])
                sink.emit(replace(batch, descriptor=replace(ORDERS)))
            await sink.flush(progress_of(ORDERS, 1_000))
            expected = [(3 * DESCRIPTORS_KEPT_MAX,)]
            assert await mirrors.read("SELECT count(*) FROM orders") == expected
            host = mirrors.loop_worker.host
            assert host is not None
            (hosted,) = host._sinks.values()
            assert len(hosted.descriptors._known) == DESCRIPTORS_KEPT_MAX

    here(scenario)
