"""A bank of two tables, and a mirror of it that a reader looks at whenever he likes.

One table is locked and one is not, so that rows of one wait for proofs of their schema while those
of the other go on.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tailrace.catalog.rows.row_codec import RowCodec
from tailrace.changefeed.pipeline import initial_scan
from tailrace.changefeed.pipeline.initial_scan import RowEmitter
from tailrace.changefeed.sinks.locations import Apply
from tailrace.kvlayer.txn import Evaluation
from tests.changefeed.schema_changes.follower import Follower, following
from tests.harness.simulation import Simulation

ACCOUNTS = 8
BALANCE = 100
TOTAL = 2 * ACCOUNTS * BALANCE
SUM = "(SELECT coalesce(sum(v::INT8), 0) FROM {})"
ROWS = 20_000
LOOK = f"SELECT {SUM.format('checking')} + {SUM.format('savings')} AS total"


class Bank:
    """Transfers between two tables, each one transaction."""

    def __init__(self, sim: Simulation, on: Follower) -> None:
        self._random = sim.random
        self._on = on
        self._held = [[BALANCE] * ACCOUNTS for _ in on.sources]
        self.seen: set[int] = set()

    async def open_accounts(self) -> None:
        await self._write([(table, key) for table in (0, 1) for key in range(ACCOUNTS)])

    async def transfer(self) -> None:
        amount = self._random.randrange(1, 50)
        giver, taker = self._random.sample((0, 1), 2)
        keys = self._random.choices(range(ACCOUNTS), k=2)
        self._held[giver][keys[0]] -= amount
        self._held[taker][keys[1]] += amount
        await self._write([(giver, keys[0]), (taker, keys[1])])

    async def _write(self, accounts: list[tuple[int, int]]) -> None:
        def evaluate(evaluation: Evaluation) -> None:
            for place, key in accounts:
                table = self._on.sources[place].table
                more = [None] * (len(table.visible_columns) - 2)
                row = (key, str(self._held[place][key]), *more)
                encoded, body = RowCodec(table).encode_row(row)
                evaluation.put([encoded], [body])

        await self._on.store.one_phase(evaluate)

    async def look(self) -> None:
        """Notes the total that a reader sees, once there is something to see."""
        [row] = (await self._on.read(LOOK)).to_pylist()
        self.seen.add(int(row["total"]))


async def totals(sim: Simulation, folder: Path, apply: Apply) -> set[int]:
    """What a reader saw while money moved, a table was altered and the feed was stopped."""
    async with following(sim, folder, tables=("checking", "savings"), apply=apply) as on:
        bank = Bank(sim, on)
        await bank.open_accounts()
        await on.sources[0].change(locked=True)
        await on.settle()
        ended = asyncio.Event()

        async def read() -> None:
            while not ended.is_set():
                await bank.look()
                await asyncio.sleep(sim.random.random() * 0.02)

        reader = asyncio.create_task(read())
        for number in range(200):
            await bank.transfer()
            await asyncio.sleep(sim.random.random() * 0.02)
            if number == 70:
                await on.sources[1].add_column("extra", 7)
            if number == 120:
                await on.sources[1].drop_column("extra")
            if number % 50 == 49:
                await on.stop()
                on.start()
        await on.settle()
        ended.set()
        await reader
        return bank.seen


@pytest.mark.parametrize("seed", range(3))
def test_a_mirror_by_transactions_shows_no_half_of_one(tmp_path: Path, seed: int) -> None:
    sim = Simulation(seed)
    seen = sim.run(totals(sim, tmp_path, Apply.TRANSACTION))
    assert seen <= {0, TOTAL}, seen
    assert TOTAL in seen


def test_a_mirror_by_rows_does(tmp_path: Path) -> None:
    sim = Simulation(1)
    seen = sim.run(totals(sim, tmp_path, Apply.ROW))
    assert len(seen - {0, TOTAL}) > 1, seen


def test_nothing_is_shown_before_the_first_resolved_timestamp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And then all rows of the initial scan at once, also by a feed that was stopped within it."""
    emit = RowEmitter.emit

    async def emit_slowly(self: RowEmitter, *arguments: Any, **options: Any) -> None:
        await asyncio.sleep(0.01)
        await emit(self, *arguments, **options)

    monkeypatch.setattr(RowEmitter, "emit", emit_slowly)
    monkeypatch.setattr(initial_scan, "slice_rows", lambda table: 100)

    async def whole() -> None:
        async with following(sim, tmp_path, apply=Apply.TRANSACTION) as on:
            await on.stop()
            await on.sources[0].write(*[(key, "row") for key in range(ROWS)])
            on.start_at = on.store.clock.now()
            counts, scanned = set(), 0
            on.start()
            while not on.live.resolved:
                if on.path.exists():
                    counts.add(await rows_of(on))
                if on.live.scanned_rows > ROWS / 2 and not scanned:
                    scanned = on.live.scanned_rows
                    await on.stop()
                    on.start()
                await asyncio.sleep(0.01)
            assert on.live.scanned_rows < ROWS
            counts.add(await rows_of(on))
            assert counts == {0, ROWS}, counts

    async def rows_of(on: Follower) -> int:
        found = await on.read(
            "SELECT count(*) AS rows FROM duckdb_views() WHERE view_name = 'orders'"
        )
        if not found.to_pylist()[0]["rows"]:
            return 0
        return int((await on.read("SELECT count(*) AS rows FROM orders")).to_pylist()[0]["rows"])

    sim = Simulation(1)
    sim.run(whole())
