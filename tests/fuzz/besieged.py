"""A node under siege, as its good client sees it: its doors, a fed mirror, its memory."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from resource import getpagesize
from types import TracebackType
from typing import Any, TypeVar

import httpx2
import msgspec

from benchmarks.loop_steps import WorstStep

from .besieged_node import MIRROR, PASSWORD, REPLICA, Doors, Question

SOURCE = "another store"
"""What the replica's source calls itself."""

PATIENCE_SECONDS = 60.0

T = TypeVar("T")


@dataclass(slots=True)
class Observed:
    """What was seen of a node under siege: `memory` in bytes, at each look; how many connections
    met a step over the bound, and the `worst` step of those that meet theirs again."""

    memory: list[int] = field(default_factory=list)
    long: int = 0
    worst: WorstStep = field(default_factory=WorstStep)
    rows: int = 0

    @property
    def growth(self) -> float:
        """Memory over the last tenth of the looks by that over the second tenth."""
        tenth = max(1, len(self.memory) // 10)
        early, late = self.memory[tenth : 2 * tenth], self.memory[-tenth:]
        return (sum(late) / len(late)) / (sum(early) / len(early)) if early else 1.0


class Besieged:
    """The node's process, while it is entered. The good client works with each `look`."""

    doors: Doors
    _client: httpx2.Client
    _process: subprocess.Popen[str]

    def __init__(self, folder: Path, *, trust: bool) -> None:
        """With `trust` nobody is asked who he is, but at the door for nodes."""
        self.seen = Observed()
        self._command = [sys.executable, "-m", "tests.fuzz.besieged_node", str(folder)]
        if trust:
            self._command.append("--trust")

    def look(self) -> None:
        """The good client commits a row and reads it back; memory is noted."""
        number = self.seen.rows
        self._sql("INSERT INTO mine VALUES ($1, $1)", number)
        assert self._sql("SELECT at FROM mine WHERE id = $1", number) == [[number]]
        self.seen.rows = number + 1
        self.seen.memory.append(_resident_bytes(self.doors.pid))

    def _sql(self, text: str, *parameters: object) -> list[list[Any]]:
        answer = self._client.post("/v1/sql", json={"sql": text, "params": parameters})
        assert answer.status_code == 200, answer.text
        rows: list[list[Any]] = answer.json()["results"][-1].get("rows", [])
        return rows

    def check(self) -> None:
        """The mirror holds each row that was committed, and nothing failed."""
        faults = self._ask("settle", list[str])
        assert not faults, faults[:3]
        asked = {"mirror": MIRROR, "sql": "SELECT count(*), count(DISTINCT id) FROM mine"}
        answer = self._client.post("/v1/mirrors/sql", json=asked)
        assert answer.json()["rows"] == [[self.seen.rows, self.seen.rows]], answer.text

    def longest_step(self) -> WorstStep:
        """The longest step of the node's loop since the last call."""
        return self._ask("steps", WorstStep)

    def _ask(self, question: Question, kind: type[T]) -> T:
        print(question, file=self._process.stdin, flush=True)
        return self._read(kind)

    def _read(self, kind: type[T]) -> T:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the node has ended"
        return msgspec.json.decode(line, type=kind)

    def __enter__(self) -> Besieged:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.doors = self._read(Doors)
        self._client = httpx2.Client(
            base_url=f"http://127.0.0.1:{self.doors.http}", timeout=30.0, auth=("boss", PASSWORD)
        )
        opening = {"source": SOURCE}
        opened = self._client.post(f"/v1/keyspaces/{REPLICA}/ingest/open", json=opening)
        assert opened.status_code == 200, opened.text
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()
        try:
            self._process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            self._process.kill()
        assert kind is not None or self._process.returncode == 0, "the node did not end in order"


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * getpagesize()
