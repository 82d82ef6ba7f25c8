"""Random schema changes through SQL on several nodes, under rows, feeds and misfortune.

The first node serves the store, the others have joined it over a network that stops, breaks and
loses notices. Clients write, read and change a few tables on any node; sessions and leases end;
nodes die; jobs are stopped, paused and canceled; feeds are away for a while; the machine loses its
power. Tables are dropped and made, and join and leave feeds, are paused, resumed and shown again.
One feed writes a DuckDB mirror, in every third seed with a log beside it, the others messages;
limits are as small as the seed says. At a quiet point everything has to come to an end, and all
that was seen is judged by `TableModel`: what feeds showed, the order of each key's versions, and
what the mirror held behind every checkpoint. Logs are compared with the histories of their tables.
A feed whose durable progress does not move for minutes stands still, and fails the run.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tailrace.catalog.rights.bootstrap import bootstrap
from tailrace.changefeed import JOB_KIND as FEED
from tailrace.changefeed.contract.options import SchemaFeedKind
from tailrace.changefeed.sinks.locations import Apply, Mode
from tailrace.kvlayer.rangefeed.host import TICK_INTERVAL
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.store import Store
from tests.harness.simulation import Simulation
from tests.harness.stores import crash, open_store, reopen
from tests.simulation import storm_limits
from tests.simulation.raw_history import TableHistory, check_two_versions
from tests.simulation.schema_feeds import StormFeed
from tests.simulation.schema_model import TableModel
from tests.simulation.schema_steps import Truncate
from tests.simulation.storm_clients import Clients, Read
from tests.simulation.storm_mirrors import StormMirror
from tests.simulation.storm_nemeses import Nemeses, resume_jobs
from tests.simulation.storm_places import STATEMENT_SECONDS_MAX, Place, choose, start_places
from tests.simulation.storm_watchdog import Watchdog

LIVES_MAX = 3

SETTINGS = {
    "kv.engine.flush_bytes": "50000",  # so that the log is cut behind the engine, again and again
    "server.liveness.heartbeat_interval": "300ms",
    "server.liveness.ttl": "1500ms",
    "catalog.leases.watchdog": "2s",
    "sql.schema_change.lease_wait_timeout": "6s",
    "changefeed.experimental_poll_interval": "200ms",
}
"""Everything a few times faster than a server has it: idle time costs, also in a simulation."""

SETTLE_SECONDS_MAX = 60.0

TICKS = ["20ms", "50ms", "200ms"]
"""How often an idle range closes timestamps."""


@dataclass(frozen=True, slots=True)
class StormOutcome:
    """What a run was made of: one in which nothing happens proves nothing."""

    changes: int
    versions: int
    commits: int
    shown: int
    crashes: int
    deaths: int
    reads: int
    pauses: int
    alterations: int
    duplicates: int
    transactions: int
    """Those that feeds with `transactions` told whole."""
    mirrored: int
    misfortunes: Counter[str]
    """By name, how often each came."""
    fingerprint: str
    """Another run that was not the same would hardly have it."""


class SchemaStorm:
    """One seed's run."""

    def __init__(self, seed: int, folder: Path, *, rough: bool) -> None:
        """In a `rough` storm the clock of the machine jumps as well, and tables get comments."""
        self.seed = seed
        self._roughness = Random(f"{seed}:rough") if rough else None
        self.folder = folder
        self.sim = Simulation(seed, time_limit=600.0)
        self.random = self.sim.random
        self.models: list[TableModel] = []
        self.feeds: list[StormFeed] = []
        self.clients = Clients(self.random, self.models)
        self.settings = {**SETTINGS, TICK_INTERVAL.name: self.random.choice(TICKS)}
        self.settings |= storm_limits.settings(self.random)
        self.pauses = 0
        self.alterations: Counter[str] = Counter()
        self.mirrored = 0
        self.logs = 0
        self.crashes = 0
        self.deaths = 0
        self.jumps = 0
        self.versions = 0
        self.shown = 0

    def run(self) -> StormOutcome:
        lives = self.random.choice([1, 1, 2, LIVES_MAX])
        with storm_limits.small_constants(self.random):
            for life in range(1, lives + 1):
                self.sim.run(self._live(first=life == 1, crashes=life < lives))
        return StormOutcome(
            changes=sum(len(model.changes) for model in self.models),
            versions=self.versions,
            commits=sum(len(model.writes) for model in self.models),
            shown=self.shown,
            crashes=self.crashes,
            deaths=self.deaths,
            reads=len(self.clients.reads),
            pauses=self.pauses,
            alterations=self.alterations.total(),
            duplicates=sum(record.duplicates for feed in self.feeds for record in feed.records),
            transactions=sum(
                len(attempt.transactions)
                for feed in self.feeds
                for record in feed.records
                for attempt in record.framed
            ),
            mirrored=self.mirrored,
            misfortunes=self._misfortunes(),
            fingerprint=self.sim.fingerprint(),
        )

    def _misfortunes(self) -> Counter[str]:
        applied = [step for model in self.models for each in model.changes for step in each.applied]
        records = [record for feed in self.feeds for record in feed.records]
        counts = Counter(
            {
                "crashes of the store": self.crashes,
                "deaths of nodes": self.deaths,
                "clock jumps": self.jumps,
                "feeds away": self.pauses,
                "flushes refused": sum(record.failures for record in records),
                "schema changes": len(applied),
                "tables truncated": applied.count(Truncate()),
                "logs verified": self.logs,
                "tables dropped": sum(model.dropped for model in self.models),
            }
        )
        return counts + self.alterations

    # A life.

    async def _live(self, *, first: bool, crashes: bool) -> None:
        store = await (open_store if first else reopen)(self.sim, settings=Settings(self.settings))
        if first:
            await bootstrap(store)
        for model in self.models:
            model.frozen = False
        joined = self.random.choice([1, 1, 2])
        async with start_places(self.sim, store, joined, self.settings) as places:
            if first:
                await self._create(places[0])
            for feed in self.feeds:
                if feed.mirror is not None:
                    feed.mirror.begin()
                feed.start(self.random.choice(places).node)
            await self._storm(places, crashes=crashes)
            if not crashes:
                await self._settle(store, places)
            for place in places:
                place.dead = False
                place.go_on()
            for feed in self.feeds:
                await feed.stop()
            if not crashes:
                for model in self.models:  # changes that failed have left it to others
                    if model.dropped:
                        continue
                    await places[0].node.sql(f"ALTER TABLE {model.name} ADD COLUMN z INT8 UNIQUE")
                    await places[0].node.sql(f"DROP TABLE {model.name}")
        if not crashes:
            store.check_invariants()
        await store.close()

    async def _create(self, place: Place) -> None:
        for name in ("t", "u"):
            await self.clients.create(place, name)
        kinds = list(SchemaFeedKind)
        mirrored = self.random.choice(kinds)
        self.feeds = [
            StormFeed(
                self.sim,
                kind,
                self.models,
                follows=self.random.random() < 0.6,
                mirror=self._mirror(kind) if kind is mirrored else None,
            )
            for kind in kinds
        ]

    def _mirror(self, kind: SchemaFeedKind) -> StormMirror:
        apply = Apply.TRANSACTION if self.seed % 4 == 3 else Apply.ROW
        mode = Mode.BOTH if self.seed % 3 == 0 else Mode.MIRROR
        return StormMirror(self.sim, self.folder / kind.value, apply, mode)

    async def _storm(self, places: list[Place], *, crashes: bool) -> None:
        """Load and misfortune for some time; then the power goes, or all of it comes to an end."""
        stop = asyncio.Event()
        clients, nemeses = self.clients, Nemeses(self.sim, self.feeds)
        works: list[Coroutine[Any, Any, None]] = [
            clients.writer(places, stop) for _ in range(self.random.choice([2, 2, 5]))
        ]
        works += [clients.changer(places, stop), clients.lessee(places, stop)]
        works += [clients.reader(places, stop)]
        works += [nemeses.trouble_nodes(places, stop), nemeses.trouble_jobs(places, stop)]
        works += [nemeses.watch_jobs(places, stop), nemeses.trouble_feeds(places, stop)]
        works += [nemeses.alter_feeds(places, stop), clients.dropper(places, stop)]
        works += [Watchdog(self.sim, self.feeds).watch(stop)]
        if self._roughness is not None:
            works += [nemeses.trouble_clock(self._roughness, stop)]
            works += [clients.commenter(self._roughness, places, stop)]
        tasks = [asyncio.create_task(work) for work in works]
        seconds = self.random.random() * self.random.choice([0.2, 1.0, 4.0, 4.0])
        await asyncio.sleep(seconds)
        if crashes:
            self.deaths += nemeses.deaths
            self.jumps += nemeses.jumps
            self.alterations += nemeses.alterations
            self.crashes += 1
            for model in self.models:
                model.frozen = True
            crash(self.sim)
            for feed in self.feeds:
                feed.die()
            for place in places:
                place.dead = False
                place.go_on()  # what is left of the process has to be tidied up, and nobody hears
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return
        stop.set()
        for place in places:
            place.go_on()
        async with asyncio.timeout(2 * STATEMENT_SECONDS_MAX):
            await asyncio.gather(*tasks)
        self.deaths += nemeses.deaths
        self.jumps += nemeses.jumps
        self.pauses += nemeses.pauses
        self.alterations += nemeses.alterations

    # Judgement.

    async def _jobs(self, place: Place) -> list[object]:
        jobs = await place.node.registry.list()
        return [
            (j.description, j.state, j.error, j.claim_node_id)
            for j in jobs
            if not j.state.final and j.kind != FEED
        ]

    async def _settle(self, store: Store, places: list[Place]) -> None:
        """Nobody is stopped any more. Everything comes to its end, and is judged."""
        node = places[0].node
        async with asyncio.timeout(SETTLE_SECONDS_MAX):
            while await self._jobs(places[0]):
                await resume_jobs(node)
                await asyncio.sleep(0.2)
        for feed in self.feeds:
            feed.fail_chance = 0.0
            if feed.task is None:
                feed.start(choose(self.random, places).node)
            await feed.resume_targets(node)
        await Watchdog(self.sim, self.feeds).settle(node, store.clock.now())
        histories = {
            model.table_id: await TableHistory.read(store, model.table_id) for model in self.models
        }
        for model in self.models:
            history = histories[model.table_id]
            model.explain(history.steps(), history.writes())
        self.versions = await check_two_versions(store, list(histories.values()))
        self.shown = sum(feed.judge(histories) for feed in self.feeds)
        self.logs = sum([await feed.verify_logs(node) for feed in self.feeds])
        self.mirrored = sum(len(feed.mirror.looks) for feed in self.feeds if feed.mirror)
        for read in self.clients.reads:
            self._check_read(read)
        for place in places:
            place.node.services.leases.check_invariants()

    def _check_read(self, read: Read) -> None:
        """A statement in the past sees its rows under the version that was canonical then."""
        model, at = read.model, read.at
        era = model.era_at(at)
        assert read.columns == era.schema.shape.columns, (read, era)
        assert {row[0] for row in read.rows} == model.rows_at(at).keys(), read
        for row in read.rows:
            key = row[0]
            assert isinstance(key, int)
            model.check_row(key, at, row)


def run_storm(seed: int, *, rough: bool = False) -> StormOutcome:
    with tempfile.TemporaryDirectory(prefix="tailrace-storm-") as folder:
        return SchemaStorm(seed, Path(folder), rough=rough).run()
