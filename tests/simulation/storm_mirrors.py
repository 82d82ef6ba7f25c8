"""DuckDB mirrors in a storm: what the file held behind every checkpoint, judged by `TableModel`.

A mirror equals `SELECT * AS OF` its resolved timestamp, apart from single rows that are newer:

    resolved 120     k1@90 k2@130       k1 as of 120, k2 as of 130, k3 absent if it went by now

With `apply=transaction` it equals that, and holds no row that is newer. A table that joined later
or was paused, and is behind the feed's others, is as of where its part of the frontier stands.

Behind a schema change above resolved the view may have the new columns already. What a backfill
has still to bring into them is NULL till then; under another primary key the view stays as it was.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tailrace.catalog.store.descriptor_store import DescriptorStore
from tailrace.catalog.values.column_types import Datum
from tailrace.changefeed.contract.changes import ChangeBatch
from tailrace.changefeed.jobs.details import ChangefeedDetails
from tailrace.changefeed.sinks.locations import Apply, Mode
from tailrace.changefeed.sinks.mirror.progress_encoding import decode_frontier
from tailrace.changefeed.sinks.protocol import (
    FeedIdentity,
    Sink,
    SinkContext,
    SinkError,
    SinkProgress,
)
from tailrace.changefeed.verify.feed_verification import log_verification
from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.frontier import part_of
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.store import Store
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode
from tests.simulation.key_order import KeyOrder
from tests.simulation.mirrors import FILE, DuckDBMirror
from tests.simulation.raw_history import TableHistory
from tests.simulation.schema_model import TableModel
from tests.simulation.schema_steps import Era, Fill, Schema, Truncate

COLUMN_TYPES = {"INT8": "BIGINT", "STRING": "VARCHAR", "UUID": "UUID"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the file held of a table behind a checkpoint. `at` is the store's clock then, and
    `resolved` what of the table was resolved."""

    table_id: int
    at: Timestamp
    resolved: Timestamp
    version: int
    columns: tuple[tuple[str, str], ...]
    rows: Mapping[int, tuple[Timestamp, tuple[Datum, ...]]]


