"""`python -m tests.soak --minutes 30` prints what good clients saw, and fails beyond bounds."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from .soak import SLOWER_MAX, soak

STRETCH_SECONDS = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(description="good clients beside abusers, for a long time")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--stretch", type=float, default=STRETCH_SECONDS, help="seconds")
    parser.add_argument("--workers", choices=["on", "off"], help="the setting changefeed.workers")
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="tailrace-") as folder:
        found = asyncio.run(
            soak(
                Path(folder),
                seconds=60 * arguments.minutes,
                stretch_seconds=arguments.stretch,
                workers=arguments.workers,
            )
        )
    for name, quantiles in (("calm", found.calm), ("besieged", found.besieged)):
        shown = " ".join(f"{1000 * seconds:.1f}" for seconds in quantiles)
        print(f"{name:8} p99 ms: {shown}")
    errors = len(found.errors)
    print(f"{found.rate:.0f} statements/s, {found.slower:.2f} times slower, {errors} errors")
    print(*sorted(set(found.errors))[:5], sep="\n")
    return int(bool(found.errors) or found.slower >= SLOWER_MAX)


if __name__ == "__main__":
    sys.exit(main())
