"""What stands in which file, and when a mark is written: the sink by itself."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Sequence
from io import BufferedWriter
from pathlib import Path
from typing import ClassVar

import pytest

from tailrace.catalog.rows.row_codec import codec_for
from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind
from tailrace.changefeed.contract.options import parse_options
from tailrace.changefeed.sinks import FeedIdentity, Sink, SinkContext, SinkError, SinkProgress
from tailrace.changefeed.sinks.files import FilesKind
from tailrace.changefeed.sinks.files.folder import FilesFolder
from tailrace.changefeed.sinks.files.layout import PartitionFormat
from tailrace.changefeed.sinks.files.names import NameMaker, time_of, time_text
from tailrace.changefeed.sinks.protocol import PastUnknown
from tailrace.kvlayer.clock import Clock, MemoryBoundStore, Timestamp, timestamp_at
from tailrace.kvlayer.history import StorePosition
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.settings import Settings
from tests.harness.descriptors import table
from tests.harness.simulation import Simulation

START_US = 1_700_000_000_000_000


def ts(number: int) -> Timestamp:
    return timestamp_at(unix_us=START_US + number)


def progress(*reached: int, resolved: int) -> SinkProgress:
    """The table's span in as many parts."""
    whole = table().primary_span
    cuts = [whole.start + bytes([n]) for n in range(1, len(reached))]
    bounds = [whole.start, *cuts, whole.end]
    return SinkProgress(
        frontier=tuple(
            (whole.__class__(start, end), ts(at))
            for start, end, at in zip(bounds, bounds[1:], reached, strict=False)
        ),
        resolved=ts(resolved),
        scan_complete=True,
    )


class Bench:
    def __init__(self, sim: Simulation, root: Path) -> None:
        self.sim = sim
        self.root = root
        self.kind = FilesKind([root], sim.offload, node_id=1)
        self.clock = Clock(sim.wall, MemoryBoundStore())

    async def sink(
        self, *, epoch: int = 1, known: SinkProgress | None = None, past: Sequence[str] = ("",)
    ) -> Sink:
        """`past` are the incarnations of the store, the last of which is in force."""

        async def holds(position: StorePosition) -> bool:
            return position.incarnation in past

        context = SinkContext(
            identity=FeedIdentity(store_id="s", job_id=7, epoch=epoch),
            position=lambda: StorePosition(incarnation=past[-1], index=0),
            holds=holds,
            clock=self.clock,
            offload=self.sim.offload,
            settings=Settings(),
            metrics=Metrics(),
            options=parse_options({"updated": None, "resolved": None}),
            start_at=ts(0),
            known=known,
        )
        sink = self.kind.create("file:///changes?partition_format=flat", context)
        await sink.open([table()])
        return sink

    def names(self) -> list[str]:
        return sorted(path.name for path in (self.root / "changes").iterdir() if path.is_file())

    def values(self) -> list[str]:
        """The values of column v, and marks, in the order of names."""
        found = []
        for name in self.names():
            for line in (self.root / "changes" / name).read_text().splitlines():
                message = json.loads(line)
                found.append("mark" if "resolved" in message else message["after"]["v"])
        return found


def change(at: int, value: str, *, version: int = 1) -> ChangeBatch:
    key, _ = codec_for(table()).encode_row((1, value))
    return ChangeBatch(
        descriptor=table(version=version),
        kind=ChangeKind.LIVE,
        keys=[key],
        timestamps=[ts(at)],
        rows=[(1, value)],
    )


def test_files_appear_with_progress(tmp_path: Path) -> None:
    async def scenario() -> None:
        sink = await bench.sink()
        sink.emit(change(10, "a"))
        await sink.flush(None)
        assert bench.names() == []
        await sink.flush(progress(20, resolved=20))
        assert bench.values() == ["a"]

    sim = Simulation(1)
    bench = Bench(sim, tmp_path)
    sim.run(scenario())


def test_versions_of_a_schema_are_files_of_their_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        sink = await bench.sink()
        sink.emit(change(10, "old"))
        sink.emit(change(11, "new", version=2))
        await sink.flush(progress(20, resolved=20))
        assert [name.rsplit("-", 1)[1] for name in bench.names()] == ["1.ndjson", "2.ndjson"]
        assert bench.values() == ["old", "new"]

    sim = Simulation(1)
    bench = Bench(sim, tmp_path)
    sim.run(scenario())


def test_what_comes_again_sorts_behind_what_was_there(tmp_path: Path) -> None:
    """Killed after its files appeared and before its progress was saved: they come again."""

    async def scenario() -> None:
        first = await bench.sink(known=progress(5, resolved=5))
        first.emit(change(10, "a"))
        await first.flush(progress(20, resolved=20))
        first.emit(change(30, "b"))
        await first.flush(progress(40, resolved=40))
        second = await bench.sink(epoch=2, known=progress(5, resolved=5))
        for at, value in ((10, "a"), (30, "b"), (50, "c")):
            second.emit(change(at, value))
        await second.flush(progress(60, resolved=60))
        assert bench.values() == ["a", "b", "a", "b", "c"]

    sim = Simulation(1)
    bench = Bench(sim, tmp_path)
    sim.run(scenario())


