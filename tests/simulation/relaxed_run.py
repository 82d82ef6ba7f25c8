"""A relaxed store under threads, deaths and a log that is mistreated, and what its readers show.

    outcome = run_relaxed(seed)

Processes of some threads each write cells, in batches and outside of them; some die wherever they
stand. Then the log, as it was written, is read by several readers: as it is, shuffled, doubled, cut
short, with lines missing. Every state that any of them shows must be one that the store had,
and what is missing must be named.
"""

from __future__ import annotations

import contextvars
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tailrace.kvlayer.relaxed import domain as domains
from tailrace.kvlayer.relaxed.domain import Domain
from tailrace.kvlayer.relaxed.events import Event, Line, Record, Snapshot, lines_table
from tailrace.kvlayer.relaxed.ids import within
from tailrace.kvlayer.relaxed.reader import ChangeSet, Reader
from tailrace.kvlayer.relaxed.shared import SharedAttachment, new_state
from tests.simulation.baton import Baton, Process
from tests.simulation.relaxed_store import (
    RelaxedCells,
    SimLives,
    SimLock,
    SimLog,
    SimMemory,
    State,
    no_child,
)

DOMAIN = 0x5EED
ROWS = 3
COLUMNS = ("signal", "frames")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaxedOutcome:
    """What a run was made of."""

    events: int
    states: int
    counts: Counter[str]


