"""One-phase transactions on a distant store.

The evaluation runs here, against what is known of the store: reads that are not known yet end the
run, are fetched, and the evaluation starts again. All reads of a run are answered as of one
timestamp, so that no run sees a mixture. Then its writes are shipped with digests of the answers
that they rest on, and the store commits them if in its step every read still has that answer.

    run 1   get(a) is not known
    fetch   a at 100
    run 2   get(a), put(b)
    ship    put(b), if a still reads so             -> committed at 104, or: a is now, at 103, ...

That no key of an INSERT exists is assumed before it is known, so that the usual case takes one
round trip: what an assumption leads to is never told, it is only shipped or thrown away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import TypeVar

from ..clock import Timestamp
from ..errors import OutcomeUnknown, RetryableTransaction, StoreUnreachable
from ..span import Span
from .channel import ChannelBroken
from .connection import Connection
from .messages import (
    Answer,
    Committed,
    Evaluate,
    Evaluated,
    FirstExisting,
    Get,
    Now,
    OnePhase,
    Read,
    Scan,
    WireRow,
    encode,
)

T = TypeVar("T")

ATTEMPTS_MAX = 100
"""Runs of one evaluation: each learned something, or lost against a commit of another."""


class _Miss(Exception):
    """The evaluation needs what is not known yet."""


def digest(answer: Answer) -> bytes:
    """The short form of an answer on the wire."""
    return blake2b(encode(answer), digest_size=16).digest()


class RemoteEvaluation:
    """One run of an evaluation. Implements `access.Evaluation`."""

    def __init__(self, known: Mapping[Read, Answer], at: Timestamp | None) -> None:
        self._known = known
        self._at = at
        self.used: dict[Read, Answer] = {}
        self.missing: list[Read] = []
        self.missed = False
        self.assumed = False
        self.limit: Timestamp | None = None
        self.deleted: list[tuple[Span, bool]] = []
        self.writes: dict[bytes, bytes | None] = {}

    @property
    def writing(self) -> bool:
        return bool(self.writes or self.deleted)

    @property
    def timestamp(self) -> Timestamp:
        if self._at is None:
            self.missed = True
            raise _Miss
        return self._at

    def before(self, limit: Timestamp) -> bool:
        """A no stays one at the commit, which is later; a yes is for the store to check."""
        if self.timestamp >= limit:
            return False
        self.limit = limit if self.limit is None else min(self.limit, limit)
        return True

    def get(self, key: bytes) -> bytes | None:
        if key in self.writes:
            return self.writes[key]
        if self._gone(key):
            return None
        answer = self._answer(Get(key))
        assert answer is None or isinstance(answer, bytes), answer
        return answer

    def get_each(self, keys: Sequence[bytes]) -> list[bytes | None]:
        asked = [Get(key) for key in keys if key not in self.writes and not self._gone(key)]
        unknown = [read for read in asked if read not in self._known]
        if unknown:  # of all of them the store is asked at once
            self.used |= {read: self._known[read] for read in asked if read in self._known}
            self.missed = True
            self.missing += unknown
            raise _Miss
        return [self.get(key) for key in keys]

    def scan(
        self, span: Span, *, limit: int | None = None, bytes_max: int | None = None
    ) -> list[WireRow]:
        own = {key: body for key, body in self.writes.items() if span.contains(key)}
        touched = own or self.deleted
        if touched:
            assert bytes_max is None, "only the store counts the bytes of what it reads"
            answer = self._answer(Scan(span.start, span.end, None))
        else:
            answer = self._answer(Scan(span.start, span.end, limit, bytes_max))
        assert isinstance(answer, list), answer
        if not touched:
            return list(answer)
        rows = {key: body for key, body in answer if not self._gone(key)}
        rows.update({key: body for key, body in own.items() if body is not None})
        found = [(key, rows[key]) for key in sorted(rows) if own.get(key, b"") is not None]
        return found if limit is None else found[:limit]

    def first_existing(self, keys: Sequence[bytes]) -> int | None:
        asked = [key for key in keys if key not in self.writes and not self._gone(key)]
        own = [place for place, key in enumerate(keys) if self.writes.get(key) is not None]
        found = None
        if asked:
            read = FirstExisting(tuple(asked))
            if read in self._known:
                found = self._answer(read)
            else:
                self.assumed = True
                self.used[read] = None
        assert found is None or isinstance(found, int), found
        places = own if found is None else [*own, keys.index(asked[found])]
        return min(places, default=None)

    # Of single keys `omit_from_feeds` spares feeds some work, and is not worth a field of the
    # protocol: a backfill writes indexes that no feed shows. Of a span it is: no feed follows it.

    def put(
        self, keys: Sequence[bytes], bodies: Sequence[bytes], *, omit_from_feeds: bool = False
    ) -> None:
        self.writes.update(zip(keys, bodies, strict=True))

    def delete(self, keys: Sequence[bytes], *, omit_from_feeds: bool = False) -> None:
        self.writes.update(dict.fromkeys(keys))

    def delete_range(self, span: Span, *, omit_from_feeds: bool = False) -> None:
        for key in [key for key in self.writes if span.contains(key)]:
            del self.writes[key]
        self.deleted.append((span, omit_from_feeds))

    def _gone(self, key: bytes) -> bool:
        return any(span.contains(key) for span, _ in self.deleted)

    def _answer(self, read: Read) -> Answer:
        if read not in self._known:
            self.missed = True
            self.missing.append(read)
            raise _Miss
        answer = self._known[read]
        self.used[read] = answer
        return answer


async def run_one_phase(
    connection: Connection,
    evaluate: Callable[[RemoteEvaluation], T],
    *,
    deadline: Callable[[], Timestamp] | None,
    commit_called_ns: int,
    lock_timeout: float | None,
) -> tuple[T, Timestamp]:
    """As `Store.one_phase`. Raises also StoreUnreachable, and OutcomeUnknown."""
    known: dict[Read, Answer] = {}
    at: Timestamp | None = None
    for _ in range(ATTEMPTS_MAX):
        evaluation = RemoteEvaluation(known, at)
        failure: Exception | None = None
        try:
            result = evaluate(evaluation)
        except Exception as error:  # the caller's own, or a miss: told apart below
            failure = error
        told = failure is not None or not evaluation.writing
        if evaluation.missed or (told and evaluation.assumed):
            known, at = await _fetch(connection, evaluation, lock_timeout)
            continue
        if failure is not None:
            raise failure
        if not evaluation.writing:
            return result, await _now(connection) if at is None else at
        outcome = await _commit(connection, evaluation, deadline, commit_called_ns, lock_timeout)
        if isinstance(outcome, Committed):
            return result, outcome.at
        known, at = dict(zip(evaluation.used, outcome.answers, strict=True)), outcome.at
    raise RetryableTransaction("what a one-phase transaction read changed again and again")


async def _fetch(
    connection: Connection, evaluation: RemoteEvaluation, lock_timeout: float | None
) -> tuple[dict[Read, Answer], Timestamp]:
    """Reads anew all that the run has read and what it missed, as of one timestamp."""
    reads = [*evaluation.used, *evaluation.missing]
    question = Evaluate(await connection.ready(), reads, lock_timeout)
    found = await connection.read("evaluate", question, Evaluated)
    return dict(zip(reads, found.answers, strict=True)), found.at


async def _now(connection: Connection) -> Timestamp:
    return await connection.read("now", Now(await connection.ready()), Timestamp)


async def _commit(
    connection: Connection,
    evaluation: RemoteEvaluation,
    deadline: Callable[[], Timestamp] | None,
    commit_called_ns: int,
    lock_timeout: float | None,
) -> Committed | Evaluated:
    question = OnePhase(
        connection=await connection.ready(),
        reads=list(evaluation.used),
        seen=[digest(answer) for answer in evaluation.used.values()],
        deleted=[(span.start, span.end, omitted) for span, omitted in evaluation.deleted],
        keys=list(evaluation.writes),
        bodies=list(evaluation.writes.values()),
        before=evaluation.limit,
        deadline=None if deadline is None else deadline(),
        commit_called_ns=commit_called_ns,
        lock_timeout=lock_timeout,
    )
    try:
        return await connection.call("one_phase", question, Committed | Evaluated)  # type: ignore[arg-type]
    except ChannelBroken as broken:
        if broken.sent:
            raise OutcomeUnknown(str(broken)) from broken
        raise StoreUnreachable(str(broken)) from broken
