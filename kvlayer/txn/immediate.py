"""Reads and commits in the step of the loop that asks for them, where nothing is in the way.

Most reads of a key, and most commits, meet no lock of another transaction, no version that is not
durable yet, and no engine that stalls. What they need then is a step and not a task: the caller is
told the outcome by the return of a function. Where something is in the way they raise TakesWaiting
and have done nothing, so that the caller may do the same again in a way that waits.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from msgspec import Struct

from .. import access
from ..clock import Timestamp
from ..engine import EngineStall
from ..errors import TakesWaiting
from .host import TransactionHost
from .locks import LockConflict
from .one_phase import Evaluation, Refused, evaluate_in_step
from .reading import read_version
from .transaction import Transaction

T = TypeVar("T")

ALONE_AFTER = 32
"""So many pieces in a row from one client, and it is taken to be alone: some ten transactions. Two
that are busy take turns sooner."""


class Commit(Struct, Generic[T], frozen=True):
    """A commit that is applied. Nobody may be told of it before it is released; where `release` is
    None, it is durable already."""

    result: T
    timestamp: Timestamp
    release: access.Release | None


class ImmediateStore:
    """Reads and commits of one store at once. Each call raises TakesWaiting, and StoreClosed."""

    __slots__ = ("_host", "_piece_count", "_speaker")

    def __init__(self, host: TransactionHost) -> None:
        self._host = host
        self._speaker = 0
        self._piece_count = 0
        """Pieces that came from the speaker, none of another client between them."""

    def heard(self, client: int) -> None:
        """A client has sent something. The store learns whether one is alone, for which it carries
        out syncs in steps of the loop: nobody else is kept waiting by them."""
        if client == self._speaker:
            self._piece_count += 1
            if self._piece_count == ALONE_AFTER:
                self._host.serve_alone(True)
            return
        if self._piece_count >= ALONE_AFTER:
            self._host.serve_alone(False)
        self._speaker, self._piece_count = client, 0

    def now(self) -> Timestamp:
        """A timestamp drawn from the store's clock."""
        return self._host.clock.now()

    def get(self, key: bytes, at: Timestamp) -> bytes | None:
        """The body of a key's live value at `at`, which was drawn in this step."""
        host = self._host
        host.check_open()
        try:
            body, written_at = read_version(host, key, at, None)
        except LockConflict:
            raise TakesWaiting from None
        if host.undurable(written_at) is not None:
            raise TakesWaiting
        host.point_read(key, at, None)
        return body

    def commit(
        self,
        evaluate: Callable[[Evaluation], T],
        *,
        at: Timestamp,
        deadline: Callable[[], Timestamp],
        commit_called_ns: int,
    ) -> Commit[T]:
        """As `Store.one_phase`, at a timestamp that was drawn in this step. What `evaluate` raises
        is TakesWaiting: it may tell of what is not durable."""
        host = self._host
        host.check_open()
        try:
            outcome = evaluate_in_step(host, evaluate, at, deadline, commit_called_ns, None)
        except (LockConflict, EngineStall):
            raise TakesWaiting from None
        if isinstance(outcome, Refused):
            raise TakesWaiting
        return Commit(outcome.result, outcome.timestamp, host.release(outcome.index))

    def write(self, transaction: access.Transaction, work: Coroutine[Any, Any, T]) -> T:
        """Returns the result of a write of the transaction that is one step. Raises TakesWaiting
        where it is more: then it has written nothing."""
        assert isinstance(transaction, Transaction), "a store writes its own transactions"
        transaction.writes_wait = False
        try:
            return finished(work)
        finally:
            transaction.writes_wait = True

    def commit_transaction(
        self,
        transaction: access.Transaction,
        *,
        deadline: Callable[[], Timestamp],
        commit_called_ns: int,
    ) -> Commit[None]:
        """As `Transaction.commit`. It stays open where it takes waiting."""
        assert isinstance(transaction, Transaction), "a store commits its own transactions"
        at, index = transaction.commit_at_once(deadline=deadline, commit_called_ns=commit_called_ns)
        return Commit(None, at, None if index is None else self._host.release(index))


def finished(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that has nothing to wait for. Raises TakesWaiting where it waits:
    then it has been closed there, and what it did before stands.

    HAZARD: it is for work that may be begun again after it was left at any of its waits: locks and
    reads of a transaction, not two writes with a wait between.
    """
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    work.close()
    raise TakesWaiting
