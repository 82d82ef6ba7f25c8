"""A worker is started when it is wanted, known by its version, and replaced when it has died."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.worker import (
    Channel,
    Peer,
    Started,
    WorkerGone,
    WorkerProcess,
    start_process,
)
from tests.harness.loop_doorbell import LoopDoorbell
from tests.harness.simulation import Simulation


class Workers:
    """Workers in the test's own loop, and the process that the server knows them by."""

    def __init__(self) -> None:
        self.version = "1"
        self.refuses: OSError | None = None
        self.mute = False
        self.started: list[Peer] = []
        self.told: list[tuple[object, ...]] = []
        self.killed = 0
        self.linger = 0.1
        """What a process takes to end: until then the kernel has its files open."""
        self.metrics = Metrics()
        self.process = WorkerProcess(
            self._start,
            {},
            version="1",
            configuration=("a", "b"),
            metrics=self.metrics,
            name="worker",
        )

    async def _start(self) -> Started:
        if self.refuses is not None:
            raise self.refuses
        assert all(peer.gone for peer in self.started), "one at a time"
        there, back = (memoryview(bytearray(256)) for _ in range(2))
        near, far = LoopDoorbell.pair()
        worker = Peer(Channel(far, back, there), {"hello": self._hello, "number": self._number})
        self.started.append(worker)

        async def wait() -> str:
            await worker.ended
            await asyncio.sleep(self.linger)
            worker.end("over")
            return "was killed by signal 9"

        def kill() -> None:
            self.killed += 1
            worker.end("killed")

        return Started(Channel(near, there, back), wait, kill)

    def _hello(self, *told: object) -> object:
        self.told.append(told)
        return asyncio.sleep(1_000) if self.mute else self.version

    def _number(self) -> int:
        return len(self.started)


def run(scenario: Callable[[Workers], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        await scenario(Workers())

    Simulation(1).run(whole())


def test_one_worker_serves_all_and_another_follows_it() -> None:
    async def scenario(workers: Workers) -> None:
        assert workers.metrics.get("worker_alive") == 0
        assert not workers.started
        first = asyncio.create_task(workers.process.peer())
        while not workers.told:
            await asyncio.sleep(0)  # it has begun, and has not answered
        peers = await asyncio.gather(first, *(workers.process.peer() for _ in range(3)))
        assert len(set(map(id, peers))) == len(workers.started) == 1
        assert workers.told == [("1", "a", "b")]
        assert workers.metrics.get("worker_alive") == 1
        workers.started[0].end("killed")
        with pytest.raises(WorkerGone, match="was killed by signal 9"):
            await peers[0].call("number")
        assert workers.metrics.get("worker_alive") == 0
        assert workers.metrics.get("worker_deaths_total") == 1
        assert await (await workers.process.peer()).call("number") == 2
        await workers.process.close()
        assert workers.metrics.get("worker_alive") == 0
        assert workers.metrics.get("worker_deaths_total") == 1
        with pytest.raises(WorkerGone, match="closed"):
            await workers.process.peer()

    run(scenario)


def test_another_version_is_refused_with_what_to_do() -> None:
    async def scenario(workers: Workers) -> None:
        workers.version = "2"
        with pytest.raises(WorkerGone, match="is Tailrace 2 and this server is Tailrace 1: the"):
            await workers.process.peer()
        workers.version = "1"
        with pytest.raises(WorkerGone, match="start the server again"):
            await workers.process.peer()
        await asyncio.sleep(1)
        await workers.process.peer()
        assert len(workers.started) == 2
        await workers.process.close()

    run(scenario)


def test_none_is_started_before_the_one_before_has_ended() -> None:
    async def scenario(workers: Workers) -> None:
        workers.version, workers.linger = "2", 5.0
        with pytest.raises(WorkerGone):
            await workers.process.peer()
        workers.version = "1"
        await asyncio.sleep(1)
        began = asyncio.get_running_loop().time()
        await workers.process.peer()
        assert asyncio.get_running_loop().time() - began > 3
        await workers.process.close()

    run(scenario)


def test_starts_that_fail_come_ever_more_seldom() -> None:
    async def scenario(workers: Workers) -> None:
        workers.refuses = OSError("no more processes")
        tried = 0
        for _ in range(600):
            before = workers.process._failures
            with pytest.raises(WorkerGone, match="cannot be started: no more processes"):
                await workers.process.peer()
            tried += workers.process._failures - before
            await asyncio.sleep(0.1)
        assert tried == 7  # after 0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5 s
        workers.refuses = None
        await asyncio.sleep(30)
        await workers.process.peer()
        await workers.process.close()

    run(scenario)


def test_a_worker_that_does_not_begin_is_killed() -> None:
    async def scenario(workers: Workers) -> None:
        workers.mute = True
        with pytest.raises(WorkerGone, match="did not start in 60 s"):
            await workers.process.peer()
        await workers.process.close()
        assert workers.started[0].gone

    run(scenario)


def test_long_line_of_a_worker_hides_no_death(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "import sys\nprint('x' * 200_000, file=sys.stderr)\nsys.exit('no room')"
    (tmp_path / "chatty.py").write_text(program)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    async def scenario() -> str:
        started = await start_process("chatty")
        started.channel.start(lambda frame: None, lambda: None)
        how = await started.wait()
        started.channel.close()
        return how

    assert asyncio.run(scenario()) == "ended with exit code 1: no room"
