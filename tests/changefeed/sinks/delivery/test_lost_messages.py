"""No change is lost, no key goes back and no resolved message is early, by seeds."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.changefeed.contract.sink_config import FlushConfig, RetryConfig
from tailrace.changefeed.jobs.dead_letters import read_letters
from tailrace.changefeed.sinks import SinkError
from tailrace.kvlayer.clock import format_timestamp
from tests.changefeed.feeds import FeedBench, open_bench
from tests.changefeed.sinks.delivery.receiver import Receiver, ReceiverKind
from tests.harness.simulation import Simulation

KEYS = 6
CONFIGS = (
    FlushConfig(),
    FlushConfig(messages=3, frequency=0.2),
    FlushConfig(bytes=400, frequency=0.05),
)


class Story:
    """A feed into a receiver that fails, run and killed again and again."""

    def __init__(self, sim: Simulation, bench: FeedBench) -> None:
        self.random = sim.random
        self.bench = bench
        self.receiver = Receiver(sim.random, chance=0.3)
        self.receiver.answers.set()
        self.written: dict[tuple[int, str], str | None] = {}
        """By key and version, what each write left."""
        self.letters: set[tuple[int, str]] = set()
        """Keys and versions that were dead letters when a mark came that speaks for them."""
        flush = sim.random.choice(CONFIGS)
        retry = RetryConfig(max=2, backoff=0.1)
        bench.services.kinds.register("receiver", ReceiverKind(self.receiver, flush, retry))

    def refuse_some(self) -> None:
        """The receiver refuses one value in five for ever."""
        self.receiver.takes = lambda message: (
            not str((message.get("after") or {}).get("v")).endswith(("3", "7"))
        )
        self.receiver.on_resolved = self._note_letters

    async def _note_letters(self, mark: str) -> None:
        (job_id,) = self.bench.jobs.claims
        found = {
            (int(letter.key.strip("[]")), format_timestamp(letter.at))
            for letter in await read_letters(self.bench.store, job_id)
        }
        self.letters |= {each for each in found if each[1] <= mark}
        refused = {
            each for each, value in self.written.items() if value and value.endswith(("3", "7"))
        }
        due = {each for each in refused if each[1] <= mark} - self.letters
        assert not due, f"resolved {mark} passed refused rows that are no dead letters: {due}"

    async def write(self, count: int) -> None:
        for _ in range(count):
            key = self.random.randrange(KEYS)
            value = None if self.random.random() < 0.2 else f"{self.random.random()}"
            rows = [] if value is None else [(key, value)]
            at = await self.bench.table.write(*rows, delete=[key] if value is None else [])
            self.written[key, format_timestamp(at)] = value
            await asyncio.sleep(self.random.random() * 0.05)

    async def attempt(self, job_id: int) -> None:
        """Runs the feed while rows are written, until a fault ends it or it is killed."""
        self.bench.jobs.claims[job_id].take_again()
        async with self.bench.running(job_id) as feed:
            await self.write(self.random.randrange(25))
            await asyncio.sleep(self.random.random())
        if feed.done() and not feed.cancelled() and feed.exception() is not None:
            assert isinstance(feed.exception(), SinkError), feed.exception()

    async def last(self, job_id: int) -> None:
        """An attempt without faults, until all is there."""
        self.receiver.chance = 0.0
        async with self.bench.running(job_id):
            await self.bench.feeds.wait_until(job_id, self.bench.store.clock.now())
            await asyncio.sleep(5)

    def check(self) -> None:
        """A reader that forgets nothing finds each version, in order per key, before any resolved
        message that speaks for it."""
        seen: dict[int, dict[str, object]] = {key: {} for key in range(KEYS)}
        marks = 0
        for key, message in self.receiver.arrived:
            if key is None:
                marks += 1
                due = {each for each in self.written if each[1] <= message["resolved"]}
                missing = {(k, at) for k, at in due - self.letters if at not in seen[k]}
                assert not missing, f"resolved {message['resolved']} came before {missing}"
                continue
            number, at = int(key.strip(b"[]")), message["updated"]
            if at not in seen[number]:
                assert at >= max(seen[number], default=""), f"key {number} goes back to {at}"
            seen[number][at] = message["after"] and message["after"]["v"]
        lost = {each: value for each, value in self.written.items() if each[1] not in seen[each[0]]}
        lost = {each: value for each, value in lost.items() if each not in self.letters}
        assert not lost, f"lost: {lost}"
        arrived = self.written.keys() - self.letters
        assert all(seen[key][at] == self.written[key, at] for key, at in arrived)
        assert marks, "no resolved message came"


@pytest.mark.parametrize("seed", range(1, 9))
def test_no_message_is_lost(seed: int) -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            story = Story(sim, bench)
            job_id = await bench.create(
                "receiver://", updated=None, resolved=None, min_checkpoint_frequency="50ms"
            )
            for _ in range(6):
                await story.attempt(job_id)
            await story.last(job_id)
            story.check()
            assert story.receiver.most > 1, "requests never overlapped"

    sim = Simulation(seed)
    sim.run(scenario())


@pytest.mark.parametrize("seed", range(1, 5))
def test_no_refused_row_is_lost(seed: int) -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            story = Story(sim, bench)
            story.refuse_some()
            job_id = await bench.create(
                "receiver://",
                updated=None,
                resolved=None,
                on_bad_row="dead_letter",
                min_checkpoint_frequency="50ms",
            )
            for _ in range(4):
                await story.attempt(job_id)
            await story.last(job_id)
            story.check()
            assert story.letters, "nothing was refused"

    sim = Simulation(seed)
    sim.run(scenario())
