"""Sixteen threads in four processes, one of which is killed in a batch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.api.demo.crashes.table import CRASHES, ISSUES, cells_of
from tailrace.api.demo.crashes.writers import HANGS, CrashStore, read_cuts
from tailrace.kvlayer.relaxed.events import Snapshot, lines_table
from tailrace.kvlayer.relaxed.reader import ChangeSet, Reader
from tailrace.kvlayer.relaxed.segment import read_segment

pytestmark = pytest.mark.system
THREADS, ROUNDS = 4, 60


def _start(folder: Path, seed: int, *options: str) -> subprocess.Popen[str]:
    module = "tailrace.api.demo.crashes.writers"
    numbers = [str(THREADS), str(seed), "--rest", "0.002"]
    command = [sys.executable, "-m", module, str(folder), *numbers, *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _values(image: bytes) -> dict[tuple[str, bytes, str], bytes]:
    crashes, issues = image[: CRASHES.size], image[CRASHES.size :]
    return cells_of(CRASHES, crashes) | cells_of(ISSUES, issues)


def _apply(change_set: ChangeSet, state: dict[tuple[str, bytes, str], bytes]) -> None:
    if change_set.snapshot:
        state.clear()
    for change in change_set.changes.to_pylist():
        place = change["table"], change["row"], change["column"]
        assert state.pop(place, None) == change["old"], place
        if change["new"] is not None:
            state[place] = change["new"]


def test_every_state_shown_was_recorded_by_the_store(tmp_path: Path) -> None:
    processes = [_start(tmp_path, seed, "--rounds", str(ROUNDS)) for seed in range(3)]
    doomed = _start(tmp_path, 3, "--rounds", str(ROUNDS), "--hang")
    assert doomed.stdout is not None
    assert doomed.stdout.readline().strip() == HANGS
    doomed.kill()
    for process in (*processes, doomed):
        process.communicate(timeout=60)
    assert [process.returncode for process in processes] == [0, 0, 0]
    store = CrashStore(tmp_path)
    with store.domain.quiescence() as cut:
        cells = store.crashes.values() | store.issues.values()
        snapshot = Snapshot(domain=store.domain.id, cut=cut, cells=cells)
    store.clear(0)  # the store goes on behind the death
    reader = Reader(store.domain.id, 0)
    for path in tmp_path.glob("*.relaxed"):
        reader.feed(read_segment(path).lines)
    state: dict[tuple[str, bytes, str], bytes] = {}
    cuts = read_cuts(tmp_path)
    shown = 0
    for change_set in reader.advance():
        _apply(change_set, state)
        assert state == _values(cuts[change_set.end]), f"cut {change_set.end:016x}"
        shown += 1
    assert shown and reader.position is None, "states are unknown behind the death"
    reader.feed(lines_table([snapshot]))
    for change_set in reader.advance():
        _apply(change_set, state)
        assert state == _values(cuts[change_set.end])
    assert state == store.crashes.values() | store.issues.values()
    assert reader.gaps() == [] and reader.pending_count == 0
