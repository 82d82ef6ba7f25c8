"""Tokens of the programs that write feeds' rows: each is worth one table's export, while it runs.

A token is lent to one run of one program, and is worth nothing when the run has ended. It stands
for the feed's owner and its table, and is only ever in memory: a program does not outlive the
process that started it. What is kept is its hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Worker:
    """The feed that the worker writes, and the only table that it may export."""

    user: str
    table_id: int


class WorkerTokens:
    """The tokens of a node. `draw` makes one that nobody guesses."""

    def __init__(self, draw: Callable[[], str]) -> None:
        self._draw = draw
        self._workers: dict[bytes, Worker] = {}

    @contextmanager
    def lent(self, worker: Worker) -> Iterator[str]:
        """A token for the time of the block."""
        token = self._draw()
        self._workers[_hash(token)] = worker
        try:
            yield token
        finally:
            del self._workers[_hash(token)]

    def find(self, token: str) -> Worker | None:
        return self._workers.get(_hash(token))


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
