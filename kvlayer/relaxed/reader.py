"""The reader of a domain's log: from lines in any order to change sets at quiescence points.

A reader knows the store's state at its *position*, the end of an epoch at which the store was
quiescent. From there it follows the records, each of which begins where the last one ended. When it
has come to a mark, and has every event of the epochs up to it, it folds them into one change set,
and the mark's end is its position.

What it lacks it waits for, and names: an epoch without a record, a batch without an event. Doubles
are dropped. After an epoch that is not complete, as from a domain that it has not seen before, it
knows no state, until there is a snapshot taken at quiescence.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .errors import ContradictingLines, ForeignDomain, PendingLimit, TooManyEvents
from .events import CELL, EVENT, LINES, RECORD, SNAPSHOT, Record, rows_where
from .fold import CHANGES, fold
from .ids import HALF, ID_MASK, NO_ID, before

PENDING_BYTES_MAX = 256 * 1024 * 1024
"""Lines that a reader holds until their mark comes: what a domain writes in its ten minutes."""

EVENTS_WANTED = 8000
"""Who loads a log passes quiescence points over until a change set has so many events. Folding them
is one step of the loop: some milliseconds."""

_DISTANCE = "distance"
_BASE_BEHIND = 1 << 62
"""How far behind the first id seen distances begin, where no position is known: 34 years."""

Epoch = tuple[int, int, bool]
"""A record without its domain and begin: its end, its count, and whether it is complete."""

_RECORD_COLUMNS = ["begin", "id", "count", "complete"]
_EVENT_COLUMNS = ["id", "ordinal", "table", "row", "column", "old", "new"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSet:
    """The changes from one quiescence point of a domain to another, `begin` to `end`.

    With `snapshot` it is the whole store at `end`: a cell that it does not name has no value.
    """

    domain: int
    begin: int | None
    end: int
    changes: pa.Table
    event_count: int
    snapshot: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A missing part of a log: of an epoch's events, or the records from `begin` to `end`.

    `ordinals` are those missing in the midst of a batch, by its id. What they do not account for is
    the end of a batch, or a whole one.
    """

    domain: int
    begin: int
    end: int
    expected: int | None
    found: int
    ordinals: dict[int, tuple[int, ...]]

    def __str__(self) -> str:
        epoch = f"epoch {self.begin:016x}-{self.end:016x} of domain {self.domain:016x}"
        if self.expected is None:
            return f"{epoch}: no record"
        named = [
            f"batch {id:016x} lacks ordinal{'s' * (len(missing) > 1)} "
            + ", ".join(map(str, missing[:10]))
            + (" and more" if len(missing) > 10 else "")
            for id, missing in self.ordinals.items()
        ]
        rest = self.expected - self.found - sum(map(len, self.ordinals.values()))
        if rest:
            named.append(f"{rest} at the end of a batch")
        return f"{epoch}: {self.found} of {self.expected} events; {'; '.join(named)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainState:
    """The progress of a domain's log. `position` is None while no state is known, and `open_since`
    the begin of the epoch that has no record yet."""

    domain: int
    position: int | None
    pending: int
    open_since: int | None
    gaps: Sequence[Gap]


class _Cells:
    """The cells of a snapshot that have come, in pieces until there are enough of them."""

    def __init__(self) -> None:
        self.row_count = self.byte_count = 0
        self._pieces = [LINES.empty_table().select(["ordinal", *_EVENT_COLUMNS[2:]])]

    def add(self, piece: pa.Table) -> None:
        self._pieces.append(piece)
        self.row_count += piece.num_rows
        self.byte_count += piece.nbytes

    def whole(self, count: int) -> pa.Table | None:
        """The cells without doubles, where they are so many."""
        if self.row_count < count:
            return None
        cells = pa.concat_tables(self._pieces)
        cells = cells.group_by(cells.column_names).aggregate([])
        self._pieces, self.row_count, self.byte_count = [cells], cells.num_rows, cells.nbytes
        return cells if self.row_count == count else None