class StormMirror:
    """One feed's mirror file, from process to process."""

    def __init__(self, sim: Simulation, folder: Path, apply: Apply, mode: Mode) -> None:
        self._sim = sim
        self._folder = folder
        self._apply = apply
        self._processes = count(2)
        self.logs = mode.holds_changes
        self._file = DuckDBMirror(folder / "1", apply, mode)
        self._older: Path | None = None
        self.looks: list[Look] = []

    @property
    def whole(self) -> bool:
        """Whether it is as of its resolved timestamp at every moment."""
        return self._apply is Apply.TRANSACTION

    def begin(self) -> None:
        """A process starts."""
        self._file.begin(self._sim)

    def crash(self) -> None:
        """The process is dead: another will find what was committed."""
        self._file = self._file.crash(self._folder / str(next(self._processes)))

    def sink(self, store: Store, context: SinkContext) -> Sink:
        return self._file.kind(store).create(self._file.uri, context)

    async def release(self, store: Store, identity: FeedIdentity) -> None:
        await self._file.kind(store).release(self._file.uri, identity, store.holds)

    # What an operator may do to a file of which no process knows.

    def keep_copy(self) -> None:
        """Puts a copy aside, which `put_back` may bring later."""
        self._older = self._folder / f"kept {next(self._processes)}"
        shutil.copytree(self._file.folder, self._older)

    def put_back(self) -> None:
        if self._older is not None:
            self.delete()
            shutil.copytree(self._older, self._file.folder, dirs_exist_ok=True)

    def delete(self) -> None:
        for path in self._file.folder.glob(f"{FILE}*"):
            path.unlink()

    # What it holds.

    async def look(self, models: Sequence[TableModel], job_id: int, at: Timestamp) -> None:
        """Notes what the file holds of a feed; nothing changes it meanwhile."""
        found = await self._file.query(
            "SELECT table_id, mirror_table, shown_table, version, progress.resolved, frontier "
            "FROM _tailrace.mirrors JOIN _tailrace.progress USING (job_id) "
            f"WHERE job_id = {job_id} ORDER BY table_id"
        )
        looks: list[Look] = []
        for table_id, name, shown, version, stand, frontier in found:
            resolved = self._resolved(_number(table_id), stand, frontier)
            if self.whole and _text(shown).endswith("_empty"):
                assert not await self._file.query(f"FROM main.{_text(name)} LIMIT 1"), name
                continue
            if resolved == ZERO:
                continue  # its rows are being shown, for the first time or once more
            view, base = f"main.{_text(name)}", f"_tailrace.{_text(shown)}"
            described = await self._file.query(f"DESCRIBE SELECT * FROM {view}")
            rows = await self._file.query(
                f"SELECT base._commit_timestamp, shown.* FROM {view} AS shown "
                f"JOIN {base} AS base ON base.c1 = shown.k"
            )
            looks.append(
                Look(
                    table_id=_number(table_id),
                    at=at,
                    resolved=resolved,
                    version=_number(version),
                    columns=tuple((_text(row[0]), _text(row[1])) for row in described),
                    rows={_number(row[1]): (Timestamp(_number(row[0])), row[1:]) for row in rows},
                )
            )
        if not any(model.frozen for model in models):
            self.looks += looks

    async def verify_logs(self, node: SqlNode, job_id: int, details: ChangefeedDetails) -> int:
        """Compares the logs with the histories of their tables; returns how many there are."""
        kind, descriptors = self._file.kind(node.store), DescriptorStore(node.store)
        async with kind.snapshot(self._file.uri, job_id) as (snapshot, in_lane):
            for log in snapshot.logs:
                report = await log_verification(
                    node.store, descriptors, details, log, in_lane
                ).run()
                assert not report.differences, report
                assert not report.collected, report
            return len(snapshot.logs)

    def _resolved(self, table_id: int, stand: Datum, frontier: Datum) -> Timestamp:
        """How far the file has come with a table; zero while its rows are scanned. One that moves
        from one resolved timestamp to the next has come as far as the feed, or is behind it."""
        if stand is None:
            return ZERO
        assert isinstance(frontier, bytes), frontier
        resolved = Timestamp(_number(stand))
        parts = part_of(decode_frontier(frontier, resolved), table_span(table_id))
        low = min((at for _, at in parts), default=ZERO)
        return min(low, resolved) if self.whole else low

    def judge(self, models: Mapping[int, TableModel], histories: Mapping[int, TableHistory]) -> int:
        """Returns how many rows were looked at."""
        for look in self.looks:
            judgement = _Judgement(look, models[look.table_id], histories[look.table_id])
            if self.whole:
                judgement.check_whole()
            else:
                judgement.check()
        return sum(len(look.rows) for look in self.looks)


class LookedAtSink:
    """A mirror's sink, which fails now and then as the seed says, and is looked at behind every
    checkpoint. Implements `Sink`."""

    def __init__(
        self,
        inner: Sink,
        mirror: StormMirror,
        store: Store,
        models: Sequence[TableModel],
        sim: Simulation,
        *,
        job_id: int,
        fail_chance: float,
    ) -> None:
        self._inner = inner
        self._job_id = job_id
        self._mirror = mirror
        self._store = store
        self._models = models
        self._sim = sim
        self._fail_chance = fail_chance
        self._order = KeyOrder("mirror")
        self.stand, self.open, self.close = inner.stand, inner.open, inner.close
        self.change_schema, self.emit_resolved = inner.change_schema, inner.emit_resolved

    def emit(self, batch: ChangeBatch) -> None:
        self._order.note(batch)
        self._inner.emit(batch)

    async def flush(self, progress: SinkProgress | None) -> None:
        if self._sim.random.random() < self._fail_chance:
            raise SinkError("the sink was away")
        await self._inner.flush(progress)
        if self._mirror.whole or (progress is not None and progress.scan_complete):
            await self._mirror.look(self._models, self._job_id, self._store.clock.last)


