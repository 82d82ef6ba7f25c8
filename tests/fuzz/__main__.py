"""`python -m tests.fuzz [wire|http|rpc …] [--state …] [--messages n] [--seed n]`"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from .siege import STATES, STEP_MS_MAX, siege

GROWTH_MAX = 1.05


def main() -> None:
    parser = argparse.ArgumentParser(description="damaged messages at each door, in each state")
    parser.add_argument("doors", nargs="*", choices=[*STATES, []], default=[])
    parser.add_argument("--state")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--messages", type=int, default=100_000)
    arguments = parser.parse_args()
    for door in arguments.doors or STATES:
        for state in STATES[door]:
            if arguments.state in (None, state.value):
                with TemporaryDirectory(prefix="tailrace-") as folder:
                    seen = asyncio.run(
                        siege(
                            door,
                            state,
                            folder=Path(folder),
                            seed=arguments.seed,
                            messages=arguments.messages,
                        )
                    )
                late = "" if seen.growth <= GROWTH_MAX else "  GREW"
                slow = "" if seen.worst.cpu_ms <= STEP_MS_MAX else f"  {seen.worst.doing}"
                print(
                    f"{door:5} {state.value:8} {arguments.messages} messages, {seen.rows} rows in "
                    f"the mirror, memory x {seen.growth:.3f}, worst step "
                    f"{seen.worst.cpu_ms:.1f} ms ({seen.long} were longer, once){late}{slow}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
