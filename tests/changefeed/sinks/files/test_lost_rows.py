"""No row is lost and no mark is false, whatever fails and whoever is killed, by seeds."""

from __future__ import annotations

import asyncio
import errno
import json
from io import BufferedWriter
from pathlib import Path
from random import Random

import pytest

from tailrace.changefeed.sinks import SinkError
from tailrace.changefeed.sinks.files import FilesKind
from tailrace.changefeed.sinks.files.folder import FilesFolder
from tailrace.kvlayer.clock import Timestamp, format_timestamp
from tests.changefeed.feeds import FeedBench, open_bench
from tests.harness.simulation import Simulation

URI = "file:///changes?partition_format=flat&file_size=200"
KEYS = 6


class FaultyFolder(FilesFolder):
    """Fails now and then at any of its steps, and notes in which order files appeared."""

    def __init__(self, path: Path, job_id: int, random: Random, appeared: list[str]) -> None:
        super().__init__(path, job_id)
        self._random = random
        self._appeared = appeared
        self.chance = 0.0
        self.crashed = False

    def open(self) -> None:
        self._fail()
        super().open()

    def begin(self, number: int) -> BufferedWriter:
        self._fail()
        return super().begin(number)

    def publish(self, number: int, name: str) -> None:
        self._fail()
        super().publish(number, name)
        self._appeared.append(name)
        self._fail()

    def close(self) -> None:
        if not self.crashed:  # who is killed clears nothing away
            super().close()

    def _fail(self) -> None:
        if self._random.random() < self.chance:
            raise OSError(errno.ENOSPC, "No space left on device")


class Story:
    """A feed of `orders` into a folder that fails, run and killed again and again."""

    def __init__(self, sim: Simulation, bench: FeedBench, root: Path) -> None:
        self.random = sim.random
        self.bench = bench
        self.root = root
        self.appeared: list[str] = []
        self.folders: list[FaultyFolder] = []
        self.chance = 0.1
        self.written: dict[tuple[int, str], str | None] = {}
        """By key and version, what each write left."""
        bench.services.kinds.register(
            "file",
            FilesKind([root], sim.offload, node_id=1, folder=self.folder),
        )

    def folder(self, path: Path, job_id: int) -> FilesFolder:
        made = FaultyFolder(path, job_id, self.random, self.appeared)
        made.chance = self.chance
        self.folders.append(made)
        return made

    async def write(self, count: int) -> None:
        for _ in range(count):
            key, value = self.random.randrange(KEYS), f"{self.random.random()}"
            if self.random.random() < 0.2:
                at = await self.bench.table.write(delete=[key])
                self.written[key, format_timestamp(at)] = None
            else:
                at = await self.bench.table.write((key, value))
                self.written[key, format_timestamp(at)] = value
            await asyncio.sleep(self.random.random() * 0.05)

    async def attempt(self, job_id: int) -> None:
        """Runs the feed while rows are written, until a fault ends it or it is killed."""
        claim = self.bench.jobs.claims[job_id]
        claim.take_again()
        async with self.bench.running(job_id) as feed:
            await self.write(self.random.randrange(12))
            await asyncio.sleep(self.random.random())
            self.folders[-1].crashed = self.random.random() < 0.5
        if feed.done() and not feed.cancelled() and feed.exception() is not None:
            assert isinstance(feed.exception(), SinkError), feed.exception()

    async def last(self, job_id: int, until: Timestamp) -> None:
        """An attempt without faults, until all is there."""
        self.chance = 0.0
        self.bench.jobs.claims[job_id].take_again()
        async with self.bench.running(job_id):
            await self.bench.feeds.wait_until(job_id, until)
            await asyncio.sleep(5)

    # What a reader finds

    def lines(self, name: str) -> list[dict[str, object]]:
        text = (self.root / "changes" / name).read_text()
        return [json.loads(line) for line in text.splitlines()]

    def check(self) -> None:
        names = sorted(set(self.appeared))
        assert names == sorted(
            path.name for path in (self.root / "changes").iterdir() if path.is_file()
        )
        self._check_lost(names)
        self._check_marks(names)
        self._check_order(names)
        self._check_before(names)

    def _versions(self, names: list[str]) -> list[tuple[int, str, object]]:
        """Key, timestamp and value of every change, in the order of files and lines."""
        found = []
        for name in names:
            if name.endswith(".ndjson"):
                for line in self.lines(name):
                    key, after = line["key"], line["after"]
                    assert isinstance(key, list)
                    value = after["v"] if isinstance(after, dict) else None
                    found.append((int(key[0]), str(line["updated"]), value))
        return found

    def _check_lost(self, names: list[str]) -> None:
        found = {(key, at): value for key, at, value in self._versions(names)}
        missing = {version for version in self.written if version not in found}
        assert not missing, missing
        assert all(found[version] == value for version, value in self.written.items())

    def _check_marks(self, names: list[str]) -> None:
        """Every change at or below a mark stands before it, and appeared before it."""
        order = {name: place for place, name in enumerate(self.appeared)}
        marks = [name for name in names if name.endswith(".RESOLVED")]
        assert marks, "no mark was written"
        for mark in marks:
            resolved = str(self.lines(mark)[0]["resolved"])
            before = [name for name in names if name < mark and order[name] < order[mark]]
            shown = {(key, at) for key, at, _ in self._versions(before)}
            below = {version for version in self.written if version[1] <= resolved}
            assert below <= shown, (mark, below - shown)

    def _check_order(self, names: list[str]) -> None:
        """A reader that takes the last of each key has the table."""
        last: dict[int, object] = {}
        newest: dict[int, tuple[str, object]] = {}
        for key, at, value in self._versions(names):
            last[key] = value
            newest[key] = max(newest.get(key, ("", None)), (at, value), key=lambda each: each[0])
        assert last == {key: value for key, (_, value) in newest.items()}

    def _check_before(self, names: list[str]) -> None:
        """Every change tells the value that it replaced."""
        for name in names:
            for line in self.lines(name) if name.endswith(".ndjson") else []:
                key, before = line["key"], line["before"]
                assert isinstance(key, list)
                at = str(line["updated"])
                older = [
                    (version, value)
                    for (written, version), value in self.written.items()
                    if written == key[0] and version < at
                ]
                if (int(key[0]), at) in self.written and older:
                    told = before["v"] if isinstance(before, dict) else None
                    assert told == max(older)[1], line


@pytest.mark.parametrize("seed", range(1, 13))
def test_no_row_is_lost(tmp_path: Path, seed: int) -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            story = Story(sim, bench, tmp_path)
            job_id = await bench.create(
                URI, updated=None, resolved=None, diff=None, min_checkpoint_frequency="50ms"
            )
            for _ in range(8):
                await story.attempt(job_id)
            await story.write(3)
            await story.last(job_id, bench.store.clock.now())
            story.check()

    sim = Simulation(seed)
    sim.run(scenario())
