"""pgbench's own scripts, by the real program, beside PostgreSQL 15.

    python -m benchmarks.pgbench [--seconds 5] [--clients 1 8 32]
                                 [--modes simple extended prepared]
                                 [--scripts select-only simple-update tpcb-like]

Metrics: `select_only_prepared_1` is transactions a second of `-S` in prepared mode by one client,
`select_only_prepared_1_over_postgres` the same as a ratio, and so on for `-N` (`simple_update_…`)
and the TPC-B-like script. PostgreSQL's processes use both of two cores, Tailrace's loop one. In
both a transaction that cannot be serialized is tried again.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import tempfile
from itertools import product
from pathlib import Path

import asyncpg

from benchmarks.outcome import print_outcome
from benchmarks.servers import BINARIES, postgres_installed, postgres_server, tailrace_server

TRIES_MAX = 100
TELLERS = 10
ACCOUNTS = 100_000
"""Accounts of scale 1, which pgbench draws from."""

SCRIPTS = ["select-only", "simple-update", "tpcb-like"]
MODES = ["simple", "extended", "prepared"]

TABLES = """
CREATE TABLE pgbench_branches (bid INT4 PRIMARY KEY, bbalance INT4, filler CHAR(88));
CREATE TABLE pgbench_tellers (tid INT4 PRIMARY KEY, bid INT4, tbalance INT4, filler CHAR(84));
CREATE TABLE pgbench_accounts (aid INT4 PRIMARY KEY, bid INT4, abalance INT4, filler CHAR(84));
CREATE TABLE pgbench_history (
    id SERIAL PRIMARY KEY, tid INT4, bid INT4, aid INT4, delta INT4, mtime TIMESTAMP,
    filler CHAR(22)
);
"""


async def fill(port: int, database: str, accounts: int) -> None:
    """What `pgbench -i` makes, the same on both sides: the history has a key."""
    client = await asyncpg.connect(host="127.0.0.1", port=port, user="root", database=database)
    try:
        await client.execute(TABLES)
        await client.execute("INSERT INTO pgbench_branches VALUES (1, 0, NULL)")
        tellers = [(number, 1, 0, "") for number in range(1, TELLERS + 1)]
        await client.copy_records_to_table("pgbench_tellers", records=tellers)
        rows = [(number, 1, 0, "") for number in range(1, accounts + 1)]
        await client.copy_records_to_table("pgbench_accounts", records=rows)
    finally:
        await client.close()


def run(
    port: int, database: str, script: str, mode: str, clients: int, sizes: argparse.Namespace
) -> float:
    """Transactions a second, connecting left out."""
    command = [
        str(BINARIES / "pgbench"), "-n", "-b", script, "-M", mode, "-c", str(clients),
        "-T", str(sizes.seconds), "--max-tries", str(TRIES_MAX), "-s", "1",
        "-h", "127.0.0.1", "-p", str(port), "-U", "root", database,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("tps = ")]
    return float(line.split()[2])


def measure(port: int, database: str, sizes: argparse.Namespace) -> dict[str, float]:
    asyncio.run(fill(port, database, ACCOUNTS))
    return {
        f"{script.replace('-', '_')}_{mode}_{clients}": run(
            port, database, script, mode, clients, sizes
        )
        for script, mode, clients in product(sizes.scripts, sizes.modes, sizes.clients)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--scripts", nargs="+", choices=SCRIPTS, default=SCRIPTS)
    sizes = parser.parse_args()
    if not postgres_installed():
        parser.exit(1, "pgbench comes with PostgreSQL 15, which is not installed\n")
    with tempfile.TemporaryDirectory(prefix="tailrace-pgbench-") as name:
        folder = Path(name)
        with tailrace_server(folder) as (_, port):
            metrics = measure(port, "defaultdb", sizes)
        with postgres_server(folder) as port:
            beside = measure(port, "postgres", sizes)
        for metric, value in beside.items():
            metrics[f"{metric}_over_postgres"] = metrics[metric] / value
    print_outcome("pgbench", metrics)


if __name__ == "__main__":
    main()
