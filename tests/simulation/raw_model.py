"""The oracle of raw keyspaces: every operation in the order of its timestamp, and what it made.

What was asked and neither answered nor refused when the process died is *in doubt*: what recovery
finds decides (`adopt`). `judge` then runs all operations, one after the other, on plain
dictionaries, and compares the outcome with what clients were told and with what the engine holds.
It writes entries byte for byte by itself.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import count

from tailrace.kvlayer.clock import ZERO, Timestamp, duration
from tailrace.kvlayer.raw import keyspace_span, raw_key
from tests.harness.validators import History

DELETED_TTL = 0.2
NAMES = [bytes((name,)) for name in b"abcdef"]
RAW_KEYS = {raw_key(id, name): (id, name) for id in (7, 8) for name in NAMES}
SPANS = [keyspace_span(7), keyspace_span(8)]

Version = tuple[bytes, Timestamp]


class OpKind(Enum):
    PUT = "puts"
    DELETE = "deletes"
    SWAP = "swaps"
    DELETE_RANGE = "range deletions"


@dataclass(slots=True, kw_only=True, eq=False)
class Op:
    """What a client asked for. In `pairs` a value of None is to be deleted."""

    kind: OpKind
    keyspace: int
    pairs: dict[bytes, bytes | None] | dict[bytes, bytes]
    ttl: float | None = None
    expected: bytes | None = None
    start: bytes = b""
    end: bytes = b""
    count: int = 0
    found: tuple[bytes, ...] | None = None
    """The keys that recovery found it to have deleted."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A read of `[start, end)` at a timestamp was answered with `rows`."""

    keyspace: int
    at: Timestamp
    start: bytes
    end: bytes
    rows: Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class State:
    """What a key is from a timestamp on."""

    value: bytes | None
    expires_at: Timestamp | None

    def value_at(self, at: Timestamp) -> bytes | None:
        ended = self.expires_at is not None and self.expires_at <= at
        return None if ended else self.value

    @property
    def body(self) -> bytes:
        if self.value is None:
            return struct.pack(">QB", self.expires_at, 2)
        if self.expires_at is None:
            return self.value + b"\x00"
        return self.value + struct.pack(">QB", self.expires_at, 1)


