"""Statements of few rows that are wide: no step of the loop encodes or reads more than a few."""

from __future__ import annotations

from asyncio import Handle
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tailrace.catalog.rows.row_codec import RowCodec
from tests.harness.simulation import Simulation
from tests.harness.sql_node import sql_node

ROWS = 30
WIDTH = 200_000
BYTES_PER_TURN_MAX = 3_000_000
"""A slice ends behind the portion of a megabyte with which it is over; in one phase a step may
encode two megabytes, and goes on behind a slice."""

KEYS = ", ".join(map(str, range(ROWS)))
STATEMENTS = [
    "UPDATE t SET note = note || 'x'",
    "UPDATE t SET note = note || 'x' RETURNING k",
    f"UPDATE t SET note = note || 'x' WHERE k IN ({KEYS})",
    f"UPDATE t SET note = repeat('y', {WIDTH}) WHERE k IN ({KEYS})",
    "UPDATE t SET k = k + 1000",
    "UPDATE t SET n = n + 1",
    f"INSERT INTO t SELECT g, g, repeat('x', {WIDTH}) FROM generate_series(1000, 1029) AS s (g)",
    f"INSERT INTO t SELECT g, g, repeat('x', {WIDTH}) FROM generate_series(1, 30) AS s (g) "
    "ON CONFLICT (k) DO UPDATE SET note = excluded.note || 'x'",
    f"INSERT INTO t VALUES {', '.join(f'({k}, 0, $1)' for k in range(1000, 1030))}",
    f"INSERT INTO t VALUES {', '.join(f'({k}, 0)' for k in range(ROWS))} "
    "ON CONFLICT (k) DO UPDATE SET note = t.note || 'x'",
    "CREATE TABLE copied AS SELECT * FROM t",
]


class BytesOfTurns:
    """Counts the bytes that rows are encoded to, by the loop's steps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.turn, self.encoded, self._within = 0, Counter[int](), False
        run = Handle._run

        def counted(handle: Handle) -> None:
            self.turn += 1
            run(handle)

        monkeypatch.setattr(Handle, "_run", counted)
        for name in ("encode_row", "encode_rows", "encode_columns"):
            monkeypatch.setattr(RowCodec, name, self._noting(getattr(RowCodec, name)))

    def _noting(self, encode: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any, **named: Any) -> Any:
            if self._within:
                return encode(*arguments, **named)
            self._within = True
            try:
                found = encode(*arguments, **named)
            finally:
                self._within = False
            bodies = [found[1]] if isinstance(found[1], bytes) else found[1]
            self.encoded[self.turn] += sum(map(len, bodies))
            return found

        return noted


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_step_encodes_so_many_bytes(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(sim: Simulation) -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, n INT8, note TEXT, INDEX (n))")
            for k in range(ROWS):
                await node.sql(f"INSERT INTO t VALUES ({k}, {k}, repeat('x', {WIDTH}))")
            session = node.session()
            counted = BytesOfTurns(monkeypatch)
            await session.execute(text, ["z" * WIDTH] if "$1" in text else [])
            monkeypatch.undo()
            await session.close()
            assert sum(counted.encoded.values()) >= ROWS * WIDTH
            assert max(counted.encoded.values()) <= BYTES_PER_TURN_MAX, counted.encoded

    sim = Simulation(1)
    sim.run(main(sim))
