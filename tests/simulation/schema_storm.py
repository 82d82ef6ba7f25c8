"""Random schema changes through SQL on several nodes, under rows, feeds and misfortune.

The first node serves the store, the others have joined it over a network that stops, breaks and
loses notices. Clients write, read and change two tables on any node; sessions and leases end;
nodes die; jobs are stopped, paused and canceled; the machine loses its power. At a quiet point
everything has to come to an end, and all that was seen is judged by `TableModel`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from tailrace.api.rpc import StoreService
from tailrace.catalog.bootstrap import bootstrap
from tailrace.catalog.errors import SQLError
from tailrace.catalog.jobs import JobState
from tailrace.catalog.schema_change.job import JOB_KIND
from tailrace.changefeed.options import SchemaFeedKind
from tailrace.kvlayer.clock import Timestamp, format_timestamp
from tailrace.kvlayer.errors import KVError, OutcomeUnknown
from tailrace.kvlayer.rangefeed.host import TICK_INTERVAL
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.store import Store
from tailrace.sql import Result, Session
from tests.harness.sim_network import SimNetwork
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_services
from tests.harness.stores import crash, open_store, reopen
from tests.simulation.raw_history import TableHistory, check_two_versions
from tests.simulation.schema_feeds import StormFeed
from tests.simulation.schema_model import Outcome, TableModel, Truncate, Write
from tests.simulation.schema_statements import Statements

T = TypeVar("T")

KEYS = 12
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

STATEMENT_SECONDS_MAX = 40.0
"""A lease is held for 3 s at most, a session lives 1.5 s after its last heartbeat, notices that
stand still are noticed after 2, and a statement waits 6 for leases and says then who has them: each
wait ends long before this, also behind several changes of the same table."""

SETTLE_SECONDS_MAX = 60.0

SILENT_SECONDS_MAX = 6.0
"""A job that has come no further for so long says what it waits for."""

TICKS = ["20ms", "50ms", "200ms"]
"""How often an idle range closes timestamps."""

REFUSED_STATES = ("23", "42", "2B", "57014", "55", "0A", "22", "25", "57000")
"""SQLSTATEs, or classes of them, that say that nothing was changed."""


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


class NodeDied(Exception):
    """A client's node gives no more answers."""