class Reader:
    """The lines of one domain, and how far they have been understood.

    `position` is None while no state is known.
    """

    def __init__(
        self, domain: int, position: int | None = None, *,
        pending_bytes_max: int = PENDING_BYTES_MAX,
    ) -> None:  # fmt: skip
        self.domain = domain
        self.position = position
        self.unknown_since: int | None = None
        """The begin of the incomplete epoch behind which no state is known."""
        self._pending_bytes_max = pending_bytes_max
        self._records: dict[int, Epoch] = {}
        self._walked: int | None = position
        """From the position to here no epoch is a mark, and all are complete."""
        self._fresh: list[pa.Table] = []
        self._fresh_bytes = 0
        self._events = LINES.empty_table().select(_EVENT_COLUMNS)
        self.floor = position
        """The last position known, though the state has become unknown since: nothing that lies
        before it is of use."""
        self._base = position or NO_ID
        self._distances: Sequence[int] = []
        """How far each event's id is from `_base`, ascending: the order of `_events`."""
        self._start = 0
        """Where in `_events` the first is that no change set has held."""
        self._cells: dict[int, _Cells] = {}
        self._snapshots: dict[int, int] = {}

    @property
    def pending_count(self) -> int:
        """Events that no change set has held yet."""
        return self._events.num_rows - self._start + sum(piece.num_rows for piece in self._fresh)

    @property
    def pending_bytes(self) -> int:
        cell_bytes = sum(cells.byte_count for cells in self._cells.values())
        return self._events.nbytes + self._fresh_bytes + cell_bytes

    @property
    def cell_count(self) -> int:
        """Cells of snapshots that lie ahead, doubles among them."""
        return sum(cells.row_count for cells in self._cells.values())

    def feed(self, lines: pa.Table) -> None:
        """Takes lines, in any order, any number of times.

        Raises ForeignDomain, ContradictingLines or PendingLimit, and has taken none of them.
        """
        domains = _integers(lines.column("domain").unique())
        if foreign := [each for each in domains if each != self.domain]:
            raise ForeignDomain(
                f"a line is of domain {foreign[0]:016x}, and this log is {self.domain:016x}'s"
            )
        records = self._agreed(_of_kind(lines, RECORD, _RECORD_COLUMNS))
        events = _of_kind(lines, EVENT, _EVENT_COLUMNS)
        if self.pending_bytes + events.nbytes > self._pending_bytes_max:
            raise PendingLimit(
                f"domain {self.domain:016x}: more than {self._pending_bytes_max} bytes of events "
                "wait for a quiescence mark"
            )
        if self._base == NO_ID and lines.num_rows:
            self._base = (lines.column("id")[0].as_py() - _BASE_BEHIND) & ID_MASK
        self._records |= records
        if events.num_rows:
            self._fresh.append(events)
            self._fresh_bytes += events.nbytes
        self._take_snapshots(lines)

    def advance(self, *, events_min: int = 0, rest: bool = True) -> Iterator[ChangeSet]:
        """Every change set that there is now, in order. Marks are passed over until one has
        `events_min` events. The last one may have less, if the `rest` is wanted; snapshots that lie
        ahead of a known position are also of the rest.

        The position moves when the next change set is asked for. Raises TooManyEvents,
        ContradictingLines or SurvivorError, and the position stays.
        """
        if self.position is not None and not rest and not self._mark_ahead():
            return
        self._merge()
        while True:
            if self.position is not None:
                yield from self._follow(events_min, rest)
            if self.position is not None and not rest:
                return
            found = self._snapshot_ahead()
            if found is None:
                return
            yield found
            self._move(found.end)
            self._cells.pop(found.end, None)
            self._snapshots.pop(found.end, None)
            self.unknown_since = None

    def state(self) -> DomainState:
        """The progress of the domain's log, as far as it was read."""
        return DomainState(
            domain=self.domain,
            position=self.position,
            pending=self.pending_count,
            open_since=self.open_since,
            gaps=self.gaps(),
        )

    def gaps(self) -> list[Gap]:
        """The parts that are missing of what the records speak of. In a log that is not at its end,
        those that have not come yet."""
        self._merge()
        found: list[Gap] = []
        begins = sorted(self._records, key=self._distance)
        records = [self._record(begin, self._records[begin]) for begin in begins]
        if self.position is not None and records and records[0].begin != self.position:
            found.append(self._no_record(self.position, records[0].begin))
        for record, following in pairwise(records):
            if record.end != following.begin:
                found.append(self._no_record(record.end, following.begin))
        for record in records:
            first = max(self._index(record.begin), self._start)
            last = self._index(record.end)
            if last - first < record.count and record.complete:
                found.append(self._missing(record, first, last))
        return found

    @property
    def open_since(self) -> int | None:
        """The begin of the epoch that has no record yet, where there is an event of it."""
        self._merge()
        ends = [end for end, _, _ in self._records.values()]
        begin = max(ends, key=self._distance, default=self.position)
        if begin is None or self._index(begin) >= len(self._distances):
            return None
        return begin

    # Lines

    def _agreed(self, lines: pa.Table) -> dict[int, Epoch]:
        """Records by their begin, without those before the floor. Raises ContradictingLines."""
        lengths = pc.subtract(lines.column("id"), lines.column("begin"))
        forward = pc.and_(pc.not_equal(lengths, pa.scalar(0, pa.uint64())), _below_half(lengths))
        first = pc.equal(lines.column("begin"), pa.scalar(NO_ID, pa.uint64()))
        backward = lines.filter(pc.invert(pc.or_(first, forward)))
        if backward.num_rows:
            record = backward.slice(0, 1).to_pylist()[0]
            raise ContradictingLines(
                f"the record {record['begin']:016x}-{record['id']:016x} ends before it begins"
            )
        if self.floor:
            ahead = pc.subtract(lines.column("begin"), pa.scalar(self.floor, pa.uint64()))
            lines = lines.filter(pc.and_(pc.invert(first), _below_half(ahead)))
        begins: list[Any] = lines.column("begin").to_pylist()
        columns = (lines.column(name).to_pylist() for name in ("id", "count", "complete"))
        epochs: list[Epoch] = list(zip(*columns, strict=True))
        found = dict(zip(begins, epochs, strict=True))
        if len(found) < len(epochs) or not self._records.keys().isdisjoint(found):
            self._check_repeated(begins, epochs, found)
        return found

    def _check_repeated(
        self, begins: list[int], epochs: list[Epoch], found: dict[int, Epoch]
    ) -> None:
        """Raises ContradictingLines where two records of one begin say different things."""
        for begin, epoch in zip(begins, epochs, strict=True):
            for other in (found[begin], self._records.get(begin, epoch)):
                if other != epoch:
                    raise ContradictingLines(
                        "two records say different things: "
                        f"{self._record(begin, other)} and {self._record(begin, epoch)}"
                    )

    def _record(self, begin: int, epoch: Epoch) -> Record:
        end, count, complete = epoch
        return Record(domain=self.domain, begin=begin, end=end, count=count, complete=complete)

    def _take_snapshots(self, lines: pa.Table) -> None:
        kinds = lines.column("kind").unique().to_pylist()
        if SNAPSHOT not in kinds and CELL not in kinds:
            return
        heads = rows_where(lines, "kind", SNAPSHOT).select(["id", "count"]).to_pylist()
        self._snapshots |= {head["id"]: head["count"] for head in heads}
        cells = rows_where(lines, "kind", CELL)
        for cut in _integers(cells.column("id").unique()):
            of_cut = rows_where(cells, "id", cut)
            kept = of_cut.select(["ordinal", *_EVENT_COLUMNS[2:]])
            self._cells.setdefault(cut, _Cells()).add(kept)

    def _mark_ahead(self) -> bool:
        """Whether records lead from the position to a mark, or to an incomplete epoch. Until they
        do, events may lie as they came: a store that is busy for long is read in linear time."""
        at, records = self._walked, self._records
        while at is not None and (epoch := records.get(at)) is not None:
            end, count, complete = epoch
            if not count or not complete:
                break
            at = end
        self._walked = at
        return at in records

    def _merge(self) -> None:
        """Puts fresh events in their place, without doubles."""
        if not self._fresh:
            return
        events = pa.concat_tables([self._events.slice(self._start), *self._fresh])
        self._fresh, self._fresh_bytes = [], 0
        self._start, self._base = 0, self.floor or self._base
        distances = pc.subtract(events.column("id"), pa.scalar(self._base, pa.uint64()))
        events = events.append_column(_DISTANCE, distances)
        if self.floor:
            events = events.filter(_below_half(distances))
        events = events.combine_chunks()
        if not _ascend(events):
            events = _sorted(events)
            doubled = _repeats(events)
            if doubled is not None:
                events = self._without_doubles(events, doubled)
        self._distances = _integers(events.column(_DISTANCE))
        self._events = events.select(_EVENT_COLUMNS)

    def _without_doubles(self, events: pa.Table, doubled: pa.Array[pa.BooleanScalar]) -> pa.Table:
        """Sorted events, each once. Raises ContradictingLines."""
        once = events.filter(pc.invert(doubled))
        rows = events.group_by(events.column_names).aggregate([])
        if rows.num_rows == once.num_rows:
            return once
        keys = rows.group_by(["id", "ordinal"]).aggregate([([], "count_all")])
        first = keys.filter(pc.greater(keys["count_all"], pa.scalar(1))).slice(0, 1).to_pylist()[0]
        raise ContradictingLines(
            f"event {first['ordinal']} of batch {first['id']:016x} of domain {self.domain:016x} "
            "has come twice, with different contents"
        )

    # Moving

    def _follow(self, events_min: int, rest: bool) -> Iterator[ChangeSet]:
        """The change sets up to what is missing, or to an incomplete epoch."""
        while self.position is not None:
            reached = self._reach(events_min)
            if reached is None:
                return
            end, events = reached
            if not rest and events < events_min:
                return
            if end is None:
                self.unknown_since = self.position
                self.position = self._walked = None
                return
            if events:
                yield ChangeSet(
                    domain=self.domain,
                    begin=self.position,
                    end=end,
                    changes=fold(self._events.slice(self._start, events)),
                    event_count=events,
                )
            self._move(end)

    def _reach(self, events_min: int) -> tuple[int | None, int] | None:
        """The mark to go to, and how many events lie before it; no mark (None) where an incomplete
        epoch comes first; None altogether where lines are missing."""
        assert self.position is not None
        at, reached, wanted = self.position, None, max(events_min, 1)
        first = max(self._index(at), self._start)
        distances, base, records = self._distances, self._base, self._records
        while (epoch := records.get(at)) is not None:
            end, count, complete = epoch
            if not complete:
                return reached or (None, 0)
            # Events ascend, so the epoch has its events where the one expected last is within it
            # and the one behind that is not.
            last, end_distance = first + count, (end - base) & ID_MASK
            if count and (last > len(distances) or distances[last - 1] >= end_distance):
                break
            if last < len(distances) and distances[last] < end_distance:
                raise TooManyEvents(
                    f"epoch {at:016x}-{end:016x} of domain {self.domain:016x} has "
                    f"{self._index(end) - first} events, and its record counts {count}"
                )
            at, first = end, last
            if not count:
                reached = at, last - self._start
                if last - self._start >= wanted:
                    break
        return reached

    def _index(self, id: int) -> int:
        """The index of the first event that is not before `id`."""
        return bisect_left(self._distances, self._distance(id))

    def _distance(self, id: int) -> int:
        """The distance of an id from `_base`; NO_ID comes before all."""
        return (id - self._base) & ID_MASK if id != NO_ID else -1

    def _move(self, position: int) -> None:
        """The state at `position` is known: what was before it is of no use."""
        at = self.position
        while at != position and at is not None and at in self._records:
            at = self._records.pop(at)[0]
        if at != position:
            past = [
                begin
                for begin in self._records
                if begin != position and (begin == 0 or before(begin, position))
            ]
            for begin in past:
                del self._records[begin]
        for cut in [cut for cut in self._snapshots if cut == 0 or before(cut, position)]:
            self._cells.pop(cut, None)
            del self._snapshots[cut]
        self.position = self.floor = self._walked = position
        self._start = max(self._start, self._index(position))

    def _snapshot_ahead(self) -> ChangeSet | None:
        """The newest snapshot that is whole and ahead of the position."""
        for cut in sorted(self._snapshots, key=self._distance, reverse=True):
            cells = self._cells.get(cut, _Cells()).whole(self._snapshots[cut])
            if cells is not None and self._ahead(cut):
                return ChangeSet(
                    domain=self.domain,
                    begin=self.position,
                    end=cut,
                    changes=cells.select(CHANGES.names).cast(CHANGES),
                    event_count=0,
                    snapshot=True,
                )
        return None

    def _ahead(self, cut: int) -> bool:
        if self.floor is None:
            return True
        return cut != NO_ID and (self.floor == NO_ID or before(self.floor, cut))

    # What is missing

    def _no_record(self, begin: int, end: int) -> Gap:
        return Gap(domain=self.domain, begin=begin, end=end, expected=None, found=0, ordinals={})

    def _missing(self, record: Record, first: int, last: int) -> Gap:
        batches: dict[int, list[int]] = {}
        of_epoch = self._events.slice(first, last - first).select(["id", "ordinal"])
        for line in of_epoch.to_pylist():
            batches.setdefault(line["id"], []).append(line["ordinal"])
        ordinals = {
            id: tuple(sorted(set(range(max(there) + 1)) - set(there)))
            for id, there in batches.items()
        }
        return Gap(
            domain=self.domain,
            begin=record.begin,
            end=record.end,
            expected=record.count,
            found=last - first,
            ordinals={id: missing for id, missing in ordinals.items() if missing},
        )


