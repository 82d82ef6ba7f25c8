"""Observers of a feed, one for each promise of `tailrace.kvlayer.events`.

    history = History()                             # the oracle: the test tells it what it commits
    watch = Watch(history, [(span, start)])         # all validators
    watch.note_events(await feed.next())
    ...
    watch.finish()
    assert not watch.failures

An observer is told of every value and checkpoint in the order of the feed. It never asks the
system what is right: the history is an exact model, or the rule is about the stream alone. What
needs the whole history is decided in `finish`, when the test has told all of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.events import Checkpoint, DeleteRange, Event, SteadyState, ValueBatch
from tailrace.kvlayer.span import Span

Version = tuple[bytes, Timestamp]
Start = tuple[Span, Timestamp]


class History:
    """Every version that was ever committed."""

    def __init__(self) -> None:
        self.bodies: dict[Version, bytes | None] = {}
        self._timestamps: dict[bytes, list[Timestamp]] = defaultdict(list)

    def note_commit(self, at: Timestamp, rows: Mapping[bytes, bytes | None]) -> None:
        for key, body in rows.items():
            assert (key, at) not in self.bodies, (key, at)
            self.bodies[key, at] = body
            self._timestamps[key].append(at)

    def previous(self, key: bytes, at: Timestamp) -> bytes | None:
        """The body of the key just below `at`."""
        older = [ts for ts in self._timestamps[key] if ts < at]
        return self.bodies[key, max(older)] if older else None

    def versions(self, starts: Sequence[Start]) -> Iterator[Version]:
        """Versions above the start of their span."""
        for key, ts in self.bodies:
            if any(span.contains(key) and ts > start for span, start in starts):
                yield key, ts

    def deleted_by(self, span: Span, at: Timestamp) -> Iterator[bytes]:
        """The keys that a deletion of the span at `at` deleted."""
        return (
            key
            for (key, ts), body in self.bodies.items()
            if ts == at and span.contains(key) and body is None
        )


class Observer:
    """Is told of everything, and remembers what was wrong."""

    def __init__(self) -> None:
        self.failures: list[str] = []

    def note_value(self, key: bytes, body: bytes | None, ts: Timestamp) -> None: ...
    def note_previous(self, key: bytes, previous: bytes | None, ts: Timestamp) -> None: ...
    def note_checkpoint(self, span: Span, resolved: Timestamp) -> None: ...
    def note_steady(self, span: Span) -> None: ...

    def note_restart(self, span: Span, at: Timestamp) -> None:
        """The feed of the span started again from `at`."""

    def finish(self) -> None:
        """The feed has ended, after a checkpoint above all that was committed."""

    def fail(self, text: str) -> None:
        self.failures.append(f"{type(self).__name__}: {text}")


class DeliveryValidator(Observer):
    """1. Every version above the start arrives, and as it was committed. Duplicates come only after
    a restart, and only above the restart's timestamp.
    """

    def __init__(self, history: History, starts: Sequence[Start]) -> None:
        super().__init__()
        self._history = history
        self._starts = starts
        self._seen: dict[bytes, dict[Timestamp, bytes | None]] = defaultdict(dict)
        self._may_repeat: set[Version] = set()

    def note_value(self, key: bytes, body: bytes | None, ts: Timestamp) -> None:
        seen = self._seen[key]
        if ts not in seen:
            seen[ts] = body
        elif (key, ts) in self._may_repeat:
            self._may_repeat.discard((key, ts))
            if seen[ts] != body:
                self.fail(f"{key!r}@{ts} came as {seen[ts]!r}, and again as {body!r}")
        else:
            self.fail(f"{key!r}@{ts} came twice without a restart")

    def note_restart(self, span: Span, at: Timestamp) -> None:
        # A hidden restart is noted for each value, so a single key must not cost all of them.
        keys = [span.start] if span == Span.point(span.start) else list(self._seen)
        for key in keys:
            if key in self._seen and span.contains(key):
                self._may_repeat |= {(key, ts) for ts in self._seen[key] if ts > at}

    def finish(self) -> None:
        bodies = self._history.bodies
        for key, versions in self._seen.items():
            for ts, body in versions.items():
                if (key, ts) not in bodies:
                    self.fail(f"{key!r}@{ts} was never committed")
                elif bodies[key, ts] != body:
                    self.fail(f"{key!r}@{ts} came as {body!r}, committed as {bodies[key, ts]!r}")
        for key, ts in self._history.versions(self._starts):
            if key not in self._seen or ts not in self._seen[key]:
                self.fail(f"{key!r}@{ts} never came")


class OrderValidator(Observer):
    """2. After the steady state, a key's new versions come in ascending order.

    A restart begins a new catch-up, which has its own steady state.
    """

    def __init__(self) -> None:
        super().__init__()
        self._steady: list[Span] = []
        self._newest: dict[bytes, Timestamp] = {}
        self._seen: set[Version] = set()

    def note_steady(self, span: Span) -> None:
        self._steady.append(span)

    def note_restart(self, span: Span, at: Timestamp) -> None:
        self._steady = [steady for steady in self._steady if not steady.overlaps(span)]

    def note_value(self, key: bytes, body: bytes | None, ts: Timestamp) -> None:
        newest = self._newest.get(key, ZERO)
        late = (key, ts) not in self._seen and ts < newest
        if late and any(span.contains(key) for span in self._steady):
            self.fail(f"{key!r}@{ts} came after {newest}")
        self._seen.add((key, ts))
        self._newest[key] = max(newest, ts)


class CheckpointValidator(Observer):
    """3. After a checkpoint, no value at or below it is new."""

    def __init__(self) -> None:
        super().__init__()
        self._resolved: dict[Span, Timestamp] = {}
        self._seen: set[Version] = set()

    def note_checkpoint(self, span: Span, resolved: Timestamp) -> None:
        self._resolved[span] = max(resolved, self._resolved.get(span, ZERO))

    def note_value(self, key: bytes, body: bytes | None, ts: Timestamp) -> None:
        if (key, ts) in self._seen:
            return
        self._seen.add((key, ts))
        for span, resolved in self._resolved.items():
            if ts <= resolved and span.contains(key):
                self.fail(f"{key!r}@{ts} is new after checkpoint {resolved}")


class ProgressValidator(Observer):
    """4. Every value is followed by a checkpoint at or above it."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: set[Version] = set()

    def note_value(self, key: bytes, body: bytes | None, ts: Timestamp) -> None:
        self._waiting.add((key, ts))

    def note_checkpoint(self, span: Span, resolved: Timestamp) -> None:
        self._waiting = {
            (key, ts) for key, ts in self._waiting if ts > resolved or not span.contains(key)
        }

    def finish(self) -> None:
        for key, ts in sorted(self._waiting):
            self.fail(f"{key!r}@{ts} was never followed by a checkpoint")


