"""Time from an oracle: what a store does while it answers, and while it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tailrace.kvlayer.clock import Timestamp, duration, seconds_between
from tailrace.kvlayer.errors import OracleAway
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.raw import OracleTime, OracleWatch, RawKeyspace, keyspace_span
from tailrace.kvlayer.replication.replica import Begin, Ingest, Open, ReplicaRefused
from tailrace.kvlayer.store import Store
from tests.harness.sim_oracle import SimOracle
from tests.harness.simulation import Simulation
from tests.harness.stores import key, open_store, put, reopen

A_DAY = 86_400.0


class Main:
    """A machine whose store takes its time from an oracle."""

    def __init__(self) -> None:
        self.sim = Simulation(seed=1)
        self.oracle = SimOracle(self.sim)
        self.metrics = Metrics()
        self.time: OracleTime
        self.store: Store
        self._watch: OracleWatch

    async def start(self, *, again: bool = False) -> None:
        self.time = OracleTime("oracle:1", self.sim.wall)
        self._watch = OracleWatch(self.time, self.oracle.now, self.metrics)
        await self._watch.start()
        self.store = await (reopen if again else open_store)(self.sim, physical=self.time)

    async def stop(self) -> None:
        await self._watch.close()
        await self.store.close()

    async def put(self) -> Timestamp:
        return await RawKeyspace(self.store, 7).put(b"k", b"v")


def run(body: Callable[[Main], Awaitable[None]], *, away: bool = False) -> None:
    """Runs `body` on a started store, whose oracle may be away at first."""
    main = Main()
    main.oracle.away = away

    async def live() -> None:
        await main.start()
        await body(main)
        await main.stop()

    main.sim.run(live())


def test_no_raw_write_before_the_first_answer() -> None:
    async def body(main: Main) -> None:
        with pytest.raises(OracleAway, match="not answered yet: the oracle does not answer"):
            await main.put()
        written = await put(main.store, {key("a"): b"SQL goes on"})
        main.oracle.away = False
        await asyncio.sleep(0.6)
        assert await main.put() >= main.oracle.greatest > written

    run(body, away=True)


def test_outage_below_half_a_minute_is_tolerated() -> None:
    async def body(main: Main) -> None:
        first = await main.put()
        main.oracle.away = True
        await asyncio.sleep(29.0)
        second = await main.put()
        assert first < second
        assert seconds_between(first, second) < 0.001, "the time stands, and is the oracle's"

    run(body)


def test_longer_outage_refuses_raw_writes_and_says_since_when() -> None:
    async def body(main: Main) -> None:
        await asyncio.sleep(10.0)
        main.oracle.away = True
        await asyncio.sleep(31.0)
        with pytest.raises(OracleAway, match=r"last answered at 2026-01-01T00:00:10\.\d{3}Z"):
            await main.put()
        last = main.store.clock.last
        assert await put(main.store, {key("a"): b"SQL goes on"}) > last
        assert main.metrics.get("kv_oracle_age_seconds") > 30.0
        main.oracle.away = False
        await asyncio.sleep(0.6)
        assert seconds_between(last, await main.put()) > 30.0

    run(body)


def test_clock_of_the_machine_means_nothing() -> None:
    async def body(main: Main) -> None:
        before = await main.put()
        for jump in (A_DAY, -400 * A_DAY):
            main.sim.wall.jump(jump)
            await asyncio.sleep(1.0)
            after = await main.put()
            assert 0 < seconds_between(before, after) <= 1.0
            before = after

    run(body)


def test_restart_with_its_clock_set_back_repeats_nothing() -> None:
    async def body(main: Main) -> None:
        before = await main.put()
        await main.stop()
        main.sim.wall.jump(-A_DAY)
        main.oracle.away = True
        await main.start(again=True)
        with pytest.raises(OracleAway):
            await main.put()
        assert await put(main.store, {key("a"): b"1"}) > before

    run(body)


def test_oracle_that_goes_back_is_an_outage() -> None:
    async def body(main: Main) -> None:
        await asyncio.sleep(10.0)
        main.oracle.back_seconds = 3600
        await asyncio.sleep(20.0)
        last = await main.put()
        assert last >= main.oracle.greatest
        assert main.metrics.get("kv_oracle_refused_total") > 30
        await asyncio.sleep(11.0)
        with pytest.raises(OracleAway, match="lost its history"):
            await main.put()
        assert main.store.clock.now() > last

    run(body)


def test_answer_with_a_logical_part_is_not_passed() -> None:
    time = OracleTime("oracle:1", Simulation(seed=1).wall)
    answer = Timestamp(duration(seconds=3.0) + 17)
    assert time.heard(answer)
    assert not time.heard(answer)
    assert time.last == answer
    assert seconds_between(Timestamp(0), answer) < (time.unix_us() - 1_577_836_800_000_000) / 1e6


def test_replica_takes_nothing_while_no_time_is_known() -> None:
    async def body(main: Main) -> None:
        span = keyspace_span(7)
        await main.store.replica(span, Begin())
        await main.store.replica(span, Open("s"))
        order = Ingest(source="s", epoch=1, origin=1, resolved=Timestamp(duration(seconds=3600)))
        with pytest.raises(ReplicaRefused, match="one of the two clocks is wrong"):
            await main.store.replica(span, order)

    run(body, away=True)
