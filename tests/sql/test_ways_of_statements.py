"""A SELECT and an INSERT pass the rooms of SQL downward, as ARCHITECTURE.md tells it.

Each call is traced: from the nearest function of SQL that waits for it to the function that begins,
or goes on. What a room is given to carry out (a closure, the node's virtual tables) is no call of
its own upward; the rooms are those that import-linter holds, in its order.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

import tailrace.sql
from tests.harness.simulation import Simulation
from tests.harness.sql_node import sql_node

ROOT = Path(tailrace.sql.__file__).resolve().parent
REPOSITORY = Path(__file__).parents[2]

GIVEN = {"introspection/registry.py"}
"""The node's services find virtual tables by a function of it."""
CARRIES_OUT = {"runtime/transactions.py", "runtime/analytic_lanes.py"}
"""Files that call what is handed in to them: attempts, as often as a transaction by itself has to
begin, and the lanes of analytical queries, which the session tells who asks."""


def rooms() -> list[str]:
    """The rooms of SQL from the top down."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    (found,) = [each["layers"] for each in contracts if each["name"] == "Rooms of SQL"]
    return list(found)


class Way:
    """The rooms that were entered, and the calls that went up."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.upward: set[tuple[str, str]] = set()
        self._rank = {room: rank for rank, room in enumerate(rooms())}

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        callee = self._file(frame)
        if event != "call" or callee is None:
            return
        room = callee.partition("/")[0]
        if room not in self.entered:
            self.entered.append(room)
        above = frame.f_back
        while above is not None and self._file(above) is None:
            above = above.f_back
        caller = None if above is None else self._file(above)
        closure = "<locals>" in frame.f_code.co_qualname
        if caller is None or closure or callee in GIVEN or caller in CARRIES_OUT:
            return
        if self._rank[room] < self._rank[caller.partition("/")[0]]:
            self.upward.add((caller, f"{callee} {frame.f_code.co_qualname}"))

    def _file(self, frame: FrameType) -> str | None:
        path = Path(frame.f_code.co_filename)
        if not path.is_relative_to(ROOT):
            return None
        found = path.relative_to(ROOT).as_posix()
        return found if found.partition("/")[0] in self._rank else None


@contextmanager
def traced() -> Iterator[Way]:
    way = Way()
    before = sys.getprofile()
    sys.setprofile(way.note)
    try:
        yield way
    finally:
        sys.setprofile(before)


POINT = "SELECT note FROM t WHERE id = 1"
STATEMENTS = (
    "INSERT INTO t VALUES (2, 'b', 3)",
    "INSERT INTO t (id, note) SELECT id + 7, upper(note) FROM t RETURNING id, note",
    POINT,
    "SELECT note, count(*) FROM t GROUP BY note ORDER BY 1",
    "SELECT relname FROM pg_class WHERE relname = 't'",
)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_no_call_goes_up(statement: str) -> None:
    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql(
                "CREATE TABLE t (id INT8 PRIMARY KEY, note STRING, n INT8 DEFAULT 7 CHECK (n > 0))"
            )
            await node.sql("INSERT INTO t VALUES (1, 'a', 2)")
            with traced() as way:
                await node.sql(statement)
        assert way.upward == set()
        through = ["session", "parse", "analyze", "execute", "plan"]
        assert [room for room in way.entered if room in through] == through

    sim = Simulation(seed=1)
    sim.run(main())


@pytest.mark.parametrize("statement", ["SELECT", "INSERT"])
def test_the_files_of_a_way_are_there(statement: str) -> None:
    """ARCHITECTURE.md names them, one step a line."""
    text = (REPOSITORY / "ARCHITECTURE.md").read_text()
    told = text.partition(f"### The way of {statement}")[2].partition("\n#")[0]
    named = {word for word in told.replace("`", " ").split() if word.endswith(".py")}
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
