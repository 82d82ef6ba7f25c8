"""Breaks each promise on purpose, and sees the test that is named for it fail.

    python -m tests.mutants                  all of them
    python -m tests.mutants feed_loses_rows  some of them, by name

Each `.patch` beside this file breaks one promise; README.md says how they are written. A mutant is
applied to a copy of the tree, never to the tree itself. Ends with status 1 if a mutant *survives*
(its test passes, or fails without saying what it should) or no longer applies.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.patches import Mutant, MutantError, all_mutants

ROOT = Path(__file__).resolve().parents[2]
TEST_SECONDS_MAX = 300.0
"""A mutant that makes its test hang is caught by nobody: a test must say what is wrong. A machine
that others use needs more."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", help="mutants to try; all, if none is named")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    parser.add_argument(
        "--seconds", type=float, default=TEST_SECONDS_MAX, help="how long a test may take"
    )
    arguments = parser.parse_args()
    mutants = all_mutants()
    unknown = set(arguments.names) - {mutant.name for mutant in mutants}
    if unknown:
        parser.error(f"no such mutant: {', '.join(sorted(unknown))}")
    chosen = [each for each in mutants if not arguments.names or each.name in arguments.names]
    began = time.monotonic()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        escaped = sum(pool.map(lambda mutant: _report(mutant, arguments.seconds), chosen))
    seconds = time.monotonic() - began
    print(f"{len(chosen)} mutants, {len(chosen) - escaped} caught, {seconds:.0f} s")
    return 1 if escaped else 0


def _report(mutant: Mutant, seconds_max: float) -> int:
    """Tries a mutant, and prints one line. Returns 1 if it escaped."""
    began = time.monotonic()
    try:
        _try(mutant, seconds_max)
    except MutantError as error:
        print(f"ESCAPED {mutant.name}: {error}", flush=True)
        return 1
    print(
        f"caught  {mutant.name} by {mutant.caught_by} ({time.monotonic() - began:.1f} s)",
        flush=True,
    )
    return 0


def _try(mutant: Mutant, seconds_max: float) -> None:
    """Raises MutantError unless the test that is named fails as it should."""
    with tempfile.TemporaryDirectory(prefix="tailrace-mutant-") as folder:
        copy = Path(folder) / "tree"
        _copy_tree(copy)
        mutant.apply(copy)
        output, status = _run_test(copy, mutant, seconds_max)
    if status != 1:
        raise MutantError(f"`pytest {mutant.test}` ended with status {status}\n{output[-2000:]}")
    if mutant.caught_by not in output:
        raise MutantError(
            f"{mutant.test} failed without a word of {mutant.caught_by!r}\n{output[-3000:]}"
        )


def _copy_tree(target: Path) -> None:
    """Every file that git knows or would know, as it is in the work tree."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    for name in filter(None, listed.decode().split("\0")):
        source = ROOT / name
        if source.exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name, follow_symlinks=False)


def _run_test(tree: Path, mutant: Mutant, seconds_max: float) -> tuple[str, int]:
    # The link makes the copy's package win over the installed one.
    environment = dict(os.environ, PYTHONPATH=str(tree / ".links"), PYTHONDONTWRITEBYTECODE="1")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    try:
        ended = subprocess.run(
            [*command, *mutant.test.split()],
            cwd=tree,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds_max,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise MutantError(f"{mutant.test} takes longer than {seconds_max:.0f} s") from None
    return ended.stdout.decode(errors="replace"), ended.returncode


if __name__ == "__main__":
    sys.exit(main())
