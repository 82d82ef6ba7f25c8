"""A process of the crash store: threads that fill rows, clear rows and update many.

    python -m tailrace.api.demo.crashes.writers FOLDER THREADS SEED [--rounds N] [--hang]

With `--hang` one thread stops in the midst of a batch and says so, for the process to be killed
there. Without `--rounds` the process writes until its input is closed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from random import Random
from threading import Event, Thread

from ....kvlayer.relaxed import shared
from ....kvlayer.relaxed.domain import Domain
from ....kvlayer.relaxed.ids import NO_ID
from ....kvlayer.relaxed.machine import shared_domain
from .table import CRASHES, ISSUES, NOTHING, CrashTable

CUT_SUFFIX = ".cuts"
HANGS = "hangs in a batch"
REST_SECONDS = 0.05
"""Between two batches of a thread, at most: a store that is asked now and then, and rests."""


class CrashStore:
    """Both tables and their domain."""

    def __init__(self, folder: Path, *, record: bool = True) -> None:
        self.crashes = CrashTable(folder, CRASHES)
        self.issues = CrashTable(folder, ISSUES)
        cuts = folder / f"{os.getpid()}{CUT_SUFFIX}" if record else None
        self.domain: Domain = shared_domain(
            folder, map_memory=lambda descriptor: _Recording(descriptor, self, cuts)
        )

    def work(self, random: Random) -> None:
        """One batch of a thread."""
        match random.randrange(6):
            case 0:
                self.clear(random.randrange(CRASHES.rows))
            case 1:
                self.reassign(random.randrange(ISSUES.rows), random)
            case _:
                self.analyse(random.randrange(CRASHES.rows), random)

    def analyse(self, row: int, random: Random) -> None:
        """Fills a crash's attributes."""
        with self.domain.batch():
            for column in CRASHES.columns[:3]:
                self._write(self.crashes, row, column, random.randrange(1 << 20))
            self._write(self.crashes, row, "issue", random.randrange(ISSUES.rows))

    def clear(self, row: int) -> None:
        with self.domain.batch():
            for column in CRASHES.columns:
                self._write(self.crashes, row, column, None)

    def reassign(self, issue: int, random: Random) -> None:
        """Updates many: the crashes of some rows become one issue's, and that one is assigned."""
        rows = random.sample(range(CRASHES.rows), 5)
        with self.domain.batch():
            for row in rows:
                self._write(self.crashes, row, "issue", issue)
            self._write(self.issues, issue, "crashes", len(rows))
        self._write(self.issues, issue, "assignee", random.randrange(100))

    def snapshot(self) -> None:
        """Keeps both tables in the log, as they are at rest."""
        self.domain.snapshot(lambda: self.crashes.values() | self.issues.values())

    def _write(self, table: CrashTable, row: int, column: str, value: int | None) -> None:
        new = None if value is None else b"%d" % value
        self.domain.write(table.exchange, table.shape.name, b"%d" % row, column, new)

    def image(self) -> bytes:
        return self.crashes.image() + self.issues.image()


def read_cuts(folder: Path) -> dict[int, bytes]:
    """The images that each process recorded of the store, by the id at which it did. It was empty
    at 0."""
    size = CRASHES.size + ISSUES.size
    found = {NO_ID: NOTHING.to_bytes(8, "little", signed=True) * (size // 8)}
    for path in folder.glob(f"*{CUT_SUFFIX}"):
        data = path.read_bytes()
        for at in range(0, len(data) - size - 7, size + 8):
            found.setdefault(int.from_bytes(data[at : at + 8], "little"), data[at + 8 :][:size])
    return found


class _Recording(shared.MappedMemory):
    """The domain's memory, which notes the store's image wherever an epoch gets its end: with the
    domain's lock held, so that nothing begins meanwhile."""

    def __init__(self, descriptor: int, store: CrashStore, cuts: Path | None) -> None:
        super().__init__(descriptor)
        self._store = store
        self._last: list[int] = []
        self._cuts: int | None = None
        if cuts is not None:
            self._cuts = os.open(cuts, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, start: int, data: bytes) -> None:
        super().write(start, data)
        if start != shared.VALID or self._cuts is None or shared.fresh(self):
            return
        ends = [end for end in shared.ends_drawn(self) if end not in self._last]
        image = self._store.image() if ends else b""
        for end in ends:
            os.write(self._cuts, end.to_bytes(8, "little") + image)
        self._last = [*self._last[-3:], *ends]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("threads", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--rounds", type=int, default=sys.maxsize)
    parser.add_argument("--rest", type=float, default=REST_SECONDS)
    parser.add_argument("--hang", action="store_true")
    arguments = parser.parse_args()
    store, told = CrashStore(arguments.folder), Event()

    def work(index: int) -> None:
        random = Random(arguments.seed * 1000 + index)
        for round in range(arguments.rounds):
            if told.is_set():
                return
            if arguments.hang and index == 0 and round == 20:
                _hang(store, random)
            store.work(random)
            time.sleep(arguments.rest * random.random())

    threads = [Thread(target=work, args=(index,)) for index in range(arguments.threads)]
    for thread in threads:
        thread.start()
    if arguments.rounds == sys.maxsize:
        sys.stdin.read()
        told.set()
    for thread in threads:
        thread.join()


def _hang(store: CrashStore, random: Random) -> None:
    with store.domain.batch():
        store.domain.write(store.crashes.exchange, "crashes", b"0", "pid", b"666")
        print(HANGS, flush=True)
        while True:
            time.sleep(1)


if __name__ == "__main__":
    main()
