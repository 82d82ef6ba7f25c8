"""What is known of one feed of a storm: what it showed, flushed and claimed, and the judgement.

Each row is under the schema that was canonical at its timestamp, and as it was committed; nothing
is resolved before it was flushed, nor at or above a schema change that rewrites rows before they
have been shown again. Each promise is judged for each time that a table was in the feed
(`Membership`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind
from tailrace.changefeed.jobs.details import ChangefeedDetails
from tailrace.changefeed.sinks.protocol import SinkProgress
from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.frontier import part_of
from tailrace.kvlayer.keys import table_span
from tests.simulation.framed_feed import FramedAttempt
from tests.simulation.raw_history import shape_of
from tests.simulation.row_model import PrefixMaximum
from tests.simulation.schema_model import KEY_GAP, TableModel
from tests.simulation.schema_steps import (
    Add,
    Become,
    Drop,
    Fill,
    Rekey,
    Step,
    Truncate,
)


@dataclass(frozen=True, slots=True)
class Shown:
    """A row as it was handed to the sink."""

    table: TableDescriptor
    kind: ChangeKind
    key: int
    at: Timestamp
    row: tuple[object, ...] | None


@dataclass
class Membership:
    """A table's time in a feed, from `start_at` on: with its rows as of then if it `scans`."""

    table_id: int
    start_at: Timestamp
    scans: bool
    followed: bool = True
    claims: PrefixMaximum = field(default_factory=PrefixMaximum)
    scanned: list[tuple[Timestamp, int, int]] = field(default_factory=list)
    """Scans that have ended: as of when, and the flushes behind which and with which."""
    _noted: int = 0
    """The last flush that claimed progress: a scan may have begun with one that claimed none."""
    _low: Timestamp | None = None
    _scanning: tuple[Timestamp, int] | None = None
    _counts: bool = False

    def begin_attempt(self, *, followed: bool) -> None:
        self.followed, self._counts = followed, False

    def note(self, flush: int, progress: SinkProgress) -> None:
        """A flush has claimed `progress`."""
        noted, self._noted = self._noted, flush
        parts = part_of(progress.frontier, table_span(self.table_id))
        if not parts:  # it has not begun, or begins anew
            self._low = self._scanning = None
            return
        low = min(at for _, at in parts)
        if ZERO < low < self.start_at:
            return  # of the table's time in the feed before: the job's row has not forgotten it yet
        if self._scanning is None and (low == ZERO or (self._low is None and self.scans)):
            self._scanning = (self._low or self.start_at, noted if self._low else 0)
        if low == ZERO:
            return
        if self._scanning is not None:
            self.scanned.append((*self._scanning, flush))
            self._scanning = None
        self._low = low
        self.claims.note(flush, low)
        if self.followed and progress.scan_complete:
            counts = low >= progress.resolved
            assert counts or not self._counts, f"{self} fell behind {progress.resolved}"
            self._counts = counts