class RawModel:
    """All that clients were told, over all lives of a store."""

    def __init__(self) -> None:
        self.history = History()
        self.frozen = False
        self.done: list[tuple[Timestamp, Op]] = []
        self.read_count = 0
        self._values = count(1)
        self._doubtful: list[Op] = []
        self._seen: list[Seen] = []
        self._between: list[tuple[int, bytes, bytes | None, Timestamp, Timestamp]] = []
        self._greatest: dict[tuple[int, bytes], Timestamp] = defaultdict(lambda: ZERO)
        self._states: dict[tuple[int, bytes], list[tuple[Timestamp, State]]] = {}

    def new_value(self) -> bytes:
        return b"%d" % next(self._values)

    def begin(self, op: Op) -> Timestamp:
        """The greatest timestamp of its keys that was acknowledged before."""
        if not self.frozen:
            self._doubtful.append(op)
        return max((self._greatest[op.keyspace, name] for name in op.pairs), default=ZERO)

    def acknowledge(self, op: Op, at: Timestamp | None, floor: Timestamp) -> None:
        if self.frozen:
            return
        self._doubtful.remove(op)
        if at is None:
            return
        assert at > floor, f"{op} at {at} came after a write of its key at {floor}"
        self.done.append((at, op))
        for name in op.pairs:
            place = op.keyspace, name
            self._greatest[place] = max(self._greatest[place], at)

    def refuse(self, op: Op) -> None:
        if not self.frozen:
            self._doubtful.remove(op)

    def saw(self, seen: Seen) -> None:
        if not self.frozen:
            self._seen.append(seen)

    def saw_between(
        self, keyspace: int, name: bytes, value: bytes | None, after: Timestamp, upto: Timestamp
    ) -> None:
        """A read of now: its timestamp lies between two that were drawn around it."""
        if not self.frozen:
            self._between.append((keyspace, name, value, after, upto))

    # After a crash

    def adopt(self, found: Mapping[Version, bytes]) -> None:
        """What recovery found: whole operations, each by somebody who was not answered."""
        known = {at for at, _ in self.done}
        for at in sorted({ts for _, ts in found if ts not in known}):
            part = {RAW_KEYS[key]: body for (key, ts), body in found.items() if ts == at}
            op = self._owner(part)
            assert op is not None, f"nobody wrote {part} at {at}"
            self._doubtful.remove(op)
            if op.kind is OpKind.DELETE_RANGE:
                op.found = tuple(name for _, name in part)
                op.count = len(part)
            self.done.append((at, op))
        self._doubtful.clear()
        self.frozen = False

    def _owner(self, part: Mapping[tuple[int, bytes], bytes]) -> Op | None:
        names = {name for _, name in part}
        ids = {id for id, _ in part}
        deletes = all(body[-1:] == b"\x02" for body in part.values())
        for op in self._doubtful:
            if ids != {op.keyspace}:
                continue
            if op.kind is OpKind.DELETE_RANGE:
                if deletes and all(op.start <= name < op.end for name in names):
                    return op
            elif names <= op.pairs.keys() and all(
                (op.pairs[name] is None or op.kind is OpKind.DELETE)
                if deletes
                else body.startswith(op.pairs[name] or b"?")
                for (_, name), body in part.items()
            ):
                return op
        return None

    # Judgement

    def judge(
        self, found: Mapping[Version, bytes], thresholds: Mapping[int, Timestamp], now: Timestamp
    ) -> None:
        """Everything up to now is known: was everybody told the truth, and is it all there?"""
        self._replay()
        for seen in self._seen:
            names = [n for id, n in RAW_KEYS.values() if id == seen.keyspace]
            expected = {
                name: value
                for name in names
                if seen.start <= name < seen.end
                and (value := self._value(seen.keyspace, name, seen.at)) is not None
            }
            assert seen.rows == expected, (seen, expected)
        for keyspace, name, value, after, upto in self._between:
            self._check_between(keyspace, name, value, after, upto)
        self.read_count += len(self._seen) + len(self._between)
        self._seen, self._between = [], []
        self._compare(found, thresholds, now)

    def _replay(self) -> None:
        self._states = {place: [] for place in RAW_KEYS.values()}
        for at, op in sorted(self.done, key=lambda each: each[0]):
            for name, state in self._made(at, op).items():
                self._states[op.keyspace, name].append((at, state))

    def _made(self, at: Timestamp, op: Op) -> dict[bytes, State]:
        buried = State(None, Timestamp(at + duration(seconds=DELETED_TTL)))
        match op.kind:
            case OpKind.DELETE_RANGE:
                live = [
                    name
                    for id, name in RAW_KEYS.values()
                    if id == op.keyspace and op.start <= name < op.end
                    and self._value(id, name, at) is not None
                ]  # fmt: skip
                assert len(live) == op.count, (op, live)
                assert op.found is None or set(op.found) == set(live), (op, live)
                return dict.fromkeys(live, buried)
            case OpKind.DELETE:
                return dict.fromkeys(op.pairs, buried)
            case OpKind.SWAP:
                (name,) = op.pairs
                before = self._value(op.keyspace, name, at)
                assert before == op.expected, f"{op} at {at} swapped {before!r}"
        ends = None if op.ttl is None else Timestamp(at + duration(seconds=op.ttl))
        return {
            name: buried if value is None else State(value, ends)
            for name, value in op.pairs.items()
        }

    def _value(self, keyspace: int, name: bytes, at: Timestamp) -> bytes | None:
        states = self._states[keyspace, name]
        place = bisect_right(states, at, key=lambda state: state[0])
        return states[place - 1][1].value_at(at) if place else None

    def _check_between(
        self, keyspace: int, name: bytes, value: bytes | None, after: Timestamp, upto: Timestamp
    ) -> None:
        states = self._states[keyspace, name]
        moments = {after, upto, *(at for at, _ in states if after < at <= upto)}
        moments |= {
            state.expires_at
            for _, state in states
            if state.expires_at is not None and after < state.expires_at <= upto
        }
        possible = {self._value(keyspace, name, at) for at in moments}
        assert value in possible, (name, value, possible, after, upto)

    def _compare(
        self, found: Mapping[Version, bytes], thresholds: Mapping[int, Timestamp], now: Timestamp
    ) -> None:
        """The engine holds what was written, less garbage."""
        left = dict(found)
        for (keyspace, name), states in self._states.items():
            threshold = thresholds[keyspace]
            place = bisect_right(states, threshold, key=lambda state: state[0])
            for index, (at, state) in enumerate(states):
                body = left.pop((raw_key(keyspace, name), at), None)
                if body is not None:
                    assert body == state.body, (name, at, body, state.body)
                    continue
                assert at <= threshold, f"{name!r}@{at} is lost, the threshold being {threshold}"
                if index < place - 1:
                    continue
                assert state.expires_at is not None, f"{name!r}@{at} is lost; it is live"
                kept = now if state.value is None else threshold
                assert state.expires_at <= kept, f"{name!r}@{at} is lost before its time"
        assert not left, f"{left} are there, and were never written"

    def tell_history(self) -> None:
        """What feeds are judged by."""
        self._replay()
        for (keyspace, name), states in self._states.items():
            for at, state in states:
                self.history.note_commit(at, {raw_key(keyspace, name): state.body})
