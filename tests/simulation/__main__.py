"""Runs the simulations over many seeds: `python -m tests.simulation --seeds 200 --seed 7`.

Prints how many seeds ran and every seed that failed, with what failed; ends with status 1 then.
One seed is run again alone by `--seed N --seeds 1`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.simulation.random_run import run_seed
from tests.simulation.two_nodes import run_two_nodes

PROGRESS_EVERY = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds")
    arguments = parser.parse_args()
    failed: list[str] = []
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        with tempfile.TemporaryDirectory(prefix="tailrace-simulation-") as folder:
            failed += _attempt(seed, "the whole stack", lambda: run_seed(seed, Path(folder)))  # noqa: B023 - called at once
        failed += _attempt(seed, "two nodes", lambda: run_two_nodes(seed))  # noqa: B023 - called at once
        done = seed - arguments.seed + 1
        if done % PROGRESS_EVERY == 0 and done < arguments.seeds:
            print(f"{done} of {arguments.seeds} seeds, {len(failed)} failures", flush=True)
    print(f"{arguments.seeds} seeds ran from {arguments.seed} on, {len(failed)} failures")
    for line in failed:
        print(f"  {line}")
    return 1 if failed else 0


def _attempt(seed: int, what: str, run: Callable[[], object]) -> list[str]:
    try:
        run()
    except Exception as error:  # whatever it was: the other seeds are run all the same
        traceback.print_exc()
        return [f"seed {seed}, {what}: {type(error).__name__}: {error}"]
    return []


if __name__ == "__main__":
    sys.exit(main())
