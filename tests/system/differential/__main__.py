"""Shows how this server differs from PostgreSQL 15.

python -m tests.system.differential [--topic NAME]... [--seed N] [--all]

Only differences of no documented class are printed, or with --all every one, by class.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from benchmarks.servers import postgres_server
from tests.harness.server_process import ServerProcess
from tests.system.differential.classes import class_of
from tests.system.differential.comparison import Comparison, Difference, databases
from tests.system.differential.topic import SEED, topics


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topic", action="append", help="only these topics")
    parser.add_argument("--seed", type=int, default=SEED, help="of the statements that are made")
    parser.add_argument("--all", action="store_true", help="documented differences, too")
    arguments = parser.parse_args()
    comparison = Comparison()
    with tempfile.TemporaryDirectory(prefix="tailrace-differential-") as name:
        folder = Path(name)
        with postgres_server(folder) as theirs, ServerProcess(folder / "t", "--insecure") as ours:
            for topic in topics(arguments.seed):
                if arguments.topic and topic.name not in arguments.topic:
                    continue
                with databases(theirs, ours.pg_port, topic.name) as clients:
                    comparison.run(topic, *clients)
    return _report(comparison, everything=arguments.all)


def _report(comparison: Comparison, *, everything: bool) -> int:
    by_class: dict[str, list[Difference]] = defaultdict(list)
    for difference in comparison.differences:
        found = class_of(difference)
        by_class[found.name if found is not None else ""].append(difference)
    unknown = by_class.pop("", [])
    if everything:
        for name, differences in sorted(by_class.items()):
            print(f"== {name}\n")
            print(*differences, sep="\n\n", end="\n\n")
    print(*unknown, sep="\n\n", end="\n\n")
    for name, differences in sorted(by_class.items()):
        print(f"{len(differences):6} {name}")
    print(f"{len(unknown):6} of no documented class")
    print(f"{comparison.statements} statements, {comparison.executions} executions")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