class RelaxedRun:
    """One seed's run."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.baton = Baton(self.random)
        self.counts: Counter[str] = Counter()
        self.store = RelaxedCells(self.baton)
        self.memory = SimMemory(self.baton, self.store)
        self.lock = SimLock(self.baton, self.counts)
        self.owners: dict[int, Process] = {}
        self.logs: list[SimLog] = []
        self.snapshots: list[Snapshot] = []
        self.states = 0
        # Far on in some seeds: seconds that are about to wrap, as in 2106.
        self.now = self.random.choice((1_700_000_000, (1 << 32) - 1)) * 1_000_000_000
        self.now += 999_999_000
        self.quiesce_within_ns = self.random.choice((2_000, 50_000, 10**12))
        self.deaths_looked_for_ns = self.random.choice((2_000, 10**12))
        self.batch = 0

    def run(self) -> RelaxedOutcome:
        new_state(self.memory, DOMAIN, 0)
        self.memory.quiet = False
        held, domains.EVENTS_HELD_MAX = domains.EVENTS_HELD_MAX, self.random.choice((2, 1000))
        try:
            for pid in range(1, self.random.randint(2, 4) + 1):
                self._start(Process(pid))
            self.baton.run()
            self.baton.spawn(Process(99), self._finish)
            self.baton.run()
        finally:
            domains.EVENTS_HELD_MAX = held
        lines: list[Line] = [line for log in self.logs for line in log.lines]
        lines.extend(self.snapshots)
        self._read_all(lines)
        self._read_mistreated(lines)
        events = sum(isinstance(line, Event) for line in lines)
        return RelaxedOutcome(events=events, states=self.states, counts=self.counts)

    # Writing

    def _now_ns(self) -> int:
        self.now += self.random.choice((0, 0, 10, 1000))
        return self.now

    def _domain(self, process: Process) -> Domain:
        log = SimLog(self.baton)
        self.logs.append(log)
        attachment = SharedAttachment(
            self.memory,
            self.lock,
            SimLives(self.baton, self.owners),
            log,
            self._now_ns,
            pid=process.pid,
            renew=no_child,
            quiesce_within_ns=self.quiesce_within_ns,
            deaths_looked_for_ns=self.deaths_looked_for_ns,
        )
        return Domain(attachment, self._now_ns, self.baton.pause, patience_ns=10**15)

    def _start(self, process: Process) -> None:
        def begin() -> None:
            domain = self._domain(process)
            for _ in range(self.random.randint(1, 3)):
                self.baton.spawn(process, lambda: self._work(domain))
            if self.random.random() < 0.4:
                self.baton.spawn(Process(-process.pid), lambda: self._kill(process))

        self.baton.spawn(process, begin)

    def _kill(self, process: Process) -> None:
        for _ in range(self.random.randint(1, 150)):
            self.baton.pause()
        process.dead = True
        self.counts["killed"] += 1
        self.lock.freed_by(process)

    def _work(self, domain: Domain) -> None:
        for _ in range(self.random.randint(1, 5)):
            match self.random.randrange(8):
                case 0:
                    self._write(domain)
                    self.counts["write outside a batch"] += 1
                case 1:
                    self._snapshot(domain)
                case 2:
                    with domain.batch():
                        self._write(domain)
                        with domain.batch():
                            self._write(domain)
                        self._write(domain)
                    self.counts["batch in a batch"] += 1
                case 3:
                    with domain.batch():
                        self._inherit(domain)
                    self.counts["inherited batch"] += 1
                case _:
                    with domain.batch():
                        for _ in range(self.random.randint(0, 4)):
                            self._write(domain)

    def _inherit(self, domain: Domain) -> None:
        """A thread that begins inside the batch, and ends whenever it does."""
        context = contextvars.copy_context()
        self.baton.spawn(self.baton.process, lambda: context.run(self._write, domain))

    def _write(self, domain: Domain) -> None:
        row = b"%d" % self.random.randrange(ROWS)
        self.batch += 1
        new = self.random.choice((None, b"x", b"y", b"%d" % self.batch))

        def exchange(row: bytes, column: str, new: bytes | None) -> bytes | None:
            return self.store.exchange("crashes", row, column, new)

        domain.write(exchange, "crashes", row, self.random.choice(COLUMNS), new)

    def _snapshot(self, domain: Domain) -> None:
        with domain.quiescence() as cut:
            self.baton.pause()
            self._keep_snapshot(cut)

    def _keep_snapshot(self, cut: int) -> None:
        assert cut == 0 or self.memory.cuts[cut] == self.store.cells, f"busy at {cut:016x}"
        self.snapshots.append(Snapshot(domain=DOMAIN, cut=cut, cells=dict(self.store.cells)))
        self.counts["snapshot"] += 1

    def _finish(self) -> None:
        """Somebody buries the dead, and sees the store at rest."""
        domain = self._domain(self.baton.process)
        self._snapshot(domain)
        self._write(domain)
        with domain.quiescence():
            pass

    # Reading

    def _read_all(self, lines: list[Line]) -> None:
        reader, state = Reader(DOMAIN, 0), dict[tuple[str, bytes, str], bytes]()
        self._feed(reader, lines, state)
        assert not reader.gaps(), [str(gap) for gap in reader.gaps()]
        assert reader.pending_count == 0, reader.pending_count
        assert state == self.store.cells, "the last state is not the store's"
        stranger, state = Reader(DOMAIN), {}
        self._feed(stranger, lines, state)
        assert state == self.store.cells, "a stranger's last state is not the store's"
        if any(isinstance(line, Record) and not line.complete for line in lines):
            self.counts["incomplete epoch"] += 1

    def _feed(self, reader: Reader, lines: list[Line], state: State) -> None:
        """In pieces of any size; every state that comes of it is looked at."""
        at = 0
        while at < len(lines):
            many = self.random.choice((1, 5, 50, 1000))
            reader.feed(lines_table(lines[at : at + many]))
            at += many
            least = self.random.choice((0, 0, 7))
            for change_set in reader.advance(events_min=least):
                self._apply(change_set, state)

    def _apply(self, change_set: ChangeSet, state: State) -> None:
        if change_set.snapshot:
            state.clear()
        for change in change_set.changes.to_pylist():
            place = change["table"], change["row"], change["column"]
            old = state.pop(place, None)
            assert old == change["old"], f"{place} was {old!r} and not {change['old']!r}"
            if change["new"] is not None:
                state[place] = change["new"]
        existed = self.memory.cuts[change_set.end] if change_set.end else {}
        assert state == existed, f"no such state was ever there: {change_set.end:016x}"
        self.states += 1

    def _read_mistreated(self, lines: list[Line]) -> None:
        shuffled = [*lines, *self.random.choices(lines, k=len(lines) // 3)]
        self.random.shuffle(shuffled)
        self.counts["shuffled"] += 1
        self.counts["doubled"] += len(shuffled) - len(lines)
        self._read_all(shuffled)
        log = self.random.choice(self.logs)
        kept = self.random.randint(0, len(log.lines))
        cut_off = log.lines[kept:]
        self._read_without(lines, cut_off)
        self.counts["truncated"] += 1
        if events := [line for line in lines if isinstance(line, Event)]:
            self._read_without(lines, [self.random.choice(events)])
            self.counts["event lost"] += 1
        records = [line for line in lines if isinstance(line, Record)]
        last = records[-1]
        lost = [line for line in records if line == self.random.choice(records) != last]
        self._read_without(lines, lost)
        self.counts["record lost"] += len(lost) > 0

    def _read_without(self, lines: list[Line], lost: Sequence[Line]) -> None:
        """Without snapshots but the first state: what is missing cannot be passed over."""
        kept: list[Line] = [
            line for line in lines if line not in lost and not isinstance(line, Snapshot)
        ]
        if not kept:
            return
        reader = Reader(DOMAIN, 0)
        self._feed(reader, kept, {})
        if reader.position is None or not self._matters(kept, lost):
            return
        named = " ".join(map(str, reader.gaps()))
        assert named, f"{lost} were lost, and nobody says so"
        self.counts["gap named"] += 1

    def _matters(self, kept: list[Line], lost: Sequence[Line]) -> bool:
        """Whether something lost is of what the log's other lines speak of."""
        records = [line for line in kept if isinstance(line, Record)]
        ends = {record.end for record in records}
        for line in lost:
            if isinstance(line, Record) and any(each.begin == line.end for each in records):
                return line.begin in ends or line.begin == 0
            if isinstance(line, Event) and any(
                each.complete and within(line.id, each.begin, each.end) for each in records
            ):
                return True
        return False


def run_relaxed(seed: int) -> RelaxedOutcome:
    return RelaxedRun(seed).run()
