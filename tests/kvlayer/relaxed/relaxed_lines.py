"""Small relaxed logs for tests."""

from __future__ import annotations

from itertools import count
from threading import Lock

from tailrace.kvlayer.relaxed.attachment import Attachment, LocalAttachment, MemoryLog
from tailrace.kvlayer.relaxed.domain import Domain
from tailrace.kvlayer.relaxed.events import Line

DOMAIN = 0xD0


class Cells:
    """A store whose only atom is a cell."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, bytes, str], bytes] = {}
        self._lock = Lock()

    def exchange(self, row: bytes, column: str, new: bytes | None) -> bytes | None:
        with self._lock:
            old = self.values.pop(("crashes", row, column), None)
            if new is not None:
                self.values["crashes", row, column] = new
            return old


class Store:
    """Cells, their domain and its log."""

    def __init__(self, *, quiesce_within_ns: int = 10**15, patience_ns: int = 10**15) -> None:
        self.cells = Cells()
        self.log = MemoryLog()
        self.now = 1_700_000_000 * 10**9
        domains = count(DOMAIN)

        def renew() -> Attachment:
            return LocalAttachment(
                next(domains),
                self.log,
                self.now_ns,
                renew=renew,
                quiesce_within_ns=quiesce_within_ns,
            )

        self.domain = Domain(renew(), self.now_ns, self.pause, patience_ns=patience_ns)

    def now_ns(self) -> int:
        return self.now

    def pause(self) -> None:
        self.now += 1_000_000

    def write(self, row: bytes, column: str, new: bytes | None) -> bytes | None:
        return self.domain.write(self.cells.exchange, "crashes", row, column, new)

    @property
    def lines(self) -> list[Line]:
        return [*self.log.events, *self.log.records]