class _Judgement:
    """One look, and what the model says."""

    def __init__(self, look: Look, model: TableModel, history: TableHistory) -> None:
        self._look = look
        self._model = model
        followed = history.descriptors[look.version - 1].modification_time
        self._upto = max(followed, look.resolved)
        self._era = self._shown_era()

    def check(self) -> None:
        look, model = self._look, self._model
        for key, (at, row) in look.rows.items():
            self._check_row(key, at, row)
        for key in model.rows_at(look.resolved).keys() - look.rows.keys():
            assert self._may_lack(key), f"{model.name} lacks {key} as of {look.resolved}: {look}"

    def check_whole(self) -> None:
        """The mirror equals the source as of resolved: schema, rows, and nothing above."""
        look, model = self._look, self._model
        era = model.era_at(look.resolved)
        shape = [(name, COLUMN_TYPES[type]) for name, type in era.schema.shape.columns]
        assert list(look.columns) == shape, f"{model.name} is of another schema: {look} {era}"
        late = [key for key, (at, _) in look.rows.items() if at > look.resolved]
        assert not late, f"{model.name} shows {late} above resolved: {look}"
        for key, (_, row) in look.rows.items():
            model.check_row(key, look.resolved, row, era.schema)
        lacking = model.rows_at(look.resolved).keys() - look.rows.keys()
        assert not lacking, f"{model.name} lacks {lacking} as of {look.resolved}: {look}"

    def _shown_era(self) -> Era:
        """The schema that the view shows: that of resolved, or of what was followed above it."""
        look = self._look
        eras = [e for e in self._model.eras if look.resolved < e.at <= self._upto]
        for era in (*reversed(eras), self._model.era_at(look.resolved)):
            shape = era.schema.shape.columns
            if look.columns == tuple((name, COLUMN_TYPES[type]) for name, type in shape):
                return era
        raise AssertionError(f"the view is of no schema from {look.resolved} on: {look} {eras}")

    def _check_row(self, key: int, at: Timestamp, row: Sequence[Datum]) -> None:
        look, model = self._look, self._model
        if at > look.resolved:
            known = model.written(key, at) or model.era_at(at).at == at
            assert known, f"{model.name} {key}@{at} was never written: {look}"
        as_of = max(at, look.resolved)
        above = [era for era in model.eras if look.resolved < era.at <= self._era.at]
        unsettled = _unsettled(model.era_at(look.resolved).schema, above, at)
        model.check_row(key, as_of, row, self._era.schema, unsettled=unsettled)
        version = model.row_at(key, as_of)
        assert version is not None
        assert version.at <= at, f"{model.name} {key}@{at} is of {version.at}: {look}"

    def _may_lack(self, key: int) -> bool:
        """Whether the row went above resolved, or may have to come again behind a truncation."""
        look, model = self._look, self._model
        if any(
            row is None and look.resolved < at <= look.at for at, row in model.history.get(key, ())
        ):
            return True
        eras = [era for era in model.eras if look.resolved < era.at <= self._upto]
        return any(isinstance(step, Truncate) for era in eras for step in era.steps)


def _unsettled(resolved: Schema, above: Sequence[Era], at: Timestamp) -> frozenset[int]:
    """Columns of which a row from `at` may still lack its value: `above` are the eras from resolved
    up to the one that is shown, and some of them rewrote the column behind the row."""
    found: set[int] = set()
    before = resolved
    for era in above:
        for column in era.schema.columns if at < era.at else ():
            known = before.find(column.number)
            if known is None:
                rewritten = column.fill in (Fill.DRAWN, Fill.COMPUTED)
            else:
                rewritten = known.type != column.type
            if rewritten:
                found.add(column.number)
        before = era.schema
    return frozenset(found)


def _number(value: Datum) -> int:
    assert isinstance(value, int), value
    return value


def _text(value: Datum) -> str:
    assert isinstance(value, str), value
    return value