class StartValidator(Observer):
    """5. Never a value at or below the start, nor outside the spans."""

    def __init__(self, starts: Sequence[Start]) -> None:
        super().__init__()
        self._starts = starts

    def note_value(self, key: bytes, body: bytes | None, ts: Timestamp) -> None:
        if not any(span.contains(key) and ts > start for span, start in self._starts):
            self.fail(f"{key!r}@{ts} is outside {self._starts}")


class PreviousValidator(Observer):
    """A previous value is what the key held just below the version, if it was asked for."""

    def __init__(self, history: History) -> None:
        super().__init__()
        self._history = history
        self._noted: list[tuple[bytes, bytes | None, Timestamp]] = []

    def note_previous(self, key: bytes, previous: bytes | None, ts: Timestamp) -> None:
        self._noted.append((key, previous, ts))

    def finish(self) -> None:
        for key, previous, ts in self._noted:
            expected = self._history.previous(key, ts)
            if previous != expected:
                self.fail(f"{key!r}@{ts} replaced {previous!r}, says the feed, not {expected!r}")


class Watch(Observer):
    """All validators at once, told in events.

    A span feed restarts behind the scenes: with `restarts_hidden`, versions above the last
    checkpoint of their key may come again, at any time.
    """

    def __init__(
        self,
        history: History,
        starts: Iterable[Start],
        *,
        restarts_hidden: bool = False,
        universe: Sequence[bytes] = (),
    ) -> None:
        """A deleted span deletes its keys of the `universe`; or, if none is told, those that the
        history says it did, which must then know of the deletion before the feed delivers it."""
        super().__init__()
        self._history = history
        self._universe = universe
        self._restarts_hidden = restarts_hidden
        self._resolved = dict(starts)
        spans = list(self._resolved.items())
        self.observers: list[Observer] = [
            DeliveryValidator(history, spans),
            OrderValidator(),
            CheckpointValidator(),
            ProgressValidator(),
            StartValidator(spans),
            PreviousValidator(history),
        ]

    @property
    def resolved(self) -> Timestamp:
        """How far all spans have come."""
        return min(self._resolved.values())

    @property
    def entries(self) -> list[Start]:
        """How far each part of the spans has come: where a feed that ended would start again."""
        return sorted(self._resolved.items())

    def note_events(self, events: Iterable[Event]) -> None:
        for event in events:
            match event:
                case ValueBatch():
                    self._note_batch(event)
                case DeleteRange(span=span, timestamp=ts):
                    self._note_deletion(span, ts)
                case Checkpoint(spans=spans, resolved=resolved):
                    for span in spans:
                        self.note_checkpoint(span, resolved)
                case SteadyState(span=span):
                    self.note_steady(span)

    def note_value(self, key: bytes, body: bytes | None, ts: Timestamp) -> None:
        self._note_value(key, body, ts, self.observers)

    def _note_value(
        self, key: bytes, body: bytes | None, ts: Timestamp, observers: Iterable[Observer]
    ) -> None:
        if self._restarts_hidden:
            at = max(r for span, r in self._resolved.items() if span.contains(key))
            self.observers[0].note_restart(Span.point(key), at)
        for observer in observers:
            observer.note_value(key, body, ts)

    def note_checkpoint(self, span: Span, resolved: Timestamp) -> None:
        if span in self._resolved:
            self._resolved[span] = max(resolved, self._resolved[span])
        else:
            self._forward(span, resolved)
        for observer in self.observers:
            observer.note_checkpoint(span, resolved)

    def note_steady(self, span: Span) -> None:
        for observer in self.observers:
            observer.note_steady(span)

    def note_restart(self, span: Span, at: Timestamp) -> None:
        for observer in self.observers:
            observer.note_restart(span, at)

    def finish(self) -> None:
        for observer in self.observers:
            observer.finish()
        self.give_up()

    def give_up(self) -> None:
        """The feed ended before it came to an end: what was wrong until then is wrong."""
        for observer in self.observers:
            self.failures += observer.failures
            observer.failures = []

    def _note_deletion(self, span: Span, ts: Timestamp) -> None:
        # A catch-up scan delivers range deletions first, and a hidden one follows a steady state.
        observers = [
            observer
            for observer in self.observers
            if not (self._restarts_hidden and isinstance(observer, OrderValidator))
        ]
        for key in self._deleted_keys(span, ts):
            self._note_value(key, None, ts, observers)

    def _deleted_keys(self, span: Span, ts: Timestamp) -> Iterable[bytes]:
        if self._universe:
            return [key for key in self._universe if span.contains(key)]
        return self._history.deleted_by(span, ts)

    def _forward(self, span: Span, resolved: Timestamp) -> None:
        """A checkpoint of a part that a range border has cut out of a span, or of several."""
        parts: dict[Span, Timestamp] = {}
        for part, at in self._resolved.items():
            shared = part.intersect(span)
            if shared is None or at >= resolved:
                parts[part] = at
                continue
            parts[shared] = resolved
            if part.start < shared.start:
                parts[Span(part.start, shared.start)] = at
            if shared.end < part.end:
                parts[Span(shared.end, part.end)] = at
        self._resolved = parts

    def _note_batch(self, batch: ValueBatch) -> None:
        if len({key[:5] for key in batch.keys}) != 1:
            self.fail(f"a batch mixes keyspaces or is empty: {batch.keys!r}")
        if not len(batch.keys) == len(batch.values) == len(batch.timestamps):
            self.fail("a batch's lists differ in length")
        for key, body, ts in zip(batch.keys, batch.values, batch.timestamps, strict=True):
            self.note_value(key, body, ts)
        if batch.previous is not None:
            rows = zip(batch.keys, batch.previous, batch.timestamps, strict=True)
            for key, previous, ts in rows:
                for observer in self.observers:
                    observer.note_previous(key, previous, ts)