def _ascend(events: pa.Table) -> bool:
    """Whether each event is behind the one before it, as those of one process mostly are."""
    last = events.num_rows - 1
    if last < 1:
        return True
    ids, ordinals = _array(events.column(_DISTANCE)), _array(events.column("ordinal"))
    further = pc.greater(ids.slice(1), ids.slice(0, last))
    within = pc.equal(ids.slice(1), ids.slice(0, last))
    behind = pc.greater(ordinals.slice(1), ordinals.slice(0, last))
    return bool(pc.all(pc.or_(further, pc.and_(within, behind))).as_py())


def _of_kind(lines: pa.Table, kind: str, columns: list[str]) -> pa.Table:
    """Some columns of the lines of a kind. Lines are made of too many to filter them all."""
    return lines.select(columns).filter(pc.equal(lines.column("kind"), pa.scalar(kind)))


def _below_half(distances: pa.ChunkedArray[Any]) -> pa.BooleanArray:
    """Marks the ids that are not before the one that `distances` are measured from."""
    return pc.less(distances, pa.scalar(HALF, pa.uint64()))


def _sorted(events: pa.Table) -> pa.Table:
    """By distance and ordinal."""
    keys = events.select([_DISTANCE, "ordinal"])
    order = pc.sort_indices(keys, [(_DISTANCE, "ascending"), ("ordinal", "ascending")])
    return events.take(order).combine_chunks()


def _repeats(events: pa.Table) -> pa.Array[pa.BooleanScalar] | None:
    """Marks the rows that have the key of the row before them; None where none has."""
    rows = events.num_rows
    if rows < 2:
        return None
    ids, ordinals = _array(events.column("id")), _array(events.column("ordinal"))
    same = pc.and_(
        pc.equal(ids.slice(1), ids.slice(0, rows - 1)),
        pc.equal(ordinals.slice(1), ordinals.slice(0, rows - 1)),
    )
    if not pc.any(same).as_py():
        return None
    return pa.concat_arrays([pa.array([False]), same])


def _array(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    chunks: list[pa.Array[Any]] = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)


def _integers(column: pa.ChunkedArray[Any] | pa.Array[Any]) -> Sequence[int]:
    """Values of uint64, without a copy."""
    if not len(column):
        return []
    array = _array(column) if isinstance(column, pa.ChunkedArray) else column
    buffer = array.buffers()[1]
    assert buffer is not None, array.type
    values = memoryview(buffer).cast("B")
    return values[array.offset * 8 : (array.offset + len(array)) * 8].cast("Q")
