"""Schema storms that found faults, each run again."""

from __future__ import annotations

import pytest

from tests.simulation.schema_storm import run_storm

SEEDS = [
    14,  # transactions were resolved before the rows of a schema change that a backfill left out
    18,  # a log took no rows after a flush that had read one before
    39,  # a log had a change twice that came twice in one batch
    40535,  # a table that was to begin anew kept its rows in the mirror while it was paused
    40884,  # a reader went on to read the feed that its last lane had closed
    50012,  # a scan above what was resolved was claimed before it was shown as transactions
    50058,  # a notice from before a target was left had the feed take it up again
    50115,  # a mirror forgot the time of a scan above resolved while its table was paused
]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_storm_that_found_a_fault_finds_it_no_more(seed: int) -> None:
    run_storm(seed)