@dataclass(slots=True, eq=False)
class Place:
    """A node, and its network if it is not the one that serves the store."""

    node: SqlNode
    network: SimNetwork | None
    dead: bool = False
    died: asyncio.Event = field(default_factory=asyncio.Event)

    def stop(self) -> None:
        if self.network is not None:
            self.network.cut()

    def go_on(self) -> None:
        if self.network is not None and not self.dead:
            self.network.heal()

    async def state(self) -> str:
        """Who waits for what."""
        jobs = [job for job in await self.node.registry.list() if not job.state.final]
        told = [(j.id, j.description, j.state.value, j.error, j.claim_node_id) for j in jobs]
        return f"jobs {told}, waits {self.node.services.leases.waits.under_way()}"

    async def attend(self, work: Coroutine[Any, Any, T], what: str) -> T:
        """What a client gets, who waits no longer than anything may take. Raises NodeDied."""
        task = asyncio.create_task(work)
        death = asyncio.create_task(self.died.wait())
        try:
            await asyncio.wait(
                (task, death),
                timeout=STATEMENT_SECONDS_MAX,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if task.done():
                return task.result()
            if self.dead:
                raise NodeDied
            raise AssertionError(f"{what} hangs: {await self.state()}")
        finally:
            death.cancel()
            task.cancel()
            if not self.dead:  # of a dead node, nothing is waited for
                await asyncio.wait((task, death))


@dataclass(frozen=True, slots=True)
class _Read:
    model: TableModel
    at: Timestamp
    names: tuple[str, ...]
    rows: Sequence[tuple[object, ...]]


class SchemaStorm:
    """One seed's run."""

    def __init__(self, seed: int) -> None:
        self.sim = Simulation(seed, time_limit=600.0)
        self.random = self.sim.random
        self.models = [TableModel("t"), TableModel("u")]
        self.statements = {model.name: Statements(model.name, self.random) for model in self.models}
        self.feeds: list[StormFeed] = []
        self.reads: list[_Read] = []
        self.settings = {**SETTINGS, TICK_INTERVAL.name: self.random.choice(TICKS)}
        self.tokens = 0
        self.crashes = 0
        self.deaths = 0
        self.versions = 0
        self.shown = 0

    def run(self) -> StormOutcome:
        lives = self.random.choice([1, 1, 2, LIVES_MAX])
        for life in range(1, lives + 1):
            self.sim.run(self._live(first=life == 1, crashes=life < lives))
        return StormOutcome(
            changes=sum(len(model.changes) for model in self.models),
            versions=self.versions,
            commits=sum(len(model.writes) for model in self.models),
            shown=self.shown,
            crashes=self.crashes,
            deaths=self.deaths,
            reads=len(self.reads),
        )

    # A life.

    async def _live(self, *, first: bool, crashes: bool) -> None:
        store = await (open_store if first else reopen)(self.sim, settings=Settings(self.settings))
        if first:
            await bootstrap(store)
        for model in self.models:
            model.frozen = False
        joined = self.random.choice([1, 1, 2])
        async with _places(self.sim, store, joined, self.settings) as places:
            if first:
                await self._create(places[0].node)
            for feed in self.feeds:
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
            store.check_invariants()
        await store.close()

    async def _create(self, node: SqlNode) -> None:
        catalog = node.services.catalog
        for model in self.models:
            locked = self.random.choice(["", " WITH (changefeed_optimized = true)"])
            columns = "k INT8 PRIMARY KEY, j INT8 NOT NULL, w INT8 NOT NULL"
            await node.sql(f"CREATE TABLE {model.name} ({columns}){locked}")
            reader = node.store.snapshot(node.store.clock.now())
            tables = await catalog.list_tables(reader, "defaultdb")
            model.table_id = next(table.id for table in tables if table.name == model.name)
        kinds = list(SchemaFeedKind)
        self.feeds = [
            StormFeed(
                self.sim,
                kind,
                self.models if self.random.random() < 0.4 else self.models[:1],
                follows=self.random.random() < 0.6,
            )
            for kind in kinds
        ]

    async def _storm(self, places: list[Place], *, crashes: bool) -> None:
        """Load and misfortune for some time; then the power goes, or all of it comes to an end."""
        stop = asyncio.Event()
        works: list[Coroutine[Any, Any, None]] = [self._writer(places, stop) for _ in range(2)]
        works += [self._changer(places, stop), self._lessee(places, stop)]
        works += [self._nemesis(places, stop), self._job_nemesis(places, stop)]
        works += [self._reader(places, stop), self._listen(places, stop)]
        tasks = [asyncio.create_task(work) for work in works]
        seconds = self.random.random() * self.random.choice([0.2, 1.0, 4.0])
        await asyncio.sleep(seconds)
        if crashes:
            self.crashes += 1
            for model in self.models:
                model.frozen = True
            crash(self.sim)
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

    # Clients.

    def _place(self, places: Sequence[Place]) -> Place:
        return self.random.choice([place for place in places if not place.dead])

    async def _writer(self, places: list[Place], stop: asyncio.Event) -> None:
        while not stop.is_set():
            model = self.random.choice(self.models)
            place = self._place(places)
            await self._transact(place, model, self.random.random() < 0.25)
            await asyncio.sleep(self.random.choice([0.0, 0.005, 0.05]))

    async def _transact(self, place: Place, model: TableModel, explicit: bool) -> None:
        """Writes a few rows, in one statement or in a transaction that takes its time."""
        session = Session(place.node.services)
        write = model.begin_write(place.node.store.clock.last)
        try:
            if explicit:
                at = await place.attend(
                    self._write_at_leisure(session, model, write), "a transaction"
                )
            else:
                at = await place.attend(self._write(session, model, write), "a write")
        except (SQLError, KVError) as error:
            if not _unknown(error):
                model.end_write(write, None)
        except NodeDied:
            pass
        else:
            model.end_write(write, at)
        finally:
            await _end(session, place)

    async def _write_at_leisure(
        self, session: Session, model: TableModel, write: Write
    ) -> Timestamp | None:
        await session.execute("BEGIN")
        for _ in range(self.random.randint(1, 3)):
            await self._write(session, model, write)
            await asyncio.sleep(self.random.choice([0.0, 0.01, 0.2]))
        [result] = await session.execute("COMMIT")
        return result.commit_timestamp

    async def _write(self, session: Session, model: TableModel, write: Write) -> Timestamp | None:
        """Adds to `write` what a statement did, in the way that `TableModel` counts."""
        random = self.random
        self.tokens += 1
        token, key = self.tokens, random.randrange(KEYS)
        plain = [c for c in model.guess().columns if c.fill.value in ("null", "constant")]
        named = random.sample(plain, random.randint(0, min(2, len(plain))))
        values = {c.number: random.choice([None, token, token, token]) for c in named}
        texts = ["NULL" if value is None else f"'{value}'" for value in values.values()]
        table, draw = model.name, random.random()
        place = len(write.items)
        if draw < 0.5:
            names = ", ".join(["k", "j", "w", *(c.name for c in named)])
            literals = ", ".join([str(key), str(key + 1000), str(token), *texts])
            text = f"INSERT INTO {table} ({names}) VALUES ({literals})"
            write.insert(key, token, values)
        elif draw < 0.85:
            sets = [f"{c.name} = {text}" for c, text in zip(named, texts, strict=True)]
            text = f"UPDATE {table} SET {', '.join([f'w = {token}', *sets])} WHERE k = {key}"
            write.update(key, token, values)
        else:
            text = f"DELETE FROM {table} WHERE k = {key}"
            write.delete(key)
        [result] = await session.execute(text)
        if not result.row_count:
            del write.items[place]
        return result.commit_timestamp

    async def _reader(self, places: list[Place], stop: asyncio.Event) -> None:
        while not stop.is_set():
            await asyncio.sleep(self.random.random() * 0.5)
            place, model = self._place(places), self.random.choice(self.models)
            session = Session(place.node.services)
            try:
                at = await place.attend(place.node.store.now(), "the clock")
                text = f"SELECT * FROM {model.name} AS OF SYSTEM TIME '{format_timestamp(at)}'"
                [result] = await place.attend(session.execute(text), "a read")
            except (SQLError, KVError, NodeDied):
                continue
            else:
                if not model.frozen:
                    names = tuple(column.name for column in result.columns)
                    self.reads.append(_Read(model, at, names, result.fetch_rows()))
            finally:
                await _end(session, place)

    async def _changer(self, places: list[Place], stop: asyncio.Event) -> None:
        """One schema change after the other, and now and then two at once."""
        while not stop.is_set():
            await asyncio.sleep(self.random.random() * 0.05)
            changes = [
                self._change(self._place(places)) for _ in range(self.random.choice([1, 1, 2]))
            ]
            await asyncio.gather(*changes)

    async def _change(self, place: Place) -> None:
        model = self.random.choice(self.models)
        text, steps = self.statements[model.name].next(model.guess())
        session = Session(place.node.services)
        explicit = self.random.random() < 0.15
        write = model.begin_write(place.node.store.clock.last) if explicit else None
        change = model.begin_change(text, steps, place.node.store.clock.last)
        outcome, at = Outcome.IN_DOUBT, None
        try:
            result = await place.attend(self._run_change(session, model, text, write), text)
            at = result.commit_timestamp
            # A job that is paused goes on later.
            outcome = Outcome.DONE if result.notice is None else Outcome.IN_DOUBT
        except (SQLError, KVError) as error:
            if _refused(error):
                outcome = Outcome.REFUSED
            if write is not None and not _unknown(error) and not _begun(error):
                model.end_write(write, None)
        except NodeDied:
            pass
        else:
            if write is not None:
                model.end_write(write, at)
        finally:
            model.end_change(change, outcome, _end_of(outcome, place))
            await _end(session, place)

    async def _run_change(
        self, session: Session, model: TableModel, text: str, write: Write | None
    ) -> Result:
        if write is None:
            return (await session.execute(text))[-1]
        await session.execute("BEGIN")
        await self._write(session, model, write)
        await session.execute(text)
        return (await session.execute("COMMIT"))[-1]

    async def _jobs(self, place: Place) -> list[object]:
        jobs = await place.node.registry.list()
        return [
            (j.description, j.state, j.error, j.claim_node_id) for j in jobs if not j.state.final
        ]

    async def _lessee(self, places: list[Place], stop: asyncio.Event) -> None:
        """Takes leases and holds them, as a long statement does."""
        while not stop.is_set():
            await asyncio.sleep(self.random.random())
            place, model = self._place(places), self.random.choice(self.models)
            try:
                leases = place.node.services.leases
                at = await place.attend(place.node.store.now(), "the clock")
                lease = await place.attend(leases.acquire(model.table_id, at), "a lease")
            except (SQLError, KVError, NodeDied):
                continue
            await asyncio.sleep(self.random.choice([0.05, 0.5, 3.0]))
            lease.release()

    # Misfortune.

    async def _nemesis(self, places: list[Place], stop: asyncio.Event) -> None:
        """Nodes that stop, lose their connections or their notices, and die."""
        while not stop.is_set():
            await asyncio.sleep(self.random.random() * 0.5)
            place = self._place(places)
            if place.network is None or stop.is_set():
                continue
            match self.random.randrange(8):
                case 0 | 1 | 2:
                    place.stop()
                    await asyncio.sleep(self.random.choice([0.05, 0.5, 2.5]))
                    place.go_on()
                case 3 | 4:
                    place.network.disconnect()
                case 5 | 6:
                    place.network.mute()
                    await asyncio.sleep(self.random.choice([0.2, 1.0, 4.0]))
                    place.go_on()
                case _ if self.random.random() < 0.5:
                    place.stop()
                    place.dead = True
                    place.died.set()
                    self.deaths += 1
                    await self._move_feeds(places, place)

    async def _move_feeds(self, places: list[Place], dead: Place) -> None:
        for feed in self.feeds:
            task = feed.task
            if task is not None:
                task.cancel()  # its node says nothing more
                feed.start(self._place(places).node)

    async def _job_nemesis(self, places: list[Place], stop: asyncio.Event) -> None:
        """Jobs that are stopped as a crash would, paused, resumed and canceled."""
        while not stop.is_set():
            await asyncio.sleep(self.random.random() * 0.1)
            registry = places[0].node.registry
            jobs = [j for j in await registry.list() if j.kind == JOB_KIND and not j.state.final]
            if not jobs:
                continue
            job = self.random.choice(jobs)
            try:
                match self.random.randrange(8):
                    case 0:
                        await registry.request_cancel(job.id)
                    case 1 | 2:
                        await registry.request_pause(job.id)
                    case 3 | 4:
                        await registry.request_resume(job.id)
                    case _:
                        for runner in list(registry._runners.values()):
                            await runner.close()
            except (SQLError, KVError):
                pass  # it was faster
            if job.state is JobState.PAUSED:
                await _resume(places[0].node)

    async def _listen(self, places: list[Place], stop: asyncio.Event) -> None:
        """A job that comes no further says why."""
        node = places[0].node
        known: dict[int, tuple[object, float]] = {}
        while not stop.is_set():
            await asyncio.sleep(1.0)
            for job in await node.registry.list():
                if job.kind != JOB_KIND or job.state is not JobState.RUNNING:
                    known.pop(job.id, None)
                    continue
                state = (await node.registry.progress(job.id), job.epoch, job.error)
                former, since = known.get(job.id, (None, 0.0))
                if former != state:
                    known[job.id] = (state, self.sim.now)
                elif self.sim.now - since > SILENT_SECONDS_MAX:
                    assert job.error, f"{job} has stood still since {since}, and does not say why"

    # Judgement.

    async def _settle(self, store: Store, places: list[Place]) -> None:
        """Nobody is stopped any more. Everything comes to its end, and is judged."""
        node = places[0].node
        async with asyncio.timeout(SETTLE_SECONDS_MAX):
            while await self._jobs(places[0]):
                await _resume(node)
                await asyncio.sleep(0.2)
        now = store.clock.now()
        for feed in self.feeds:
            try:
                async with asyncio.timeout(SETTLE_SECONDS_MAX):
                    await feed.live.wait_until(now)
            except TimeoutError:
                state = (feed.live.state, feed.live.last_error, feed.live.resolved)
                raise AssertionError(f"feed {feed.kind} stands still: {state}") from None
        histories = [await TableHistory.read(store, model.table_id) for model in self.models]
        for model, history in zip(self.models, histories, strict=True):
            model.explain(history.steps(), history.writes())
        self.versions = await check_two_versions(store, histories)
        self.shown = sum(feed.judge() for feed in self.feeds)
        for read in self.reads:
            self._check_read(read)
        for place in places:
            place.node.services.leases.check_invariants()

    def _check_read(self, read: _Read) -> None:
        """A statement sees its rows under the canonical version, or under the one before."""
        model, at = read.model, read.at
        era = model.era_at(at)
        if read.names != tuple(name for name, _ in era.schema.shape.columns) or (
            Truncate() in era.steps
        ):
            former = model.era_at(Timestamp(era.at - 1))
            if Truncate() in era.steps:
                return
            era = former
        assert read.names == tuple(name for name, _ in era.schema.shape.columns), (read, era)
        assert {row[0] for row in read.rows} == model.rows_at(at).keys(), read
        for row in read.rows:
            key = row[0]
            assert isinstance(key, int)
            model.check_row(key, at, row, era.schema)


async def _resume(node: SqlNode) -> None:
    for job in await node.registry.list():
        if job.state is JobState.PAUSED:
            try:
                await node.registry.request_resume(job.id)
            except (SQLError, KVError):
                pass  # somebody was faster


def _unknown(error: BaseException) -> bool:
    """Whether what the statement asked for may have been done."""
    return isinstance(error, OutcomeUnknown) or (
        isinstance(error, SQLError) and error.sqlstate in ("40003", "08006", "08007", "58030")
    )


def _refused(error: BaseException) -> bool:
    return isinstance(error, SQLError) and error.sqlstate.startswith(REFUSED_STATES)


def _begun(error: BaseException) -> bool:
    """Whether the error is that of a change whose transaction did commit."""
    return True


def _end_of(outcome: Outcome, place: Place) -> Timestamp:
    if outcome is Outcome.IN_DOUBT:
        return Timestamp((1 << 63) - 1)
    return Timestamp(place.node.store.clock.last + (1 << 30))


async def _end(session: Session, place: Place) -> None:
    """Closes a session; one of a node that says nothing more is forgotten with it."""
    if not place.dead:
        try:
            await place.attend(session.close(), "the end of a session")
        except (KVError, NodeDied):
            pass


@asynccontextmanager
async def _places(
    sim: Simulation, store: Store, joined: int, settings: Mapping[str, str]
) -> AsyncIterator[list[Place]]:
    """The node that serves the store, and others that have joined it."""
    async with AsyncExitStack() as closing:
        service = StoreService(store)
        service.start()
        closing.push_async_callback(service.close)
        places = [Place(await closing.enter_async_context(sql_services(sim, store, 1)), None)]
        for node_id in range(2, 2 + joined):
            network = SimNetwork(sim, service, f"network of node {node_id}, at {sim.now}")
            remote = await network.join(Settings(settings))
            closing.push_async_callback(remote.close)
            services = sql_services(sim, cast(Store, remote), node_id)
            places.append(Place(await closing.enter_async_context(services), network))
        yield places


def run_storm(seed: int) -> StormOutcome:
    return SchemaStorm(seed).run()
