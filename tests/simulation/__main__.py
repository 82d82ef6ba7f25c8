"""Runs simulations seed by seed, and says how many ran and which failed.

    python -m tests.simulation --seeds 200              seeds 1 to 200
    python -m tests.simulation --seed 7 --seeds 1       one seed again
    python -m tests.simulation --minutes 30             as many as fit, from a seed that time chose

Every seed is a store alone under load and misfortune (`kv_run`), which is cheap. Every tenth is
also a whole stack with a feed into a mirror (`random_run`), a lease between two nodes
(`two_nodes`), schema changes on several nodes under feeds (`schema_storm`), rough ones too, a
relaxed store and the readers of its log (`relaxed_run`), of which the misfortunes are counted, raw
keyspaces (`raw_run`), a keyspace with a replica in another store (`replica_run`), and one that two
stores hand to one another (`transfer_run`). `--kind` chooses one of them for every seed. Ends
with status 1 if a seed failed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path

from tests.simulation.kv_run import run_store
from tests.simulation.random_run import run_seed
from tests.simulation.raw_run import RawOutcome, run_raw
from tests.simulation.relaxed_run import RelaxedOutcome, run_relaxed
from tests.simulation.replica_run import run_replica
from tests.simulation.schema_storm import StormOutcome, run_storm
from tests.simulation.transfer_run import run_transfer
from tests.simulation.two_nodes import run_two_nodes

PROGRESS_EVERY = 100
COSTLY_EVERY = 10
"""A whole stack takes fifty times as long as a store alone."""


def _run_stack(seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="tailrace-simulation-") as folder:
        run_seed(seed, Path(folder))


def _run_rough_storm(seed: int) -> StormOutcome:
    return run_storm(seed, rough=True)


KINDS: Mapping[str, Callable[[int], object]] = {
    "store": run_store,
    "stack": _run_stack,
    "nodes": run_two_nodes,
    "schemas": run_storm,
    "rough": _run_rough_storm,
    "relaxed": run_relaxed,
    "raw": run_raw,
    "replica": run_replica,
    "transfer": run_transfer,
}


class Tally:
    """What ran, and what failed."""

    def __init__(self) -> None:
        self.seeds = 0
        self.runs: Counter[str] = Counter()
        self.misfortunes: Counter[str] = Counter()
        self.failed: list[str] = []

    def attempt(self, kind: str, seed: int) -> None:
        self.runs[kind] += 1
        try:
            outcome = KINDS[kind](seed)
        except Exception as error:  # whatever it was: the other seeds are run all the same
            traceback.print_exc()
            text = f"{type(error).__name__}: {error}"
            self.failed.append(f"seed {seed}, {kind}: {text[:500]}")
            return
        if isinstance(outcome, RelaxedOutcome | RawOutcome):
            self.misfortunes += outcome.counts
        elif isinstance(outcome, StormOutcome):
            self.misfortunes += outcome.misfortunes
        elif isinstance(outcome, Counter):
            self.misfortunes += outcome

    def __str__(self) -> str:
        runs = ", ".join(f"{count} of a {kind}" for kind, count in self.runs.items())
        return f"{self.seeds} seeds ran ({runs}), {len(self.failed)} failures"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, help="the first seed (1, or chosen by time)")
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds")
    parser.add_argument("--minutes", type=float, help="run for so long instead")
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="all")
    arguments = parser.parse_args()
    tally = Tally()
    for seed in _seeds(arguments.seed, arguments.seeds, arguments.minutes):
        for kind in _kinds(arguments.kind, seed, alone=arguments.seeds == 1):
            tally.attempt(kind, seed)
        tally.seeds += 1
        if tally.seeds % PROGRESS_EVERY == 0:
            print(tally, flush=True)
    print(tally)
    for name, times in sorted(tally.misfortunes.items()):
        print(f"  {name}: {times}")
    for line in tally.failed:
        print(f"  {line}")
    return 1 if tally.failed else 0


def _kinds(kind: str, seed: int, *, alone: bool) -> list[str]:
    if kind != "all":
        return [kind]
    return list(KINDS) if alone or seed % COSTLY_EVERY == 0 else ["store"]


def _seeds(first: int | None, many: int, minutes: float | None) -> Iterator[int]:
    """Ends by count, or by the clock."""
    if minutes is None:
        start = 1 if first is None else first
        yield from range(start, start + many)
        return
    end = time.monotonic() + 60 * minutes
    for seed in count(int(time.time()) * 1000 if first is None else first):
        if time.monotonic() >= end:
            return
        yield seed


if __name__ == "__main__":
    sys.exit(main())
