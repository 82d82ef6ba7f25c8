"""Raw keyspaces under random load and misfortune: some dozen short seeds."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.raw_run import run_raw

HAPPENINGS = (
    "clock jumps",
    "collections",
    "disk filled",
    "engine stalls",
    "log hung",
    "merges",
    "oracle went back",
    "outages",
    "protected",
    "puts",
    "deletes",
    "range deletions",
    "splits",
    "swaps",
    "refused before the first answer",
    "refused in a long outage",
    "refused: BatchTimestampBeforeGC",
    "refused: StoreFull",
    "versions collected",
    "written in an outage",
)


@pytest.mark.parametrize("seed", range(1, 41))
def test_keyspaces_equal_the_model(seed: int) -> None:
    run_raw(seed)


def test_everything_happens_in_some_run() -> None:
    counts: Counter[str] = Counter()
    crashes = 0
    for seed in range(1, 41):
        outcome = run_raw(seed)
        counts += outcome.counts
        crashes += outcome.crashes
    assert [name for name in HAPPENINGS if not counts[name]] == []
    assert crashes > 10