def test_no_mark_stands_before_what_came_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        first = await bench.sink(known=progress(5, resolved=5))
        await first.flush(progress(40, resolved=40))
        first.emit(change(45, "a"))
        await first.flush(progress(50, resolved=50))
        second = await bench.sink(epoch=2, known=progress(5, resolved=5))
        second.emit(change(10, "late"))
        await second.flush(progress(20, resolved=20))
        await second.emit_resolved(ts(20))
        assert bench.values() == ["a", "late"]
        await second.flush(progress(70, resolved=70))
        await second.emit_resolved(ts(70))
        assert bench.values() == ["a", "late", "mark"]

    sim = Simulation(1)
    bench = Bench(sim, tmp_path)
    sim.run(scenario())


def test_a_mark_waits_for_who_is_behind(tmp_path: Path) -> None:
    async def scenario() -> None:
        sink = await bench.sink()
        await sink.flush(progress(40, 10, resolved=40))
        await sink.emit_resolved(ts(40))
        assert [name[:33] for name in bench.names()] == [time_text(ts(10))]
        await sink.emit_resolved(ts(40))
        assert len(bench.names()) == 1

    sim = Simulation(1)
    bench = Bench(sim, tmp_path)
    sim.run(scenario())


class FullFolder(FilesFolder):
    def begin(self, number: int) -> BufferedWriter:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_an_error_that_may_pass(tmp_path: Path) -> None:
    async def scenario() -> None:
        sink = await bench.sink()
        sink.emit(change(10, "a"))
        with pytest.raises(SinkError, match="No space left on device"):
            await sink.flush(progress(20, resolved=20))
        await sink.close()
        [owners] = (tmp_path / "changes").iterdir()
        assert owners.name.endswith("-owners")

    sim = Simulation(1)
    bench = Bench(sim, tmp_path)
    bench.kind = FilesKind([tmp_path], sim.offload, node_id=1, folder=FullFolder)
    sim.run(scenario())


class LateFolder(FilesFolder):
    """A store of objects that loses an answer: what it was sent appears later."""

    late = True
    lost: ClassVar[list[Callable[[], object]]] = []
    loses = False

    def publish(self, number: int, name: str) -> None:
        if not LateFolder.loses:
            super().publish(number, name)
            return
        body = (self._unfinished / str(number)).read_bytes()
        self.lost.append(lambda: (self.path / name).write_bytes(body))
        raise OSError(errno.ETIMEDOUT, "no answer")


def test_what_appears_late_sorts_before_what_comes_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        first = await bench.sink(known=progress(5, resolved=5))
        first.emit(change(10, "a"))
        await first.flush(progress(20, resolved=20))
        LateFolder.loses = True
        first.emit(change(30, "b"))
        with pytest.raises(SinkError, match="no answer"):
            await first.flush(progress(40, resolved=40))
        LateFolder.loses = False
        bench.clock.forward(ts(60))
        second = await bench.sink(epoch=2, known=progress(5, resolved=5))
        for at, value in ((10, "a"), (30, "b"), (50, "c")):
            second.emit(change(at, value))
        await second.flush(progress(60, resolved=60))
        LateFolder.lost.pop()()
        assert bench.values() == ["a", "b", "a", "b", "c"]

    sim = Simulation(1)
    bench = Bench(sim, tmp_path)
    bench.kind = FilesKind([tmp_path], sim.offload, node_id=1, folder=LateFolder)
    sim.run(scenario())


def test_names_sort_as_timestamps_do_and_can_be_read() -> None:
    names = NameMaker(
        job_id=7, epoch=2, attempt=3, partition_format=PartitionFormat.HOURLY, suffix=".ndjson"
    )
    at = timestamp_at(unix_us=1_706_702_400_123_456, logical=9)
    name = names.data_file(at, 4, "a/b-c", 5)
    stem = "202401311200001234560000000000009"
    assert name == (
        f"2024-01-31/12/{stem}-0000000000000007-00000002-00000003-00000004-a%2Fb-c-5.ndjson"
    )
    assert time_of(name.rsplit("/", 1)[1], 7) == at
    assert time_of(name.rsplit("/", 1)[1], 8) is None
    assert names.mark(at) == f"2024-01-31/12/{stem}.RESOLVED"
    later = timestamp_at(unix_us=1_706_702_400_123_456, logical=10)
    assert name < names.mark(at) < names.data_file(later, 1, "a", 1)


def test_a_store_and_its_copy_do_not_write_one_folder(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = await bench.sink(past=["a"])
        await (await bench.sink(past=["a", "b"])).close()
        with pytest.raises(PastUnknown):
            await bench.sink(past=["a", "c"])
        store.emit(change(10, "x"))
        with pytest.raises(PastUnknown):  # it was open when the other one came
            await store.flush(progress(20, resolved=20))
        await store.close()
        assert bench.names() == []
        again = await bench.sink(past=["a", "b", "d"])
        again.emit(change(10, "x"))
        await again.flush(progress(20, resolved=20))
        await again.close()
        assert bench.values() == ["x"]

    sim = Simulation(9)
    bench = Bench(sim, tmp_path)
    sim.run(scenario())
