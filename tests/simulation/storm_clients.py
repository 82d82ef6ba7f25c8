"""The clients of a storm: they write, read and change tables on any node, and hold leases.

What each was told goes to the models, and what readers saw is kept for the judgement.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.clock import Timestamp, format_timestamp
from tailrace.kvlayer.errors import KVError, OutcomeUnknown
from tailrace.sql import Result, Session
from tests.simulation.schema_model import KEY_GAP, TableModel, Write
from tests.simulation.schema_statements import Statements
from tests.simulation.schema_steps import Outcome, Truncate
from tests.simulation.storm_places import NodeDied, Place, choose

KEYS = (12, 12, 40)
"""How many keys there are: few, so that they meet, or enough for several slices of each scan."""

REFUSED_STATES = ("23", "42", "2B", "57014", "55", "0A", "22", "25", "57000")
"""SQLSTATEs, or classes of them, that say that nothing was changed."""


@dataclass(frozen=True, slots=True)
class Read:
    """What a statement saw of a table as of a timestamp."""

    model: TableModel
    at: Timestamp
    columns: tuple[tuple[str, str], ...]
    rows: Sequence[tuple[object, ...]]


class Clients:
    """Each of its coroutines is one client, which goes on until `stop` is set."""

    def __init__(self, random: Random, models: list[TableModel]) -> None:
        self._random = random
        self._keys = random.choice(KEYS)
        self._models = models
        self._statements: dict[str, Statements] = {}
        self._tokens = 0
        self._names = count(2)
        self.reads: list[Read] = []

    @property
    def _living(self) -> Sequence[TableModel]:
        return [model for model in self._models if not model.dropped]

    async def create(self, place: Place, name: str) -> None:
        """Makes a table with some rows, of which everybody hears when it is there."""
        model = TableModel(name)
        locked = self._random.choice(["", " WITH (changefeed_optimized = true)"])
        columns = "k INT8 PRIMARY KEY, j INT8 NOT NULL, w INT8 NOT NULL"
        await self._run(place, f"CREATE TABLE {name} ({columns}){locked}")
        store = place.node.store
        reader = store.snapshot(await store.now())
        tables = await place.node.services.catalog.list_tables(reader, "defaultdb")
        model.table_id = next(table.id for table in tables if table.name == name)
        self._statements[name] = Statements(name, self._random)
        if not any(each.frozen for each in self._models):
            self._models.append(model)
            await self.load(place, model)

    async def _drop(self, place: Place, model: TableModel) -> None:
        model.dropped = True
        await self._run(place, f"DROP TABLE {model.name}")

    async def load(self, place: Place, model: TableModel) -> None:
        """The first rows of a table, in one statement."""
        keys = self._random.sample(range(self._keys), self._random.randint(0, self._keys))
        if not keys:
            return
        write = model.begin_write(place.node.store.clock.last)
        rows: list[str] = []
        for key in keys:
            self._tokens += 1
            write.insert(key, self._tokens, {})
            rows.append(f"({key}, {key + KEY_GAP}, {self._tokens})")
        [result] = await self._run(place, f"INSERT INTO {model.name} VALUES {', '.join(rows)}")
        model.end_write(write, result.commit_timestamp)

    async def _run(self, place: Place, text: str) -> Sequence[Result]:
        session = Session(place.node.services)
        try:
            return await session.execute(text)
        finally:
            await session.close()

    async def writer(self, places: list[Place], stop: asyncio.Event) -> None:
        while not stop.is_set():
            explicit = self._random.random() < 0.25
            many = 2 if explicit and len(self._living) > 1 and self._random.random() < 0.5 else 1
            models = self._random.sample(self._living, many)
            place = choose(self._random, places)
            await self._transact(place, models, explicit)
            await asyncio.sleep(self._random.choice([0.0, 0.005, 0.05]))

    async def _transact(self, place: Place, models: Sequence[TableModel], explicit: bool) -> None:
        """Writes a few rows, in one statement or in a transaction that takes its time."""
        session = Session(place.node.services)
        writes = [(model, model.begin_write(place.node.store.clock.last)) for model in models]
        try:
            if explicit:
                at = await place.attend(self._write_at_leisure(session, writes), "a transaction")
            else:
                at = await place.attend(self._write(session, *writes[0]), "a write")
        except (SQLError, KVError) as error:
            if not _unknown(error):
                for model, write in writes:
                    model.end_write(write, None)
        except NodeDied:
            pass
        else:
            for model, write in writes:
                model.end_write(write, at)
        finally:
            await _end(session, place)

    async def _write_at_leisure(
        self, session: Session, writes: Sequence[tuple[TableModel, Write]]
    ) -> Timestamp | None:
        await session.execute("BEGIN")
        for _ in range(self._random.randint(1, 3)):
            await self._write(session, *self._random.choice(writes))
            await asyncio.sleep(self._random.choice([0.0, 0.01, 0.2]))
        [result] = await session.execute("COMMIT")
        return result.commit_timestamp

    async def _write(self, session: Session, model: TableModel, write: Write) -> Timestamp | None:
        """Adds to `write` what a statement did, in the way that `TableModel` counts."""
        random = self._random
        self._tokens += 1
        token, key = self._tokens, random.randrange(self._keys)
        plain = [c for c in model.guess().columns if c.fill.value in ("null", "constant")]
        named = random.sample(plain, random.randint(0, min(2, len(plain))))
        values = {c.number: random.choice([None, token, token, token]) for c in named}
        texts = ["NULL" if value is None else f"'{value}'" for value in values.values()]
        table, draw = model.name, random.random()
        place = len(write.items)
        if draw < 0.5:
            names = ", ".join(["k", "j", "w", *(c.name for c in named)])
            literals = ", ".join([str(key), str(key + KEY_GAP), str(token), *texts])
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

    async def reader(self, places: list[Place], stop: asyncio.Event) -> None:
        while not stop.is_set():
            await asyncio.sleep(self._random.random() * 0.5)
            place, model = choose(self._random, places), self._random.choice(self._living)
            session = Session(place.node.services)
            try:
                at = await place.attend(place.node.store.now(), "the clock")
                text = f"SELECT * FROM {model.name} AS OF SYSTEM TIME '{format_timestamp(at)}'"
                [result] = await place.attend(session.execute(text), "a read")
            except (SQLError, KVError, NodeDied):
                continue
            else:
                if not model.frozen:
                    columns = tuple((c.name, c.type.kind.name) for c in result.columns)
                    self.reads.append(Read(model, at, columns, result.fetch_rows()))
            finally:
                await _end(session, place)

    async def changer(self, places: list[Place], stop: asyncio.Event) -> None:
        """One schema change after the other, and now and then two at once."""
        while not stop.is_set():
            await asyncio.sleep(self._random.random() * 0.05)
            changes = [
                self._change(choose(self._random, places))
                for _ in range(self._random.choice([1, 1, 2]))
            ]
            await asyncio.gather(*changes)

    async def _change(self, place: Place) -> None:
        model = self._random.choice(self._living)
        text, steps = self._statements[model.name].next(model.guess())
        session = Session(place.node.services)
        explicit = self._random.random() < 0.15
        write = model.begin_write(place.node.store.clock.last) if explicit else None
        if explicit and Truncate() in steps:
            steps = ()  # within BEGIN it deletes the rows
        change = model.begin_change(text, steps, place.node.store.clock.last)
        outcome, at = Outcome.IN_DOUBT, None
        try:
            result = await place.attend(self._run_change(session, model, text, write), text)
            at = result.commit_timestamp
            # A job that is paused goes on later.
            outcome = Outcome.DONE if result.notice is None else Outcome.IN_DOUBT
        except (SQLError, KVError) as error:
            assert not (isinstance(error, SQLError) and error.sqlstate == "XX000"), (text, error)
            if _refused(error):
                outcome = Outcome.REFUSED
        except NodeDied:
            pass
        else:
            if write is not None:  # COMMIT tells the timestamp of what its jobs did last
                model.end_write(write, at, exactly=False)
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
        if text.startswith("TRUNCATE"):
            [found] = await session.execute(f"SELECT k FROM {model.name}")
            for [key] in found.fetch_rows():
                assert isinstance(key, int), key
                write.delete(key)
        await session.execute(text)
        return (await session.execute("COMMIT"))[-1]

    async def dropper(self, places: list[Place], stop: asyncio.Event) -> None:
        """Drops tables, but for the first, and makes others under names that nobody has had."""
        while not stop.is_set():
            await asyncio.sleep(self._random.random() * 2)
            place, others = choose(self._random, places), self._living[1:]
            if len(others) > 1 or (others and self._random.random() < 0.5):
                model = self._random.choice(others)
                work = self._drop(place, model)
            else:
                work = self.create(place, f"u{next(self._names)}")
            try:
                await place.attend(work, "a table")
            except (SQLError, KVError, NodeDied):
                continue

    async def commenter(self, luck: Random, places: list[Place], stop: asyncio.Event) -> None:
        """Publishes versions that differ from those before in nothing that a row is read by, also
        of locked tables. `luck` is its own: a storm without comments is the run that it was."""
        for number in count():
            if stop.is_set():
                return
            await asyncio.sleep(luck.random() * 0.03)
            place, model = choose(luck, places), luck.choice(self._living)
            text = f"COMMENT ON TABLE {model.name} IS '{number}'"
            try:
                await place.attend(self._run(place, text), "COMMENT ON TABLE")
            except (SQLError, KVError, NodeDied):
                continue

    async def lessee(self, places: list[Place], stop: asyncio.Event) -> None:
        """Takes leases and holds them, as a long statement does."""
        while not stop.is_set():
            await asyncio.sleep(self._random.random())
            place, model = choose(self._random, places), self._random.choice(self._living)
            try:
                leases = place.node.services.leases
                at = await place.attend(place.node.store.now(), "the clock")
                lease = await place.attend(leases.acquire(model.table_id, at), "a lease")
            except (SQLError, KVError, NodeDied):
                continue
            await asyncio.sleep(self._random.choice([0.05, 0.5, 3.0]))
            lease.release()


def _unknown(error: BaseException) -> bool:
    """Whether what the statement asked for may have been done."""
    return isinstance(error, OutcomeUnknown) or (
        isinstance(error, SQLError) and error.sqlstate in ("40003", "08006", "08007", "58030")
    )


def _refused(error: BaseException) -> bool:
    return isinstance(error, SQLError) and error.sqlstate.startswith(REFUSED_STATES)


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
