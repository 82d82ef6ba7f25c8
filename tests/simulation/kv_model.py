"""The oracle of a store: every version that was committed, and every read that was answered.

    ticket = model.begin()                           # bodies carry it, so that they are unique
    model.submit(ticket, {key: body, other: None})   # just before commit is called; None deletes
    model.commit(ticket, ts)                         # acknowledged
    model.abort(ticket)                              # refused: nothing was written
    model.note_read(Read(...))                       # judged when everything is known

What was submitted and neither acknowledged nor refused when the process died is *in doubt*: what
recovery finds decides (`adopt`), whole or not at all. Garbage collection may take what no reader
above the threshold sees, and nothing else; so the model knows what must be there, and what may.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count

from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.span import Span
from tests.harness.validators import History

Writes = Mapping[bytes, bytes | None]
Version = tuple[bytes, Timestamp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A read at a timestamp was answered with `rows`. Over what was committed it sees `own`."""

    at: Timestamp
    span: Span
    rows: Mapping[bytes, bytes]
    own: Writes = field(default_factory=dict)
    who: str = ""


class KVModel:
    """All that clients of one store were told, over all its lives."""

    def __init__(self) -> None:
        self.history = History()
        self.frozen = False
        """Set when the process has died: what its tasks still hear is heard by nobody."""
        self.last = ZERO
        self.commit_count = 0
        self.read_count = 0
        self._tickets = count(1)
        self._doubtful: dict[int, Writes] = {}
        self._reads: list[Read] = []
        self._by_key: dict[bytes, list[tuple[Timestamp, bytes | None]]] = defaultdict(list)
        self._sorted = True
        self._thresholds: dict[bytes, Timestamp] = {}

    def begin(self) -> int:
        return next(self._tickets)

    def submit(self, ticket: int, writes: Writes) -> None:
        if not self.frozen:
            assert any(writes.values()), "a live body tells whose the transaction is"
            self._doubtful[ticket] = dict(writes)

    def commit(self, ticket: int, at: Timestamp) -> None:
        if not self.frozen:
            self._note(at, self._doubtful.pop(ticket))

    def abort(self, ticket: int) -> None:
        if not self.frozen:
            self._doubtful.pop(ticket, None)

    def note_read(self, read: Read) -> None:
        if not self.frozen:
            self._reads.append(read)

    def note_thresholds(
        self, keys: Iterable[bytes], threshold_of: Callable[[Span], Timestamp]
    ) -> None:
        """Garbage was collected, and that is durable."""
        if not self.frozen:
            for key in keys:
                self._thresholds[key] = threshold_of(Span.point(key))

    def get(self, key: bytes, at: Timestamp) -> bytes | None:
        """The body of the key's live value at `at`."""
        versions = self._versions(key)
        place = bisect_right(versions, at, key=lambda version: version[0])
        return versions[place - 1][1] if place else None

    def judge(self) -> None:
        """Everything up to now is known: were all reads right?"""
        for read in self._reads:
            expected: dict[bytes, bytes] = {}
            for key in [*self._by_key, *(own for own in read.own if own not in self._by_key)]:
                if read.span.contains(key):
                    body = read.own[key] if key in read.own else self.get(key, read.at)
                    if body is not None:
                        expected[key] = body
            assert read.rows == expected, (read, expected)
        self.read_count += len(self._reads)
        self._reads = []

    def adopt(
        self,
        found: Mapping[Version, bytes | None],
        threshold_of: Callable[[Span], Timestamp],
    ) -> None:
        """What recovery found, every version that the store holds."""
        strange = sorted({ts for key, ts in found if (key, ts) not in self.history.bodies})
        for at in strange:
            part = {key: body for (key, ts), body in found.items() if ts == at}
            owners = [t for t, writes in self._doubtful.items() if part.items() <= writes.items()]
            assert owners, f"nobody wrote {part} at {at}"
            self._note(at, self._doubtful.pop(owners[0]))
        self._doubtful.clear()
        self.frozen = False
        self.compare(found, threshold_of)

    def compare(
        self,
        found: Mapping[Version, bytes | None],
        threshold_of: Callable[[Span], Timestamp],
    ) -> None:
        """The store holds these versions: what was committed, less garbage."""
        committed = self.history.bodies
        for key, known in self._thresholds.items():
            threshold = threshold_of(Span.point(key))
            assert threshold >= known, f"{key!r}: {threshold}, and {known} was durable"
        for version, body in found.items():
            assert version in committed, f"{version} is there and was never committed"
            assert committed[version] == body, (version, body, committed[version])
        for key, ts in committed.keys() - found.keys():
            self._check_garbage(key, ts, threshold_of(Span.point(key)))

    def _check_garbage(self, key: bytes, ts: Timestamp, threshold: Timestamp) -> None:
        versions = self._versions(key)
        assert ts <= threshold, f"{key!r}@{ts} is lost, the threshold being {threshold}"
        place = bisect_right(versions, threshold, key=lambda version: version[0])
        newest, body = versions[place - 1]
        assert ts < newest or body is None, f"{key!r}@{ts} is lost; it is live at {threshold}"

    def _note(self, at: Timestamp, writes: Writes) -> None:
        self.history.note_commit(at, writes)
        self.commit_count += 1
        self.last = max(self.last, at)
        self._sorted = False
        for key, body in writes.items():
            self._by_key[key].append((at, body))

    def _versions(self, key: bytes) -> list[tuple[Timestamp, bytes | None]]:
        if not self._sorted:
            for versions in self._by_key.values():
                versions.sort(key=lambda version: version[0])
            self._sorted = True
        return self._by_key[key]


def overlay(own: Iterable[Writes]) -> dict[bytes, bytes | None]:
    """Writes of one transaction, one after the other, as one."""
    merged: dict[bytes, bytes | None] = {}
    for writes in own:
        merged |= writes
    return merged
