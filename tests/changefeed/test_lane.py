"""Lanes: what passes a boundary, what waits at it, and in which order all of it goes on.

A table `orders (k, v)` of real descriptors, whose key, columns and indexes change. The far end
judges each step: per row ascending timestamps, no version under a schema of which the sink has not
heard, and no progress past a version that came and has not gone on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random

import pytest

from tailrace.catalog.descriptors.descriptor import Column, TableDescriptor
from tailrace.catalog.descriptors.elements import Index, IndexKind
from tailrace.catalog.rows.row_codec import RowCodec, codec_for
from tailrace.catalog.values.column_types import Datum
from tailrace.changefeed.contract.boundary_kind import BoundaryKind
from tailrace.changefeed.contract.changes import Form
from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.pipeline import crossing, lane
from tailrace.changefeed.pipeline.boundary import Boundary, plan_boundary
from tailrace.changefeed.pipeline.budget import MEMORY_LIMIT, FeedMemory, MemoryBudget
from tailrace.changefeed.pipeline.crossing import OpenBackfill
from tailrace.changefeed.pipeline.gate import SchemaGate
from tailrace.changefeed.pipeline.lane import Emission, LaneState, TableLane
from tailrace.changefeed.pipeline.shared_decoding import SharedDecoding
from tailrace.changefeed.sinks.protocol import BackfillProgress
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.events import ValueBatch
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.span import Span
from tailrace.schemafeed import TableEvent
from tests.changefeed.model import ModelSchema, target_of
from tests.harness.descriptors import INT8, KEY, VALUE, table
from tests.harness.simulation import Simulation

ID = 104
WHOLE = table_span(ID)
BY_VALUE = (2,)


def rekeyed(before: TableDescriptor, at: int) -> TableDescriptor:
    """ALTER PRIMARY KEY from one column to the other, its index built in the version before."""
    assert before.new_primary is not None
    return replace(
        before,
        version=before.version + 1,
        modification_time=Timestamp(at),
        primary_key=(1,) if before.primary_key == BY_VALUE else BY_VALUE,
        primary_index_id=before.new_primary.id,
        new_primary=None,
    )


def building(before: TableDescriptor, at: int) -> TableDescriptor:
    """Another primary index is being built, which shows in no row."""
    index = Index(id=before.next_index_id, name="next", kind=IndexKind.PRIMARY, columns=(1,))
    return replace(
        before,
        version=before.version + 1,
        modification_time=Timestamp(at),
        new_primary=index,
        next_index_id=index.id + 1,
    )


def widened(before: TableDescriptor, at: int) -> TableDescriptor:
    """ADD COLUMN of NULLs, or, where an index was built, one whose rows were rewritten for it."""
    added = Column(id=before.next_column_id, name=f"c{before.next_column_id}", type=INT8)
    index = before.new_primary.id if before.new_primary else before.primary_index_id
    return replace(
        before,
        version=before.version + 1,
        modification_time=Timestamp(at),
        columns=(*before.columns, added),
        next_column_id=added.id + 1,
        primary_index_id=index,
        new_primary=None,
    )


def truncated(before: TableDescriptor, at: int) -> TableDescriptor:
    return replace(
        before,
        version=before.version + 1,
        modification_time=Timestamp(at),
        primary_index_id=before.next_index_id,
        next_index_id=before.next_index_id + 1,
        new_primary=None,
    )


FIRST = replace(
    table(columns=(KEY, replace(VALUE, nullable=False))), modification_time=Timestamp(1)
)
KEY_CHANGE = building(FIRST, 60), rekeyed(building(FIRST, 60), 100)
REWRITE = building(FIRST, 60), widened(building(FIRST, 60), 100)


class Bench:
    """One lane, what it is given, and its far end, which judges what comes."""

    def __init__(self, *versions: TableDescriptor, start: int = 50) -> None:
        self.versions = (FIRST, *versions)
        schema = ModelSchema(FIRST)
        for version in versions:
            schema.publish(version)
        self.budget = MemoryBudget(Settings({MEMORY_LIMIT.name: str(1 << 20)}), FeedMemory())
        self.shown: list[tuple[int, int]] = []
        """(k, timestamp) in the order of emission, those of backfills among them."""
        self.came: dict[tuple[int, int], bytes] = {}
        self.heard = FIRST
        self.backfill: OpenBackfill | None = None
        self.resolved = start
        self.sizes: list[int] = []
        self.starts: Sequence[tuple[Span, Timestamp]] = ()
        self.lane = TableLane(
            target_of(FIRST),
            FIRST,
            start=[(WHOLE, Timestamp(start))],
            gate=SchemaGate(schema),
            budget=self.budget,
            wall=Simulation(1).wall,
            end=self,
            plan=partial(plan_boundary, options=ChangefeedOptions(), follows_schema=True),
            decoding=SharedDecoding(),
            form=Form.ROWS,
        )

    # What is given.

    def canonical(self, at: int) -> TableDescriptor:
        return next(each for each in reversed(self.versions) if each.modification_time <= at)

    def row(self, k: int, at: int) -> tuple[bytes, bytes]:
        """Key and body of row `k` as written at `at`, under the version of that time."""
        version = self.canonical(at)
        row: list[Datum] = [k, f"v{k}", *[at for _ in version.visible_columns[2:]]]
        return RowCodec(version).encode_row(row)

    def push(self, *rows: tuple[int, int]) -> None:
        """Rows `(k, timestamp)`, each in the primary index of its time."""
        encoded = [self.row(k, at) for k, at in rows]
        self.came |= {row: key for row, (key, _) in zip(rows, encoded, strict=True)}
        batch = ValueBatch(
            keys=[key for key, _ in encoded],
            values=[body for _, body in encoded],
            timestamps=[Timestamp(at) for _, at in rows],
        )
        self.lane.push(batch)

    def checkpoint(self, resolved: int, span: Span = WHOLE) -> None:
        self.lane.push_checkpoint(span, Timestamp(resolved), now_ns=0)

    def advance(self) -> None:
        while self.lane.advance() is not LaneState.EMPTY:
            self.lane.check_invariants()
        self.lane.check_invariants()

    def backfill_all(self, rows: Sequence[int]) -> None:
        """What the pipeline's backfill does, in one step: rows that there were as of it."""
        assert self.backfill is not None
        self.backfill_some(rows)
        self.end_backfill()

    def backfill_some(self, rows: Sequence[int]) -> None:
        backfill = self.backfill
        assert backfill is not None
        assert backfill.started, "rows as of the boundary may not precede one from below it"
        found = sorted((self.row(k, backfill.at)[0], k) for k in rows)
        wanted = dict(backfill.wanted([(key, b"") for key, _ in found]))
        for key, k in found:
            if key in wanted:
                self.show(k, backfill.at)
        if found:
            backfill.advance(found[-1][0] + b"\x00")

    def end_backfill(self) -> None:
        self.backfill = None
        self.lane.backfilled()
        self.advance()

    # The far end.

    def emit(self, emission: Emission) -> None:
        batch = emission.batch
        assert batch.descriptor.version <= self.heard.version, (batch.descriptor, self.heard)
        assert batch.rows is not None
        for row, at in zip(batch.rows, batch.timestamps, strict=True):
            assert row is not None
            assert isinstance(row[0], int)
            assert len(row) == len(self.canonical(at).visible_columns), (row, at)
            self.show(row[0], at)
        self.sizes.append(emission.size)

    def show(self, k: int, at: int) -> None:
        earlier = [ts for key, ts in self.shown if key == k]
        assert all(ts < at for ts in earlier), f"{k}@{at} behind {earlier}"
        self.shown.append((k, at))

    def change_schema(self, event: TableEvent) -> None:
        assert event.before is self.heard
        self.heard = event.after

    def forward(self, target_id: int, span: Span, resolved: Timestamp) -> None:
        late = {
            row
            for row, key in self.came.items()
            if row[1] <= resolved and span.contains(key) and row not in self.shown
        }
        assert not late, f"forwarded to {resolved}, with {late} still to come"
        backfill = self.backfill
        assert backfill is None or resolved < backfill.at, (resolved, backfill)
        self.resolved = max(self.resolved, resolved) if span == WHOLE else self.resolved

    def open_backfill(self, boundary: Boundary) -> OpenBackfill:
        assert self.backfill is None
        assert boundary.kind is BoundaryKind.BACKFILL
        known = BackfillProgress(table_id=ID, at=boundary.at, kind=boundary.kind)
        self.backfill = OpenBackfill(boundary, known)
        return self.backfill

    def read_again(self, table_id: int, starts: Sequence[tuple[Span, Timestamp]]) -> None:
        assert table_id == ID
        self.starts = starts

    def bring_again(self) -> None:
        """What the range feed brings when it begins again."""
        rows = [
            row
            for row, key in self.came.items()
            if any(span.contains(key) and row[1] > at for span, at in self.starts)
        ]
        self.push(*sorted(rows, key=lambda row: row[1]))
        self.starts = ()

    def pass_over(self, target_id: int, below: Timestamp, whole_from: Timestamp) -> None:
        assert target_id == ID
        assert self.resolved <= below < whole_from

    def start_backfill(self, backfill: OpenBackfill) -> None:
        below = {row for row in self.came if row[1] < backfill.at}
        assert below <= set(self.shown), below - set(self.shown)