@dataclass
class Record:
    """One feed's job from its beginning on, over all its attempts."""

    name: str
    follows: bool
    members: dict[tuple[int, Timestamp], Membership] = field(default_factory=dict)
    current: list[Membership] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    unflushed: list[tuple[int, int, Timestamp, ChangeKind]] = field(default_factory=list)
    flushed_in: dict[tuple[int, int, Timestamp, bool], int] = field(default_factory=dict)
    scanned_in: dict[tuple[int, int, Timestamp], list[int]] = field(default_factory=dict)
    duplicates: int = 0
    failures: int = 0
    """Flushes that the sink refused, as the seed says."""
    flushes: int = 0
    known: SinkProgress | None = None
    framed: list[FramedAttempt] = field(default_factory=list)
    """Of a feed with `transactions`, what each attempt told."""

    def begin_attempt(self, details: ChangefeedDetails) -> None:
        self.unflushed, self.current = [], []
        for target in details.targets:
            member = Membership(target.table_id, target.start_at, target.scans)
            member = self.members.setdefault((target.table_id, target.start_at), member)
            member.begin_attempt(followed=target.state.followed)
            self.current.append(member)

    def note_flushed(self, progress: SinkProgress | None) -> None:
        self.flushes += 1
        for table_id, key, at, kind in self.unflushed:
            place = (table_id, key, at, kind is ChangeKind.LIVE)
            self.duplicates += place in self.flushed_in
            self.flushed_in.setdefault(place, self.flushes)
            if kind is ChangeKind.INITIAL_SCAN:
                self.scanned_in.setdefault((table_id, key, at), []).append(self.flushes)
        self.unflushed = []
        if progress is not None:
            assert self.known is None or progress.resolved >= self.known.resolved, progress
            self.known = progress
            for member in self.current:
                member.note(self.flushes, progress)

    def note_taken(self, rows: Iterable[tuple[int, int, Timestamp]]) -> None:
        """Rows of a feed with `transactions`, which do not say whether they are of a scan."""
        self.flushes += 1
        for table_id, key, at in rows:
            for live in (True, False):
                self.duplicates += live and (table_id, key, at, live) in self.flushed_in
                self.flushed_in.setdefault((table_id, key, at, live), self.flushes)
            self.scanned_in.setdefault((table_id, key, at), []).append(self.flushes)

    def judge(self, models: Mapping[int, TableModel]) -> None:
        for attempt in self.framed:
            attempt.judge(models)
        for shown in self.shown:
            _check_shown(shown, models[shown.table.id])
        for member in self.members.values():
            model = models[member.table_id]
            self._check_scanned(member, model)
            self._check_delivered(member, model)
            for era in model.eras:
                if era.at > member.start_at and any(_rewrites(s, self.follows) for s in era.steps):
                    self._check_shown_again(member, model, era.at)

    def _check_scanned(self, member: Membership, model: TableModel) -> None:
        for as_of, since, done in member.scanned:
            for key in model.rows_at(as_of):
                flushes = self.scanned_in.get((model.table_id, key, as_of), ())
                assert any(since < flush <= done for flush in flushes), (
                    f"{self.name}: {key} of {model.name} was not scanned as of {as_of}: {flushes}, "
                    f"not above {since} and up to {done}"
                )

    def _check_delivered(self, member: Membership, model: TableModel) -> None:
        for write in model.writes:
            at = write.at
            if at is None or at <= member.start_at:
                continue
            claimed = member.claims.first_at(at)
            for key in write.tokens if claimed is not None else ():
                flushed = self.flushed_in.get((model.table_id, key, at, True))
                assert flushed is not None, (
                    f"{self.name}: resolved passed {key} at {at}: never came"
                )
                assert flushed <= (claimed or 0), f"{self.name}: resolved passed {key} at {at}"

    def _check_shown_again(self, member: Membership, model: TableModel, at: Timestamp) -> None:
        """Rows as of a step that rewrites, or later versions of theirs, come before resolved."""
        claimed = member.claims.first_at(at)
        if claimed is None:
            return
        for key in model.rows_at(at):
            later = [
                number
                for (table_id, shown, ts, live), number in self.flushed_in.items()
                if (table_id, shown) == (model.table_id, key) and (ts >= at if live else ts == at)
            ]
            assert later, f"{self.name}: {key} as of {at} never came, and resolved passed it"
            assert min(later) <= claimed, f"{self.name}: resolved passed {at} before {key} of it"


def _check_shown(shown: Shown, model: TableModel) -> None:
    at = shown.at
    model.check_shape(at, shape_of(shown.table))
    model.note_ids({column.id: column.name for column in shown.table.visible_columns})
    match shown.kind:
        case ChangeKind.LIVE:
            assert model.written(shown.key, at), f"{shown} was never committed"
        case ChangeKind.BACKFILL:
            assert model.era_at(at).at == at, f"{shown}: nothing changed then"
        case ChangeKind.INITIAL_SCAN:
            pass  # as of whenever the table joined the feed, or stood when it was to come again
    model.check_row(shown.key, at, shown.row)


def _rewrites(step: Step, follows: bool) -> bool:
    """Whether a feed has to show the table's rows again."""
    match step:
        case Add(column=column):
            if column.fill is Fill.CONSTANT:
                return not follows
            return column.fill is not Fill.NULL
        case Drop():
            return not follows
        case Become(type=type):
            return type is not None
        case Rekey():
            return True
        case Truncate():
            return follows


def rows_of(batch: ChangeBatch) -> list[Shown]:
    table = batch.descriptor
    codec = codec_for(table)
    gap = 0 if table.key_columns[0].name == "k" else KEY_GAP
    found = []
    for encoded, at, row in zip(batch.keys, batch.timestamps, batch.iterate_rows(), strict=True):
        name = codec.decode_key(encoded)[0]
        assert isinstance(name, int)
        found.append(Shown(table, batch.kind, name - gap, at, row))
    return found