def test_held_rows_go_before_rows_of_a_later_version() -> None:
    """A checkpoint just below the change of the key sets them free, and no row overtakes them."""
    later = widened(KEY_CHANGE[-1], 200)
    bench = Bench(*KEY_CHANGE, later)
    bench.push((1, 90), (1, 120))
    bench.advance()
    assert bench.shown == [(1, 90)]
    bench.checkpoint(99)
    bench.push((1, 210))
    bench.advance()
    bench.checkpoint(220)
    bench.advance()
    bench.backfill_all([1])
    assert bench.shown == [(1, 90), (1, 120), (1, 210)]


def test_a_held_table_goes_on_without_another_event() -> None:
    """The checkpoint that makes the boundary one to cross is enough."""
    bench = Bench(*KEY_CHANGE)
    bench.push((1, 120))
    bench.checkpoint(130)
    bench.advance()
    assert bench.shown == [(1, 120)]
    assert bench.backfill is not None
    assert bench.backfill.started


def test_no_row_overtakes_those_that_wait_for_the_backfill(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where another boundary, further on, waits for that backfill too."""
    monkeypatch.setattr(crossing, "BACKFILL_KEY_BYTES_MAX", 1)
    bench = Bench(*REWRITE, widened(REWRITE[-1], 200))
    bench.push((1, 110))
    bench.advance()
    bench.push((2, 120), (3, 250))
    bench.advance()
    bench.push((2, 130))
    bench.advance()
    assert bench.shown == [(1, 110)]
    bench.checkpoint(140)
    bench.advance()
    bench.backfill_all([1, 2])
    bench.checkpoint(260)
    bench.advance()
    assert [at for k, at in bench.shown if k == 2] == [100, 120, 130]
    assert (3, 250) in bench.shown


def test_progress_stays_below_what_waits_for_the_backfill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crossing, "BACKFILL_KEY_BYTES_MAX", 1)
    bench = Bench(*REWRITE, building(REWRITE[-1], 180), truncated(building(REWRITE[-1], 180), 200))
    bench.push((1, 110))
    bench.advance()
    bench.push((2, 120), (3, 250))
    bench.advance()
    bench.checkpoint(150)
    bench.advance()
    bench.backfill_all([1, 2])
    assert (2, 120) in bench.shown
    assert (3, 250) not in bench.shown
    bench.checkpoint(199)
    bench.advance()
    assert (3, 250) in bench.shown


def test_a_backfill_waits_for_the_rows_below_its_boundary() -> None:
    bench = Bench(*REWRITE)
    bench.push((1, 90), (2, 110))
    bench.advance()
    assert bench.shown == [(1, 90), (2, 110)]
    assert bench.backfill is not None
    assert not bench.backfill.started
    bench.push((1, 95))
    bench.checkpoint(98)
    bench.advance()
    assert not bench.backfill.started
    bench.checkpoint(99)
    bench.advance()
    assert bench.backfill.started
    bench.backfill_all([1, 2])
    assert bench.shown == [(1, 90), (2, 110), (1, 95), (1, 100)]


def test_progress_passes_over_the_time_in_which_a_row_is_lacking() -> None:
    """The backfill left row 1 out, since it was shown at 120 already: from the boundary at 100
    until then the sink has no row 1 under the schema of that time."""
    bench = Bench(*REWRITE)
    bench.push((1, 90), (1, 120))
    bench.checkpoint(110)
    bench.advance()
    assert bench.resolved == 99
    bench.backfill_all([1, 2])
    assert bench.shown == [(1, 90), (1, 120), (2, 100)]
    assert bench.resolved == 99
    bench.checkpoint(119)
    bench.advance()
    assert bench.resolved == 99
    bench.push((2, 125))
    bench.checkpoint(122)
    bench.advance()
    assert bench.resolved == 122


def test_what_was_forgotten_at_a_boundary_is_read_again() -> None:
    versions = [*REWRITE, building(REWRITE[-1], 150), truncated(building(REWRITE[-1], 150), 200)]
    bench = Bench(*versions)
    bench.checkpoint(160)
    bench.advance()
    bench.backfill_all([])
    bench.push((1, 210), (2, 215))
    bench.advance()
    assert bench.budget.held > 0
    bench.lane.forget()
    bench.push((1, 220))
    bench.advance()
    assert (bench.budget.held, bench.budget.used) == (0, 0)
    bench.push((3, 190))
    bench.checkpoint(199)
    bench.push((4, 230))
    bench.advance()
    assert bench.shown == [(3, 190)]
    bench.bring_again()
    bench.checkpoint(240)
    bench.advance()
    assert bench.shown == [(3, 190), (1, 210), (2, 215), (1, 220), (4, 230)]


def test_what_was_forgotten_behind_a_backfill_is_read_again() -> None:
    bench = Bench(*REWRITE, truncated(REWRITE[-1], 200))
    bench.push((1, 110), (1, 210))
    bench.checkpoint(120)
    bench.advance()
    bench.lane.forget()
    bench.advance()
    assert bench.budget.held == 0
    bench.backfill_all([1])
    bench.checkpoint(199)
    bench.advance()
    bench.bring_again()
    bench.checkpoint(220)
    bench.advance()
    assert bench.shown == [(1, 110), (1, 210)]


def test_a_drop_waits_for_what_was_forgotten() -> None:
    """Progress passes nothing that was forgotten: `Bench.forward` looks at each."""
    bench = Bench(*REWRITE, truncated(REWRITE[-1], 200))
    bench.checkpoint(120)
    bench.push((1, 210))
    bench.checkpoint(215)
    bench.advance()
    bench.lane.forget()
    bench.checkpoint(220)
    bench.advance()
    assert bench.lane.held_bytes == 0
    assert bench.shown == []


CHANGES = [
    (widened,),
    (building, widened),
    (building, rekeyed),
    (building, truncated),
    (building,),
]


def _history(random: Random) -> list[TableDescriptor]:
    """Some schema changes of all kinds, at random times."""
    versions = [FIRST]
    at = 60
    for _ in range(random.randint(1, 4)):
        for step in random.choice(CHANGES):
            if step is building and versions[-1].new_primary is not None:
                continue
            at += random.randint(1, 40)
            versions.append(step(versions[-1], at))
    return versions[1:]


@pytest.mark.parametrize("seed", range(150))
def test_any_order_of_arrival_keeps_the_order_of_keys(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys in order, one past the other; checkpoints of parts; backfills that end at any time."""
    random = Random(seed)
    monkeypatch.setattr(crossing, "BACKFILL_KEY_BYTES_MAX", random.choice([1, 200, 400, 10_000]))
    bench = Bench(*_history(random))
    taken = {version.modification_time for version in bench.versions}
    times = [at for at in random.sample(range(51, 320), 60) if at not in taken]
    queues: dict[int, list[int]] = {k: [] for k in range(6)}
    for at in sorted(times):
        queues[random.randrange(6)].append(at)
    cut = bench.row(3, 300)[0]
    spans = [Span(WHOLE.start, cut), Span(cut, WHOLE.end)]
    written = {k: list(found) for k, found in queues.items()}
    while any(queues.values()):
        for _ in range(random.randint(1, 4)):
            k = random.choice([k for k, left in queues.items() if left] or [0])
            taken_now = queues[k][: random.randint(1, 3)]
            del queues[k][: len(taken_now)]
            if taken_now:
                bench.push(*[(k, at) for at in taken_now])
            if random.random() < 0.4:
                span = random.choice([*spans, WHOLE])
                left = [
                    at
                    for k, waiting in queues.items()
                    for at in waiting
                    if span.contains(bench.row(k, at)[0])
                ]
                bench.checkpoint(random.randint(50, min(left, default=340) - 1), span)
        bench.advance()
        if bench.backfill is not None and bench.backfill.started and random.random() < 0.3:
            _backfill(bench, written)
    bench.checkpoint(340)
    bench.advance()
    while bench.backfill is not None:
        _backfill(bench, written)
    live = {row for row in bench.shown if row in bench.came}
    assert live == set(bench.came)
    assert bench.budget.held == 0


def _backfill(bench: Bench, written: dict[int, list[int]]) -> None:
    assert bench.backfill is not None
    at = bench.backfill.at
    bench.backfill_all([k for k, found in written.items() if any(ts < at for ts in found)])


def test_row_sizes_are_charged_once() -> None:
    """What was held and split goes to the sink with all that it was charged."""
    bench = Bench(*KEY_CHANGE)
    bench.push((1, 90), (1, 120), (2, 130))
    charged = bench.budget.used
    bench.checkpoint(140)
    bench.advance()
    assert sum(bench.sizes) == bench.budget.used == charged
    assert codec_for(KEY_CHANGE[-1]).decode_key(bench.row(1, 120)[0])[0] == "v1"


def test_rows_that_wait_are_charged_to_the_boundary() -> None:
    """A slice with rows from both sides leaves those from above with the bytes that they have."""
    bench = Bench(*KEY_CHANGE)
    bench.push((1, 90), *[(k, 120 + k) for k in range(20)])
    charged = bench.budget.used
    bench.advance()
    assert bench.budget.held > 0.9 * charged
    assert bench.budget.held + bench.budget.used == charged


def test_rows_that_wait_are_charged_slice_by_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the slice in which their batch ends goes on, and they are cut again behind it."""
    monkeypatch.setattr(lane, "SLICE_BYTES", 1_000)
    bench = Bench(*KEY_CHANGE)
    bench.push(*[(k, 120 + k) for k in range(60)], (99, 90))
    charged = bench.budget.used
    bench.advance()
    assert bench.shown == [(99, 90)]
    assert bench.budget.held > 0.9 * charged
    bench.checkpoint(99)
    bench.advance()
    assert len(bench.shown) == 61
    assert max(bench.sizes) < 2_000
    assert sum(bench.sizes) == bench.budget.used == charged


def test_large_rows_are_cut_into_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "SLICE_BYTES", 1_000)
    bench = Bench()
    bench.push(*[(k, 60 + k) for k in range(30)])
    assert bench.lane.advance() is LaneState.SLICED
    assert 1 <= len(bench.shown) < 10
    bench.advance()
    assert len(bench.shown) == 30
    assert sum(bench.sizes) == bench.budget.used
